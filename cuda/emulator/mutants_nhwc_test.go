package emulator

import (
	"encoding/binary"
	"math"
)

// halved returns numbers that bf16 represents exactly, and the words that hold two of them each.
func halved(n int, seed float64) (values []float64, words []byte) {
	values = someNumbers(n, seed)
	for i, v := range values {
		bits := math.Float32bits(float32(v)) &^ 0xffff
		values[i] = float64(math.Float32frombits(bits))
		words = binary.LittleEndian.AppendUint16(words, uint16(bits>>16))
	}
	return values, words
}

// integers returns scalar arguments after some buffers.
func integers(buffers int, values ...int) (all []Argument) {
	for i := range uint64(buffers) {
		all = append(all, inBuffers(i)...)
	}
	for _, v := range values {
		all = append(all, Argument{Value: uint64(uint32(int32(v)))})
	}
	return all
}

// inBuffers returns the arguments for these buffers.
func inBuffers(numbers ...uint64) (all []Argument) {
	for _, n := range numbers {
		all = append(all, Argument{Buffer: true, Value: n})
	}
	return all
}

// packing copies planes of channels, with a border, in tf32, and sums its blocks' lines.
func packing() subject {
	const planes, channels, height, width, top, left, rows, columns, line = 2, 37, 5, 7, 1, 2, 8, 11, 32
	const blocks, tiles, lines = (channels + line - 1) / line, 3, 32
	x := someNumbers(planes*channels*height*width, 6)
	want, sums := make([]float64, blocks*planes*rows*columns*line), make([]float64, planes*tiles*channels)
	for p := range planes {
		for c := range channels {
			for h := range height {
				for w := range width {
					place := ((c/line*planes+p)*rows+h+top)*columns + w + left
					v := x[((p*channels+c)*height+h)*width+w]
					want[place*line+c%line] = v
					sums[(p*tiles+((h+top)*columns+w+left)/lines)*channels+c] += v
				}
			}
		}
	}
	s := subject{
		file: "conv2d_nhwc_sm80.ptx", entry: "nhwc_pack_tf32", within: 1e-3, behind: []int{4 * (len(x) + len(sums)), 4 * (len(x) + len(want))},
		want: [][]float64{want, sums},
	}
	s.record = func(recording *Recording, symbol string) {
		for launch, order := range [][]uint64{{0, 1, 2}, {2, 1, 0}} {
			buffers := []Buffer{{Bytes: 4 * len(s.want[launch])}, {Bytes: 4 * len(x), Contents: floats(x)}, {Bytes: 4 * len(s.want[1-launch])}}
			recording.Add(1, buffers, []Call{{
				Symbol: symbol, Blocks: [2]int{tiles * blocks * planes, 1}, Threads: 256,
				Arguments: append(inBuffers(order...), integers(0, 1, channels, channels*height*width, height*width, height, width, top, left, rows, columns,
					blocks, rows*columns, planes*rows*columns)...),
			}})
		}
	}
	return s
}

// image is a packed image B height x width with some blocks of 64 channels, convolved by R x S taps
// with strides of 1.
type image struct{ B, height, width, blocks, R, S int }

const apartBytes = 144 // between two lines in shared memory

func (i image) P() int      { return i.height - i.R + 1 }
func (i image) Q() int      { return i.width - i.S + 1 }
func (i image) taps() int   { return i.R * i.S }
func (i image) lines() int  { return i.B * i.height * i.width }
func (i image) pixels() int { return i.B * i.P() * i.Q() }

// at returns the index of channel c of a pixel's tap.
func (i image) at(n, tap, c int) int {
	b, p, q := n/(i.P()*i.Q()), n/i.Q()%i.P()+tap/i.S, n%i.Q()+tap%i.S
	return ((c/64*i.B+b)*i.height+p)*i.width*64 + q*64 + c%64
}

// convolved returns the convolution of an image; place returns the index of a filter's tap of a
// channel.
func (i image) convolved(x, w, bias []float64, place func(k, tap, c int) int) []float64 {
	all := make([]float64, i.pixels()*len(bias))
	for n := range i.pixels() {
		for k, sum := range bias {
			for tap := range i.taps() {
				for c := range 64 * i.blocks {
					sum += x[i.at(n, tap, c)] * w[place(k, tap, c)]
				}
			}
			all[(n/(i.P()*i.Q())*len(bias)+k)*i.P()*i.Q()+n%(i.P()*i.Q())] = sum
		}
	}
	return all
}

// packedConvolution has launches with several tiles, edges, a bias and two blocks of channels, with
// pooling, and with a mask.
func packedConvolution() subject {
	const filters, columns, rows, stages = 40, 64, 32, 3
	s := subject{file: "conv2d_nhwc_sm80.ptx", entry: "conv2d_nhwc_32x64_bf16", within: 1e-4}
	const perRow, atLeast0, pool, which, mask, atMost6 = 2, 4, 8, 16, 64, 128 // the epilogues of product.cuh
	images := []image{{2, 8, 9, 2, 3, 2}, {3, 6, 7, 1, 1, 2}, {2, 8, 9, 1, 3, 2}, {2, 6, 6, 1, 2, 2}, {2, 6, 6, 1, 2, 2}}
	epilogues := []int{perRow, perRow | pool | which, mask | atMost6, mask, perRow | atLeast0 | atMost6}
	var buffers [][]Buffer
	for launch, i := range images {
		channels := 64 * i.blocks
		x, packedX := halved(i.lines()*channels, 7)
		w, packedW := halved(filters*i.taps()*channels, 8)
		bias, added := someNumbers(filters, 9), make([]float64, filters)
		if epilogues[launch]&mask == 0 {
			added = bias
		}
		want := i.convolved(x, w, added, func(k, tap, c int) int { return ((k*i.blocks+c/64)*i.taps()+tap)*64 + c%64 })
		switch epilogue := epilogues[launch]; {
		case epilogue&pool != 0:
			want = maxima(want, i.P(), i.Q())
		case epilogue&mask != 0:
			bias = someNumbers(len(want), 9)
			for j, v := range bias {
				if v <= 0 {
					want[j] = 0
				}
			}
		case epilogue&atMost6 != 0:
			for j, v := range want {
				want[j] = min(6, max(0, v))
			}
		}
		s.want = append(s.want, want)
		all := []Buffer{
			{Bytes: 4 * len(want)}, {Bytes: len(packedX), Contents: packedX}, {Bytes: len(packedW), Contents: packedW},
			{Bytes: 4 * len(bias), Contents: floats(bias)}, {Bytes: len(want)},
		}
		buffers = append(buffers, all)
		s.behind = append(s.behind, len(packedX)+len(packedW)+4*len(bias)+len(want))
	}
	s.record = func(recording *Recording, symbol string) {
		for launch, i := range images {
			arguments := append(integers(4), inBuffers(0, 4)...)
			recording.Add(1, buffers[launch], []Call{{
				Symbol: symbol, Blocks: [2]int{2 * ((i.pixels() + columns - 1) / columns), 1}, Threads: 64, Shared: apartBytes * (stages*rows + i.lines()),
				Arguments: append(arguments, integers(0, filters, i.B, i.height, i.width, i.P(), i.Q(), 1, 1, i.blocks, i.taps(), i.S, 0, i.width, 1,
					(i.R-1)*i.width+i.S-1, epilogues[launch])...),
			}})
		}
	}
	return s
}

// maxima returns the maxima of 2 x 2 windows of images height x width.
func maxima(values []float64, height, width int) (all []float64) {
	for ; len(values) > 0; values = values[2*width:] {
		for j := 0; j < width; j += 2 {
			all = append(all, max(values[j], values[j+1], values[width+j], values[width+j+1]))
		}
	}
	return all
}

// packedFilter adds slices in turn, with two blocks of filters, and with fewer taps in the last
// block.
func packedFilter() subject {
	const filters, warps, each, stage = 66, 4, 64, 64
	i := image{2, 8, 9, 1, 3, 2}
	gradient := image{2, i.P(), i.Q(), 2, 1, 1}
	x, packedX := halved(i.lines()*64, 10)
	dout, packedDout := halved(gradient.lines()*128, 11)
	want := make([]float64, filters*i.taps()*64)
	for n := range i.pixels() {
		for tap := range i.taps() {
			for k := range filters {
				for c := range 64 {
					want[(k*i.taps()+tap)*64+c] += dout[gradient.at(n, 0, k)] * x[i.at(n, tap, c)]
				}
			}
		}
	}
	s := subject{
		file: "conv2d_nhwc_sm80.ptx", entry: "conv2d_nhwc_filter_bf16", within: 1e-4, want: [][]float64{want},
		behind: []int{len(packedDout) + len(packedX)}, most: 4,
	}
	s.record = func(recording *Recording, symbol string) {
		recording.Add(1, []Buffer{{Bytes: 4 * len(want)}, {Bytes: len(packedDout), Contents: packedDout}, {Bytes: len(packedX), Contents: packedX}}, []Call{{
			Symbol: symbol, Blocks: [2]int{2 * 2, 1}, Threads: 32 * warps, Shared: 4*stage*8 + 2*apartBytes*(stage+i.lines()),
			Arguments: integers(3, filters, i.B, i.height, i.width, i.P(), i.Q(), 1, 1, i.blocks, i.taps(), i.S, i.width, 1,
				gradient.height, gradient.width, 0, gradient.blocks, i.lines(), each),
		}})
	}
	return s
}
