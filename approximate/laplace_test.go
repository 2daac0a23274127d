package approximate_test

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/pollen-ml/pollen/approximate"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// headed is a network with a last layer "head" of k outputs and f inputs, and a layer before it.
func headed(k, f int, bias bool) samples.Sample {
	z := trial.NormalDraws(k*f+k+2, 5)
	parameter := func(name string, shape tensor.Shape) samples.Parameter {
		p := samples.Parameter{Name: name, Shape: shape, Values: make([]float32, shape.Elements())}
		for i := range p.Values {
			p.Values[i], z = float32(z[0]), z[1:]
		}
		return p
	}
	s := samples.Sample{Chain: 2, Step: 100, Weight: 1, Parameters: []samples.Parameter{
		parameter("body.weight", tensor.Shape{2}), parameter("head.weight", tensor.Shape{k, f}),
	}}
	if bias {
		s.Parameters = append(s.Parameters, parameter("head.bias", tensor.Shape{k}))
	}
	return s
}

// observed are n examples: inputs, and probabilities, which differ from example to example.
func observed(n, k, f int) (inputs, probabilities []float32) {
	for _, z := range trial.NormalDraws(n*f, 8) {
		inputs = append(inputs, float32(0.3+z))
	}
	for z := trial.NormalDraws(n*k, 9); len(z) > 0; z = z[k:] {
		sum := 0.0
		for _, v := range z[:k] {
			sum += math.Exp(v)
		}
		for _, v := range z[:k] {
			probabilities = append(probabilities, float32(math.Exp(v)/sum))
		}
	}
	return inputs, probabilities
}

// exactLaplace is the covariance of the layer's weights, row by row, and then its biases, by the
// formula, with matrices of all of them.
func exactLaplace(t *testing.T, inputs, probabilities []float32, k, f int, bias bool, weightScale, biasScale float64) *mat.Dense {
	t.Helper()
	width, n := f, len(inputs)/f
	if bias {
		width++
	}
	a, g := mat.NewDense(width, width, nil), mat.NewDense(k, k, nil)
	for i := range n {
		x, p := tensor.Convert[float64](inputs[i*f:(i+1)*f]), tensor.Convert[float64](probabilities[i*k:(i+1)*k])
		if bias {
			x = append(x, 1)
		}
		for r := range width {
			for c := range width {
				a.Set(r, c, a.At(r, c)+x[r]*x[c]/float64(n))
			}
		}
		for r := range k {
			g.Set(r, r, g.At(r, r)+p[r]/float64(n))
			for c := range k {
				g.Set(r, c, g.At(r, c)-p[r]*p[c]/float64(n))
			}
		}
	}
	place := func(row, column int) int { // in the order of a sample's parameters
		if column == f {
			return k*f + row
		}
		return row*f + column
	}
	precision := mat.NewDense(k*width, k*width, nil)
	for r := range k {
		for c := range width {
			for s := range k {
				for d := range width {
					precision.Set(place(r, c), place(s, d), float64(n)*g.At(r, s)*a.At(c, d))
				}
			}
			i, scale := place(r, c), weightScale
			if c == f {
				scale = biasScale
			}
			precision.Set(i, i, precision.At(i, i)+1/(scale*scale))
		}
	}
	var covariance mat.Dense
	if err := covariance.Inverse(precision); err != nil {
		t.Fatal(err)
	}
	return &covariance
}

// Draws have the mode for their mean and the covariance of the formula; the layer before stays.
func TestLaplaceMoments(t *testing.T) {
	const k, f, n, draws = 3, 2, 12, 20000
	for _, bias := range []bool{true, false} {
		mode, scales := headed(k, f, bias), []float64{9, 0.4, 1.5}
		var priors []langevin.Prior
		for i := range mode.Parameters {
			priors = append(priors, langevin.Gaussian(scales[i]))
		}
		l, err := approximate.NewLaplaceApproximation(17, mode, "head", priors)
		if err != nil {
			t.Fatal(err)
		}
		inputs, probabilities := observed(n, k, f)
		for _, part := range [][2]int{{0, 5}, {5, n}, {n, n}} { // in batches, one of them empty
			if err := l.Observe(inputs[part[0]*f:part[1]*f], probabilities[part[0]*k:part[1]*k]); err != nil {
				t.Fatal(err)
			}
		}
		want := exactLaplace(t, inputs, probabilities, k, f, bias, scales[1], scales[2])
		p, _ := want.Dims()
		centre := flat(mode)[2:]
		mean, products := make([]float64, p), mat.NewDense(p, p, nil)
		for draw := range draws {
			s, err := l.Draw(draw)
			if err != nil {
				t.Fatal(err)
			}
			all := flat(s)
			if s.Step != 100+draw || s.Chain != 2 || s.Weight != 1 || !equalFloats(all[:2], flat(mode)[:2]) {
				t.Fatalf("draw %d: chain %d, step %d, weight %v, body %v", draw, s.Chain, s.Step, s.Weight, all[:2])
			}
			for i := range p {
				di := all[2+i] - centre[i]
				mean[i] += di / draws
				for j := range p {
					products.Set(i, j, products.At(i, j)+di*(all[2+j]-centre[j])/draws)
				}
			}
		}
		for i := range p {
			if off := math.Abs(mean[i]) / math.Sqrt(want.At(i, i)/draws); off > 5 {
				t.Errorf("bias %v: the mean of element %d is %.1f standard errors off", bias, i, off)
			}
			for j := range p {
				std := math.Sqrt((want.At(i, i)*want.At(j, j) + want.At(i, j)*want.At(i, j)) / draws)
				if off := math.Abs(products.At(i, j)-want.At(i, j)) / std; off > 5 {
					t.Errorf("bias %v: covariance %d %d is %v, want %v: %.1f standard errors off", bias, i, j, products.At(i, j), want.At(i, j), off)
				}
			}
		}
	}
}

func equalFloats(a, b []float64) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

// Of two classes with one input, 1 for all, the posterior of the weights' difference is known by
// integration; with 200 examples it is nearly Gaussian.
func TestLaplaceIsNearThePosterior(t *testing.T) {
	const n, ones, scale, draws = 200, 60, 0.8, 4000
	// U(d) of the difference d of both weights, whose prior is N(0, 2 scale^2).
	energy := func(d float64) float64 {
		return d*d/(4*scale*scale) + ones*math.Log1p(math.Exp(-d)) + (n-ones)*math.Log1p(math.Exp(d))
	}
	mode := 0.0
	for range 100 {
		p := 1 / (1 + math.Exp(-mode))
		mode -= (mode/(2*scale*scale) - ones + n*p) / (1/(2*scale*scale) + n*p*(1-p))
	}
	var weight, first, second float64
	for d := mode - 3; d < mode+3; d += 1e-3 {
		w := math.Exp(energy(mode) - energy(d))
		weight, first, second = weight+w, first+w*d, second+w*d*d
	}
	variance := second/weight - first/weight*first/weight

	s := samples.Sample{Weight: 1, Parameters: []samples.Parameter{
		{Name: "head.weight", Shape: tensor.Shape{2, 1}, Values: []float32{float32(-mode / 2), float32(mode / 2)}},
	}}
	l, err := approximate.NewLaplaceApproximation(1, s, "head", []langevin.Prior{langevin.Gaussian(scale)})
	if err != nil {
		t.Fatal(err)
	}
	p := float32(1 / (1 + math.Exp(-mode)))
	for range n {
		if err := l.Observe([]float32{1}, []float32{1 - p, p}); err != nil {
			t.Fatal(err)
		}
	}
	squares := 0.0
	for draw := range draws {
		s, err := l.Draw(draw)
		if err != nil {
			t.Fatal(err)
		}
		v := flat(s)
		squares += (v[1] - v[0] - mode) * (v[1] - v[0] - mode) / draws
	}
	if ratio := squares / variance; math.Abs(ratio-1) > 0.1 {
		t.Errorf("the variance is %v of the posterior's %v", ratio, variance)
	}
}

// Without curvature, as of classes that are certain, what is left is the prior.
func TestLaplaceOfCertainClasses(t *testing.T) {
	mode := headed(2, 3, true)
	l, err := approximate.NewLaplaceApproximation(3, mode, "head", []langevin.Prior{langevin.Flat(), langevin.Gaussian(0.5), langevin.Gaussian(0.5)})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Observe([]float32{1, 2, 3}, []float32{1, 0}); err != nil {
		t.Fatal(err)
	}
	squares := 0.0
	const draws = 2000
	for draw := range draws {
		s, err := l.Draw(draw)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range flat(s)[2:] {
			d := v - flat(mode)[2+i]
			squares += d * d / (draws * 8)
		}
	}
	if math.Abs(squares/0.25-1) > 0.05 {
		t.Errorf("variance %v, want the prior's .25", squares)
	}
}

func TestLaplaceErrors(t *testing.T) {
	wantError := func(t *testing.T, err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	mode := headed(2, 3, true)
	gaussian := []langevin.Prior{langevin.Gaussian(1), langevin.Gaussian(1), langevin.Gaussian(1)}
	for want, of := range map[string]struct {
		layer  string
		priors []langevin.Prior
	}{
		"hat must be a linear layer":               {"hat", gaussian},
		"for each of 3 parameters, got 2":          {"head", gaussian[:2]},
		"body must be a linear layer with weights": {"body", gaussian},
		"the prior of head.bias must be Gaussian":  {"head", []langevin.Prior{gaussian[0], gaussian[0], langevin.Laplace(1)}},
	} {
		_, err := approximate.NewLaplaceApproximation(1, mode, of.layer, of.priors)
		wantError(t, err, want)
	}
	l, err := approximate.NewLaplaceApproximation(1, mode, "head", gaussian)
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Draw(0)
	wantError(t, err, "no examples observed")
	wantError(t, l.Observe(make([]float32, 3), make([]float32, 3)), "3 inputs and 2 probabilities, got 3 and 3")
	nan := float32(math.NaN())
	wantError(t, l.Observe([]float32{1, 2, nan}, []float32{0.5, 0.5}), "inputs must be finite, got NaN at 2")
	wantError(t, l.Observe([]float32{1, 2, 3}, []float32{0.5, nan}), "example 0: probabilities must be at least 0, got NaN")
	wantError(t, l.Observe([]float32{1, 2, 3, 1, 2, 3}, []float32{0.5, 0.5, 4, 2}), "example 1: probabilities must sum to 1, got 6")
	_, err = l.Draw(0)
	wantError(t, err, "no examples observed")
	_, err = l.Draw(-1)
	wantError(t, err, "the draw must be at least 0, got -1")
}
