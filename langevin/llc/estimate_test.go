package llc_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/pkg/errors"
	"gonum.org/v1/gonum/mat"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/internal/testenv"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/llc"
	"github.com/pollen-ml/pollen/langevin/llc/known"
	"github.com/pollen-ml/pollen/tensor"
)

func estimate(t *testing.T, m llc.Model, o llc.Options) *llc.Estimation {
	t.Helper()
	host := tensor.NewHost(1)
	defer host.Close()
	o.Seed = 1
	e, err := llc.Estimate(context.Background(), host, m, o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// near reports an error unless got is within a relative tolerance of want.
func near(t *testing.T, what string, got, want, relative float64) {
	t.Helper()
	if !(math.Abs(got-want) <= relative*math.Abs(want)) {
		t.Errorf("%s = %.4f, want %.4f within %.0f %%", what, got, want, 100*relative)
	}
}

// TestLinearRegression compares everything that is measured with its exact value. With all
// curvatures 1, a chain of SGLD on all data has in each direction the energy of the temperature
// 1/(1 - epsilon (N beta + gamma)/4).
func TestLinearRegression(t *testing.T) {
	const n, d, gamma = 400, 8, 10
	m, scale := known.LinearRegression(n, d), n/math.Log(n)
	large := 0.8 / (scale + gamma)
	e := estimate(t, m, llc.Options{Localization: gamma, StepSizes: []float64{large / 4, large}, Batch: n, Steps: 3200, BurnIn: 200, Chains: 8})
	exact := known.Localized(scale, gamma, slices.Repeat([]float64{1}, d))
	near(t, "curvature", e.Curvature, 1, 0.01)
	if e.Rows[0].StepSize != large || e.Slack > 1e-3 {
		t.Fatalf("the rows begin with %v and the slack is %v, want %v and 0", e.Rows[0].StepSize, e.Slack, large)
	}
	for _, r := range e.Rows {
		temperature := 1 / (1 - r.StepSize*(scale+gamma)/4)
		near(t, "lambda", float64(r.Lambda.Value), exact, 0.03)
		near(t, "raw", float64(r.Raw.Value), exact*temperature, 0.03)
		near(t, "temperature", float64(r.Temperature.Value), temperature, 0.03)
		near(t, "temperature of the loss", r.LossTemperature(), temperature, 0.03)
		near(t, "exponent", r.Exponent, 2, 0.02)
		share := scale / (scale + gamma)
		near(t, "effect of gamma", float64(r.Localization.Value), -d/2*share*(1-share)*temperature*temperature, 0.2)
	}
}

// TestProgress: all steps are counted, including the descent's and those of chains that diverge.
func TestProgress(t *testing.T) {
	var last llc.Progress
	before := 0
	o := llc.Options{Localization: 1, StepSizes: []float64{10, 1e-4}, Steps: 150, Chains: 2, Observe: func(p llc.Progress) {
		if p.Done <= before || p.Done > p.Total || p.Task != "llc" {
			t.Errorf("after %d steps: %+v", before, p)
		}
		last, before = p, p.Done
	}}
	e := estimate(t, known.LinearRegression(100, 5), o)
	if !e.Rows[0].Diverged || last.Done != last.Total || last.Total != 150+2*150*2 {
		t.Errorf("the first row is %+v, the last progress %+v, want all of %d steps", e.Rows[0], last, 150+2*150*2)
	}
}

// TestInterrupted: if the context ends, the result has the rows so far, none accepted, and an
// incomplete row if it has enough steps after burn-in.
func TestInterrupted(t *testing.T) {
	const steps, chains = 600, 4
	m, host := known.LinearRegression(400, 5), tensor.NewHost(1)
	defer host.Close()
	for _, c := range []struct{ stop, rows, made int }{
		{steps, 0, 0}, {steps + steps*chains/4, 0, 0}, {steps + steps*chains*3/4, 1, 450}, {steps + steps*chains, 1, 0}, {steps + 2*steps*chains, 2, 0},
	} {
		ctx, stop := context.WithCancel(context.Background())
		e, err := llc.Estimate(ctx, host, m, llc.Options{Localization: 1, Chains: chains, Steps: steps, Seed: 1, Observe: func(p llc.Progress) {
			if p.Done >= c.stop {
				stop()
			}
		}})
		stop()
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("stopped after %d steps: error %v", c.stop, err)
		}
		if c.rows == 0 {
			if e != nil {
				t.Errorf("stopped after %d steps: %d rows, want nothing", c.stop, len(e.Rows))
			}
			continue
		}
		if e == nil || len(e.Rows) != c.rows || e.Rows[c.rows-1].Made != c.made || !e.Interrupted {
			t.Fatalf("stopped after %d steps: %v, want %d rows, the last with %d steps", c.stop, e, c.rows, c.made)
		}
		if v := e.Verdict(); v.Accepted || v.Row >= 0 || !strings.HasPrefix(v.Text, "interrupted, so this is partial: ") {
			t.Errorf("stopped after %d steps: the verdict is %+v", c.stop, v)
		}
		steps, values := e.MeanTrace(c.rows - 1)
		if end := steps[len(steps)-1]; c.made > 0 && end > float64(c.made) || len(steps) != len(values) {
			t.Errorf("the trace of %d steps ends at %v", c.made, end)
		}
	}
}

// TestInterruptedReference: if the context ends during the reference, the rows are complete, and
// they have the verdict of an estimate without a reference.
func TestInterruptedReference(t *testing.T) {
	m, host := known.LinearRegression(100, 5), tensor.NewHost(1)
	defer host.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	o := llc.Options{Localization: 1, Steps: 4000}
	want := estimate(t, m, o)
	o.Seed, o.Reference, o.Observe = 1, 200, func(p llc.Progress) {
		if p.Task == "NUTS" {
			stop()
		}
	}
	e, err := llc.Estimate(ctx, host, m, o)
	if !errors.Is(err, context.Canceled) || e == nil {
		t.Fatalf("got %v, error %v", e, err)
	}
	if v := e.Verdict(); e.Interrupted || e.Reference != nil || !v.Accepted || v.Lambda != want.Verdict().Lambda {
		t.Errorf("interrupted %v, reference %v, the verdict is %+v, want %+v", e.Interrupted, e.Reference, v, want.Verdict())
	}
}

// TestGridEnds: the default grid ends after an accepted row and its neighbour, and has the verdict
// of all rows.
func TestGridEnds(t *testing.T) {
	m, o := known.LinearRegression(100, 5), llc.Options{Localization: 1, Steps: 4000}
	e := estimate(t, m, o)
	v := e.Verdict()
	if !v.Accepted || v.Row != len(e.Rows)-2 {
		t.Fatalf("row %d of %d is accepted: %s, %v", v.Row, len(e.Rows), v.Text, e.Problems())
	}
	for range 5 {
		o.StepSizes = append(o.StepSizes, e.Rows[0].StepSize/math.Pow(2, float64(len(o.StepSizes))))
	}
	copy(o.StepSizes, []float64{e.Rows[0].StepSize, e.Rows[1].StepSize})
	if all := estimate(t, m, o); len(all.Rows) != 5 || all.Verdict().Row != v.Row || all.Verdict().Lambda != v.Lambda {
		t.Errorf("with all rows the verdict is %+v, want %+v", all.Verdict(), v)
	}
}

// TestMinibatches tests that the noise of minibatches is found and subtracted, and that the loss of
// minibatches has no bias: the raw estimate at a small step size is the exact one.
func TestMinibatches(t *testing.T) {
	const n, d, gamma = 600, 6, 1
	m, scale := known.LinearRegression(n, d), n/math.Log(n)
	e := estimate(t, m, llc.Options{Localization: gamma, StepSizes: []float64{0.8 / scale, 0.02 / scale}, Batch: 30, Steps: 6000, BurnIn: 1000})
	exact := known.Localized(scale, gamma, slices.Repeat([]float64{1}, d))
	near(t, "lambda of large steps", float64(e.Rows[0].Lambda.Value), exact, 0.06)
	if raw := float64(e.Rows[0].Raw.Value); raw < 1.5*exact {
		t.Errorf("raw estimate of large steps = %.3f, want above %.3f: minibatches heat", raw, 1.5*exact)
	}
	near(t, "raw estimate of small steps", float64(e.Rows[1].Raw.Value), exact, 0.08)
	if p := e.Problems()[0]; p != llc.Hot {
		t.Errorf("problem of large steps = %q, want %q", p, llc.Hot)
	}
}

// TestReference tests NUTS, which has no error by step sizes, on a logistic regression.
func TestReference(t *testing.T) {
	const n, d, gamma = 300, 4, 1
	m, hessian, err := known.LogisticRegression(n, d)
	if err != nil {
		t.Fatal(err)
	}
	e := estimate(t, m, llc.Options{Localization: gamma, StepSizes: []float64{0.002}, Chains: 4, Steps: 200, Reference: 200})
	exact := known.Localized(n/math.Log(n), gamma, eigenvalues(t, hessian))
	near(t, "lambda by NUTS", float64(e.Reference.Lambda.Value), exact, 0.1)
	if !(e.Reference.RHat < 1.05) {
		t.Errorf("R-hat of NUTS = %v, want below 1.05", e.Reference.RHat)
	}
}

func eigenvalues(t *testing.T, m *mat.SymDense) []float64 {
	t.Helper()
	var eigen mat.EigenSym
	if !eigen.Factorize(m, false) {
		t.Fatal("no eigenvalues")
	}
	return eigen.Values(nil)
}

// TestExactValues estimates coefficients that are known, by the default grid and its verdict. For
// deep linear networks beta is so large that N beta corresponds to millions of examples: the
// theorems are about the limit.
func TestExactValues(t *testing.T) {
	testenv.NeedsAll(t, "chains of many steps")
	logistic, _, err := known.LogisticRegression(4000, 10)
	if err != nil {
		t.Fatal(err)
	}
	deep := func(rank int, widths ...int) float64 {
		lambda, _, err := known.Coefficient(rank, widths...)
		if err != nil {
			t.Fatal(err)
		}
		return lambda
	}
	for _, c := range []struct {
		name  string
		model llc.Model
		o     llc.Options
		exact float64
		slow  bool // chains mix so slowly that an estimate may be refused
	}{
		{"linear regression, d = 20", known.LinearRegression(2000, 20), llc.Options{Localization: 1, Steps: 8000}, 10, false},
		{"logistic regression, d = 10", logistic, llc.Options{Localization: 0.1, Steps: 12000}, 5, false},
		{"reduced rank 4-3-4 of rank 1", known.DeepLinear(60, 1, 4, 3, 4), singular, deep(1, 4, 3, 4), false},
		{"reduced rank 3-2-4 of rank 1", known.DeepLinear(60, 1, 3, 2, 4), singular, deep(1, 3, 2, 4), false},
		{"deep linear 3-3-4-3 of rank 1", known.DeepLinear(60, 1, 3, 3, 4, 3), shorter, deep(1, 3, 3, 4, 3), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := estimate(t, c.model, c.o)
			v := e.Verdict()
			t.Logf("%v, exact %v, %+v", v.Text, c.exact, e.Problems())
			if !v.Accepted && c.slow {
				return
			}
			if !v.Accepted {
				t.Fatalf("not accepted: %s", v.Text)
			}
			near(t, "lambda", float64(v.Lambda.Value), c.exact, 0.05)
		})
	}
}

// singular are options for deep linear networks of 60 examples.
var singular = llc.Options{Localization: 1, InverseTemperature: 20, Steps: 24000}

// shorter takes fewer steps than singular.
var shorter = llc.Options{Localization: 1, InverseTemperature: 20, Steps: 10000}

// TestRejected tests that settings at which an estimate is wrong are not accepted, and what the
// verdict recommends.
func TestRejected(t *testing.T) {
	m := known.LinearRegression(100, 5)
	scale := 100 / math.Log(100)
	moved := known.LinearRegression(100, 5)
	moved.Centre[0].Values = slices.Clone(moved.Centre[0].Values)
	moved.Centre[0].Values[0] += 1
	for _, c := range []struct {
		name  string
		model llc.Model
		o     llc.Options
		text  string
		check func(next llc.Change) bool
	}{
		{"large steps diverge", m, llc.Options{Localization: 1, StepSizes: []float64{5 / scale, 4.5 / scale}, Steps: 2000}, "at every step size",
			func(next llc.Change) bool { return next.StepSizes[0] < 1.5/scale }},
		{"steps that are too small", m, llc.Options{Localization: 1, StepSizes: []float64{1e-4 / scale, 5e-5 / scale}, Steps: 400}, "still move",
			func(next llc.Change) bool { return next.Steps == 1600 }},
		{"few draws", m, llc.Options{Localization: 1, StepSizes: []float64{0.2 / scale, 0.1 / scale}, Steps: 600}, "interval",
			func(next llc.Change) bool { return next.Steps > 600 }},
		{"a single step size", m, llc.Options{Localization: 1, StepSizes: []float64{0.3 / scale}, Steps: 8000}, "no other step size",
			func(next llc.Change) bool { return len(next.StepSizes) == 2 }},
		{"no minimum", moved, llc.Options{Localization: 1, StepSizes: []float64{0.2 / scale, 0.1 / scale}, Steps: 1000}, "not a minimum",
			func(next llc.Change) bool { return next.Descent > 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := estimate(t, c.model, c.o).Verdict()
			if v.Accepted || !strings.Contains(v.Text, c.text) || !c.check(v.Next) {
				t.Errorf("accepted %v, %q, next %+v, want a text with %q", v.Accepted, v.Text, v.Next, c.text)
			}
		})
	}
	// After the descent that is recommended, the estimate is right.
	e := estimate(t, moved, llc.Options{Localization: 1, StepSizes: []float64{0.3 / scale, 0.15 / scale}, Steps: 4000, Descent: 1000})
	if v := e.Verdict(); !v.Accepted {
		t.Errorf("after descent: %s", v.Text)
	}
	near(t, "lambda after descent", float64(e.Rows[0].Lambda.Value), known.Localized(scale, 1, slices.Repeat([]float64{1}, 5)), 0.05)
}

// TestOtherSamplers: momentum works, too, without a measure of the added energy.
func TestOtherSamplers(t *testing.T) {
	scale := 100 / math.Log(100)
	e := estimate(t, known.LinearRegression(100, 5), llc.Options{
		Localization: 1, Sampler: langevin.BAOAB{Friction: 0.1}, StepSizes: []float64{0.1 / scale}, Steps: 3000,
	})
	near(t, "lambda by BAOAB", float64(e.Rows[0].Lambda.Value), known.Localized(scale, 1, slices.Repeat([]float64{1}, 5)), 0.08)
	if e.Rows[0].Added != nil {
		t.Error("the energy added by BAOAB is not known, got a value")
	}
}

// TestSamplersThatAttachThemselves: samplers that need more than the gradient of each parameter can
// be used, and so can those whose preconditioner freezes at the end of burn-in.
func TestSamplersThatAttachThemselves(t *testing.T) {
	scale := 100 / math.Log(100)
	e := estimate(t, known.LinearRegression(100, 5), llc.Options{
		Localization: 1, Sampler: langevin.MatchedFriction{Friction: 0.1, Masses: langevin.MassesEqual}, StepSizes: []float64{0.1 / scale}, Steps: 3000,
	})
	near(t, "lambda by matched friction", float64(e.Rows[0].Lambda.Value), known.Localized(scale, 1, slices.Repeat([]float64{1}, 5)), 0.08)
	for _, s := range []langevin.Sampler{
		langevin.PSGLD{Alpha: 0.9, Lambda: 1, Gamma: langevin.GammaFrozen},
		langevin.PSGLD{Alpha: 0.9, Lambda: 1, Gamma: langevin.GammaHutchinson},
		langevin.FisherSGLD{Alpha: 0.9, Damping: 1},
		langevin.PSGHMC{Friction: 0.1, Alpha: 0.9, Lambda: 1, Gamma: langevin.GammaFrozen},
	} {
		e := estimate(t, known.LinearRegression(100, 5), llc.Options{Localization: 1, Sampler: s, StepSizes: []float64{0.1 / scale}, Steps: 200})
		if r := e.Rows[0]; r.Diverged || !(r.Lambda.Value > 0) {
			t.Errorf("%s: lambda is %v", s.Name(), r.Lambda)
		}
	}
}

// TestUnusedStream: a layer may take a stream of random numbers without drawing from it, as dropout
// does where networks predict.
func TestUnusedStream(t *testing.T) {
	m := known.LinearRegression(100, 5)
	losses := m.Losses
	m.Losses = func(b *graph.Builder, batch op.Batch) *graph.Node {
		b.Stream()
		return losses(b, batch)
	}
	if e := estimate(t, m, llc.Options{Localization: 1, StepSizes: []float64{0.01}, Steps: 100}); len(e.Rows) != 1 {
		t.Errorf("%d rows, want 1", len(e.Rows))
	}
}

func TestErrors(t *testing.T) {
	good := known.LinearRegression(40, 4)
	for text, c := range map[string]struct {
		change func(m *llc.Model)
		o      llc.Options
	}{
		"DataSize must be at least 2":   {func(m *llc.Model) { m.DataSize = 1 }, llc.Options{Localization: 1}},
		"Losses and Write":              {func(m *llc.Model) { m.Write = nil }, llc.Options{Localization: 1}},
		"got none":                      {func(m *llc.Model) { m.Centre = nil }, llc.Options{Localization: 1}},
		"must be finite":                {func(m *llc.Model) { m.Centre[0].Values = []float32{float32(math.NaN()), 0, 0, 0} }, llc.Options{Localization: 1}},
		"Localization must be positive": {nil, llc.Options{}},
		"Batch must be 1 to 40":         {nil, llc.Options{Localization: 1, Batch: 41}},
		"Chains must be at least 2":     {nil, llc.Options{Localization: 1, Chains: 1}},
		"each once":                     {nil, llc.Options{Localization: 1, StepSizes: []float64{0.1, 0.2, 0.1}}},
		"steps after burn-in":           {nil, llc.Options{Localization: 1, Steps: 50}},
		"StepSizes must be positive":    {nil, llc.Options{Localization: 1, StepSizes: []float64{1, 0}}},
		"InverseTemperature must":       {nil, llc.Options{Localization: 1, InverseTemperature: -1}},
		"Reference 0 or at least":       {nil, llc.Options{Localization: 1, Reference: 3}},
		"must not be ksgld":             {nil, llc.Options{Localization: 1, Sampler: langevin.KSGLD{Alpha: 0.9, Damping: 1, Refresh: 1}}},
		`for layer "v", which is not among`: {nil, llc.Options{Localization: 1, Sampler: langevin.SGNHT{
			Friction: 0.1, Splitting: langevin.SplittingEuler, Coupling: 1e-3, Couplings: "v=1e-4",
		}}},
		"must have a parameter w of shape": {func(m *llc.Model) { m.Centre[0].Name = "v" }, llc.Options{Localization: 1}},
		"must not draw random numbers": {func(m *llc.Model) {
			losses := m.Losses
			m.Losses = func(b *graph.Builder, batch op.Batch) *graph.Node {
				return b.Apply(op.Multiply{}, losses(b, batch), b.Apply(op.Noise{Stream: b.Stream(), As: op.ViewAs(batch.Size)}, b.Header()))
			}
		}, llc.Options{Localization: 1}},
	} {
		m := good
		m.Centre = slices.Clone(good.Centre)
		if c.change != nil {
			c.change(&m)
		}
		host := tensor.NewHost(1)
		_, err := llc.Estimate(context.Background(), host, m, c.o)
		host.Close()
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error = %v, want %q", err, text)
		}
	}
}

// TestAcceptedAreRight goes through step sizes from far too small to far too large, for short and
// long chains and several seeds. Estimates that are accepted must be right: within 5 % of the exact
// value under the localization, or as far outside as the interval of 95 % allows for. Those of long
// chains with good steps must be accepted.
func TestAcceptedAreRight(t *testing.T) {
	testenv.NeedsAll(t, "many settings")
	const n, d, gamma = 100, 5, 1
	m, scale := known.LinearRegression(n, d), n/math.Log(n)
	exact := known.Localized(scale, gamma, slices.Repeat([]float64{1}, d))
	accepted, outside, rejected, wrong := 0, 0, 0, 0
	for seed := range uint64(2) {
		for _, batch := range []int{n, 10} {
			for _, steps := range []int{300, 8000} {
				for factor := 1e-4; factor < 5; factor *= 5 {
					host := tensor.NewHost(1)
					e, err := llc.Estimate(context.Background(), host, m, llc.Options{
						Localization: gamma, StepSizes: []float64{factor / scale, factor / scale / 2}, Batch: batch, Steps: steps, Seed: seed,
					})
					host.Close()
					if err != nil {
						t.Fatal(err)
					}
					v := e.Verdict()
					off := math.Abs(float64(v.Lambda.Value)/exact - 1)
					switch low, high := v.Lambda.Interval(); {
					case v.Accepted && off > 0.05 && (low > exact || high < exact):
						outside++
						t.Logf("batch %d, %d steps, step size %.3g/(N beta): accepted %v, exact %.3f", batch, steps, factor, v.Lambda, exact)
						accepted++
					case v.Accepted:
						accepted++
					default:
						rejected++
						if !(off <= 0.05) {
							wrong++
						}
					}
					if steps == 8000 && batch == n && factor > 0.2 && factor < 0.4 && !v.Accepted {
						t.Errorf("a good setting, %d steps of %.3g/(N beta), is not accepted: %s", steps, factor, v.Text)
					}
				}
			}
		}
	}
	t.Logf("%d settings accepted, %d of them off by more than 5 %%; %d rejected, of which %d are off by more than 5 %%", accepted, outside, rejected, wrong)
	if accepted < 2 || outside > 0 || wrong < 10 {
		t.Errorf("%d settings accepted, %d of them wrong; %d wrong ones rejected", accepted, outside, wrong)
	}
}
