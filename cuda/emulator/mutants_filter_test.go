package emulator

// filterOfWindows has two blocks each of taps, filters and images; two images are in shared memory
// at a time. Some maxima do not count, the last blocks are not full, and the windows' sums are
// computed, too.
func filterOfWindows() subject {
	const images, channels, height, width, filters, R, S, pad, each, together, slices = 5, 4, 16, 18, 34, 3, 3, 1, 3, 2, 2
	const P, Q, taps, noMaximum = height, width, channels * R * S, 4
	const windows, row, plane = P / 2 * (Q / 2), 27, 489
	x, dout := someNumbers(images*channels*height*width, 12), someNumbers(images*filters*windows, 13)
	which := make([]byte, len(dout))
	want, sums := make([]float64, slices*filters*taps), make([]float64, slices*filters)
	for i := range which {
		which[i] = byte(i*i%13) % (noMaximum + 1)
		if which[i] == noMaximum {
			continue
		}
		image, filter, window := i/(filters*windows), i/windows%filters, i%windows
		sums[image/each*filters+filter] += dout[i]
		p, q := window/(Q/2)*2+int(which[i])/2, window%(Q/2)*2+int(which[i])%2
		for tap := range taps {
			c, h, w := tap/(R*S), p+tap/S%R-pad, q+tap%S-pad
			if h >= 0 && h < height && w >= 0 && w < width {
				want[(image/each*filters+filter)*taps+tap] += dout[i] * x[((image*channels+c)*height+h)*width+w]
			}
		}
	}
	s := subject{
		file: "conv2d_windows_sm80.ptx", entry: "conv2d_windows_filter_bf16", within: 0.1, want: [][]float64{want, sums}, most: 6,
	}
	for launch := range s.want {
		s.behind = append(s.behind, 4*len(dout)+len(which)+4*len(x)+4*len(s.want[1-launch]))
	}
	s.record = func(recording *Recording, symbol string) {
		for launch, order := range [][]uint64{{0, 1, 2, 3, 4}, {4, 1, 2, 3, 0}} {
			buffers := []Buffer{
				{Bytes: 4 * len(s.want[launch])}, {Bytes: 4 * len(dout), Contents: floats(dout)}, {Bytes: len(which), Contents: which},
				{Bytes: 4 * len(x), Contents: floats(x)}, {Bytes: 4 * len(s.want[1-launch])},
			}
			recording.Add(1, buffers, []Call{{
				Symbol: symbol, Blocks: [2]int{4, slices}, Threads: 256, Shared: 32 << 10,
				Arguments: append(inBuffers(order...), integers(0, images, channels, height, width, filters, R, S, P, Q, 1, 1, pad, pad, 1, 1,
					1, each, together, row, plane)...),
			}})
		}
	}
	return s
}

// forwardOfWindows pools few channels. Its launches return the maxima; their packed copy (only the
// upper half of each word is read); and the argmaxes, as bits.
func forwardOfWindows() subject {
	const images, channels, height, width, filters, R, S, pad, each, together = 3, 2, 13, 12, 20, 4, 3, 1, 2, 1
	const P, Q, taps, row, plane, line, lanes = height - 1, width, channels * R * S, 20, 304, 32, 768
	const rows, columns, top, left = P/2 + 3, Q/2 + 4, 1, 2
	x, w, bias := someNumbers(images*channels*height*width, 14), someNumbers(filters*taps, 15), someNumbers(filters, 16)
	var sums []float64
	for image := range images {
		for k := range filters {
			for pixel := range P * Q {
				sum := bias[k]
				for tap := range taps {
					c, h, v := tap/(R*S), pixel/Q+tap/S%R-pad, pixel%Q+tap%S-pad
					if h >= 0 && h < height && v >= 0 && v < width {
						sum += w[k*taps+tap] * x[((image*channels+c)*height+h)*width+v]
					}
				}
				sums = append(sums, max(0, sum))
			}
		}
	}
	pooled, copied := maxima(sums, P, Q), make([]float64, images*rows*columns*line)
	for i, v := range pooled {
		image, k, p, q := i/(filters*P/2*Q/2), i/(P/2*Q/2)%filters, i/(Q/2)%(P/2), i%(Q/2)
		if k%2 == 1 {
			copied[((image*rows+p+top)*columns+q+left)*line+k/2] = v
		}
	}
	all := []Buffer{
		{Bytes: 4 * len(pooled)}, {Bytes: 4 * len(x), Contents: floats(x)}, {Bytes: 4 * len(w), Contents: floats(w)},
		{Bytes: 4 * len(bias), Contents: floats(bias)}, {Bytes: 4 * len(copied)}, {Bytes: len(pooled)},
	}
	bytes := 4*(len(x)+len(w)+len(bias)) + len(pooled)
	s := subject{
		file: "conv2d_windows_sm80.ptx", entry: "conv2d_windows_pool_bf16", within: 0.1, want: [][]float64{pooled, copied, make([]float64, len(pooled)/4)},
		behind: []int{bytes + 4*len(copied), bytes + 4*len(pooled), bytes - len(pooled) + 4*len(pooled) + 4*len(copied)}, most: 6,
	}
	s.record = func(recording *Recording, symbol string) {
		for launch := range s.want {
			const epilogue = 2 | 4 | 8 | 16 | 32                         // a bias for each row, ReLU, maxima, their places, only positive ones
			order := [][]uint64{{0, 4, 5}, {4, 0, 5}, {5, 4, 0}}[launch] // the buffers of the maxima, the copy and the places
			buffers := append([]Buffer(nil), all...)
			for i, at := range order {
				buffers[at] = all[[]int{0, 4, 5}[i]]
			}
			arguments := inBuffers(1, 1, 2, 3, order[0], order[2], order[1])
			recording.Add(1, buffers, []Call{{
				Symbol: symbol, Blocks: [2]int{2, 2}, Threads: 256, Shared: 4*(2*48+32*taps+lanes) + together*(32*P/2*Q/2+4*channels*plane),
				Arguments: append(arguments, integers(0, images, channels, height, width, filters, R, S, P, Q, 1, 1, pad, pad, 1, 1,
					1, rows, columns, top, left, epilogue, each, together, row, plane)...),
			}})
		}
	}
	return s
}
