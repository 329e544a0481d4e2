package plots

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	weight "golang.org/x/image/font"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"rnnbench/plots/quantity"
)

// A look is the colour, dash and mark of a series. Usually each of the three alone distinguishes it.
type look struct {
	color  color.NRGBA
	dashes []vg.Length
	glyph  draw.GlyphDrawer
	hollow bool
}

func rgb(hex uint32) color.NRGBA {
	return color.NRGBA{R: uint8(hex >> 16), G: uint8(hex >> 8), B: uint8(hex), A: 255}
}

// techniqueLook returns the look of a technique, the same in every figure. Readers with any colour
// vision can distinguish its colours, which are Okabe and Ito's.
func techniqueLook(label string) (look, bool) {
	switch label {
	case "naive":
		return look{color: rgb(0x4d4d4d), glyph: draw.CircleGlyph{}}, true
	case "cudnnstyle":
		return look{color: rgb(0x0072b2), glyph: draw.BoxGlyph{}}, true
	case "persistent":
		return look{color: rgb(0xd55e00), glyph: draw.PyramidGlyph{}}, true
	case "scan":
		return look{color: rgb(0x009e73), glyph: diamond{}}, true
	case "scc":
		return look{color: rgb(0xcc79a7), glyph: nabla{}}, true
	}
	if quantity.Vendor(label) {
		return look{color: rgb(0x000000), dashes: []vg.Length{6, 3}, glyph: draw.CircleGlyph{}, hollow: true}, true
	}
	return look{}, false
}

// variations is the number of dash patterns, which distinguish series of one colour.
const variations = 4

// variantLook returns the look of the nth series that is not a technique by itself.
func variantLook(n int) look {
	colors := []uint32{0x0072b2, 0xe69f00, 0x009e73, 0xd55e00, 0x56b4e9, 0x882255, 0x999933, 0xcc79a7, 0x332288, 0x4d4d4d}
	glyphs := marks()
	dashes := [variations][]vg.Length{nil, {6, 2}, {2, 2}, {8, 2, 2, 2}}
	return look{color: rgb(colors[n%len(colors)]), glyph: glyphs[n%len(glyphs)], dashes: dashes[(n/len(colors))%len(dashes)]}
}

// looks returns a look for each label. Series of one family share a colour and differ by dash and
// mark. Each series gets its own colour if all are one family, or the family is larger than
// variations.
func looks(all []Series) map[string]look {
	families := map[string][]string{}
	for _, s := range all {
		if h := s.head(); !slices.Contains(families[h], s.Label) {
			families[h] = append(families[h], s.Label)
		}
	}
	head := func(s Series) string {
		h := s.head()
		if many := len(families[h]) > variations && !quantity.Vendor(h); many || len(families) == 1 {
			return s.Label
		}
		return h
	}
	var heads []string
	for _, s := range all {
		if h := head(s); !slices.Contains(heads, h) {
			heads = append(heads, h)
		}
	}
	byHead := map[string]look{}
	taken := map[color.NRGBA]bool{}
	vendors := marks()[:4]
	seen := 0 // variants of a vendor's library
	for _, h := range heads {
		if l, ok := techniqueLook(h); ok {
			if quantity.Vendor(h) {
				l.glyph = vendors[seen%len(vendors)]
				seen++
			}
			byHead[h] = l
			taken[l.color] = true
		}
	}
	n := 0
	for _, h := range heads {
		if _, ok := byHead[h]; ok {
			continue
		}
		l := variantLook(n)
		for tries := 0; taken[l.color] && tries < 10; tries++ {
			n++
			l = variantLook(n)
		}
		n++
		byHead[h] = l
	}
	return vary(all, head, byHead)
}

// vary returns a look for each series: the look of its family, but with another dash for all but
// the first, and with another mark if the mark is taken.
func vary(all []Series, head func(Series) string, byHead map[string]look) map[string]look {
	out := map[string]look{}
	shapes := map[shape]string{}    // label that has the mark; a technique keeps its own
	for _, h := range labels(all) { // in a fixed order, since variants of one library may have the same look
		if _, ok := techniqueLook(h); !ok {
			continue
		}
		l, ok := byHead[h]
		if _, other := shapes[l.shape()]; ok && !other {
			shapes[l.shape()] = h
		}
	}
	lines := map[string]bool{} // colours and dashes in use
	line := func(l look) string { return fmt.Sprint(l.color, l.dashes) }
	for _, l := range byHead {
		lines[line(l)] = true
	}
	before := map[string]int{} // series of each family so far
	for _, s := range all {
		if _, ok := out[s.Label]; ok {
			continue
		}
		h := head(s)
		l := byHead[h]
		if k := before[h]; s.Reference {
			l.dashes, l.hollow = []vg.Length{1.5, 2.5}, true
		} else if k > 0 {
			own := l.dashes
			for next := k; next < k+variations; next++ {
				l.dashes, l.hollow = variantLook(10*next).dashes, next%2 == 1
				if l.dashes == nil && quantity.Vendor(h) { // a vendor's library is always dashed
					l.dashes = own
				}
				if !lines[line(l)] {
					break
				}
			}
			lines[line(l)] = true
			before[h]++
		} else {
			before[h]++
		}
		l = freeMark(l, func(x shape) bool { whose, ok := shapes[x]; return ok && whose != s.Label })
		shapes[l.shape()] = s.Label
		out[s.Label] = l
	}
	return out
}

// write returns the style of text of that size.
func write(size vg.Length, c color.Color) text.Style {
	return text.Style{
		Color:   c,
		Font:    font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size),
		Handler: text.Plain{Fonts: font.DefaultCache},
		XAlign:  draw.XLeft,
		YAlign:  draw.YBottom,
	}
}

func bold(s text.Style) text.Style {
	s.Font.Weight = weight.WeightBold
	return s
}

// ink, faint and rule are the colours of text, minor text and grid lines. They are functions so
// that nothing can change them.
func ink() color.NRGBA   { return rgb(0x222222) }
func faint() color.NRGBA { return rgb(0x666666) }
func rule() color.NRGBA  { return rgb(0xe4e4e4) }

// mix blends two colours: share 0 is a, 1 is b.
func mix(a, b color.NRGBA, share float64) color.NRGBA {
	m := func(x, y uint8) uint8 { return uint8(math.Round(float64(x) + share*(float64(y)-float64(x)))) }
	return color.NRGBA{R: m(a.R, b.R), G: m(a.G, b.G), B: m(a.B, b.B), A: 255}
}

// ramp interpolates between colours at equal distances.
func ramp(share float64, stops ...uint32) color.NRGBA {
	share = math.Min(math.Max(share, 0), 1) * float64(len(stops)-1)
	i := min(int(share), len(stops)-2)
	return mix(rgb(stops[i]), rgb(stops[i+1]), share-float64(i))
}

// textColorOn returns a colour of text that is readable on c.
func textColorOn(c color.NRGBA) color.NRGBA {
	linear := func(v uint8) float64 { return math.Pow(float64(v)/255, 2.2) }
	if 0.2126*linear(c.R)+0.7152*linear(c.G)+0.0722*linear(c.B) > 0.2 {
		return rgb(0x111111)
	}
	return rgb(0xffffff)
}
