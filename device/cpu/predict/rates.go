package predict

import "rnnbench/device/cpu/simd"

// rates are the speeds of one worker, per second, and the costs of operations, in seconds. A line
// is 16 floats. Costs "extra" come on top of the time by speed.
type rates struct {
	// Products.
	peak     float64    // operations per second
	read     [4]float64 // bytes of weights per second in products of one row, from each memory
	narrow   float64    // of an element of 16 bits in a product of one or two rows, extra
	widen    float64    // of an element of 16 bits in products of many rows
	tile     float64    // of a tile, extra
	results  float64    // of the results of a row of a tile, at least
	call     float64    // of a product, extra
	pack     float64    // of a float of an operand that the product packs
	integer  float64    // operations per second of products of 8-bit integers
	quantize float64    // of a weight that is packed as an 8-bit integer
	half     float64    // operations per second of BF16 products in hardware
	load     [4]float64 // bytes of weights per second in BF16 products of few rows, from each memory
	block    float64    // of a block of tiles, extra
	store    float64    // of a tile of results
	round    float64    // of a float that the product rounds to BF16
	prepare  [4]float64 // bytes per second of packing weights ahead, from each memory

	// Point-wise operations.
	stream      [4]float64 // bytes per second, from each memory
	function    float64    // of a sigmoid of a line of a cell
	tanh        float64    // of a tanh,
	line        float64    // of another operation of a line of a cell
	row         float64    // of a row of a cell
	vector      float64    // of each vector of a row of a cell
	scanRow     float64    // of a row of a scan
	scanned     float64    // in a scan, the part of a line's instructions that takes time, as no step waits for them
	transpose   float64    // of a float that a scan moves between memory and lanes
	dispatch    float64    // of an operation of an interpreted program, for each block of units
	part        float64    // of a vector of such a row whose last units fill no register
	mapFunction float64    // of a sigmoid of a line of a map
	mapTanh     float64    // of a tanh
	mapLine     float64    // of each vector of a line of another map
	mapRow      float64    // of a row of a map
	mapFar      float64    // extra, of a row outside of a worker's own caches
	place       float64    // of a label or blank of a transcript, in each step and each direction

	// Persistent layers.
	sequence          float64 // of a sequence whose steps one call runs
	step              float64 // of a step if one call runs all steps
	latency           float64 // of the sigmoids or tanhs that the next such step waits for
	beside            float64 // part of a line's instructions that takes time beside another line
	nearLine, farLine float64 // of a line of weights in such a step, in the nearest cache, and outside, at least
	forming           float64 // time of an input product among steps, relative to its time by itself
	meeting           float64 // of two workers at a step

	// Handing over operations.
	start    float64 // of an operation
	handover float64 // of an operation that two workers share
	turn     float64 // of an operation of one team among several
	crossing float64 // until a team sees that another's operation has ended
}

// ratesOf returns the rates of an instruction set, as measured on two cores of a Zen 4 at 3.6 GHz.
// On a processor that is uniformly faster or slower, predictions are wrong by a factor, and choices
// are right.
func ratesOf(l simd.Level) *rates {
	r := rates{
		peak: 115e9, read: [4]float64{110e9, 105e9, 90e9, 30e9}, narrow: 0.024e-9, widen: 0.15e-9,
		tile: 6e-9, results: 1.5e-9, call: 25e-9, pack: 0.15e-9, prepare: [4]float64{20e9, 28e9, 15e9, 8e9},
		stream: [4]float64{200e9, 60e9, 40e9, 20e9}, function: 5.8e-9, line: 0.5e-9, row: 8e-9, vector: 2.5e-9, scanRow: 3e-9, scanned: 1,
		transpose: 0.12e-9, dispatch: 1.6e-9, part: 1.8e-9,
		mapFunction: 5.8e-9, mapLine: 0.4e-9, mapRow: 7e-9, mapFar: 50e-9, place: 26e-9,
		sequence: 0.25e-6, step: 22e-9, beside: 1, nearLine: 0.4e-9, farLine: 0.61e-9, forming: 0.9, meeting: 0.35e-6,
		start: 10e-9, handover: 0.6e-6, turn: 60e-9, crossing: 0.2e-6,
	}
	r.integer, r.quantize = 400e9, 6e-9
	r.half, r.load, r.round, r.block, r.store = 2*r.peak, r.read, 0.1e-9, 60e-9, 20e-9
	switch l {
	case simd.AMX: // as measured on two cores of a Sapphire Rapids
		r.peak, r.half, r.load = 200e9, 1900e9, [4]float64{150e9, 150e9, 60e9, 29e9}
		r.read, r.narrow = [4]float64{240e9, 165e9, 65e9, 29e9}, 0.008e-9
		r.function, r.mapFunction, r.scanned = 7.3e-9, 7.3e-9, 0.65
		r.step, r.latency, r.beside, r.nearLine, r.farLine = 7e-9, 11e-9, 0.5, 0.26e-9, 0.43e-9
	case simd.AVX2:
		r.peak, r.tile, r.integer = 110e9, 10e-9, 130e9
		r.function, r.mapFunction, r.line, r.scanned = 10e-9, 10e-9, 0.8e-9, 0.85
		r.step, r.beside, r.nearLine = 8e-9, 0.5, 0.44e-9 // as measured on one core of a Sapphire Rapids
		r.farLine = 0.58e-9                               // as measured on one core of a Zen 3
	case simd.Generic:
		r.peak, r.read, r.integer = 4.3e9, [4]float64{12e9, 12e9, 12e9, 12e9}, 3e9
		r.widen, r.narrow, r.pack, r.prepare = 1e-9, 0.3e-9, 1e-9, [4]float64{5e9, 5e9, 5e9, 5e9}
		r.function, r.line, r.dispatch, r.scanRow, r.transpose = 150e-9, 6e-9, 8e-9, 15e-9, 0.8e-9
		r.mapFunction, r.mapLine = 150e-9, 4e-9
	}
	r.tanh, r.mapTanh = r.function, r.mapFunction
	if l == simd.AMX || l == simd.AVX2 {
		r.tanh, r.mapTanh = 0.7*r.tanh, 0.6*r.mapTanh
	}
	return &r
}
