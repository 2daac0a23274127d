package langevin_test

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// affine is the posterior of a linear layer's weights W [O I] on data y = W x + noise of variance
// 1, all of it in each step: rows of W are independent, with the precision K = x'x + 1/deviation^2.
type affine struct {
	examples, inputs, outputs int
	sigma                     float64
}

const affineWeight = "affine.weight"

// x has correlated inputs of different sizes.
func (p affine) x() *mat.Dense {
	x := mat.NewDense(p.examples, p.inputs, trial.NormalDraws(p.examples*p.inputs, 21))
	for b := range p.examples {
		row := x.RawRowView(b)
		for i := range row {
			row[i] = (row[i] + 0.5*row[0]) * (1 + 2*float64(i)/float64(p.inputs))
		}
	}
	return x
}

func (p affine) y() *mat.Dense {
	return mat.NewDense(p.examples, p.outputs, trial.NormalDraws(p.examples*p.outputs, 22))
}

// posterior is the precision K [I I] and the mean [O I].
func (p affine) posterior() (precision, mean *mat.Dense) {
	x := p.x()
	precision, mean = new(mat.Dense), new(mat.Dense)
	precision.Mul(x.T(), x)
	for i := range p.inputs {
		precision.Set(i, i, precision.At(i, i)+1/(p.sigma*p.sigma))
	}
	var right, solution mat.Dense
	right.Mul(x.T(), p.y())
	if err := solution.Solve(precision, &right); err != nil {
		panic(err)
	}
	mean.CloneFrom(solution.T())
	return precision, mean
}

// load attaches a sampler; the stream is its noise's.
func (p affine) load(t *testing.T, dtype tensor.DType, sampler langevin.Sampler, chains int, h, temperature float64) (s *graph.Session, stream uint16) {
	t.Helper()
	b := graph.New(dtype)
	x := b.Table("x", p.x().RawMatrix().Data, p.examples, p.inputs)
	y := b.Table("y", p.y().RawMatrix().Data, p.examples, p.outputs)
	w := b.Parameter(affineWeight, trial.Normal(func(int) float64 { return 0.3 / float64(p.inputs) }), p.outputs, p.inputs)
	loss := b.Apply(op.SquaredError{}, b.Apply(op.MatMul{TransposeB: true}, x, w), y)
	posterior := langevin.Posterior{DataSize: p.examples, Prior: langevin.Gaussian(p.sigma)}
	stream = b.Stream() + 1
	if err := langevin.Attach(b, sampler, posterior, loss, []float64{h}, []float64{temperature}); err != nil {
		t.Fatal(err)
	}
	return trial.Load(t, b, graph.LoadOptions{Seed: trial.RunSeed, Chains: chains}, 1), stream
}

// whiteners are P [O O] and Q [I I].
func (p affine) whiteners(t *testing.T, s *graph.Session, chain int) (output, input *mat.Dense) {
	t.Helper()
	return mat.NewDense(p.outputs, p.outputs, trial.Values(t, s, affineWeight+".output whitener", chain, p.outputs*p.outputs)),
		mat.NewDense(p.inputs, p.inputs, trial.Values(t, s, affineWeight+".input whitener", chain, p.inputs*p.inputs))
}

func (p affine) weights(t *testing.T, s *graph.Session, chain int) *mat.Dense {
	t.Helper()
	return mat.NewDense(p.outputs, p.inputs, trial.Values(t, s, affineWeight, chain, p.outputs*p.inputs))
}

func matrixProduct(factors ...mat.Matrix) *mat.Dense {
	product := mat.DenseCopyOf(factors[0])
	for _, f := range factors[1:] {
		next := new(mat.Dense)
		next.Mul(product, f)
		product = next
	}
	return product
}

// largestDifference is relative to the largest element of want.
func largestDifference(got, want mat.Matrix) float64 {
	var difference mat.Dense
	difference.Sub(got, want)
	return mat.Norm(&difference, math.Inf(1)) / (1e-300 + mat.Norm(want, math.Inf(1)))
}

// TestKSGLDSteps compares factors, their inverses and moves with the formulas in float64, up to the
// freeze and beyond.
func TestKSGLDSteps(t *testing.T) {
	k := langevin.KSGLD{Alpha: 0.7, Damping: 0.01, Refresh: 2, FreezeAt: 6}
	for _, p := range []affine{{17, 1, 1, 0.5}, {31, 5, 3, 0.5}, {9, 33, 31, 2}} {
		for dtype, tolerance := range map[tensor.DType]float64{tensor.Float32: 2e-4, tensor.Float64: 1e-11} {
			for _, temperature := range []float64{0, 0.6} {
				h := 0.1 / float64(p.examples)
				s, stream := p.load(t, dtype, k, 1, h, temperature)
				check := func(name string, step int, got, want mat.Matrix) {
					t.Helper()
					if d := largestDifference(got, want); !(d <= tolerance) {
						t.Errorf("%+v, %v, T = %v, step %d: %s is off by %.2g of its size", p, dtype, temperature, step, name, d)
					}
				}
				precision, mean := p.posterior()
				var a, c, frozen *mat.Dense
				for step := range 9 {
					w := p.weights(t, s, 0)
					output, input := p.whiteners(t, s, 0)
					trial.Advance(t, s, 1)

					var sigma mat.Dense
					sigma.Sub(w, mean)
					gradient := matrixProduct(&sigma, precision)
					z := mat.NewDense(p.outputs, p.inputs, nil)
					random.Normals(z.RawMatrix().Data, 0, random.Address{Seed: trial.RunSeed, Step: uint64(step), Stream: stream})
					drift := matrixProduct(output.T(), output, gradient, input.T(), input)
					noise := matrixProduct(output.T(), z, input)
					drift.Scale(-h, drift)
					noise.Scale(math.Sqrt(2*h*temperature), noise)
					want := mat.DenseCopyOf(w)
					want.Add(want, drift)
					want.Add(want, noise)
					check("theta", step, p.weights(t, s, 0), want)
					if step == 0 && mat.Norm(drift, 2) != 0 {
						t.Error("the first step moves")
					}

					if step < k.FreezeAt {
						a, c = p.factors(w, a, c, k.Alpha)
					}
					check("A", step, mat.NewDense(p.inputs, p.inputs, trial.Values(t, s, affineWeight+".input factor", 0, p.inputs*p.inputs)), a)
					check("S", step, mat.NewDense(p.outputs, p.outputs, trial.Values(t, s, affineWeight+".output factor", 0, p.outputs*p.outputs)), c)
					newOutput, newInput := p.whiteners(t, s, 0)
					switch {
					case step < k.FreezeAt && (step%k.Refresh == 0 || step == k.FreezeAt-1):
						pi := math.Sqrt(mat.Trace(a) / float64(p.inputs) / (mat.Trace(c) / float64(p.outputs)))
						check("A's inverse", step, matrixProduct(newInput, damped(a, math.Sqrt(k.Damping)*pi), newInput.T()), identityMatrix(p.inputs))
						check("S's inverse", step, matrixProduct(newOutput, damped(c, math.Sqrt(k.Damping)/pi), newOutput.T()), identityMatrix(p.outputs))
						frozen = newInput
					default:
						if !mat.Equal(newInput, frozen) {
							t.Errorf("%+v: the whitener changes at step %d", p, step)
						}
					}
				}
			}
		}
	}
}

// factors are the factors after a step at w.
func (p affine) factors(w, a, c *mat.Dense, alpha float64) (inputs, outputs *mat.Dense) {
	x := p.x()
	residuals := matrixProduct(x, w.T())
	residuals.Sub(residuals, p.y())
	scale := 1 / float64(p.examples)
	return movedAverage(a, matrixProduct(x.T(), x), scale, alpha), movedAverage(c, matrixProduct(residuals.T(), residuals), scale, alpha)
}

func identityMatrix(n int) *mat.Dense { return damped(mat.NewDense(n, n, nil), 1) }

func damped(m *mat.Dense, damping float64) *mat.Dense {
	sum := mat.DenseCopyOf(m)
	n, _ := sum.Dims()
	for i := range n {
		sum.Set(i, i, sum.At(i, i)+damping)
	}
	return sum
}

// modes are the directions in which the frozen chain has independent elements of curvature 1: with
// the eigenvectors V of P P' and U of Q K Q', and the products lambda of their eigenvalues,
// psi = sqrt(lambda) V' P'^-1 (W - mean) Q^-1 U moves with the step size h lambda.
type modes struct {
	left, right, mean *mat.Dense
	lambda            []float64
}

func (p affine) modes(t *testing.T, s *graph.Session, chain int) modes {
	t.Helper()
	precision, mean := p.posterior()
	output, input := p.whiteners(t, s, chain)
	sigma, v := eigen(t, matrixProduct(output, output.T()))
	kappa, u := eigen(t, matrixProduct(input, precision, input.T()))
	var inverse mat.Dense
	m := modes{mean: mean}
	if err := inverse.Inverse(output.T()); err != nil {
		t.Fatal(err)
	}
	m.left = matrixProduct(v.T(), &inverse)
	inverse.Reset()
	if err := inverse.Inverse(input); err != nil {
		t.Fatal(err)
	}
	m.right = matrixProduct(&inverse, u)
	for _, left := range sigma {
		for _, right := range kappa {
			m.lambda = append(m.lambda, left*right)
		}
	}
	return m
}

func eigen(t *testing.T, m *mat.Dense) (values []float64, vectors *mat.Dense) {
	t.Helper()
	n, _ := m.Dims()
	symmetric := mat.NewSymDense(n, nil)
	for i := range n {
		for j := i; j < n; j++ {
			symmetric.SetSym(i, j, (m.At(i, j)+m.At(j, i))/2)
		}
	}
	var e mat.EigenSym
	if !e.Factorize(symmetric, true) {
		t.Fatal("no eigenvalues")
	}
	vectors = new(mat.Dense)
	e.VectorsTo(vectors)
	return e.Values(nil), vectors
}

func (m modes) of(w *mat.Dense) []float64 {
	var sigma mat.Dense
	sigma.Sub(w, m.mean)
	psi := matrixProduct(m.left, &sigma, m.right).RawMatrix().Data
	for i := range psi {
		psi[i] *= math.Sqrt(m.lambda[i])
	}
	return psi
}

// TestKSGLDMoments compares with the exact moments of the discretised chain on the conjugate
// posteriors of 1, 2 and 1000 dimensions.
func TestKSGLDMoments(t *testing.T) {
	k := langevin.KSGLD{Alpha: 0.95, Damping: 0.01, Refresh: 10, FreezeAt: 300}
	for _, c := range []struct {
		p           affine
		chains      int
		temperature float64
	}{
		{affine{20, 1, 1, 0.5}, 120, 1}, {affine{20, 2, 1, 0.2}, 60, 0.5}, {affine{20, 1, 2, 1}, 60, 2}, {affine{150, 50, 20, 0.3}, 1, 0.7},
	} {
		p := c.p
		t.Run(fmt.Sprintf("%d x %d", p.outputs, p.inputs), func(t *testing.T) {
			h := 0.4 / float64(p.examples)
			if c.chains > 1 {
				c.chains = trial.ChainsOf(t, c.chains)
			}
			s, _ := p.load(t, tensor.Float32, k, c.chains, h, c.temperature)
			trial.Advance(t, s, k.FreezeAt+gaussianBurnIn)
			n := p.inputs * p.outputs
			out := outcome{h: h, elements: make([]moments, c.chains*n)}
			all := make([]modes, c.chains)
			before := make([][]float64, c.chains)
			for chain := range all {
				all[chain] = p.modes(t, s, chain)
				before[chain] = all[chain].of(p.weights(t, s, chain))
				out.preconditioner = append(out.preconditioner, all[chain].lambda...)
			}
			for range gaussianSteps {
				trial.Advance(t, s, 1)
				for chain, m := range all {
					now := m.of(p.weights(t, s, chain))
					for i, x := range before[chain] {
						e := &out.elements[chain*n+i]
						e.mean += x / gaussianSteps
						e.square += x * x / gaussianSteps
						e.lag += x * now[i] / gaussianSteps
					}
					before[chain] = now
				}
			}
			chainOf := func(k, temperature float64) theory {
				return func(step float64) process { return euler(step, k, temperature, 0) }
			}
			for name, z := range out.zScores(chainOf(1, c.temperature)) {
				if !(math.Abs(z) < trial.ZLimit) {
					t.Errorf("%s: z = %.1f", name, z)
				}
			}
			for name, wrong := range map[string]theory{
				"ten percent more noise": chainOf(1, 1.1*c.temperature),
				"ten percent more drift": chainOf(1.1, c.temperature),
				"half the step":          func(step float64) process { return euler(step/2, 1, c.temperature, 0) },
			} {
				if z := largest(out.zScores(wrong)); z < trial.ZLimit && !trial.Underpowered(out.foreseen(chainOf(1, c.temperature), wrong)) {
					t.Errorf("%s: not noticed: z = %.1f", name, z)
				}
			}
		})
	}
}

// TestKSGLDRegression: mean and covariance of the conjugate posterior, at a small step.
func TestKSGLDRegression(t *testing.T) {
	const chains, steps, temperature = 30, 3000, 0.8
	k := langevin.KSGLD{Alpha: 0.95, Damping: 0.01, Refresh: 10, FreezeAt: 300}
	p := affine{25, 3, 2, 0.4}
	s, _ := p.load(t, tensor.Float32, k, chains, 0.05/float64(p.examples), temperature)
	trial.Advance(t, s, 2*k.FreezeAt)
	precision, mean := p.posterior()
	var covariance mat.Dense
	if err := covariance.Inverse(precision); err != nil {
		t.Fatal(err)
	}
	sum, squares, count := mat.NewDense(p.outputs, p.inputs, nil), mat.NewDense(p.inputs, p.inputs, nil), 0.0
	for range steps / 20 {
		trial.Advance(t, s, 20)
		for chain := range chains {
			w := p.weights(t, s, chain)
			w.Sub(w, mean)
			sum.Add(sum, w)
			squares.Add(squares, matrixProduct(w.T(), w))
			count++
		}
	}
	sum.Scale(1/count, sum)
	squares.Scale(1/(count*float64(p.outputs)*temperature), squares)
	for i := range p.inputs {
		sigma := math.Sqrt(temperature * covariance.At(i, i))
		for o := range p.outputs {
			if off := sum.At(o, i) / sigma; !(math.Abs(off) < 0.1) {
				t.Errorf("mean %d %d is off by %.3f deviations", o, i, off)
			}
		}
		for j := range p.inputs {
			got, want := squares.At(i, j), covariance.At(i, j)
			if size := math.Sqrt(covariance.At(i, i) * covariance.At(j, j)); !(math.Abs(got-want) < 0.1*size) {
				t.Errorf("covariance %d %d is %.4g of T, want %.4g", i, j, got, want)
			}
		}
	}
}
