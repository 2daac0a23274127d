package optest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mathext"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// naiveLogProbability uses row b of logits for label b, or the only row.
func naiveLogProbability(classes int) func(in [][]float64) []float64 {
	return func(in [][]float64) []float64 {
		logits, labels := in[0], in[1]
		y := make([]float64, len(labels))
		for row, label := range labels {
			z := logits[row*classes%len(logits):][:classes]
			largest, total := math.Inf(-1), 0.0
			for _, v := range z {
				largest = math.Max(largest, v)
			}
			for _, v := range z {
				total += math.Exp(v - largest)
			}
			y[row] = z[int(label)] - largest - math.Log(total)
		}
		return y
	}
}

// naiveDifference subtracts each element from its neighbour.
func naiveDifference(d array.Difference, shape tensor.Shape) func(in [][]float64) []float64 {
	stride := shape[d.Axis+1:].Elements()
	return func(in [][]float64) []float64 {
		y := append([]float64(nil), in[0]...)
		for i, v := range in[0] {
			switch at := i / stride % shape[d.Axis]; {
			case !d.Reverse && at+1 < shape[d.Axis]:
				y[i+stride] -= v
			case d.Reverse && at > 0:
				y[i-stride] -= v
			}
		}
		return y
	}
}

// naiveNoise draws the numbers of the header's step.
func naiveNoise(n op.Noise, count int) func(in [][]float64) []float64 {
	return func(in [][]float64) []float64 {
		header := in[0]
		y := make([]float64, count)
		address := random.Address{
			Seed: uint64(header[graph.HeaderSeed]), Chain: uint32(header[graph.HeaderChain]),
			Step: uint64(header[graph.HeaderStep]), Stream: n.Stream,
		}
		if n.Kind == op.NormalNoise {
			random.Normals(y, 0, address)
		} else {
			random.Uniforms(y, 0, address)
		}
		return y
	}
}

// wide draws from a normal distribution of standard deviation 2, so that both branches of erf are
// reached.
func wide(r *rand.Rand, values []float64) {
	Normal(r, values)
	for i := range values {
		values[i] *= 2
	}
}

func densityCases() []Case {
	curve := func(name string, o graph.Op, fill Fill, f func(x float64) float64, shape ...int) Case {
		return Case{
			Name: fmt.Sprint(name, " ", shape), Op: o, Inputs: []Input{Float(fill, shape...)}, Terms: 1,
			Naive: func(in [][]float64) []float64 {
				y := make([]float64, len(in[0]))
				for i, x := range in[0] {
					y[i] = f(x)
				}
				return y
			},
		}
	}
	var cases []Case
	for _, shape := range []tensor.Shape{{}, {31}, {3, 5, 7, 11}, {9001}} {
		studentT := curve("student-t constant", op.StudentTConstant{}, Positive, func(x float64) float64 {
			return -mathext.Lbeta(x/2, 0.5) - math.Log(x)/2 // B(x/2, 1/2) = Gamma(x/2) sqrt(pi) / Gamma((x+1)/2)
		}, shape...)
		studentT.Loosen, studentT.Reason = 4, "Go's lgamma is wrong by 5e-15 around 1.2"
		cases = append(cases,
			curve("log1p", op.Log1p{}, Uniform, func(x float64) float64 { return math.Log(1 + x) }, shape...),
			curve("abs", op.Abs{}, Distinct, func(x float64) float64 { return math.Sqrt(x * x) }, shape...),
			curve("softsign", op.Softsign{}, Distinct, func(x float64) float64 { return x / (1 + math.Sqrt(x*x)) }, shape...),
			curve("clip", op.Clip{Low: -0.7, High: 1.3}, Distinct, func(x float64) float64 { return math.Min(math.Max(x, -0.7), 1.3) }, shape...),
			curve("erf", op.Erf{}, wide, math.Erf, shape...),
			curve("restrict", op.Restrict{High: 2}, Positive, func(x float64) float64 { return x }, shape...),
			Case{
				Name: fmt.Sprint("whole ", shape), Op: op.Whole{}, Inputs: []Input{Float(Ties, shape...)}, Terms: 1, NoGradient: true,
				Naive: func(in [][]float64) []float64 { return in[0] },
			},
			curve("softplus inverse", op.SoftplusInverse{}, Positive, func(x float64) float64 { return math.Log(math.Exp(x) - 1) }, shape...),
			studentT)
	}
	logAddExp := func(in [][]float64) []float64 {
		y := make([]float64, max(len(in[0]), len(in[1])))
		for i := range y {
			y[i] = math.Log(math.Exp(in[0][i%len(in[0])]) + math.Exp(in[1][i%len(in[1])]))
		}
		return y
	}
	for _, shapes := range [][2]tensor.Shape{{{}, {}}, {{257}, {}}, {{31, 33}, {33}}, {{3, 5, 7, 11}, {3, 5, 7, 11}}, {{}, {9001}}} {
		cases = append(cases, Case{
			Name: fmt.Sprint("logaddexp ", shapes), Op: op.LogAddExp{}, Naive: logAddExp, Terms: 1,
			Inputs: []Input{Float(Normal, shapes[0]...), Float(Normal, shapes[1]...)},
			Loosen: 2, Reason: "b's gradient is what a's leaves of dout, and has its error",
		})
	}
	for _, size := range [][2]int{{1, 1}, {1, 10}, {31, 2}, {33, 31}, {257, 10}, {3, 257}, {1031, 33}} {
		rows, classes := size[0], size[1]
		for name, logits := range map[string]Input{
			"": Float(Normal, rows, classes), "large ": Float(Large, rows, classes), "common ": Float(Normal, classes),
		} {
			cases = append(cases, Case{
				Name: fmt.Sprintf("log probability %s%d", name, size), Op: op.LogProbability{},
				Inputs: []Input{logits, Labels(classes, rows)}, Naive: naiveLogProbability(classes), Terms: classes,
				Loosen: 8, Reason: exponent,
			})
		}
	}
	for _, reverse := range []bool{false, true} {
		for _, shape := range []tensor.Shape{{1}, {257}, {31, 1, 7}, {3, 5, 7, 11}, {9001}} {
			for axis := range shape {
				d := array.Difference{Axis: axis, Reverse: reverse}
				cases = append(cases, Case{
					Name: fmt.Sprintf("%T %+v %v", d, d, shape), Op: d, Inputs: []Input{Float(Normal, shape...)}, Terms: 2,
					Naive: naiveDifference(d, shape),
				})
			}
		}
	}
	for _, shape := range []tensor.Shape{{}, {1}, {31}, {33, 257}, {9001}} {
		for name, kind := range map[string]op.NoiseKind{"normal": op.NormalNoise, "uniform": op.UniformNoise} {
			noise := op.Noise{Kind: kind, Stream: 7, As: op.ViewAs(shape...)}
			cases = append(cases, Case{
				Name: fmt.Sprint(name, " noise ", shape), Op: noise, Inputs: []Input{Header}, Steps: 3, NoGradient: true, Terms: 1,
				Naive: naiveNoise(noise, shape.Elements()),
			})
		}
	}
	return cases
}
