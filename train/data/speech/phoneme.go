package speech

import "strings"

// A phoneme is a sound of the generated language. It has two resonances, the formants.
type phoneme struct {
	first, second float64 // formants in Hz
	voiced        float64 // share of the voice; the rest is breath
	loud          float64
	seconds       float64
	letter        byte // how it is written

	// Beside a letter of these, the phoneme is written as other.
	before, after string
	other         byte
}

// phonemes are those of the language. Short and long vowels sound alike, and so do letters that depend
// on their neighbours: n and m, k and c, s and z.
var phonemes = []phoneme{
	{first: 730, second: 1090, voiced: 1, loud: 1, seconds: 0.07, letter: 'a'},
	{first: 730, second: 1090, voiced: 1, loud: 1, seconds: 0.14, letter: 'y'},
	{first: 300, second: 2250, voiced: 1, loud: 0.8, seconds: 0.07, letter: 'i'},
	{first: 300, second: 2250, voiced: 1, loud: 0.8, seconds: 0.14, letter: 'e'},
	{first: 320, second: 880, voiced: 1, loud: 0.8, seconds: 0.07, letter: 'u'},
	{first: 320, second: 880, voiced: 1, loud: 0.8, seconds: 0.14, letter: 'o'},
	{first: 400, second: 1400, voiced: 0.9, loud: 0.6, seconds: 0.06, letter: 'l'},
	{first: 1500, second: 2300, voiced: 0.1, loud: 0.4, seconds: 0.08, letter: 'f'},
	{first: 250, second: 1250, voiced: 0.95, loud: 0.5, seconds: 0.07, letter: 'n', before: "fkc", other: 'm'},
	{first: 1800, second: 3000, voiced: 0, loud: 0.7, seconds: 0.06, letter: 'k', before: "ie", other: 'c'},
	{first: 2600, second: 3300, voiced: 0, loud: 0.5, seconds: 0.1, letter: 's', after: "yeo", other: 'z'},
}

// letters of the language.
const letters Alphabet = "ayieuolfnmkcsz"

// spell writes phonemes as letters.
func spell(said []phoneme) string {
	var text strings.Builder
	for i, p := range said {
		letter := p.letter
		if i+1 < len(said) && strings.IndexByte(p.before, said[i+1].letter) >= 0 || i > 0 && strings.IndexByte(p.after, said[i-1].letter) >= 0 {
			letter = p.other
		}
		text.WriteByte(letter)
	}
	return text.String()
}
