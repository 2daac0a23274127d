package runtest

import (
	"context"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/internal/onnxtest"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/onnx"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/tensor"
)

// TestStartPriorIsExact: the output of a convolution of an ONNX file is linear in its weights, so
// that with a Gaussian likelihood and a prior around the file's weights w0 the posterior is
// Gaussian: of covariance C = (A'A + I/s^2)^-1 and mean w0 + C A'(y - A w0).
func TestStartPriorIsExact(t *testing.T) {
	const examples, length, sigma = 6, 3, 0.5
	n := onnxtest.Backbone{Channels: 1, Side: length, Filters: 1}
	model, err := onnx.Open(n.Write(t))
	must(t, err)
	network, err := model.Network(onnx.Options{Output: "a", Offset: func(string) bool { return true }})
	must(t, err)
	weight, bias := n.Kernels()
	var start []float64
	for _, v := range append(weight, bias...) {
		start = append(start, float64(v))
	}
	pixel := func(i int) float64 { return math.Sin(float64(3 * i)) }
	rows := examples * length * length
	a, y := mat.NewDense(rows, len(start), nil), mat.NewVecDense(rows, nil)
	x, target := make([]float64, rows), make([]float64, rows)
	for at := range rows {
		x[at], target[at] = pixel(at), math.Cos(float64(5*at))
		row, column := at%(length*length)/length, at%length
		for k := range 9 {
			if i, j := row+k/3-1, column+k%3-1; i >= 0 && i < length && j >= 0 && j < length {
				a.Set(at, k, pixel(at/(length*length)*length*length+i*length+j))
			}
		}
		a.Set(at, 9, 1)
		y.SetVec(at, target[at])
	}
	mean, covariance := exactPosterior(t, a, y, start, sigma)

	b := graph.New(tensor.Float64)
	images := b.Table("x", x, examples, 1, length, length)
	targets := b.Table("y", target, examples, 1, length, length)
	residual := b.Apply(op.Squared{}, b.Apply(op.Subtract{}, network.Apply(b, images), targets))
	loss := b.Apply(op.Scale{Factor: 0.5 / examples}, b.Apply(op.Sum{Axes: op.AxesOf(0, 1, 2, 3)}, residual))
	posterior := langevin.Posterior{DataSize: examples, Prior: langevin.Start(sigma)}
	goal := mcmc.Target{Potential: posterior.Potential(b, loss), Temperature: 1}
	for _, parameter := range b.Parameters() {
		goal.Quantities = append(goal.Quantities, mcmc.Quantity{Name: parameter.Name(), Node: parameter})
	}
	walk, err := mcmc.NUTS{Warmup: 200}.Attach(b, goal)
	must(t, err)
	const draws = 1500
	err = b.OnHost(graph.LoadOptions{Seed: 7, Chains: 2}, func(session *graph.Session) error {
		drawn, err := walk.Sample(context.Background(), session, draws, 1)
		if err != nil {
			return err
		}
		for i := range start {
			name, at := "features.0.weight", i
			if i == 9 {
				name, at = "features.0.bias", 0
			}
			chains, err := drawn.Of(name, at)
			if err != nil {
				return err
			}
			var all []float64
			for _, chain := range chains {
				all = append(all, chain...)
			}
			got, variance := stat.MeanVariance(all, nil)
			std := math.Sqrt(covariance.At(i, i))
			if got += start[i]; !(math.Abs(got-mean.AtVec(i)) < 0.12*std) {
				t.Errorf("%s[%d]: mean %.4f, want %.4f within 0.12 of %.4f", name, at, got, mean.AtVec(i), std)
			}
			if !(math.Abs(math.Sqrt(variance)/std-1) < 0.1) {
				t.Errorf("%s[%d]: standard deviation %.4f, want %.4f", name, at, math.Sqrt(variance), std)
			}
		}
		return nil
	})
	must(t, err)
}

// exactPosterior returns the posterior of linear regression with noise of variance 1 and the prior
// N(start, sigma^2).
func exactPosterior(t *testing.T, a *mat.Dense, y *mat.VecDense, start []float64, sigma float64) (mean *mat.VecDense, covariance *mat.Dense) {
	var precision mat.Dense
	precision.Mul(a.T(), a)
	for i := range start {
		precision.Set(i, i, precision.At(i, i)+1/(sigma*sigma))
	}
	covariance, mean = &mat.Dense{}, &mat.VecDense{}
	must(t, covariance.Inverse(&precision))
	var residual, slope mat.VecDense
	residual.MulVec(a, mat.NewVecDense(len(start), start))
	residual.SubVec(y, &residual)
	slope.MulVec(a.T(), &residual)
	mean.MulVec(covariance, &slope)
	mean.AddVec(mean, mat.NewVecDense(len(start), start))
	return mean, covariance
}

// The default prior of pretrained weights that are sampled is around their values in the file.
func TestDefaultPriorOfPretrainedWeights(t *testing.T) {
	for _, c := range []struct {
		freeze, method string
		want           langevin.Prior
	}{
		{"none", "hmc", langevin.Start(0.002)}, {"none", "ensemble", langevin.Start(0.01)},
		{"features.0.weight", "hmc", langevin.Start(0.002)}, {"all", "hmc", langevin.Gaussian(0.316)},
	} {
		spec := pretrained(t, onnxtest.Backbone{})
		spec.Freeze, spec.Method, spec.Epochs = c.freeze, methodOf(t, c.method), 120
		if c.method == "ensemble" {
			spec.Samples, spec.Epochs = 0, 1
		}
		run := fit(t, spec, splitsOf(t), with(t, 2))
		if got := run.Manifest().Spec.Prior; got == nil || *got != c.want {
			t.Errorf("%s, freeze %s: the prior is %v, want %v", c.method, c.freeze, got, c.want)
		}
	}
}

// A run that starts at another one has the same weights, also if the parameters of one of them are
// offsets from the weights in the file.
func TestStartBetweenPriors(t *testing.T) {
	data, network := splitsOf(t), pretrained(t, onnxtest.Backbone{}).Network
	run := func(prior langevin.Prior, start string) *bayes.Run {
		spec := bayes.Spec{Network: network, Freeze: "none", Method: methodOf(t, "sgld"), Prior: &prior, Epochs: 2, Samples: 1, Seed: 3, Start: start}
		if start != "" { // the weights stay where they are
			spec.Schedule, spec.Seed = optimizers.Constant{Rate: 1e-20}, 4
		}
		return fit(t, spec, data, with(t, 1))
	}
	weights := func(r *bayes.Run) []float32 {
		draws, err := r.Draws()
		must(t, err)
		s, err := draws.Weights(draws.Len() - 1)
		must(t, err)
		var all []float32
		for _, p := range s.Parameters {
			all = append(all, p.Values...)
		}
		return all
	}
	priors := map[string]langevin.Prior{"around 0": langevin.Gaussian(0.3), "around the file's weights": langevin.Start(0.3)}
	for from, a := range priors {
		start := run(a, "")
		want := weights(start)
		for to, b := range priors {
			got := weights(run(b, start.Dir()))
			for i := range want {
				if math.Abs(float64(got[i]-want[i])) > 1e-6 {
					t.Fatalf("from a prior %s to one %s: weight %d is %v, want %v", from, to, i, got[i], want[i])
				}
			}
		}
	}
}

// Auto's pilot keeps to these rates, too: it would otherwise choose one by the noise of
// minibatches, at which steps overshoot the prior's mean.
func TestAutoRateUnderStartPrior(t *testing.T) {
	spec := pretrained(t, onnxtest.Backbone{})
	spec.Freeze, spec.Method, spec.Samples, spec.Epochs = "none", bayes.Auto{}, 4, 100
	spec.Augment = &bayes.Augment{Shift: 1} // which excludes samplers on all data
	s := fit(t, spec, splitsOf(t), with(t, 2)).Manifest().Spec
	rates, err := s.Schedule.Rates(1)
	must(t, err)
	if limit := 60 * 0.002 * 0.002 / 8; bayes.MethodName(s.Method) != "sgnht" || !(rates[0] > 0 && rates[0] <= limit*1.0001) {
		t.Errorf("%s at the rate %v, want sgnht at most at %v for 60 images", bayes.MethodName(s.Method), rates[0], limit)
	}
}

// The default rates are stable under a narrow prior around the file's weights.
func TestDefaultRateUnderStartPrior(t *testing.T) {
	prior := langevin.Start(0.01)
	for _, method := range []string{"ensemble", "sghmc"} {
		spec := pretrained(t, onnxtest.Backbone{})
		spec.Freeze, spec.Method, spec.Prior, spec.Epochs, spec.Samples = "none", methodOf(t, method), &prior, 20, 0
		run := fit(t, spec, splitsOf(t), with(t, 2))
		rates, err := run.Manifest().Spec.Schedule.Rates(100)
		must(t, err)
		limit := 60 * 0.01 * 0.01 / 8
		if !(rates[0] > 0 && rates[0] <= limit*1.0001) {
			t.Errorf("%s: the rates begin at %v, want at most %v for 60 images", method, rates[0], limit)
		}
	}
}
