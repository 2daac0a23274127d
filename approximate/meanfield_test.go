package approximate_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/approximate"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

const startStd = 0.25

// bare is q of one parameter "w.weight" of n elements, whose divergence is recorded.
func bare(t *testing.T, v approximate.BayesByBackprop, dtype tensor.DType, n int) (*graph.Builder, *approximate.MeanField) {
	t.Helper()
	b := graph.New(dtype)
	v.Posterior.DataSize, v.InitialStd = 7, startStd
	mean, q := v.Apply(b, func(b *graph.Builder, x *graph.Node) *graph.Node {
		return b.Apply(op.Mean{}, b.Apply(op.Multiply{}, x, b.Parameter(trial.ParameterName, nil, n)))
	}, b.Data("x", dtype, n))
	loss, divergence := v.Loss(b, q, mean)
	b.Record("loss", loss)
	b.Record("divergence", divergence)
	if b.Err() != nil {
		t.Fatal(b.Err())
	}
	return b, q
}

// spread are n means and deviations around 1.
func spread(n int) (mu, rho []float64) {
	mu, rho = trial.NormalDraws(n, 21), trial.NormalDraws(n, 22)
	for i := range rho {
		rho[i] -= 0.5
	}
	return mu, rho
}

// integral is the expectation of f under N(mu, sigma^2).
func integral(mu, sigma float64, f func(w float64) float64) float64 {
	const width, points = 9.0, 20001
	sum := 0.0
	for i := range points {
		z := width * (2*float64(i)/(points-1) - 1)
		sum += math.Exp(-z*z/2) / math.Sqrt(2*math.Pi) * f(mu+sigma*z)
	}
	return sum * 2 * width / (points - 1)
}

// TestDivergence compares both forms of KL(q || prior) with quadrature: the formula to rounding,
// the other on average over steps.
func TestDivergence(t *testing.T) {
	const n = 33
	steps := trial.StepsOf(t, 4000)
	mu, rho := spread(n)
	for _, prior := range []langevin.Prior{
		langevin.Flat(), langevin.Gaussian(0.6), langevin.Laplace(0.4), langevin.StudentT(3, 0.5), langevin.ScaleMixture(0.3, 1.5, 0.2),
	} {
		want := 0.0
		for i, m := range mu {
			sigma := softplus(rho[i])
			want += integral(m, sigma, func(w float64) float64 {
				return -(w-m)*(w-m)/(2*sigma*sigma) - math.Log(sigma) - math.Log(2*math.Pi)/2 - prior.LogDensity(w)
			})
		}
		for _, closedForm := range []bool{false, true} {
			if closedForm && prior.Kind != langevin.GaussianPrior {
				continue
			}
			t.Run(fmt.Sprintf("%v/closed form %v", prior, closedForm), func(t *testing.T) {
				b, _ := bare(t, approximate.BayesByBackprop{Posterior: langevin.Posterior{Prior: prior}, ClosedForm: closedForm}, tensor.Float64, n)
				session := trial.Load(t, b, graph.LoadOptions{Seed: 2}, 1)
				write(t, session, trial.ParameterName+".mu", mu)
				write(t, session, trial.ParameterName+".rho", rho)
				sum, squares := 0.0, 0.0
				for made := 0; made < steps; made += 100 {
					trial.Advance(t, session, 100)
					for i := range 100 {
						d := session.Metric(0, "divergence", uint64(made+i)) - want
						sum += d
						squares += d * d
					}
				}
				if std := math.Sqrt(squares / float64(steps)); closedForm != (std < 1e-9) {
					t.Errorf("a step is off by %v on average", std)
				}
				if z := sum / math.Sqrt(squares); !closedForm && !(math.Abs(z) < trial.ZLimit) {
					t.Errorf("log q - log p is %v on average, quadrature has %v: z = %.1f", want+sum/float64(steps), want, z)
				}
			})
		}
	}
}

// TestDraw: draws have the means and deviations of q, and are independent of each other, from chain
// to chain too.
func TestDraw(t *testing.T) {
	const n, total = 31, 4000
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
		b, q := bare(t, approximate.BayesByBackprop{}, dtype, n)
		session := trial.Load(t, b, graph.LoadOptions{Seed: 6, FirstChain: 4, Chains: 2}, 1)
		mu, rho := spread(n)
		write(t, session, trial.ParameterName+".mu", mu)
		write(t, session, trial.ParameterName+".rho", rho)
		trial.Advance(t, session, 3)
		var sum, squares, neighbours [n]float64
		before := make([]float64, n)
		for draw := range total {
			s, err := q.Draw(session, 0, draw)
			if err != nil {
				t.Fatal(err)
			}
			if s.Chain != 4 || s.Step != 3+draw || s.Weight != 1 || len(s.Parameters) != 1 || s.Parameters[0].Name != trial.ParameterName {
				t.Fatalf("sample %+v", s)
			}
			for i, w := range s.Parameters[0].Values {
				z := (float64(w) - mu[i]) / softplus(rho[i])
				sum[i] += z
				squares[i] += z*z - 1
				neighbours[i] += z * before[i]
				before[i] = z
			}
		}
		for i := range n {
			for name, z := range map[string]float64{
				"mean": sum[i] / math.Sqrt(total), "variance": squares[i] / math.Sqrt(2*total), "correlation of draws": neighbours[i] / math.Sqrt(total),
			} {
				if !(math.Abs(z) < trial.ZLimit) {
					t.Errorf("%v: element %d: %s: z = %.1f", dtype, i, name, z)
				}
			}
		}
		first, err := q.Draw(session, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		second, err := q.Draw(session, 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		product := 0.0
		for i, w := range second.Parameters[0].Values { // as it started: of mean 0
			product += (float64(first.Parameters[0].Values[i]) - mu[i]) / softplus(rho[i]) * float64(w) / startStd
		}
		if z := product / math.Sqrt(n); !(math.Abs(z) < trial.ZLimit) {
			t.Errorf("%v: chains are correlated: z = %.1f", dtype, z)
		}
		for chain, draw := range map[int]int{0: -1, 2: 0, -1: 0, 1: math.MaxInt} {
			if _, err := q.Draw(session, chain, draw); err == nil {
				t.Errorf("%v: chain %d, draw %d: no error", dtype, chain, draw)
			}
		}
	}
}

// TestDrawFormula compares draws of several parameters with q as it is in the session, first as it
// starts, and with the normals at their address.
func TestDrawFormula(t *testing.T) {
	v := approximate.BayesByBackprop{Posterior: mixed(), InitialStd: 0.3}
	f := newFit(t, &v, tensor.Float64)
	f.train(t)
	session := f.load(t, graph.LoadOptions{Seed: 1<<40 + 5, FirstChain: 7}, 1)
	for _, steps := range []int{0, 3} {
		trial.Advance(t, session, steps)
		s, err := f.q.Draw(session, 0, 2)
		if err != nil || s.Chain != 7 || s.Step != steps+2 || len(s.Parameters) != len(layeredNames) {
			t.Fatalf("sample of chain %d, step %d with %d parameters (%v)", s.Chain, s.Step, len(s.Parameters), err)
		}
		first := 0
		for i, p := range s.Parameters {
			n, z := len(p.Values), make([]float64, len(p.Values))
			random.Normals(z, first, random.Address{Seed: 1<<40 + 5, Chain: 7, Step: uint64(s.Step), Stream: random.OrderStream - 1})
			first += n
			mu, rho := trial.Values(t, session, p.Name+".mu", 0, n), trial.Values(t, session, p.Name+".rho", 0, n)
			for j, got := range p.Values {
				if want := mu[j] + softplus(rho[j])*z[j]; p.Name != layeredNames[i] || !(math.Abs(float64(got)-want) < 1e-6*(1+math.Abs(want))) {
					t.Fatalf("%s: element %d is %v, want %v", p.Name, j, got, want)
				}
				if sigma := softplus(rho[j]); steps == 0 && !(math.Abs(sigma-0.3) < 1e-12) {
					t.Fatalf("%s: deviation %d starts at %v, want 0.3", p.Name, j, sigma)
				}
			}
		}
	}
}

// TestLocalFormula compares a linear layer under local reparameterization with its formula, for
// inputs large and small.
func TestLocalFormula(t *testing.T) {
	const batch, inputs, outputs = 31, 5, 3
	v := approximate.BayesByBackprop{
		Posterior: langevin.Posterior{DataSize: 7}, InitialStd: startStd, LocalReparameterization: true,
	}
	b := graph.New(tensor.Float64)
	y, q := v.Apply(b, layers.Linear{Name: "linear", Outputs: outputs, NoBias: true}.Apply, b.Data("x", tensor.Float64, batch, inputs))
	b.Output("y", y)
	if q == nil || b.Err() != nil {
		t.Fatal(b.Err())
	}
	session := trial.Load(t, b, graph.LoadOptions{Seed: 4}, 1)
	x := trial.NormalDraws(batch*inputs, 9)
	for i := range x {
		x[i] *= math.Pow(10, float64(-i/inputs%8))
	}
	if err := graph.Write(session, "x", 0, 0, x); err != nil {
		t.Fatal(err)
	}
	mu, rho := trial.NormalDraws(outputs*inputs, 10), trial.NormalDraws(outputs*inputs, 11)
	write(t, session, "linear.weight.mu", mu)
	write(t, session, "linear.weight.rho", rho)
	for step := range uint64(2) {
		trial.Advance(t, session, 1)
		z := make([]float64, batch*outputs)
		random.Normals(z, 0, random.Address{Seed: 4, Step: step, Stream: 4}) // after the streams of mu, rho and the weights
		for i, got := range trial.Values(t, session, "y", 0, len(z)) {
			mean, variance := 0.0, 1e-12
			for j := range inputs {
				in, at := x[i/outputs*inputs+j], i%outputs*inputs+j
				sigma := softplus(rho[at])
				mean += in * mu[at]
				variance += in * in * sigma * sigma
			}
			if want := mean + math.Sqrt(variance)*z[i]; !(math.Abs(got-want) < 1e-13*(1+math.Abs(want))) {
				t.Errorf("step %d: sum %d is %v, want %v", step, i, got, want)
			}
		}
	}
}

// TestDrawElsewhere: a session of another program is refused.
func TestDrawElsewhere(t *testing.T) {
	_, q := bare(t, approximate.BayesByBackprop{}, tensor.Float32, 3)
	b := graph.New(tensor.Float32)
	b.Output("y", b.Apply(op.Noise{Stream: b.Stream(), As: op.ViewAs(3)}, b.Header()))
	if _, err := q.Draw(trial.Load(t, b, graph.LoadOptions{}, 1), 0, 0); err == nil || !strings.Contains(err.Error(), trial.ParameterName+".mu") {
		t.Errorf("error %v, want one that names what is missing", err)
	}
}

// TestDrawsPredict: a network fitted by Bayes by Backprop gives a store of samples with which the
// plain network predicts.
func TestDrawsPredict(t *testing.T) {
	v := approximate.BayesByBackprop{Posterior: mixed(), InitialStd: 0.05}
	f := newFit(t, &v, tensor.Float32)
	f.train(t)
	session := f.load(t, graph.LoadOptions{Seed: 1, Chains: 2}, 1)
	trial.Advance(t, session, 5)
	store, dir := trial.NewStore(t)
	for chain := range 2 {
		for draw := range 3 {
			s, err := f.q.Draw(session, chain, draw)
			if err == nil {
				err = store.Add(s)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	host := tensor.NewHost(1)
	defer host.Close()
	p, err := samples.NewSamplePredictor(host, tensor.Float32, trial.PredictorImages(5), 5, layered)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	files, err := samples.NewStore(dir).Files()
	if err != nil || len(files) != 6 {
		t.Fatalf("%d files (%v), want 6", len(files), err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		s, err := samples.ReadSample(file)
		if err != nil {
			t.Fatal(err)
		}
		probabilities := make([]float32, 5*trial.NetworkLabels)
		if err := p.Predict(s, probabilities); err != nil {
			t.Fatal(err)
		}
		seen[fmt.Sprint(probabilities)] = true
	}
	if len(seen) != 6 {
		t.Errorf("%d different predictions, want 6", len(seen))
	}
}

// The zero MeanField has neither draws nor a mean.
func TestZeroMeanField(t *testing.T) {
	if _, err := (&approximate.MeanField{}).Mean(nil, 0); err == nil || !strings.Contains(err.Error(), "a MeanField of BayesByBackprop.Apply") {
		t.Error(err)
	}
	if _, err := (&approximate.MeanField{}).Draw(nil, 0, 0); err == nil || !strings.Contains(err.Error(), "a MeanField of BayesByBackprop.Apply") {
		t.Error(err)
	}
}
