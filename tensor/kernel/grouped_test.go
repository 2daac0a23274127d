package kernel

import (
	"fmt"
	"testing"
)

// eachGroupedTerm calls visit with the positions in x, w and y of every product of a grouped
// convolution.
func eachGroupedTerm(g GroupedConv2D, visit func(x, w, y int)) {
	c := g.group()
	for unit := range g.B * g.Groups {
		x, y := unit*c.sizeX(), unit*c.sizeY()
		w := unit % g.Groups * c.sizeW()
		eachTerm(c, func(i, j, k int) { visit(x+i, w+j, y+k) })
	}
}

func groupedForwardTerms[T Float](g GroupedConv2D) func(in inputs[T]) []sum {
	return func(in inputs[T]) []sum {
		out := make([]sum, g.sizeY())
		eachGroupedTerm(g, func(x, w, y int) { out[y].add(float64(in.a[x]) * float64(in.b[w])) })
		for y := range out {
			if g.Bias {
				out[y].add(float64(in.bias[y/(g.P()*g.Q())%g.K]))
			}
			if g.ReLU {
				out[y].value = max(out[y].value, 0)
			}
			if g.Ceiling > 0 {
				out[y].value = min(out[y].value, float64(g.Ceiling))
			}
		}
		return out
	}
}

func groupedInputTerms[T Float](g GroupedConv2D) func(in inputs[T]) []sum {
	return func(in inputs[T]) []sum {
		out := make([]sum, g.sizeX())
		eachGroupedTerm(g, func(x, w, y int) { out[x].add(float64(in.a[y]) * float64(in.b[w])) })
		return out
	}
}

func groupedFilterTerms[T Float](g GroupedConv2D) func(in inputs[T]) []sum {
	return func(in inputs[T]) []sum {
		out := make([]sum, g.sizeW())
		eachGroupedTerm(g, func(x, w, y int) { out[w].add(float64(in.a[y]) * float64(in.b[x])) })
		return out
	}
}

// groupedCases are depthwise convolutions of every stride, filter and padding, groups of a few
// channels, and groups that run as dense convolutions.
var groupedCases = []func(g *GroupedConv2D){
	func(g *GroupedConv2D) {},
	func(g *GroupedConv2D) { g.sizes(2, 5, 5, 7, 7, 3, 3); g.pad(1, 1, 0, 0) },
	func(g *GroupedConv2D) { g.sizes(2, 3, 3, 14, 14, 5, 5); g.pad(2, 2, 0, 0) },
	func(g *GroupedConv2D) { g.sizes(1, 2, 2, 33, 31, 3, 3); g.pad(1, 1, 0, 0); g.StrideH, g.StrideW = 2, 2 },
	func(g *GroupedConv2D) { g.sizes(1, 2, 2, 32, 34, 3, 3); g.pad(0, 0, 1, 1); g.StrideH, g.StrideW = 2, 2 },
	func(g *GroupedConv2D) { g.sizes(2, 4, 4, 28, 28, 5, 5); g.pad(1, 1, 1, 1); g.StrideH, g.StrideW = 2, 2 },
	func(g *GroupedConv2D) { g.sizes(1, 2, 2, 15, 16, 3, 3); g.pad(2, 1, -1, 0); g.StrideW = 2 },
	func(g *GroupedConv2D) { g.sizes(1, 1, 1, 112, 112, 3, 3); g.pad(1, 1, 0, 0) },
	func(g *GroupedConv2D) { g.sizes(1, 1, 1, 257, 67, 3, 3); g.pad(1, 1, 0, 0); g.StrideH = 2 },
	func(g *GroupedConv2D) { g.sizes(2, 3, 6, 11, 9, 3, 2); g.pad(1, 0, 0, 1); g.StrideH, g.StrideW = 3, 3 },
	func(g *GroupedConv2D) {
		g.sizes(2, 6, 3, 10, 13, 2, 3)
		g.pad(1, 2, 0, 0)
		g.DilationH, g.DilationW = 2, 3
	},
	func(g *GroupedConv2D) { g.sizes(1, 3, 3, 5, 6, 1, 1); g.StrideH, g.StrideW = 2, 4 },
	func(g *GroupedConv2D) { g.sizes(1, 2, 2, 2, 1, 1, 1); g.pad(1, 2, 0, 0) },
	func(g *GroupedConv2D) { g.sizes(3, 2, 2, 3, 2, 4, 5); g.pad(3, 4, 0, 0); g.StrideW = 2 },
	func(g *GroupedConv2D) {
		g.sizes(2, 12, 6, 9, 9, 3, 3)
		g.Groups = 3
		g.pad(1, 1, 0, 0)
		g.StrideH, g.StrideW = 2, 2
	},
	func(g *GroupedConv2D) { g.sizes(20, 24, 16, 7, 7, 1, 1); g.Groups = 2 },
	func(g *GroupedConv2D) { g.sizes(3, 20, 40, 12, 12, 3, 3); g.Groups = 2; g.pad(1, 1, 0, 0) },
	func(g *GroupedConv2D) {
		g.sizes(2, 16, 16, 9, 10, 3, 3)
		g.Groups = 2
		g.pad(0, 0, 1, 1)
		g.StrideH, g.StrideW = 2, 2
	},
	func(g *GroupedConv2D) { g.sizes(2, 2, 4, 19, 37, 3, 3); g.pad(1, 1, 0, 0) },
	func(g *GroupedConv2D) { g.sizes(1, 2, 2, 9, 20, 3, 3); g.pad(4, 5, 3, 0) },
	func(g *GroupedConv2D) { g.sizes(2, 2, 2, 24, 71, 3, 3); g.pad(0, 1, 1, 0); g.StrideH, g.StrideW = 2, 2 },
	func(g *GroupedConv2D) { g.sizes(1, 2, 2, 13, 33, 5, 5); g.pad(2, 2, 0, 0) },
	func(g *GroupedConv2D) { g.sizes(1, 2, 2, 9, 80, 5, 5); g.pad(2, 1, 0, 2); g.StrideH, g.StrideW = 2, 2 },
}

func (g *GroupedConv2D) sizes(b, c, k, h, w, r, s int) {
	g.B, g.C, g.K, g.H, g.W, g.R, g.S = b, c, k, h, w, r, s
	g.Groups = min(c, k)
}

func (g *GroupedConv2D) pad(h, w, trailH, trailW int) {
	g.PadH, g.PadW, g.TrailH, g.TrailW = h, w, trailH, trailW
}

func groupedCase(i int) GroupedConv2D {
	g := GroupedConv2D{Conv2D{B: 1, C: 1, H: 1, W: 1, K: 1, R: 1, S: 1, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}, 1}
	groupedCases[i](&g)
	return g
}

// groupedRoutines returns the three directions of a case, the first with a bias and bounds.
func groupedRoutines(t *testing.T, i int) (forward, input, filter Routine, fused GroupedConv2D) {
	t.Helper()
	g := groupedCase(i)
	fused = g
	fused.Bias, fused.ReLU = i%2 == 1, i%3 > 0
	if i%3 == 1 {
		fused.Ceiling = 1.5
	}
	routines := make([]Routine, 3)
	for j, prepare := range []func() (Routine, error){fused.Forward, g.BackwardInput, g.BackwardFilter} {
		var err error
		if routines[j], err = prepare(); err != nil {
			t.Fatalf("%+v: %v", g, err)
		}
	}
	return routines[0], routines[1], routines[2], fused
}

func TestGroupedConv2D(t *testing.T) {
	onEachInstructionSet(t, func(t *testing.T) {
		for i := range groupedCases {
			forward, input, filter, g := groupedRoutines(t, i)
			t.Run(fmt.Sprintf("%+v", g), func(t *testing.T) {
				check(t, forward, false, groupedForwardTerms[float32](g))
				check(t, forward, false, groupedForwardTerms[float64](g))
				check(t, input, false, groupedInputTerms[float32](g))
				check(t, input, false, groupedInputTerms[float64](g))
				check(t, filter, false, groupedFilterTerms[float32](g))
				check(t, filter, false, groupedFilterTerms[float64](g))
			})
		}
	})
}

func TestGroupedConv2DValidate(t *testing.T) {
	g := groupedCase(1)
	for name, set := range map[string]func(g *GroupedConv2D){
		"no groups": func(g *GroupedConv2D) { g.Groups = 0 },
		"channels":  func(g *GroupedConv2D) { g.C = 6 },
		"filters":   func(g *GroupedConv2D) { g.K = 7 },
		"size":      func(g *GroupedConv2D) { g.R = 10 },
		"ceiling":   func(g *GroupedConv2D) { g.Ceiling = 6 },
		"trailing":  func(g *GroupedConv2D) { g.TrailW = -2 },
	} {
		broken := g
		set(&broken)
		if err := broken.Validate(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	g.Bias = true
	if _, err := g.BackwardInput(); err == nil {
		t.Error("gradient by the input with a bias: no error")
	}
	if _, err := g.BackwardFilter(); err == nil {
		t.Error("gradient by the filter with a bias: no error")
	}
}
