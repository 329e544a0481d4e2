package persistent_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/persistent"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
)

// TestEven: kernels divide a layer completely, by default and with any setting. There are enough
// warps, lanes and pieces for all units, sequences and columns, and enough memory for all of them.
// The test derives the kernels' numbers from their constants as they do.
func TestEven(t *testing.T) {
	hiddens, batches := []int{1, 37, 256, 520, 1536}, []int{1, 17, 121, 260}
	if testing.Short() {
		hiddens, batches = []int{37, 256}, []int{3, 121}
	}
	knobs := []knob.Params{nil, {"share": 3}, {"samples": 24}, {"samples": 40, "tensor": 1}, {"tile": 5, "tensor": 2}, {"tile": 4, "tensor": 1}}
	seen := map[string]bool{}
	for i, c := range []*cell.Cell{cell.LSTM, cell.GRU, cell.RNNTanh, cell.RNNReLU, cell.LSTMPeephole} {
		for _, hidden := range hiddens {
			for j, batch := range batches {
				even(t, c, hidden, batch, knobs[(i+j+hidden)%len(knobs)], seen)
			}
		}
	}
	for i, c := range []*cell.Cell{cell.LSTM, cell.GRU, cell.RNNReLU} {
		even(t, c, 37, []int{3, 121, 17}[i], knob.Params{"resident": 7, "tensor": 1, "lanes": 8 << i}, seen)
		even(t, c, 2300, 9, nil, seen)
		even(t, c, 300, 9, knob.Params{"resident": 7, "tensor": 1}, seen)
		even(t, c, []int{37, 333, 1100}[i], []int{65, 200, 1000}[i], knob.Params{"resident": 9}, seen)
		even(t, c, []int{37, 333, 2400}[i], []int{65, 200, 33}[i], knob.Params{"wideback": 1}, seen)
		even(t, cell.RNNReLU, []int{70, 2048, 3008}[i], []int{97, 200, 43}[i], knob.Params{"resident": 9, "cluster": 2}, seen)
	}
	for _, v := range persistent.Variants {
		if !seen[v.Name] {
			t.Errorf("none is of %s", v.Name)
		}
	}
}

// even checks all divisions of a layer and its gradient.
func even(t *testing.T, c *cell.Cell, hidden, batch int, k knob.Params, seen map[string]bool) {
	t.Helper()
	for _, w := range []struct {
		element driver.Element
		exact   bool
	}{{driver.Single, true}, {driver.Single, false}, {driver.Brain, false}, {driver.Half, false}} {
		for _, gradient := range []bool{false, true} {
			for _, d := range persistent.Divisions(c, hidden, batch, w.element, w.exact, gradient, k, h200()) {
				seen[d.Kernel] = true
				v := divided{Division: d, hidden: hidden, batch: batch, gates: c.Recurrent, size: w.element.Bytes(), of: constants(d.Sizes)}
				v.check()
				for _, why := range v.wrong {
					t.Errorf("%v %d×%d %v %v: %s: %s %s", c, batch, hidden, w.element, k, why, d.Kernel, d.Sizes)
				}
			}
		}
	}
}

// constants returns the constants in a kernel's text.
func constants(sizes string) map[string]int {
	of := map[string]int{}
	for _, s := range strings.Split(sizes, ", ") {
		name, value, _ := strings.Cut(s, " = ")
		of[name], _ = strconv.Atoi(value)
	}
	return of
}

// A divided is a division and what it divides.
type divided struct {
	persistent.Division
	hidden, batch, gates, size int
	of                         map[string]int
	wrong                      []string
}

// whole demands that the first number is a multiple of the second.
func (d *divided) whole(what string, n, of int) {
	if of < 1 || n%of != 0 {
		d.wrong = append(d.wrong, fmt.Sprintf("%s: %d in pieces of %d", what, n, of))
	}
}

// least demands at least as many as needed.
func (d *divided) least(what string, n, need int) {
	if n < need {
		d.wrong = append(d.wrong, fmt.Sprintf("%s: %d of %d", what, n, need))
	}
}

// same demands an exact number.
func (d *divided) same(what string, n, want int) {
	if n != want {
		d.wrong = append(d.wrong, fmt.Sprintf("%s: %d, not %d", what, n, want))
	}
}

// power demands a power of two.
func (d *divided) power(what string, n int) {
	if n < 1 || n&(n-1) != 0 {
		d.wrong = append(d.wrong, fmt.Sprintf("%s: %d is no power of two", what, n))
	}
}

func up(n, to int) int { return (n + to - 1) / to * to }

func two(n int) int {
	p := 1
	for p < n {
		p *= 2
	}
	return p
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// check checks the division by its kernel.
func (d *divided) check() {
	d.whole("threads in warps", d.Threads, 32)
	d.least("threads", 1024, d.Threads)
	d.least("shared memory", h200().Shared, d.Shared)
	switch d.Kernel {
	case "simt":
		d.cluster()
	case "mma", "mma-poll", "mma-bulk":
		d.fragments()
	case "mma-stream":
		d.stream()
	case "mma-wide":
		d.wide()
	case "backward-wide":
		d.wideBack()
	case "wholerow":
		d.rows()
	case "backward-bulk", "backward-stream":
		d.backturns()
	case "backward-simt", "backward-mma":
		d.back()
	case "block":
		d.block()
	case "backward-block":
		d.backblocks()
	default:
		d.wrong = append(d.wrong, "this test does not know how the kernel divides a layer")
	}
}

// groups returns how many units of so many sequences there are, and how many groups run them.
func (d *divided) groups(samples int) (all, groups int) {
	all = (d.batch + samples - 1) / samples
	return all, min(all, d.Together)
}

// cluster checks simt.cu.
func (d *divided) cluster() {
	c := d.of
	units, samples, tile, lanes, chunks, resident := c["UNITS"], c["SAMPLES"], c["TILE"], c["LANES"], c["CHUNKS"], c["RESIDENT"]
	rows := two(tile) * two(d.gates)
	each := max(1, rows*samples/lanes)
	d.power("sequences", samples)
	d.power("lanes", lanes)
	d.least("a warp's lanes", 32, lanes)
	d.least("lanes for sums", lanes, rows*samples/each)
	d.whole("sequences that stay together", samples, each)
	d.whole("lanes of a value", lanes, rows*samples/each)
	d.whole("tiles of a block", units, tile)
	d.same("threads", d.Threads, units/tile*lanes)
	d.least("units", units*c["CLUSTER"], d.hidden)
	step := max(1, 4/samples)
	columns := chunks * step * lanes
	d.least("columns", columns, d.hidden)
	d.whole("states in fours", step*samples, 4)
	if resident < chunks {
		d.whole("weights in fours", step*tile*d.gates, 4)
	}
	d.least("pieces", chunks, resident)
	d.least("shared memory", d.Shared, 128+2*columns*samples*4+(chunks-resident)*step*tile*d.gates*d.Threads*4)
	if c["SPREAD"] == 1 {
		_, groups := d.groups(samples)
		room := up(d.hidden*samples, 2) / 2 * 8
		if units*samples >= 8 {
			room = up(d.hidden*samples, 4)*2 + 4
		}
		d.least("memory", int(d.Room), 256+4*groups*room)
	} else {
		d.least("bytes that a barrier counts", 1<<20-1, d.hidden*samples*4)
	}
}

// fragments checks mma.cu, mma_poll.cu and mma_bulk.cu.
func (d *divided) fragments() {
	c := d.of
	units, sequences, samples, band, split, chunks, resident := c["UNITS"], c["SEQUENCES"], c["SAMPLES"], c["BAND"], c["SPLIT"], c["CHUNKS"], c["RESIDENT"]
	parts, few, exact := max(1, c["PARTS"]), 16/d.size, c["EXACT"]
	tiles := (d.gates*band + 15) / 16
	across := 32 / band
	each := max(1, samples/(across*split))
	d.whole("sequences in eights", samples, 8)
	d.whole("a warp's sequences", 8, across)
	d.least("places for sequences", samples*parts, sequences)
	d.least("sequences after sums", each*across*split, samples)
	d.same("sequences of warps that run cells", each*across*min(split, samples/across), samples)
	d.whole("bands of a block", units, band)
	d.same("threads", d.Threads, units/band*split*32)
	d.least("units", units*c["CLUSTER"], d.hidden)
	d.least("bytes of columns", chunks*split*64, up(d.hidden, few)*d.size)
	d.least("pieces", chunks, resident)
	width := chunks * split * 64
	row := width + 64*bit(width%128 == 0)
	sums, far := d.Threads/32*tiles*samples*20*4, (chunks-resident)*tiles*2*d.Threads*16
	_, groups := d.groups(sequences)
	side := 1 // columns in a word of a fragment
	if exact == 1 || d.size == 2 {
		side = 2
	}
	words := up(d.hidden, side) * d.size / 4
	switch d.Kernel {
	case "mma":
		buffers := 2 - c["SPREAD"]
		d.least("shared memory", d.Shared, 128+buffers*samples*row+samples*units*d.size+sums+far+4*min(1, c["STREAMED"])*each*c["STREAMED"]*d.Threads*4)
		if c["STREAMED"] > 0 {
			d.same("sequences of a thread with inputs on the way", each, 1)
		}
		if c["SPREAD"] == 1 {
			d.same("sequences that are sent", sequences, samples)
			d.least("memory", int(d.Room), 256+groups*up(words*samples, 2)*16)
		} else {
			d.whole("units in pieces of 16 bytes", units, few)
			d.least("bytes that a barrier counts", 1<<20-1, sequences*up(d.hidden, few)*d.size)
		}
		if c["SPREAD"] == 0 && c["CLUSTER"] == 1 {
			d.least("a row of a block alone", width, units*d.size)
		}
	case "mma-poll":
		room := 0
		if c["BOUNDED"] > 0 {
			room += 32 + 2*chunks*split*sequences*16
		}
		if c["BOUNDED"] != 1 {
			room += 32 + 4*chunks*split*sequences*16
		}
		d.least("shared memory", d.Shared, 2*sums+far)
		d.least("memory", int(d.Room), 256+4*groups*room)
	case "mma-bulk":
		all, groups := d.groups(samples)
		passes := (all + groups - 1) / groups
		d.same("sequences of a turn", sequences, samples)
		d.least("turns", passes, c["SLOTS"])
		d.least("shared memory", d.Shared, 128+c["SLOTS"]*samples*row+sums+far+passes*each*d.States*d.Threads*4)
		d.least("memory", int(d.Room), 256+all*(128+2*samples*row))
	}
}

// stream checks mma_stream.cu.
func (d *divided) stream() {
	c := d.of
	units, sequences, samples, split, chunks := c["UNITS"], c["SEQUENCES"], c["SAMPLES"], c["SPLIT"], c["CHUNKS"]
	near, streamed, stage, ring := c["NEAR"], c["PASSING"], c["STAGE"], c["RING"]
	far, half := 2*chunks-near-streamed, d.gates*units/2*64*split // four lanes of 16 bytes have two rows
	d.same("units of a warp", c["BAND"], units)
	d.whole("units in pairs", units, 2)
	d.whole("sequences in eights", samples, 8)
	d.least("places for sequences", c["PARTS"]*samples, sequences)
	d.least("sequences of the last part", sequences-(c["PARTS"]-1)*samples, 1)
	d.same("threads", d.Threads, split*32)
	d.least("units", units*c["CLUSTER"], d.hidden)
	d.least("bytes of columns", chunks*split*64, up(d.hidden, 16/d.size)*d.size)
	d.least("halves in shared memory", far, 0)
	d.least("halves that are streamed", streamed, stage)
	d.whole("halves that are streamed", streamed, stage)
	d.least("shared memory", d.Shared, up(8*split*ring+16, 128)+half*(ring*stage+far))
	d.least("bytes that a barrier counts", 1<<20-1, half/split*stage)
	d.least("bytes of a copy, for sums of eight sequences", half/split*stage, d.gates*units*8*4)
	d.least("copies that the L2 cache keeps", streamed/stage, c["KEPT"])
	d.least("portions of states at a time", c["AHEAD"], 2)
	image := chunks * split * sequences * 16 // words
	room, wide := 0, 1
	if c["BOUNDED"] > 0 {
		room += 32 + 2*image
	}
	if c["BOUNDED"] != 1 {
		room, wide = room+32+4*image, 2
	}
	d.same("groups", d.Together, 1)
	d.least("memory", int(d.Room), 256+4*room+c["CLUSTER"]*(4*image*wide+half*streamed))
}

// wide checks mma_wide.cu.
func (d *divided) wide() {
	c := d.of
	samples, products, held, portion, depth := c["SAMPLES"], c["PRODUCTS"], c["HELD"], c["PORTION"], c["DEPTH"]
	all, groups := d.groups(samples)
	passes, portions, rows, partners := (all+groups-1)/groups, (products+portion-1)/portion, 16/c["BAND"], c["PARTNERS"]
	d.same("bytes of a value", d.size, 2)
	d.same("threads", d.Threads, 384)
	d.same("rows of a unit", rows, 1+3*bit(d.gates > 1))
	d.same("units of a block", c["UNITS"], 4*c["BAND"])
	d.least("units", c["UNITS"]*c["CLUSTER"]/partners, d.hidden)
	d.same("blocks", d.Blocks, c["CLUSTER"])
	d.whole("blocks in clusters", c["CLUSTER"], c["COPIERS"]*partners)
	d.least("partners of cells with one gate, which copy for themselves", 1, (partners-1)*max(rows, c["COPIERS"]))
	d.same("columns of all warpgroups", 32*products*partners, c["UNITS"]*c["CLUSTER"]/partners)
	d.whole("products in pairs", products, 2)
	d.whole("weights in registers in pairs", held, 2)
	d.least("products", products, held)
	d.whole("sequences of two warpgroups in eights", samples, 16)
	d.least("sequences of a product", 256, samples)
	d.least("lanes that look at counters", 32, portions)
	d.least("copies", depth, 2)
	d.least("bytes that a barrier counts", 1<<20-1, portion*samples*32)
	d.least("registers that a launch of 384 threads gives to share", 3*(65536/384/8*8), 2*c["MORE"]+c["FEWER"]) // otherwise warps would wait for ever
	shared := up(32*depth+16*(partners-1), 128) + 2*depth*portion*samples*32 + 2*(products-held)*2048 + 2*samples/16*2048*partners + passes*samples/4/rows/partners*d.States*1024
	d.least("shared memory", d.Shared, shared)
	d.least("memory", int(d.Room), 256+all*2*partners*(portions*128+2*products*samples*32))
}

// rows checks wholerow.cu.
func (d *divided) rows() {
	c := d.of
	units, sequences, parts := c["UNITS"], c["SEQUENCES"], 1+c["EXACT"]
	d.whole("gates of a tile of rows", 16, two(d.gates)*c["BAND"])
	d.same("units of a warp", c["BAND"], 4)
	d.whole("units of a block in warps", units, 4)
	d.same("threads", d.Threads, units/4*32)
	d.least("units", units*c["CLUSTER"], d.hidden)
	d.least("columns of a product", 8, sequences*parts)
	four := 16 * two((sequences*parts+1)/2)
	d.least("bytes of four units", four, sequences*8*parts)
	d.same("single precision in halves", bit(d.size == 4), c["EXACT"])
	mine := d.gates // inputs of a lane, without those that only the rest of the cell reads
	if parts > 1 {
		mine = 2
	}
	d.least("shared memory", d.Shared, 128+2*up(d.hidden, 16)/4*four+4*4*d.Threads*mine)
	d.least("bytes that a barrier counts", 1<<20-1, up(d.hidden, 4)/4*four)
}

// back checks backward.cu with backward_mma.cu or backward_simt.cu.
func (d *divided) back() {
	c := d.of
	clusters, cluster, units, samples, warps, chunks, resident, same := c["CLUSTERS"], c["CLUSTER"], c["UNITS"], c["SAMPLES"], c["WARPS"], c["CHUNKS"], c["RESIDENT"], c["SAME"]
	group, line, threads := clusters*cluster, clusters*units, warps*32
	values, share := units*samples, clusters*units*samples
	exact, tensor := c["EXACT"], d.Kernel == "backward-mma"
	d.same("threads", d.Threads, threads)
	d.same("blocks", d.Blocks, group)
	d.least("units", group*units, d.hidden)
	d.whole("units in pairs", units, 2)
	d.power("lanes of a sum", same)
	d.least("a warp's lanes", 32, same)
	if same > 1 {
		d.least("threads for sums", threads, values*same)
	}
	grads, scales, pieces, per := 0, 0, 0, 0
	if tensor {
		d.whole("sequences in eights", samples, 8)
		d.least("columns", chunks*64, d.gates*units*d.size)
		scales = exact * 8 * samples
		grads = samples*(chunks*64+64*bit(chunks%2 == 0)) + scales
		rounds := ((group*units+15)/16 + warps - 1) / warps
		d.least("rows", rounds*warps*16, group*units)
		pieces, per = rounds*chunks, 8
		d.least("threads that clear", threads, samples)
	} else {
		out, lanes, step := c["OUT"], c["LANES"], max(1, 4/samples)
		d.power("sequences", samples)
		d.whole("threads in lanes", threads, lanes)
		d.whole("units of lanes", out, lanes)
		d.whole("units that are sent", units, out/lanes)
		d.least("columns", chunks*lanes*step, d.gates*units)
		d.whole("gradients in fours", step*samples, 4)
		grads = chunks * lanes * step * samples * 4
		rounds := ((group*units+out-1)/out*lanes + threads - 1) / threads
		d.least("rows", rounds*(threads/lanes*out), group*units)
		pieces, per = rounds*chunks, step*out
		d.whole("weights in fours", per, 4)
		d.whole("what is sent", share, min(4, out/lanes*samples))
	}
	d.least("pieces", pieces, resident)
	alone, spread := group == 1, c["SPREAD"] == 1
	need := 128 + grads + 4*per*threads*(pieces-resident)
	if cluster > 1 || alone {
		need += 2 * 4 * cluster * share
	}
	if !spread && !alone {
		need += grads - scales
	}
	if spread {
		need += up(values*(clusters|1), 4) * 4
		_, groups := d.groups(samples)
		d.whole("words in pairs", line, 2)
		d.least("memory", int(d.Room), 256+groups*up(group*share, 2)*16)
	}
	d.least("shared memory", d.Shared, need)
	d.least("bytes that a barrier counts", 1<<20-1, cluster*line*4*samples)
}

// backturns checks backward_bulk.cu.
func (d *divided) backturns() {
	c := d.of
	clusters, cluster, units, samples, warps, band, height, split := c["CLUSTERS"], c["CLUSTER"], c["UNITS"], c["SAMPLES"], c["WARPS"], c["BAND"], c["HEIGHT"], c["SPLIT"]
	chunks, resident, slots, exact, worded := c["CHUNKS"], c["RESIDENT"], c["SLOTS"], c["EXACT"], c["WORDED"]
	threads, values := warps*32, units*samples
	d.same("threads", d.Threads, threads)
	d.same("blocks", d.Blocks, clusters*cluster)
	d.least("units", clusters*cluster*units, d.hidden)
	d.whole("sequences in eights", samples, 8)
	d.whole("bands of a block", units, band)
	d.whole("bands of a tile", 16, band)
	d.same("warps for rows", warps*16*height, cluster*units*split)
	d.whole("a warp's values", values, 32)
	each := (values + threads - 1) / threads
	runs := clusters * units / band
	piece := d.gates * band * d.size
	per := chunks
	if exact == 1 {
		piece = up(piece, 64)
		per = piece / 64
	}
	d.whole("pieces of a band", chunks, per)
	d.whole("values of a piece", piece, d.size)
	d.least("columns", split*chunks*64, runs*piece)
	row := split*chunks*64 + 64*bit(split*chunks%2 == 0)
	scales := 0
	if exact == 1 {
		scales = split * (chunks / per) * samples * 4
		d.least("scales", split*(chunks/per), runs)
	}
	image, sums := scales+samples*row, 4*cluster*split*values*4
	d.whole("an image in sixteens", image, 16)
	all, groups := d.groups(samples)
	passes := (all + groups - 1) / groups
	chunk := height * 2 * 16 * threads
	streamed, portion, depth := c["PASSING"], c["PORTION"], c["DEPTH"]
	far := chunks - resident - streamed
	d.least("pieces", far, 0)
	d.whole("pieces that are streamed", streamed, portion)
	d.same("copies where some are streamed", bit(depth > 0), bit(streamed > 0))
	d.least("shared memory", d.Shared, 128+max(chunk, slots*image+sums+(far+depth*portion)*chunk+(warps*depth+1)/2*16+passes*each*d.States*threads*4))
	if resident > 0 && resident < chunks {
		d.least("room where weights pass", slots*image+sums, chunk)
	}
	wide := d.gates * band * d.size / 4
	record := runs * (wide + exact)
	if worded == 1 {
		d.same("turns", passes, 1)
		d.same("images", slots, 2)
		d.least("memory", int(d.Room), 256+all*cluster*up(record*samples, 2)*16)
	} else {
		d.least("memory", int(d.Room), 256+all*cluster*(128+2*image)+d.Blocks*streamed*chunk)
	}
	d.least("bytes that a barrier counts", 1<<20-1, max(image, sums/4, portion*chunk/warps))
}

func h200() driver.Properties {
	return driver.Properties{Capability: 90, Hopper: true, SMs: 132, Shared: 227 << 10, L2: 60 << 20, Clusters: map[int]int{1: 132, 2: 66, 4: 31, 8: 15, 16: 7}}
}
