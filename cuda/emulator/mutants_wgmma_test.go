package emulator

import "encoding/binary"

// inChunks converts a packed copy, 64 numbers per line, to the chunked layout: in each run of
// lines, the first eight numbers of all lines, then the next eight, and so on.
func inChunks(words []byte, run int) []byte {
	const lineBytes, chunk = 128, 16
	all := make([]byte, (len(words)/lineBytes+run-1)/run*run*lineBytes)
	for at := 0; at < len(words); at += chunk {
		line, i := at/lineBytes, at%lineBytes/chunk
		copy(all[((line/run*lineBytes/chunk+i)*run+line%run)*chunk:], words[at:at+chunk])
	}
	return all
}

// groupedConvolution is like packedConvolution, by wgmma. Filters are [blocks taps filters], 64 to
// a run. The launches have images of several strips and of one, with and without pooling, and rows
// with an odd number of pixels, so that results are written one by one or in pairs.
func groupedConvolution() subject {
	const filters, tile, stages = 40, 64, 6
	s := subject{file: "conv2d_nhwc_sm90.ptx", entry: "conv2d_nhwc_group_8x8_bf16", within: 1e-4}
	images := []image{{2, 11, 10, 2, 3, 2}, {3, 6, 7, 1, 1, 2}, {2, 9, 9, 1, 2, 2}, {1, 12, 11, 1, 1, 2}, {1, 10, 13, 2, 1, 2}}
	pooled := []bool{false, true, false, false, true}
	var buffers [][]Buffer
	for launch, i := range images {
		channels := 64 * i.blocks
		x, packedX := halved(i.lines()*channels, 7)
		w, packedW := halved(i.blocks*i.taps()*tile*64, 8)
		bias := someNumbers(filters, 9)
		want := i.convolved(x, w, bias, func(k, tap, c int) int { return ((c/64*i.taps()+tap)*tile+k)*64 + c%64 })
		if pooled[launch] {
			want = maxima(want, i.P(), i.Q())
		}
		s.want = append(s.want, want)
		buffers = append(buffers, []Buffer{
			{Bytes: 4 * len(want)}, {Bytes: len(packedX), Contents: inChunks(packedX, i.lines())}, {Bytes: len(packedW), Contents: inChunks(packedW, tile)},
			{Bytes: 4 * filters, Contents: floats(bias)}, {Bytes: len(want)},
		})
		s.behind = append(s.behind, len(packedX)+len(packedW)+4*filters+len(want))
	}
	s.record = func(recording *Recording, symbol string) {
		for launch, i := range images {
			const perRow, pool, which = 2, 8, 16
			epilogue := perRow
			if pooled[launch] {
				epilogue |= pool | which
			}
			size := 8*i.width + 8 + (i.R-1)*i.width + i.S // of a strip
			strips := i.B * ((i.P() + 7) / 8) * ((i.Q() + 7) / 8)
			arguments := append(integers(4), inBuffers(0, 4)...)
			recording.Add(1, buffers[launch], []Call{{
				Symbol: symbol, Blocks: [2]int{strips, 1}, Threads: 160, Shared: 128*(stages*tile+size) + 8*(2*stages+5),
				Arguments: append(arguments, integers(0, filters, i.B, i.height, i.width, i.P(), i.Q(), i.blocks, i.taps(), i.S, 0, i.width, 1,
					(i.R-1)*i.width+i.S-1, size, epilogue)...),
			}})
		}
	}
	return s
}

// groupedFilter adds slices in turn, with two blocks of filters, and blocks of up to eight taps,
// then of up to four, so that warpgroups have three, two or one taps. Stages have an odd number of
// rows. The gradient's copy is as wide as the image's, with zeros around its pixels.
func groupedFilter() subject {
	const filters, rows, columns, depth = 66, 5, 16, 2
	i := image{2, 8, 18, 1, 3, 5}
	around := image{2, i.P() + 2, i.width, 2, 1, 1} // two rows of zeros, above and below, and two columns
	x, packedX := halved(i.lines()*64, 10)
	dout, packedDout := halved(around.lines()*128, 11)
	place := func(n, k int) int { // of a pixel in dout
		return (k/64*around.lines()+(n/(i.P()*i.Q())*around.height+n/i.Q()%i.P()+1)*around.width+n%i.Q()+2)*64 + k%64
	}
	pixels := map[int]bool{}
	for n := range i.pixels() {
		for k := range 128 {
			pixels[place(n, k)] = true
		}
	}
	for at := range dout {
		if !pixels[at] {
			dout[at] = 0
			binary.LittleEndian.PutUint16(packedDout[2*at:], 0)
		}
	}
	want := make([]float64, filters*i.taps()*64)
	for n := range i.pixels() {
		for tap := range i.taps() {
			for k := range filters {
				for c := range 64 {
					want[(k*i.taps()+tap)*64+c] += dout[place(n, k)] * x[i.at(n, tap, c)]
				}
			}
		}
	}
	s := subject{
		file: "conv2d_nhwc_sm90.ptx", entry: "conv2d_nhwc_group_filter_bf16", within: 1e-4, want: [][]float64{want, want},
		behind: []int{len(packedDout) + len(packedX), len(packedDout) + len(packedX)}, most: 4,
	}
	s.record = func(recording *Recording, symbol string) {
		buffers := []Buffer{
			{Bytes: 4 * len(want)}, {Bytes: len(packedDout), Contents: inChunks(packedDout, around.lines())},
			{Bytes: len(packedX), Contents: inChunks(packedX, i.lines())},
		}
		sizeX, sizeDout := (rows-1)*i.width+columns+2*i.width, (rows-1)*around.width+columns
		for _, shares := range []int{2, 4} {
			recording.Add(1, buffers, []Call{{
				Symbol: symbol, Blocks: [2]int{2 * shares, 1}, Threads: 512, Shared: depth*(128*(sizeX+sizeDout)+2*8) + 8*4*64*64,
				Arguments: integers(3, filters, i.B, i.height, i.width, i.P(), i.Q(), i.blocks, i.taps(), i.S, i.width, 1,
					around.height, around.width, around.width+2, 2, 1, rows, 3, sizeX, sizeDout, depth, shares),
			}})
		}
	}
	return s
}
