package kernel

// multiply is the microkernel, for all register tiles of some rows and one panel: it computes
// c[i*stride+j] = epilogue(sum_k a(i,k) b[k*16+j]) for rows x 16 elements.
func multiply[T Float](rows, depth int, a leftFactor[T], b, c []T, stride int, bias []T, f flags) {
	if multiplyFast(rows, depth, a, b, c, stride, bias, f) {
		return
	}
	multiplyPart(rows, panelColumns, depth, a, b, c, stride, bias, f)
}

// multiplyPart is multiply for only the first columns of the panel.
func multiplyPart[T Float](rows, columns, depth int, a leftFactor[T], b, c []T, stride int, bias []T, f flags) {
	t := splitRows(rows)
	for n := range t.count {
		lo, hi := t.rows(n)
		a := a.tile(t, n)
		var sums [maxRows * panelColumns]T
		multiplySums(hi-lo, depth, a, b, &sums)
		storeTile(hi-lo, columns, sums[:], c[lo*stride:], stride, biasOf(bias, lo, hi, f), f)
	}
}

// multiplyPair is multiply for two panels, whose columns are side by side in the output. The second
// panel lies panel elements behind the first.
func multiplyPair[T Float](rows, depth int, a leftFactor[T], b []T, panel int, c []T, stride int, bias []T, f flags) {
	if multiplyPairFast(rows, depth, a, b, panel, c, stride, bias, f) {
		return
	}
	multiply(rows, depth, a, b, c, stride, bias, f)
	if f&flagBiasColumn != 0 {
		bias = bias[panelColumns:]
	}
	multiply(rows, depth, a, b[panel:], c[panelColumns:], stride, bias, f)
}

// multiplySums computes the sums of a tile without an epilogue, for tiles that storeTile stores in
// pieces.
func multiplySums[T Float](rows, depth int, a leftFactor[T], b []T, sums *[maxRows * panelColumns]T) {
	if multiplyFast(rows, depth, a, b, sums[:], panelColumns, nil, 0) {
		return
	}
	multiplyStrided(rows, depth, a, b, sums)
}

// storeTile applies the epilogue to rows x columns sums, whose rows are panelColumns elements
// apart, and stores them.
func storeTile[T Float](rows, columns int, sums, c []T, stride int, bias []T, f flags) {
	for i := range rows {
		from := sums[i*panelColumns:][:columns]
		to := c[i*stride:][:columns]
		switch {
		case f&flagBiasRow != 0:
			value := bias[i]
			if f&flagAccumulate != 0 {
				for j, v := range from {
					to[j] = (v + to[j]) + value
				}
			} else {
				for j, v := range from {
					to[j] = v + value
				}
			}
		case f&flagBiasColumn != 0:
			values := bias[:columns]
			if f&flagAccumulate != 0 {
				for j, v := range from {
					to[j] = (v + to[j]) + values[j]
				}
			} else {
				for j, v := range from {
					to[j] = v + values[j]
				}
			}
		case f&flagAccumulate != 0:
			for j, v := range from {
				to[j] = v + to[j]
			}
		default:
			copy(to, from)
		}
		if f&flagReLU != 0 {
			for j, v := range to {
				if v < 0 {
					to[j] = 0
				}
			}
		}
		if f&flagCeiling != 0 {
			ceiling := T(f.ceiling())
			for j, v := range to {
				if v > ceiling {
					to[j] = ceiling
				}
			}
		}
	}
}

// multiplyTaps is multiply with a left factor given by tables: element (i, k) is
// data[taps[i]+depthOffsets[k]]. The only epilogue is accumulation. The taps form groups, of
// length together, that are consecutive in memory.
func multiplyTaps[T Float](data []T, taps []int32, together int, depthOffsets []int32, b, c []T, stride int, accumulate bool) {
	if multiplyTapsFast(data, taps, together, depthOffsets, b, c, stride, accumulate) {
		return
	}
	f := flags(0)
	if accumulate {
		f = flagAccumulate
	}
	for i := 0; i < len(taps); i += maxRows {
		var sums [maxRows * panelColumns]T
		some := taps[i:min(i+maxRows, len(taps))]
		multiplyGathered(data, some, depthOffsets, b, &sums)
		storeTile(len(some), panelColumns, sums[:], c[i*stride:], stride, nil, f)
	}
}
