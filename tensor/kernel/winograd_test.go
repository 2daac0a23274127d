package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// minTerms is the number of terms of a sum whose rounding errors are as large as the transforms'.
const minTerms = 256

// checkPatches runs a plan in order and shuffled, compares the bits of the two, and compares the
// values with the naive result: to 4 eps sqrt(n) relative to the sum of the element's magnitude and
// the root mean square of all elements. The sums of a patch cancel, so an error is not relative to
// an element's own terms.
func checkPatches[T Float](t *testing.T, p Routine, terms int, naive func(in inputs[T]) []sum) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(p.sizeOut), uint64(p.sizeA)))
	in := random[T](r, &p)
	got := execute(t, &p, in, false, nil)
	again := execute(t, &p, in, false, r)
	want, square := naive(in), 0.0
	for _, w := range want {
		square += w.value * w.value
	}
	norm, eps := math.Sqrt(square/float64(len(want))), 0x1p-52
	if unsafe.Sizeof(got[0]) == 4 {
		eps = 0x1p-23
	}
	for i, w := range want {
		if got[i] != again[i] {
			t.Fatalf("element %d is %g in order, %g with tiles shuffled", i, got[i], again[i])
		}
		tolerance := 4 * eps * math.Sqrt(float64(max(terms, minTerms))) * (norm + math.Abs(w.value))
		if d := math.Abs(float64(got[i]) - w.value); !(d <= tolerance) {
			t.Fatalf("element %d is %g, want %g: off by %.3g, tolerance %.3g", i, got[i], w.value, d, tolerance)
		}
	}
}

func checkWinograd[T Float](t *testing.T, c Conv2D) {
	t.Helper()
	area, plain := c.R*c.S, c
	plain.Bias, plain.ReLU, plain.Ceiling = false, false, 0
	for _, a := range c.algorithms() {
		checkPatches(t, c.winograd(a, false), c.C*area, forwardTerms[T](c))
		checkPatches(t, plain.winograd(a, true), c.K*area, inputTerms[T](c))
		checkPatches(t, plain.filterWinograd(a), c.B*c.P()*c.Q(), filterTerms[T](c))
	}
}

// winogradCases have channels that fill no panel, images that fill no patch, images cut into bands
// or row tiles, some of them of padding only, and padding wider than a filter.
var winogradCases = [][]int{ // B, C, H, W, K, taps, padding of height and width
	{1, 3, 3, 3, 1, 3, 0, 0},
	{1, 1, 1, 1, 2, 5, 2, 2},
	{3, 16, 14, 14, 16, 5, 2, 2},
	{5, 7, 9, 12, 17, 5, 0, 1},
	{2, 17, 8, 8, 31, 3, 1, 1},
	{1, 33, 7, 15, 9, 3, 2, 0},
	{33, 8, 6, 5, 8, 3, 1, 1},
	{2, 3, 5, 6, 2, 5, 5, 7},
	{1, 24, 30, 31, 2, 5, 2, 2},
	{2, 2, 50, 70, 20, 3, 1, 1},
	{1, 257, 5, 9, 3, 3, 1, 1},
	{35, 5, 12, 12, 6, 5, 0, 0},
	{1, 24, 30, 20, 18, 5, 9, 2},
}

func winogradCase(v []int) Conv2D {
	return Conv2D{B: v[0], C: v[1], H: v[2], W: v[3], K: v[4], R: v[5], S: v[5], PadH: v[6], PadW: v[7],
		StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}
}

func TestWinograd(t *testing.T) {
	onEachInstructionSet(t, func(t *testing.T) {
		for i, v := range winogradCases {
			c := winogradCase(v)
			c.Bias, c.ReLU = i%2 == 0, i%3 == 0
			if i%6 == 0 {
				c.Ceiling = 20
			}
			t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
				checkWinograd[float32](t, c)
				checkWinograd[float64](t, c)
			})
		}
	})
}

// Groups of patches stay within their bounds, and cover each patch once.
func TestPatchGroups(t *testing.T) {
	for _, v := range winogradCases {
		for _, most := range []int{1, 7, 64} {
			for extra := range 2 {
				g := winogradCase(v).groups(4, extra, most, 16)
				seen := make(map[[2]int]int)
				for i := range g.count() {
					p, lo, hi := g.part(i, g.batch)
					if n := p.images * (hi - lo) * g.wide; n < 1 || n > g.most() {
						t.Fatalf("%v: group %d of %+v has %d patches, want 1 to %d", v, i, g, n, g.most())
					}
					for image := range p.images {
						for row := range p.rows {
							seen[[2]int{p.image + image, p.row + row}]++
						}
					}
				}
				for at, n := range seen {
					if n != 1 || len(seen) != g.batch*g.bands {
						t.Fatalf("%v: %+v has %d bands, want %d; %v is there %d times", v, g, len(seen), g.batch*g.bands, at, n)
					}
				}
			}
		}
	}
}

// A number that is not finite spoils outputs of its own image, and none of another image.
func TestWinogradKeepsImagesApart(t *testing.T) {
	onEachInstructionSet(t, func(t *testing.T) {
		c := winogradCase([]int{19, 9, 7, 8, 10, 5, 2, 2})
		for name, p := range map[string]Routine{"forward": c.winograd(cookToom45, false), "input": c.winograd(cookToom75, true)} {
			for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
				o := operands[float32](&p)
				in, out := len(o.A)/c.B, len(o.Out)/c.B
				o.A[8*in+in/2] = bad
				for phase, tiles := range p.Phases {
					for tile := range tiles {
						Run(&p, phase, tile, o)
					}
				}
				spoilt := 0
				for i, v := range o.Out {
					if finite := v-v == 0; !finite && i/out != 8 {
						t.Fatalf("%s: %g in image 8 makes element %d of image %d %g", name, bad, i%out, i/out, v)
					} else if !finite {
						spoilt++
					}
				}
				if least := out / (7 * 8); spoilt < least {
					t.Errorf("%s: %g in image 8 spoils %d of its outputs, want at least %d", name, bad, spoilt, least)
				}
			}
		}
	})
}

// Winograd is chosen where it was measured to be faster, and never if Direct is set.
func TestSuitsWinograd(t *testing.T) {
	kindOf := func(p Routine, err error) kind {
		if err != nil {
			t.Fatal(err)
		}
		return p.kind
	}
	for _, v := range []struct {
		shape                  []int
		forward, input, filter bool
	}{
		{[]int{100, 64, 14, 14, 64, 5, 2, 2}, true, true, true},
		{[]int{100, 20, 12, 12, 50, 5, 0, 0}, true, true, true},
		{[]int{100, 32, 16, 16, 32, 3, 1, 1}, true, true, true},
		{[]int{100, 1, 28, 28, 64, 5, 2, 2}, false, true, false},
		{[]int{100, 64, 14, 14, 64, 1, 0, 0}, false, false, false},
		{[]int{100, 3, 32, 32, 16, 3, 1, 1}, false, false, false},
	} {
		c := winogradCase(v.shape)
		for direct := range 2 {
			c.Direct = direct == 1
			got := [3]bool{kindOf(c.Forward()) == kindConv2DWinograd, kindOf(c.BackwardInput()) == kindConv2DWinograd,
				kindOf(c.BackwardFilter()) == kindConv2DWinogradFilter}
			want := [3]bool{v.forward && !c.Direct, v.input && !c.Direct, v.filter && !c.Direct}
			if got != want {
				t.Errorf("%+v: Winograd's algorithms are chosen: %v, want %v", c, got, want)
			}
		}
	}
}
