package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/tensor"
)

// TestGroupsAreChosen: wgmma computes convolutions of many channels in bf16 on GPUs that have it,
// in the directions for which there are kernels, and for any number of chains.
func TestGroupsAreChosen(t *testing.T) {
	strided := convShape{100, 64, 28, 28, 64, 3, 3, 14, 14, 2, 2, 1, 1, 1, 1}
	narrow := wide
	narrow.W, narrow.Q = 12, 12
	narrow.S, narrow.padW = 3, 1
	few := wide
	few.C = 1
	for _, test := range []struct {
		name, stem string
		s          convShape
		precision  Precision
		groups     bool
		shared     int
		chosen     bool
	}{
		{"forward", "conv2d_fwd", wide, BF16, true, 227 << 10, true},
		{"input", "conv2d_bwd_input", wide, BF16, true, 227 << 10, true},
		{"filter", "conv2d_bwd_filter", wide, BF16, true, 227 << 10, true},
		{"filter of rows whose zeros are too few", "conv2d_bwd_filter", narrow, BF16, true, 227 << 10, false},
		{"filter with strides", "conv2d_bwd_filter", strided, BF16, true, 227 << 10, false},
		{"in tf32", "conv2d_fwd", wide, TF32, true, 227 << 10, false},
		{"in fp32", "conv2d_fwd", wide, FP32, true, 227 << 10, false},
		{"without wgmma", "conv2d_fwd", wide, BF16, false, 227 << 10, false},
		{"strides", "conv2d_fwd", strided, BF16, true, 227 << 10, false},
		{"a channel", "conv2d_fwd", few, BF16, true, 227 << 10, false},
		{"little shared memory", "conv2d_fwd", wide, BF16, true, 16 << 10, false},
	} {
		for _, chains := range []int{1, 8, 64} {
			p := &planner{Target: Target{Precision: test.precision, Capability: 90, Shared: test.shared, Multiprocessors: 132, Chains: chains, WGMMA: test.groups}}
			calls := lower(p, convolutionLaunch(test.stem, test.s))
			if got := strings.Contains(names(calls), "group"); got != test.chosen {
				t.Errorf("%s, %d chains: the calls are %s", test.name, chains, names(calls))
			}
			for _, c := range calls {
				if strings.Contains(c.Symbol, "group") && c.Shared > test.shared {
					t.Errorf("%s: %s has %d bytes of shared memory, the GPU %d", test.name, c.Symbol, c.Shared, test.shared)
				}
			}
		}
	}
}

// TestGroupsShareCopies: the filter's gradient reads the copies that the other directions made in
// chunks.
func TestGroupsShareCopies(t *testing.T) {
	forward, input, filter := convolutionLaunch("conv2d_fwd", wide), convolutionLaunch("conv2d_bwd_input", wide), convolutionLaunch("conv2d_bwd_filter", wide)
	for i, l := range []*tensor.Launch{input, filter} {
		for _, a := range l.Calls[0].Arguments[:3] {
			a.Buffer.Offset += (i + 1) << 30
		}
	}
	x, dout := forward.Calls[0].Arguments[1], input.Calls[0].Arguments[1]
	filter.Calls[0].Arguments[1], filter.Calls[0].Arguments[2] = dout, x
	p := &planner{
		Target: Target{Precision: BF16, Capability: 90, Shared: 227 << 10, Multiprocessors: 132, Chains: 1, WGMMA: true},
		copies: map[packKey]*tensor.Buffer{},
	}
	for _, l := range []*tensor.Launch{forward, input} {
		if got := names(lower(p, l)); strings.Count(got, "nhwc_pack_chunks_bf16") != 2 {
			t.Errorf("a convolution on its own is %s", got)
		}
	}
	if got, want := names(lower(p, filter)), "conv2d_nhwc_group_filter_bf16 slices_nhwc_f32"; got != want {
		t.Errorf("the filter's gradient is %s, want %s", got, want)
	}
}

// TestStripLines compares the number of lines of a tile with the lines that its pixels' taps read,
// and the number of pixels in all strips with the images' pixels.
func TestStripLines(t *testing.T) {
	few := wide
	few.B = 3
	for _, s := range []convShape{few, {4, 5, 19, 9, 4, 3, 2, 17, 8, 1, 1, 0, 0, 1, 1}, {2, 5, 8, 12, 4, 3, 3, 8, 12, 1, 1, 1, 1, 1, 1}} {
		p := &planner{Target: Target{Precision: BF16, WGMMA: true}}
		g := newProduct(convolutionLaunch("conv2d_fwd", s).Calls[0], tensor.Product{Rows: s.K, Images: true, Forward: true, Height: s.P, Width: s.Q})
		on := g.asPacked()
		grouped := on.asWGMMA(p)
		for _, tile := range tilesWGMMA {
			most, sum, tiles, pixels := 0, 0, 0, 0
			for first := 0; first < grouped.strips(tile); first += tile.strips {
				low, high := 1<<30, 0
				for strip := first; strip < min(first+tile.strips, grouped.strips(tile)); strip++ {
					line := grouped.stripStart(tile, strip)
					for row := range tile.height {
						for column := range stripWidth {
							at := line + row*grouped.packSpec.columns + column
							low, high = min(low, at), max(high, at+grouped.reach)
							p, q := at/grouped.packSpec.columns%grouped.packSpec.rows, at%grouped.packSpec.columns
							if strip/grouped.stripsPerImage(tile) == at/(grouped.packSpec.rows*grouped.packSpec.columns) && p < s.P && q < s.Q &&
								q >= line%grouped.packSpec.columns && p >= line/grouped.packSpec.columns%grouped.packSpec.rows {
								pixels++
							}
						}
					}
				}
				most, sum, tiles = max(most, high-low+1), sum+high-low+1, tiles+1
			}
			got, mean := grouped.linesPerTile(tile)
			if got != most || mean*float64(tiles) != float64(sum) {
				t.Errorf("%+v, %v: tiles need at most %d lines, %d together, got %d and %v", s, tile, most, sum, got, mean*float64(tiles))
			}
			if pixels != s.B*s.P*s.Q {
				t.Errorf("%+v, %v: strips have %d pixels, want %d", s, tile, pixels, s.B*s.P*s.Q)
			}
		}
	}
}

// TestGroupSpeeds: no speed is above the data sheet's peak, or below what mma.sync is assumed to
// reach.
func TestGroupSpeeds(t *testing.T) {
	const peak = 2048 / macsPerCycle
	for _, g := range append(slices.Clone(tilesWGMMA), wgmmaTile{speed: speedWGMMAFilter}) {
		if !(0 < g.speed.single && g.speed.single < g.speed.full && g.speed.full < peak && g.speed.full > tilesPackedBF16[0].speed.full) {
			t.Errorf("%v: the speed of a tile, the peak is %v", g, peak)
		}
	}
}
