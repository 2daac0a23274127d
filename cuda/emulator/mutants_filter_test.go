package emulator

// filterOfWindows has two blocks each of taps, filters and images, of which two lie in shared
// memory at a time; maxima that do not count; and fewer windows, filters and taps than the blocks.
func filterOfWindows() subject {
	const images, channels, height, width, filters, R, S, pad, each, together, slices = 5, 4, 16, 18, 34, 3, 3, 1, 3, 2, 2
	const P, Q, taps, noMaximum = height, width, channels * R * S, 4
	const windows, row, plane = P / 2 * (Q / 2), 27, 489
	x, dout := someNumbers(images*channels*height*width, 12), someNumbers(images*filters*windows, 13)
	which := make([]byte, len(dout))
	want := make([]float64, slices*filters*taps)
	for i := range which {
		which[i] = byte(i*i%13) % (noMaximum + 1)
		if which[i] == noMaximum {
			continue
		}
		image, filter, window := i/(filters*windows), i/windows%filters, i%windows
		p, q := window/(Q/2)*2+int(which[i])/2, window%(Q/2)*2+int(which[i])%2
		for tap := range taps {
			c, h, w := tap/(R*S), p+tap/S%R-pad, q+tap%S-pad
			if h >= 0 && h < height && w >= 0 && w < width {
				want[(image/each*filters+filter)*taps+tap] += dout[i] * x[((image*channels+c)*height+h)*width+w]
			}
		}
	}
	s := subject{
		file: "conv2d_windows_sm80.ptx", entry: "conv2d_windows_filter_bf16", within: 0.1, want: [][]float64{want},
		behind: []int{4*len(dout) + len(which) + 4*len(x)}, most: 6,
	}
	s.record = func(recording *Recording, symbol string) {
		buffers := []Buffer{
			{Bytes: 4 * len(want)}, {Bytes: 4 * len(dout), Contents: floats(dout)}, {Bytes: len(which), Contents: which},
			{Bytes: 4 * len(x), Contents: floats(x)},
		}
		recording.Add(1, buffers, []Call{{
			Symbol: symbol, Blocks: [2]int{4, slices}, Threads: 256, Shared: 32 << 10,
			Arguments: integers(4, images, channels, height, width, filters, R, S, P, Q, 1, 1, pad, pad, 1, 1, each, together, row, plane),
		}})
	}
	return s
}
