package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/tensor"
)

// convolutionLaunch returns a launch of a convolution in one of its directions, with buffers one
// after the other.
func convolutionLaunch(stem string, s convShape) *tensor.Launch {
	x, w, y := s.B*s.C*s.H*s.W, s.K*s.C*s.R*s.S, s.B*s.K*s.P*s.Q
	elements := map[string][3]int{"conv2d_fwd": {y, x, w}, "conv2d_bwd_input": {x, y, w}, "conv2d_bwd_filter": {w, y, x}}[stem]
	grid := map[string]tensor.Product{
		"conv2d_fwd":        {Rows: s.K, Columns: s.B * s.P * s.Q, Depth: s.C * s.R * s.S, Images: true, Forward: true, Height: s.P, Width: s.Q},
		"conv2d_bwd_input":  {Rows: s.C, Columns: s.B * s.H * s.W, Depth: s.K * s.R * s.S, Images: true},
		"conv2d_bwd_filter": {Rows: s.K, Columns: s.C * s.R * s.S, Depth: s.B * s.P * s.Q, Images: true, Filter: true},
	}[stem]
	var arguments []tensor.Argument
	at := 0
	for i, n := range elements {
		b := tensor.NewBuffer(fmt.Sprint(stem, i), tensor.Scratch, tensor.Float32, n)
		b.Offset = at
		at += tensor.Align(b.Bytes())
		arguments = append(arguments, tensor.Argument{Buffer: b, Access: map[bool]tensor.Access{true: tensor.Write, false: tensor.Read}[i == 0]})
	}
	for _, n := range []int{s.B, s.C, s.H, s.W, s.K, s.R, s.S, s.P, s.Q, s.strideH, s.strideW, s.padH, s.padW, s.dilationH, s.dilationW} {
		arguments = append(arguments, tensor.Int(n))
	}
	return &tensor.Launch{Calls: []tensor.Call{{Kernel: stem + "_f32", Grid: grid, Arguments: arguments}}}
}

// wide is the second convolution of the network of layersOfMNIST.
var wide = convShape{100, 64, 14, 14, 64, 5, 5, 14, 14, 1, 1, 2, 2, 1, 1}

func names(calls []Call) string {
	var all []string
	for _, c := range calls {
		all = append(all, c.Symbol)
	}
	return strings.Join(all, " ")
}

// TestPackedIsChosen: convolutions of many channels work on packed copies, in every direction, if
// the GPU has the instructions and the shared memory. Convolutions of few channels do not: their
// copies would be mostly zeros.
func TestPackedIsChosen(t *testing.T) {
	few := wide
	few.C = 1
	strided := convShape{100, 64, 28, 28, 64, 3, 3, 14, 14, 2, 2, 1, 1, 1, 1}
	for _, precision := range []Precision{TF32, BF16} {
		for _, test := range []struct {
			name, stem         string
			s                  convShape
			capability, shared int
			packed             bool
		}{
			{"forward", "conv2d_fwd", wide, 90, 227 << 10, true},
			{"input", "conv2d_bwd_input", wide, 90, 227 << 10, true},
			{"filter", "conv2d_bwd_filter", wide, 90, 227 << 10, true},
			{"on sm_86", "conv2d_fwd", wide, 86, 99 << 10, true},
			{"strides forward", "conv2d_fwd", strided, 90, 227 << 10, true},
			{"strides input", "conv2d_bwd_input", strided, 90, 227 << 10, true},
			{"a channel", "conv2d_fwd", few, 90, 227 << 10, false},
			{"a channel's filter", "conv2d_bwd_filter", few, 90, 227 << 10, false},
			{"before sm_80", "conv2d_fwd", wide, 75, 64 << 10, false},
			{"little shared memory", "conv2d_fwd", wide, 80, 16 << 10, false},
			{"little shared memory, filter", "conv2d_bwd_filter", wide, 80, 16 << 10, false},
		} {
			p := &planner{Target: Target{Precision: precision, Capability: test.capability, Shared: test.shared, Multiprocessors: 132, Chains: 1}}
			calls := lower(p, convolutionLaunch(test.stem, test.s))
			if got := strings.Contains(names(calls), "nhwc"); got != test.packed {
				t.Errorf("%s, %s: the calls are %s", precision, test.name, names(calls))
			}
			for _, c := range calls {
				if test.packed && c.Shared > test.shared {
					t.Errorf("%s, %s: %s has %d bytes of shared memory, the GPU %d", precision, test.name, c.Symbol, c.Shared, test.shared)
				}
			}
		}
	}
	p := &planner{Target: Target{Precision: FP32, Capability: 90, Shared: 227 << 10, Multiprocessors: 132, Chains: 1}}
	if calls := lower(p, convolutionLaunch("conv2d_fwd", wide)); strings.Contains(names(calls), "nhwc") {
		t.Errorf("in fp32 the calls are %s", names(calls))
	}
}

// TestPackedSlices: the decision to pack and the slices of the pixels are the same for any number
// of chains. Each pixel is in a slice, and the workspace has room for all slices.
func TestPackedSlices(t *testing.T) {
	small := convShape{50, 64, 9, 9, 64, 3, 3, 9, 9, 1, 1, 1, 1, 1, 1}
	for _, s := range []convShape{wide, small} {
		for _, multiprocessors := range []int{1, 4, 132} {
			one := 0
			for _, chains := range []int{1, 2, 64, 1000} {
				p := &planner{Target: Target{Precision: BF16, Capability: 90, Shared: 227 << 10, Multiprocessors: multiprocessors, Chains: chains}}
				calls := lower(p, convolutionLaunch("conv2d_bwd_filter", s))
				sum := calls[len(calls)-1]
				if sum.Symbol != "slices_nhwc_f32" {
					t.Fatalf("%+v, %d multiprocessors, %d chains: the calls are %s", s, multiprocessors, chains, names(calls))
				}
				product := calls[len(calls)-2]
				each := intValue(product.Arguments[len(product.Arguments)-1])
				if chains == 1 {
					one = each
				}
				if each != one {
					t.Errorf("%d multiprocessors, %d chains: slices of %d, want %d as for one chain", multiprocessors, chains, each, one)
				}
				pixels, slices := s.B*s.P*s.Q, intValue(sum.Arguments[6])
				if each%stagePixels != 0 || slices > 1 && (slices-1)*each >= pixels || slices > 1 && slices*each < pixels {
					t.Errorf("%d multiprocessors, %d chains: %d slices of %d for %d pixels", multiprocessors, chains, slices, each, pixels)
				}
				if got, want := product.Arguments[0].Buffer.Elements, slices*s.K*s.R*s.S*64; got != want || product.Blocks[1] != slices {
					t.Errorf("%d chains: a workspace of %d elements for %v blocks, want %d", chains, got, product.Blocks, want)
				}
			}
		}
	}
}

// TestCopiesAreShared: launches of a step read the copy that an earlier launch made, unless the
// original has been written to since.
func TestCopiesAreShared(t *testing.T) {
	forward, filter := convolutionLaunch("conv2d_fwd", wide), convolutionLaunch("conv2d_bwd_filter", wide)
	for _, a := range filter.Calls[0].Arguments[:3] {
		a.Buffer.Offset += 1 << 30
	}
	filter.Calls[0].Arguments[2] = forward.Calls[0].Arguments[1]
	p := &planner{Target: Target{Precision: BF16, Capability: 90, Shared: 227 << 10, Multiprocessors: 132, Chains: 1}, copies: map[packKey]*tensor.Buffer{}}
	calls := lower(p, forward)
	p.invalidate(calls)
	copied := calls[0].Arguments[0].Buffer
	second := lower(p, filter)
	if got := names(second); strings.Count(got, "nhwc_pack") != 1 || second[1].Arguments[2].Buffer != copied {
		t.Errorf("after a launch that packs the image, the filter's gradient is %s", got)
	}
	p.invalidate([]Call{{Symbol: "relu", Arguments: []tensor.Argument{tensor.InOut(forward.Calls[0].Arguments[1].Buffer)}}})
	if got := names(lower(p, filter)); strings.Count(got, "nhwc_pack") != 1 {
		t.Errorf("after a launch that writes to the image, the filter's gradient is %s", got)
	}
	p.copies = nil
	if got := names(lower(p, filter)); strings.Count(got, "nhwc_pack") != 2 {
		t.Errorf("on its own, the filter's gradient is %s", got)
	}
}

// TestLines compares the number of lines of a tile with the lines that its pixels' taps read.
func TestLines(t *testing.T) {
	few := wide
	few.B = 5
	for _, s := range []convShape{few, {3, 5, 11, 7, 4, 3, 2, 5, 10, 2, 1, 0, 2, 1, 2}, {2, 5, 8, 12, 4, 3, 3, 8, 12, 1, 1, 1, 1, 1, 1}} {
		for _, windows := range []bool{false, true} {
			g := newProduct(convolutionLaunch("conv2d_fwd", s).Calls[0], tensor.Product{Rows: s.K, Images: true, Forward: true, Height: s.P, Width: s.Q})
			if windows && s.P%2+s.Q%2 > 0 {
				continue
			}
			if windows {
				g.epilogue |= epiloguePool
			}
			on := g.asPacked()
			most, mean := on.pixelMap.linesPerTile(64, on.reach)
			got, sum, tiles := 0, 0, 0
			for n := 0; n < on.count(); n += 64 {
				low, high := 1<<30, 0
				for i := n; i < min(n+64, on.count()); i++ {
					for tap := range on.taps {
						at := on.lineOf(i) + tap/on.tapColumns*on.tapRowStride + tap%on.tapColumns*on.tapColumnStride
						low, high = min(low, at), max(high, at)
					}
				}
				got, sum, tiles = max(got, high-low+1), sum+high-low+1, tiles+1
				if high >= on.image.lines() {
					t.Errorf("%+v: a tap meets line %d of %d", s, high, on.image.lines())
				}
			}
			if got != most || float64(sum) != mean*float64(tiles) {
				t.Errorf("%+v: tiles need at most %d lines, %d together, got %d and %v", s, got, sum, most, mean*float64(tiles))
			}
		}
	}
}

// TestPackedSpeeds: a full multiprocessor is faster than one with a single block, and packed copies
// are faster than operands whose addresses are looked up.
func TestPackedSpeeds(t *testing.T) {
	for precision, tiles := range map[Precision][2]any{TF32: {tilesPackedTF32, tilesTF32}, BF16: {tilesPackedBF16, tilesBF16}} {
		for _, one := range tiles[0].([]packedTile) {
			if !(0 < one.speed.single && one.speed.single < one.speed.full) {
				t.Errorf("%s %dx%d has the speed %v", precision, one.rows, one.columns, one.speed)
			}
			for _, other := range tiles[1].([]tile) {
				if other.rows == one.rows && other.columns == one.columns && other.conv.full >= one.speed.full {
					t.Errorf("%s %dx%d has the speed %v packed, %v without", precision, one.rows, one.columns, one.speed, other.conv)
				}
			}
		}
	}
}
