package kernel

import (
	"fmt"
	"slices"
	"testing"
	"unsafe"
)

// eachTerm calls visit with the positions in x, w and y of every product of a
// convolution.
func eachTerm(c Conv2D, visit func(x, w, y int)) {
	for b := range c.B {
		for k := range c.K {
			for p := range c.P() {
				for q := range c.Q() {
					for ch := range c.C {
						for r := range c.R {
							for s := range c.S {
								h, w := p*c.StrideH+r*c.DilationH-c.PadH, q*c.StrideW+s*c.DilationW-c.PadW
								if h >= 0 && h < c.H && w >= 0 && w < c.W {
									visit(((b*c.C+ch)*c.H+h)*c.W+w, ((k*c.C+ch)*c.R+r)*c.S+s, ((b*c.K+k)*c.P()+p)*c.Q()+q)
								}
							}
						}
					}
				}
			}
		}
	}
}

// forwardTerms, inputTerms and filterTerms compute the sums with which the three directions are
// compared.
func forwardTerms[T Float](c Conv2D) func(in inputs[T]) []sum {
	return once("forward", c, func(in inputs[T]) []sum {
		out := make([]sum, c.sizeY())
		eachTerm(c, func(x, w, y int) { out[y].add(float64(in.a[x]) * float64(in.b[w])) })
		for y := range out {
			if c.Bias {
				out[y].add(float64(in.bias[y/(c.P()*c.Q())%c.K]))
			}
			if c.ReLU {
				out[y].value = max(out[y].value, 0)
			}
			if c.Ceiling > 0 {
				out[y].value = min(out[y].value, float64(c.Ceiling))
			}
		}
		return out
	})
}

func inputTerms[T Float](c Conv2D) func(in inputs[T]) []sum {
	return once("input", c, func(in inputs[T]) []sum {
		out := make([]sum, c.sizeX())
		eachTerm(c, func(x, w, y int) { out[x].add(float64(in.a[y]) * float64(in.b[w])) })
		return out
	})
}

func filterTerms[T Float](c Conv2D) func(in inputs[T]) []sum {
	return once("filter", c, func(in inputs[T]) []sum {
		out := make([]sum, c.sizeW())
		eachTerm(c, func(x, w, y int) { out[w].add(float64(in.a[y]) * float64(in.b[x])) })
		return out
	})
}

// expected caches the naive sums of convolutions. They take longer to compute than the algorithms,
// and every algorithm on every instruction set is compared with the same sums.
var expected = map[expectedKey]any{}

type expectedKey struct {
	direction string
	conv      Conv2D
	bytes     uintptr // of a number
}

// expectedSums holds inputs and their sums.
type expectedSums[T Float] struct {
	in   inputs[T]
	sums []sum
}

// once returns a function that computes sums only for inputs that differ from its last ones.
func once[T Float](direction string, c Conv2D, compute func(in inputs[T]) []sum) func(in inputs[T]) []sum {
	key := expectedKey{direction, c, unsafe.Sizeof(T(0))}
	return func(in inputs[T]) []sum {
		last, _ := expected[key].(expectedSums[T])
		if last.sums == nil || !slices.Equal(last.in.a, in.a) || !slices.Equal(last.in.b, in.b) || !slices.Equal(last.in.bias, in.bias) {
			last = expectedSums[T]{in, compute(in)}
			expected[key] = last
		}
		return last.sums
	}
}

func checkConv[T Float](t *testing.T, c Conv2D) {
	t.Helper()
	if _, err := c.Forward(); err != nil {
		t.Fatal(err)
	}
	check(t, c.direct(), false, forwardTerms[T](c))
	c.Bias, c.ReLU, c.Ceiling = false, false, 0
	if _, err := c.BackwardInput(); err != nil {
		t.Fatal(err)
	}
	for _, input := range []Routine{c.scatter(), c.convolveBack()} {
		check(t, input, false, inputTerms[T](c))
	}
	if _, err := c.BackwardFilter(); err != nil {
		t.Fatal(err)
	}
	filters := []Routine{c.filterPanels()}
	if c.S == lineTaps && c.StrideW == 1 && c.DilationW == 1 {
		filters = append(filters, c.filterLines())
	}
	for _, filter := range filters {
		check(t, filter, false, filterTerms[T](c))
	}
}

func TestConv2D(t *testing.T) {
	plain := Conv2D{B: 1, C: 1, H: 1, W: 1, K: 1, R: 1, S: 1, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}
	cases := []func(c *Conv2D){
		func(c *Conv2D) {},
		func(c *Conv2D) { c.B, c.C, c.H, c.W, c.K, c.R, c.S = 3, 1, 28, 28, 10, 5, 5 },
		func(c *Conv2D) { c.B, c.C, c.H, c.W, c.K, c.R, c.S = 5, 10, 12, 12, 20, 5, 5 },
		func(c *Conv2D) { c.B, c.C, c.H, c.W, c.K, c.R, c.S, c.PadH, c.PadW = 5, 7, 14, 14, 17, 5, 5, 2, 2 },
		func(c *Conv2D) { c.B, c.C, c.H, c.W, c.K, c.R, c.S, c.PadH, c.PadW = 33, 2, 7, 5, 17, 3, 3, 1, 1 },
		func(c *Conv2D) { c.B, c.C, c.H, c.W, c.K = 40, 31, 2, 2, 6 },
		func(c *Conv2D) {
			c.B, c.C, c.H, c.W, c.K, c.R, c.S = 2, 3, 31, 33, 7, 4, 3
			c.StrideH, c.StrideW = 3, 2
		},
		func(c *Conv2D) {
			c.B, c.C, c.H, c.W, c.K, c.R, c.S = 2, 4, 16, 15, 5, 3, 3
			c.StrideH, c.StrideW, c.DilationH, c.DilationW, c.PadH, c.PadW = 1, 2, 2, 3, 2, 3
		},
		func(c *Conv2D) { c.B, c.C, c.H, c.W, c.K, c.R, c.S, c.PadH, c.PadW = 2, 2, 5, 6, 3, 2, 3, 5, 4 },
		func(c *Conv2D) { c.B, c.H, c.W, c.K, c.StrideH, c.StrideW, c.PadH, c.PadW = 2, 4, 4, 2, 3, 3, 3, 2 },
		func(c *Conv2D) { c.C, c.H, c.W, c.K, c.R, c.S, c.PadH, c.PadW = 2, 33, 257, 7, 3, 3, 1, 1 },
		func(c *Conv2D) {
			c.C, c.H, c.W, c.K, c.R, c.S, c.PadH, c.PadW = 2, 65, 64, 3, 3, 2, 3, 1
			c.StrideH, c.StrideW, c.DilationH, c.DilationW = 2, 1, 2, 1
		},
		func(c *Conv2D) { c.B, c.C, c.H, c.W, c.K, c.R, c.S = 20, 70, 6, 6, 18, 3, 1 },
		func(c *Conv2D) { c.B, c.C, c.H, c.W, c.K, c.S, c.StrideW = 3, 2, 1, 100, 4, 9, 4 },
		func(c *Conv2D) {
			c.B, c.C, c.H, c.W, c.K, c.R, c.S = 37, 3, 17, 19, 7, 2, 5
			c.StrideH, c.DilationH, c.PadH, c.PadW = 2, 3, 1, 4
		},
		func(c *Conv2D) { c.B, c.C, c.H, c.W, c.K, c.R, c.S = 2, 2, 6, 12, 300, 3, 5 },
		func(c *Conv2D) { c.B, c.C, c.H, c.W, c.K, c.R, c.S, c.PadH, c.PadW = 3, 12, 8, 14, 13, 5, 5, 2, 2 },
		func(c *Conv2D) { c.B, c.C, c.H, c.W, c.K, c.R, c.S, c.PadH, c.PadW = 3, 31, 3, 20, 7, 3, 3, 1, 1 },
		func(c *Conv2D) {
			c.B, c.C, c.H, c.W, c.K, c.R, c.S, c.StrideH, c.StrideW = 3, 5, 19, 32, 9, 3, 3, 2, 2
			c.PadH, c.PadW = 1, 1
		},
		func(c *Conv2D) { c.B, c.C, c.H, c.W, c.K, c.StrideH, c.StrideW = 2, 3, 18, 46, 5, 2, 2 },
		func(c *Conv2D) { c.B, c.C, c.H, c.W, c.K, c.StrideH, c.StrideW = 2, 3, 9, 47, 5, 2, 2 },
		func(c *Conv2D) { // padded below and to the right only
			c.B, c.C, c.H, c.W, c.K, c.R, c.S, c.StrideH, c.StrideW = 2, 3, 16, 18, 5, 3, 3, 2, 2
			c.TrailH, c.TrailW = 1, 1
		},
		func(c *Conv2D) {
			c.B, c.C, c.H, c.W, c.K, c.R, c.S, c.StrideH, c.StrideW = 2, 3, 20, 37, 11, 3, 4, 1, 2
			c.DilationW, c.PadW, c.TrailW = 3, 2, -1
		},
		func(c *Conv2D) {
			c.C, c.H, c.W, c.K, c.R, c.S, c.StrideH, c.StrideW, c.PadH, c.PadW = 3, 40, 36, 17, 7, 7, 2, 2, 3, 3
		},
		func(c *Conv2D) {
			c.B, c.C, c.H, c.W, c.K, c.R, c.S, c.PadH, c.PadW, c.TrailH, c.TrailW = 9, 17, 8, 9, 18, 3, 3, 1, 2, 1, -1
		},
	}
	onEachInstructionSet(t, func(t *testing.T) {
		for i, set := range cases {
			c := plain
			set(&c)
			c.Bias, c.ReLU = i%2 == 0, i%3 == 0
			if i%6 == 0 {
				c.Ceiling = 2
			}
			t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
				checkConv[float32](t, c)
				checkConv[float64](t, c)
			})
		}
	})
}

func TestConv2DValidate(t *testing.T) {
	good := Conv2D{B: 1, C: 1, H: 5, W: 5, K: 1, R: 3, S: 3, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	fused := good
	fused.ReLU = true
	if _, err := fused.BackwardInput(); err == nil {
		t.Error("backward input with a ReLU: no error")
	}
	if _, err := fused.BackwardFilter(); err == nil {
		t.Error("backward filter with a ReLU: no error")
	}
	for i, set := range []func(c *Conv2D){
		func(c *Conv2D) { c.B = 0 },
		func(c *Conv2D) { c.StrideW = 0 },
		func(c *Conv2D) { c.DilationH = -1 },
		func(c *Conv2D) { c.PadH = -1 },
		func(c *Conv2D) { c.PadH, c.TrailH = 1, -2 },
		func(c *Conv2D) { c.Ceiling = 6 },
		func(c *Conv2D) { c.ReLU, c.Ceiling = true, -1 },
		func(c *Conv2D) { c.R = 6 },
		func(c *Conv2D) { c.DilationW = 3 },
		func(c *Conv2D) { c.B, c.C = 1<<20, 1<<20 },
		func(c *Conv2D) { c.PadH, c.PadW = 1<<19, 1<<19 },
	} {
		c := good
		set(&c)
		if c.Validate() == nil {
			t.Errorf("case %d, %+v: no error", i, c)
		}
	}
}

// TestConv2DPacked convolves by packed panels: pointwise, with panels that cross images and lines,
// and with a filter that is read block by block.
func TestConv2DPacked(t *testing.T) {
	onEachInstructionSet(t, func(t *testing.T) {
		for _, sizes := range [][5]int{{40, 70, 9, 7, 7}, {3, 33, 11, 25, 24}, {1, 80, 20, 1, 47}, {3, 520, 520, 2, 2}} {
			c := Conv2D{B: sizes[0], C: sizes[1], K: sizes[2], H: sizes[3], W: sizes[4], R: 1, S: 1, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}
			c.Bias, c.ReLU, c.Ceiling = true, true, 2
			t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
				for _, c := range []Conv2D{c, c.flattened()} {
					check(t, c.direct(), false, forwardTerms[float32](c))
					check(t, c.direct(), false, forwardTerms[float64](c))
				}
			})
		}
	})
}

// TestConv2DChannels convolves by panels of output channels: one image and several, of fewer and of
// more than sixteen pixels, with channels that do not fill a panel or need two blocks of the depth.
// The bits are those of the direct convolution.
func TestConv2DChannels(t *testing.T) {
	onEachInstructionSet(t, func(t *testing.T) {
		for i, sizes := range [][5]int{
			{1, 96, 576, 7, 7}, {1, 600, 40, 7, 7}, {40, 70, 50, 7, 7}, {3, 33, 18, 3, 5}, {2, 5, 3, 4, 4}, {70, 300, 33, 1, 17}, {1, 40, 80, 14, 14},
		} {
			c := Conv2D{B: sizes[0], C: sizes[1], K: sizes[2], H: sizes[3], W: sizes[4], R: 1, S: 1, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}
			if c.Bias, c.ReLU = i%4 < 3, i%2 == 0; c.ReLU {
				c.Ceiling = 2
			}
			t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
				channels, direct := c.channels(), c.flattened().direct()
				check(t, channels, false, forwardTerms[float32](c))
				check(t, channels, false, forwardTerms[float64](c))
				in := random[float32](newRandom(), &channels)
				if !slices.Equal(execute(t, &channels, in, false, nil), execute(t, &direct, in, false, nil)) {
					t.Error("the bits differ from the direct convolution's")
				}
			})
		}
	})
}

// Panels of channels are chosen where panels of pixels would be partly unused, unless storing the
// results costs more, never for a few images whose filter would be packed for them only, and only
// in AVX-512.
func TestConv2DSuitsChannels(t *testing.T) {
	onEachInstructionSet(t, func(t *testing.T) {
		for _, c := range []struct {
			b, filterImages, in, out, side int
			want                           bool
		}{
			{1, 16, 192, 1152, 7, true}, {1, 16, 112, 672, 14, true}, {1, 16, 40, 240, 14, false}, {1, 16, 192, 24, 7, false},
			{1, 16, 240, 40, 28, false}, {1, 0, 192, 1152, 7, false}, {32, 0, 192, 1152, 7, false}, {32, 0, 1152, 192, 7, true},
		} {
			k := Conv2D{B: c.b, C: c.in, K: c.out, H: c.side, W: c.side, R: 1, S: 1, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1, FilterImages: c.filterImages}
			plan, err := k.Forward()
			if err != nil {
				t.Fatal(err)
			}
			if got, want := plan.kind == kindConv2DChannels, c.want && isa == avx512; got != want {
				t.Errorf("%+v: panels of channels %v, want %v", c, got, want)
			}
		}
	})
}

// TestConv2DDivided divides the outputs of one image, which is packed, read in place or padded,
// into several tiles. They have the bits that the image has in a batch.
func TestConv2DDivided(t *testing.T) {
	onEachInstructionSet(t, func(t *testing.T) {
		for _, c := range []Conv2D{
			{C: 96, K: 600, H: 7, W: 7, R: 1, S: 1, StrideH: 1, StrideW: 1},
			{C: 40, K: 1040, H: 7, W: 7, R: 1, S: 1, StrideH: 1, StrideW: 1},
			{C: 19, K: 389, H: 15, W: 18, R: 3, S: 3, StrideH: 2, StrideW: 2, PadH: 1, PadW: 1},
		} {
			c.DilationH, c.DilationW, c.Bias, c.ReLU, c.Ceiling = 1, 1, true, true, 2
			t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
				c.B = 1
				one := c.flattened().direct()
				if n := one.plan.(*convPlan).ranges; n < 2 {
					t.Fatalf("%d range", n)
				}
				check(t, one, false, forwardTerms[float32](c))
				check(t, one, false, forwardTerms[float64](c))
				c.B = 20
				batch := c.flattened().direct()
				in := random[float32](newRandom(), &batch)
				want := execute(t, &batch, in, false, nil)
				x, y := one.sizeA, one.sizeOut
				for image := range c.B {
					in := inputs[float32]{a: in.a[image*x:][:x], b: in.b, bias: in.bias}
					if !slices.Equal(execute(t, &one, in, false, nil), want[image*y:][:y]) {
						t.Errorf("image %d has other bits without the batch", image)
					}
				}
			})
		}
	})
}
