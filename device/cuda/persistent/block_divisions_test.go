package persistent_test

// block checks block.cu.
func (d *divided) block() {
	samples, warps := d.of["SAMPLES"], (d.hidden+7)/8
	tiles, chunks := (d.gates+1)/2, up(d.hidden*2, 64)/64
	d.same("blocks", d.Blocks, 1)
	d.same("units of a warp", d.of["BAND"], 8)
	d.same("threads for units", d.Threads, 32*warps)
	d.same("bytes of a weight", d.size, 2)
	d.whole("a thread's values", samples, 4)
	d.least("columns of a tile", 8, samples)
	d.least("registers for weights", 65536/d.Threads, 8*tiles*chunks)
	d.least("shared memory", d.Shared, 2*(8*(64*chunks+64*bit(chunks%2 == 0))+4*32)+4*4*d.Threads*d.gates*samples/4)
}

// backblocks checks backward_block.cu.
func (d *divided) backblocks() {
	samples, line := d.of["SAMPLES"], up(d.hidden, 16)
	d.same("blocks", d.Blocks, 1)
	d.same("threads for units", d.Threads, line*2)
	d.same("bytes of a weight", d.size, 2)
	d.power("sequences", samples)
	d.least("a thread's values, of which there is one", samples/2, 1)
	d.least("columns of a tile", 8, samples)
	chunks := up(d.gates*line*2, 64) / 64
	row := 64*chunks + 64*bit(chunks%2 == 0)
	d.least("registers for weights", 65536/d.Threads, 8*chunks)
	d.least("shared memory", d.Shared, 2*(8*row+4*32))
}
