package optest

import (
	"fmt"
	"math"
	"slices"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// naiveNormalize follows the formulas of op.FilterResponseNorm, with groups 0, and op.GroupNorm.
func naiveNormalize(x, gamma, beta []float64, images, groups, width int, epsilon float64) []float64 {
	channels, center := len(gamma), groups > 0
	if !center {
		groups = channels
	}
	members := channels / groups * width
	y := make([]float64, len(x))
	for group := range images * groups {
		mean, square := 0.0, 0.0
		for i := group * members; i < (group+1)*members; i++ {
			if center {
				mean += x[i] / float64(members)
			}
		}
		for i := group * members; i < (group+1)*members; i++ {
			square += (x[i] - mean) * (x[i] - mean) / float64(members)
		}
		for i := group * members; i < (group+1)*members; i++ {
			c := i / width % channels
			y[i] = gamma[c]*(x[i]-mean)/math.Sqrt(square+epsilon) + beta[c]
		}
	}
	return y
}

func normalizeCases() []Case {
	const epsilon = 1e-3
	var cases []Case
	for _, shape := range []tensor.Shape{{1, 1, 1, 2}, {2, 6, 5, 7}, {3, 4, 1, 33}, {1, 12, 9, 9}, {5, 6, 31, 11}, {37, 6, 1, 1}, {5, 150, 1, 1}} {
		inputs := []Input{Float(Normal, shape...), Float(Normal, shape[1]), Float(Normal, shape[1])}
		width := shape[2] * shape[3]
		cases = append(cases, Case{
			Name: fmt.Sprint("filter response norm ", shape), Op: op.FilterResponseNorm{Epsilon: epsilon}, Inputs: inputs, Terms: width,
			Naive: func(in [][]float64) []float64 {
				return naiveNormalize(in[0], in[1], in[2], shape[0], 0, width, epsilon)
			},
		}, Case{
			Name: fmt.Sprint("filter response norm, threshold ", shape), Kernel: "normalize_threshold_fwd", Terms: width,
			Inputs: append(inputs, Float(Normal, shape[1])),
			Build: func(b *graph.Builder, in []*graph.Node) *graph.Node {
				return b.Apply(op.Threshold{}, b.Apply(op.FilterResponseNorm{Epsilon: epsilon}, in[:3]...), in[3])
			},
			Naive: func(in [][]float64) []float64 {
				y := naiveNormalize(in[0], in[1], in[2], shape[0], 0, width, epsilon)
				for i := range y {
					y[i] = math.Max(y[i], in[3][i/width%shape[1]])
				}
				return y
			},
		})
		for _, groups := range []int{1, 2, 3} {
			if shape[1]%groups != 0 {
				continue
			}
			cases = append(cases, Case{
				Name: fmt.Sprint("group norm ", shape, " in ", groups), Op: op.GroupNorm{Groups: groups, Epsilon: epsilon}, Inputs: inputs,
				Terms: shape[1] / groups * width, Loosen: 4, Reason: "differences from a mean cancel",
				Naive: func(in [][]float64) []float64 {
					return naiveNormalize(in[0], in[1], in[2], shape[0], groups, width, epsilon)
				},
			})
		}
		cases = append(cases, Case{
			Name: fmt.Sprint("threshold ", shape), Op: op.Threshold{}, Terms: 1,
			Inputs: []Input{Float(Distinct, shape...), Float(Uniform, shape[1])},
			Naive: func(in [][]float64) []float64 {
				y := make([]float64, len(in[0]))
				for i, v := range in[0] {
					y[i] = math.Max(v, in[1][i/width%shape[1]])
				}
				return y
			},
			Gradient: func(in [][]float64, dout []float64) [][]float64 {
				dx, dtau := make([]float64, len(dout)), make([]float64, len(in[1]))
				for i, v := range in[0] {
					if c := i / width % shape[1]; v > in[1][c] {
						dx[i] = dout[i]
					} else {
						dtau[c] += dout[i]
					}
				}
				return [][]float64{dx, dtau}
			},
		})
	}
	return append(cases, append(normalizeBlockCases(), dropoutCases()...)...)
}

// normalizeBlockCases tests the ops that follow a filter response norm in a residual network. The
// compiler fuses them into it, and their gradients into its gradient. Rows of some of the widths
// fit into a GPU's registers.
func normalizeBlockCases() []Case {
	const epsilon = 1e-3
	var cases []Case
	for _, shape := range []tensor.Shape{
		{2, 3, 8, 8}, {1, 2, 28, 28}, {2, 3, 5, 7}, {3, 5, 2, 2}, {2, 3, 10, 10}, {3, 2, 16, 16}, {1, 1, 32, 32}, {1, 1, 36, 36},
	} {
		width, all := shape[2]*shape[3], len(cases) < 3*6
		silu := func(x float64) float64 { return x / (1 + math.Exp(-x)) }
		relu := func(x float64) float64 { return math.Max(x, 0) }
		for _, f := range []struct {
			name      string
			residual  bool
			twice     bool // z is used twice
			op        graph.Op
			activated func(float64) float64
		}{
			{"SiLU", false, false, op.SiLU{}, silu}, {"SiLU, used twice", false, true, op.SiLU{}, silu}, {"sum, SiLU", true, false, op.SiLU{}, silu},
			{"sum, SiLU, used twice", true, true, op.SiLU{}, silu}, {"ReLU", false, false, op.ReLU{}, relu}, {"sum, ReLU", true, false, op.ReLU{}, relu},
		} {
			if !all && !(f.residual && f.twice) {
				continue
			}
			c := Case{
				Name: fmt.Sprint("filter response norm, threshold, ", f.name, " ", shape), Terms: width,
				Inputs: []Input{Float(Normal, shape...), Float(Normal, shape[1]), Float(Normal, shape[1]), Float(Normal, shape[1])},
				Build: func(b *graph.Builder, in []*graph.Node) *graph.Node {
					x := in[0]
					if f.twice { // behind a bias
						x = b.Apply(op.BiasAdd{}, x, in[3])
					}
					y := b.Apply(op.Threshold{}, b.Apply(op.FilterResponseNorm{Epsilon: epsilon}, x, in[1], in[2]), in[3])
					if f.residual {
						y = b.Apply(op.Add{}, y, in[4])
					}
					z := b.Apply(f.op, y)
					if f.twice {
						z = b.Apply(op.Add{}, b.Apply(op.Multiply{}, z, in[len(in)-1]), z)
					}
					return z
				},
				Naive: func(in [][]float64) []float64 {
					x := slices.Clone(in[0])
					for i := range x {
						if f.twice {
							x[i] += in[3][i/width%shape[1]]
						}
					}
					z := naiveNormalize(x, in[1], in[2], shape[0], 0, width, epsilon)
					for i := range z {
						z[i] = math.Max(z[i], in[3][i/width%shape[1]])
						if f.residual {
							z[i] += in[4][i]
						}
						if z[i] = f.activated(z[i]); f.twice {
							z[i] += z[i] * in[len(in)-1][i]
						}
					}
					return z
				},
			}
			if f.residual {
				c.Inputs = append(c.Inputs, Float(Normal, shape...))
			}
			if f.twice {
				c.Inputs = append(c.Inputs, Float(Normal, shape...))
			} else {
				c.Kernel = "normalize_threshold_fwd"
			}
			cases = append(cases, c)
		}
	}
	return cases
}

func dropoutCases() []Case {
	var cases []Case
	for _, n := range []int{1, 257, 9001} {
		for _, rate := range []float64{0, 0.25, 0.5} {
			cases = append(cases, Case{
				Name: fmt.Sprint("dropout of ", rate, " [", n, "]"), Op: op.Dropout{Rate: rate, Stream: 77}, Terms: 1, Steps: 3,
				Inputs: []Input{Float(Normal, n), Header},
				Naive: func(in [][]float64) []float64 {
					mask := dropoutMask(n, rate, in[1])
					y := make([]float64, n)
					for i, v := range in[0] {
						y[i] = v * mask[i]
					}
					return y
				},
				Gradient: func(in [][]float64, dout []float64) [][]float64 {
					mask := dropoutMask(n, rate, in[1])
					dx := make([]float64, n)
					for i, v := range dout {
						dx[i] = v * mask[i]
					}
					return [][]float64{dx}
				},
			})
		}
	}
	return cases
}

func dropoutMask(n int, rate float64, header []float64) []float64 {
	uniforms, mask := make([]float64, n), make([]float64, n)
	random.Uniforms(uniforms, 0, random.Address{
		Seed: uint64(header[0]), Chain: uint32(header[1]), Step: uint64(header[2]), Stream: 77,
	})
	for i, u := range uniforms {
		if u > rate {
			mask[i] = 1 / (1 - rate)
		}
	}
	return mask
}

func cumulativeCases() []Case {
	var cases []Case
	for _, shape := range []tensor.Shape{{1}, {257}, {5, 33}, {3, 31, 7}, {300, 31}} {
		for axis := range shape {
			for _, reverse := range []bool{false, true} {
				cases = append(cases, Case{
					Name: fmt.Sprint("cumulative sum ", shape, " axis ", axis, " reverse ", reverse), Terms: shape[axis],
					Op: array.CumulativeSum{Axis: axis, Reverse: reverse}, Inputs: []Input{Float(Normal, shape...)},
					Naive: func(in [][]float64) []float64 { return naiveCumulative(in[0], shape, axis, reverse) },
				})
			}
		}
	}
	return cases
}

// naiveCumulative adds, to each element, all elements that come before it on its line.
func naiveCumulative(x []float64, shape tensor.Shape, axis int, reverse bool) []float64 {
	inner := tensor.Shape(shape[axis+1:]).Elements()
	y := make([]float64, len(x))
	for i := range x {
		place := i / inner % shape[axis]
		for other := range shape[axis] {
			if other == place || (other < place) != reverse {
				y[i] += x[i+(other-place)*inner]
			}
		}
	}
	return y
}

func likelihoodCases() []Case {
	var cases []Case
	for _, shape := range []tensor.Shape{{1}, {31}, {5, 33}, {2, 3, 7}, {9001}} {
		batch := float64(shape[0])
		cases = append(cases, Case{
			Name: fmt.Sprint("squared error ", shape), Op: op.SquaredError{}, Terms: shape.Elements(),
			Inputs: []Input{Float(Normal, shape...), Float(Normal, shape...)},
			Naive: func(in [][]float64) []float64 {
				total := 0.0
				for i, p := range in[0] {
					total += (p - in[1][i]) * (p - in[1][i]) / 2
				}
				return []float64{total / batch}
			},
		}, Case{
			Name: fmt.Sprint("bernoulli logits ", shape), Op: op.BernoulliLogits{}, Terms: shape.Elements(), Loosen: 4, Reason: exponent,
			Inputs: []Input{Float(Normal, shape...), Float(Uniform, shape...)},
			Naive: func(in [][]float64) []float64 {
				total := 0.0
				for i, z := range in[0] {
					p := 1 / (1 + math.Exp(-z))
					total -= in[1][i]*math.Log(p) + (1-in[1][i])*math.Log(1-p)
				}
				return []float64{total / batch}
			},
		})
	}
	large := Case{
		Name: "bernoulli logits that are large", Op: op.BernoulliLogits{}, Terms: 257, NoGradient: true, Loosen: 4, Reason: exponent,
		Inputs: []Input{Float(Large, 257), Float(Uniform, 257)},
	}
	large.Naive = func(in [][]float64) []float64 {
		total := 0.0
		for i, z := range in[0] {
			total += math.Max(z, 0) + math.Log1p(math.Exp(-math.Abs(z))) - in[1][i]*z
		}
		return []float64{total / 257}
	}
	return append(cases, large)
}

// functionCases tests the ops that apply a function to each element.
func functionCases() []Case {
	digamma := "Go's lgamma, the naive loop here, is wrong by 5e-15 around 1.2, near its zeros at 1 and 2"
	var cases []Case
	for _, f := range []struct {
		op     graph.Op
		fill   Fill
		value  func(x float64) float64
		reason string
	}{
		{op.Exp{}, Normal, math.Exp, ""}, {op.Log{}, Positive, math.Log, "near 1 the logarithm has the error of its argument"},
		{op.Sqrt{}, Positive, math.Sqrt, ""}, {op.Squared{}, Normal, func(x float64) float64 { return x * x }, ""},
		{op.Negate{}, Normal, func(x float64) float64 { return -x }, ""}, {op.Tanh{}, Normal, math.Tanh, "1 - y^2, where y is near 1, has the error of y"},
		{op.Sigmoid{}, Normal, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, ""},
		{op.Softplus{}, Normal, func(x float64) float64 { return math.Log(1 + math.Exp(x)) }, ""},
		{op.SiLU{}, Normal, func(x float64) float64 { return x / (1 + math.Exp(-x)) }, ""},
		{op.HardSwish{}, DistinctWide, func(x float64) float64 { return x * math.Min(math.Max(x/6+0.5, 0), 1) }, ""},
		{op.GELU{}, Normal, func(x float64) float64 { return x * (1 + math.Erf(x/math.Sqrt2)) / 2 }, "1 + erf cancels below 0"},
		{op.ELU{Alpha: 1.5}, Distinct, func(x float64) float64 {
			if x > 0 {
				return x
			}
			return 1.5 * (math.Exp(x) - 1)
		}, "e^x - 1 cancels near 0"},
		{op.Lgamma{}, Positive, func(x float64) float64 { v, _ := math.Lgamma(x); return v }, digamma},
	} {
		for _, n := range []int{1, 257, 9001} {
			c := Case{
				Name: fmt.Sprint(f.op.Name(), " [", n, "]"), Op: f.op, Inputs: []Input{Float(f.fill, n)}, Terms: 1,
				Naive: func(in [][]float64) []float64 {
					y := make([]float64, n)
					for i, v := range in[0] {
						y[i] = f.value(v)
					}
					return y
				},
			}
			if f.reason != "" {
				c.Loosen, c.Reason = 16, f.reason
			}
			if f.op == (op.Lgamma{}) {
				c.Loosen = 32
			}
			cases = append(cases, c)
		}
	}
	return cases
}
