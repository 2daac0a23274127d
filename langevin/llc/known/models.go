package known

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/pkg/errors"
	"gonum.org/v1/gonum/mat"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin/llc"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// halfSquares returns half the squared distances [B] of predictions and targets [B K].
func halfSquares(b *graph.Builder, predictions, targets *graph.Node) *graph.Node {
	squares := b.Apply(op.Squared{}, b.Apply(op.Subtract{}, predictions, targets))
	return b.Apply(op.Scale{Factor: 0.5}, b.Apply(op.Sum{Axes: op.AxesOf(1)}, squares))
}

// orthonormal returns n rows of d numbers whose second moments are exactly the unit matrix: each
// row has sqrt(d) with a random sign in one place and zeros elsewhere, and every place occurs n/d
// times. n must be a multiple of d.
func orthonormal(n, d int, random *rand.Rand) []float32 {
	if n%d != 0 {
		panic(fmt.Sprintf("known: the number of examples must be a multiple of the %d inputs, got %d", d, n))
	}
	x := make([]float32, n*d)
	order := random.Perm(n)
	for i, row := range order {
		x[row*d+i%d] = float32(math.Sqrt(float64(d))) * float32(2*random.IntN(2)-1)
	}
	return x
}

// gaussian returns numbers of N(0, 1).
func gaussian(n int, random *rand.Rand) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(random.NormFloat64())
	}
	return x
}

// DeepLinear returns a deep linear network at the most singular parameters of a linear map of the
// given rank: the first rank units of each layer pass on the first rank inputs, and all other
// weights are zero. Its coefficient is Coefficient(rank, widths...). Inputs have unit second
// moments and the data no noise, so that L(w) is exactly half the squared distance of two maps for
// every n. DeepLinear panics if n is not a multiple of the number of inputs.
func DeepLinear(n, rank int, widths ...int) llc.Model {
	random := rand.New(rand.NewPCG(1, 2))
	in, out := widths[0], widths[len(widths)-1]
	x := orthonormal(n, in, random)
	m := llc.Model{DataSize: n}
	for i := range widths[1:] {
		p := samples.Parameter{Name: fmt.Sprintf("w%d", i), Shape: tensor.Shape{widths[i], widths[i+1]}, Values: make([]float32, widths[i]*widths[i+1])}
		for r := range rank {
			p.Values[r*widths[i+1]+r] = 1
		}
		m.Centre = append(m.Centre, p)
	}
	y := make([]float32, n*out)
	for i := range n {
		copy(y[i*out:][:rank], x[i*in:][:rank])
	}
	m.Losses = func(b *graph.Builder, batch op.Batch) *graph.Node {
		values := b.Apply(op.GatherRows{Batch: batch}, b.Data("x", tensor.Float32, n, in), b.Header())
		targets := b.Apply(op.GatherRows{Batch: batch}, b.Data("y", tensor.Float32, n, out), b.Header())
		for _, p := range m.Centre {
			values = b.Apply(op.MatMul{}, values, b.Parameter(p.Name, nil, p.Shape...))
		}
		return halfSquares(b, values, targets)
	}
	m.Write = writing(x, y)
	return m
}

// LinearRegression returns a regression on d inputs with unit noise, at the least squares solution,
// whose coefficient is d/2. L is exactly quadratic, and its Hessian the unit matrix: under a
// localization the coefficient is Localized with d curvatures of 1. LinearRegression panics if n is
// not a multiple of d.
func LinearRegression(n, d int) llc.Model {
	random := rand.New(rand.NewPCG(3, 4))
	x, y := orthonormal(n, d, random), gaussian(n, random)
	m := llc.Model{DataSize: n, Centre: []samples.Parameter{{Name: "w", Shape: tensor.Shape{d, 1}, Values: make([]float32, d)}}}
	solution := make([]float64, d)
	for i, target := range y {
		for j := range d {
			solution[j] += float64(target) * float64(x[i*d+j]) / float64(n)
		}
	}
	for j, v := range solution {
		m.Centre[0].Values[j] = float32(v)
	}
	m.Losses = func(b *graph.Builder, batch op.Batch) *graph.Node {
		inputs := b.Apply(op.GatherRows{Batch: batch}, b.Data("x", tensor.Float32, n, d), b.Header())
		targets := b.Apply(op.GatherRows{Batch: batch}, b.Data("y", tensor.Float32, n, 1), b.Header())
		return halfSquares(b, b.Apply(op.MatMul{}, inputs, b.Parameter("w", nil, d, 1)), targets)
	}
	m.Write = writing(x, y)
	return m
}

// LogisticRegression returns a logistic regression on d inputs at the maximum of the likelihood,
// whose coefficient is d/2 in the limit of large n. The labels are drawn from a model of the first
// two inputs. It also returns the Hessian of L at the maximum. d must be at least 2.
func LogisticRegression(n, d int) (m llc.Model, hessian *mat.SymDense, err error) {
	random := rand.New(rand.NewPCG(5, 6))
	x, y := gaussian(n*d, random), make([]float32, n)
	for i := range y {
		z := float64(x[i*d]) - 0.5*float64(x[i*d+1])
		if random.Float64() < 1/(1+math.Exp(-z)) {
			y[i] = 1
		}
	}
	w := make([]float64, d)
	hessian = mat.NewSymDense(d, nil)
	for range 20 { // Newton
		gradient := mat.NewVecDense(d, nil)
		hessian.Zero()
		for i := range n {
			z, row := 0.0, mat.NewVecDense(d, nil)
			for j := range d {
				row.SetVec(j, float64(x[i*d+j]))
				z += w[j] * float64(x[i*d+j])
			}
			p := 1 / (1 + math.Exp(-z))
			gradient.AddScaledVec(gradient, (p-float64(y[i]))/float64(n), row)
			hessian.SymRankOne(hessian, p*(1-p)/float64(n), row)
		}
		var step mat.VecDense
		if err := step.SolveVec(hessian, gradient); err != nil {
			return m, nil, errors.Wrap(err, "known: logistic regression")
		}
		for j := range w {
			w[j] -= step.AtVec(j)
		}
	}
	m = llc.Model{DataSize: n, Centre: []samples.Parameter{{Name: "w", Shape: tensor.Shape{d, 1}}}}
	for _, v := range w {
		m.Centre[0].Values = append(m.Centre[0].Values, float32(v))
	}
	m.Losses = func(b *graph.Builder, batch op.Batch) *graph.Node {
		inputs := b.Apply(op.GatherRows{Batch: batch}, b.Data("x", tensor.Float32, n, d), b.Header())
		labels := b.Apply(op.GatherRows{Batch: batch}, b.Data("y", tensor.Float32, n, 1), b.Header())
		logits := b.Apply(op.MatMul{}, inputs, b.Parameter("w", nil, d, 1))
		// -log p = softplus(z) - y z
		losses := b.Apply(op.Subtract{}, b.Apply(op.Softplus{}, logits), b.Apply(op.Multiply{}, labels, logits))
		return b.Apply(op.ViewAs(batch.Size), losses)
	}
	m.Write = writing(x, y)
	return m, hessian, nil
}

// writing returns the function that writes inputs and targets.
func writing(x, y []float32) func(s *graph.Session) error {
	return func(s *graph.Session) error {
		return cmp.Or(graph.Write(s, "x", 0, 0, x), graph.Write(s, "y", 0, 0, y))
	}
}

// Localized returns the coefficient of a regular model under a localization gamma: half the sum of
// N beta k/(N beta k + gamma) over the curvatures k of L, where scale is N beta.
func Localized(scale, gamma float64, curvatures []float64) (lambda float64) {
	for _, k := range curvatures {
		lambda += scale * k / (scale*k + gamma) / 2
	}
	return lambda
}
