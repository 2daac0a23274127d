package langevin_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// table is a small regression: rows of features, and a target for each.
type table struct {
	rows, columns int
	x, y          []float64
	logistic      bool
	batch         op.Batch
}

func newTable(rows, columns, size int, order op.Order, logistic bool) table {
	d := table{
		rows: rows, columns: columns, x: trial.NormalDraws(rows*columns, 1), y: trial.NormalDraws(rows, 2), logistic: logistic,
		batch: op.Batch{Size: size, Order: order},
	}
	for i := range d.y {
		if logistic {
			d.y[i] = (1 + math.Copysign(1, d.y[i])) / 2
		}
	}
	return d
}

// loss has the one parameter "w.weight" [1 columns].
func (d table) loss(b *graph.Builder) *graph.Node {
	gather := func(name string, values []float64, columns int) *graph.Node {
		all := b.Table(name, values, d.rows, columns)
		return b.Apply(op.GatherRows{Batch: d.batch}, all, b.Header())
	}
	x, y := gather("x", d.x, d.columns), gather("y", d.y, 1)
	w := b.Parameter(trial.ParameterName, trial.Normal(func(int) float64 { return 0.5 }), 1, d.columns)
	p := b.Apply(op.MatMul{TransposeB: true}, x, w)
	if d.logistic {
		return b.Apply(op.BernoulliLogits{}, p, y)
	}
	return b.Apply(op.SquaredError{}, p, y)
}

// gradient is the gradient of the mean loss of some rows.
func (d table) gradient(w []float64, rows []int) []float64 {
	g := make([]float64, len(w))
	for _, i := range rows {
		x, p := d.x[i*d.columns:(i+1)*d.columns], 0.0
		for j := range w {
			p += w[j] * x[j]
		}
		if d.logistic {
			p = 1 / (1 + math.Exp(-p))
		}
		for j := range w {
			g[j] += (p - d.y[i]) * x[j] / float64(len(rows))
		}
	}
	return g
}

// minibatch returns the indices of the rows of a step of chain 0.
func (d table) minibatch(step int) []int {
	var rows []int
	for i := range d.batch.Size {
		position := uint64(step*d.batch.Size + i)
		n := uint64(d.rows)
		row := position % n
		if d.batch.Order == op.Shuffled {
			row = random.Permute(row, n, trial.RunSeed, 0, position/n)
		}
		rows = append(rows, int(row))
	}
	return rows
}

func (d table) all() []int {
	rows := make([]int, d.rows)
	for i := range rows {
		rows[i] = i
	}
	return rows
}

// estimates returns the estimates of the gradient of U/N at w, prior included, in the steps of the
// second epoch: the moves of steps of rate 1 at temperature 0.
func (d table) estimates(t *testing.T, anchored bool, prior langevin.Prior, anchor, w []float64) [][]float64 {
	t.Helper()
	b := graph.New(tensor.Float64)
	loss := d.loss(b)
	posterior := langevin.Posterior{DataSize: d.rows, Prior: prior}
	h, cold := []float64{posterior.StepSize(1)}, []float64{0}
	var a *langevin.Anchor
	var err error
	if anchored {
		a, err = langevin.ControlVariates{BatchSize: d.batch.Size}.Attach(b, langevin.SGLD{}, posterior, loss, h, cold)
	} else {
		err = langevin.Attach(b, langevin.SGLD{}, posterior, loss, h, cold)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := trial.Load(t, b, graph.LoadOptions{Seed: trial.RunSeed}, 1)
	write := func(values []float64) {
		if err := graph.Write(s, trial.ParameterName, 0, 0, values); err != nil {
			t.Fatal(err)
		}
	}
	epoch := d.rows / d.batch.Size
	for step := range epoch { // of the first epoch, from whose second step on the anchor is as it should be
		if anchored && step < 2 {
			write(anchor)
			if err := a.OnStep(context.Background(), s); err != nil {
				t.Fatal(err)
			}
			if int(s.Steps()) != step {
				t.Fatalf("after the refresh the session stands after step %d, want %d", s.Steps(), step)
			}
			slope, want := trial.Values(t, s, trial.ParameterName+".anchor slope", 0, len(w)), d.gradient(anchor, d.all())
			for i := range want {
				if !(math.Abs(slope[i]-want[i]) < 1e-12) {
					t.Errorf("step %d: the anchor's gradient %d is %v, want that of all data, %v", step, i, slope[i], want[i])
				}
			}
		}
		trial.Advance(t, s, 1)
	}
	var estimates [][]float64
	for range epoch {
		write(w)
		trial.Advance(t, s, 1)
		after := trial.Values(t, s, trial.ParameterName, 0, len(w))
		for i := range after {
			after[i] = w[i] - after[i]
		}
		estimates = append(estimates, after)
	}
	return estimates
}

// TestControlVariatesEstimate compares the estimates with the formula, minibatch by minibatch,
// their mean over an epoch with the gradient of all data, and their variance with plain
// minibatches'.
func TestControlVariatesEstimate(t *testing.T) {
	prior := langevin.Gaussian(0.6)
	for _, logistic := range []bool{false, true} {
		for name, order := range map[string]op.Order{"sequential": op.Sequential, "shuffled": op.Shuffled} {
			t.Run(fmt.Sprintf("logistic %v, %s", logistic, name), func(t *testing.T) {
				d := newTable(60, 3, 12, order, logistic)
				anchor, variance := []float64{0.3, -0.2, 0.1}, map[float64]float64{}
				for _, distance := range []float64{0.2, 0.1} {
					w := []float64{0.3 + distance, -0.2 - distance, 0.1}
					estimates := d.estimates(t, true, prior, anchor, w)
					full, far := d.gradient(w, d.all()), d.gradient(anchor, d.all())
					mean := make([]float64, 3)
					for step, got := range estimates {
						rows := d.minibatch(len(estimates) + step)
						here, there := d.gradient(w, rows), d.gradient(anchor, rows)
						for i := range got {
							slope := priorEnergyGradient(prior, w[i]) / float64(d.rows)
							if want := here[i] - there[i] + far[i] + slope; !(math.Abs(got[i]-want) < 1e-12) {
								t.Errorf("step %d: estimate %d is %v, want %v", step, i, got[i], want)
							}
							mean[i] += got[i] / float64(len(estimates))
							variance[distance] += (got[i] - full[i] - slope) * (got[i] - full[i] - slope)
						}
					}
					for i := range mean {
						if want := full[i] + priorEnergyGradient(prior, w[i])/float64(d.rows); !(math.Abs(mean[i]-want) < 1e-12) {
							t.Errorf("the epoch's mean %d is %v, want the gradient of all data %v", i, mean[i], want)
						}
					}
				}
				checkReduction(t, d, prior, anchor, variance)
			})
		}
	}
}

// checkReduction tests that the variance is far below plain minibatches', and grows with the square
// of the distance from the anchor: exactly, if gradients are linear.
func checkReduction(t *testing.T, d table, prior langevin.Prior, anchor []float64, variance map[float64]float64) {
	t.Helper()
	plain := 0.0
	full := d.gradient(anchor, d.all())
	for _, got := range d.estimates(t, false, prior, anchor, anchor) {
		for i, g := range got {
			g -= full[i] + priorEnergyGradient(prior, anchor[i])/float64(d.rows)
			plain += g * g
		}
	}
	ratio := variance[0.2] / variance[0.1]
	if math.Abs(ratio-4) > 1e-9 && (!d.logistic || math.Abs(ratio-4) > 1) {
		t.Errorf("at twice the distance the variance is %v times as large, want 4", ratio)
	}
	if reduction := plain / variance[0.1]; reduction < 20 {
		t.Errorf("control variates lower the variance by %v, want more than 20", reduction)
	}
}

// TestControlVariatesMoments compares SGLD's second moments with the discretised chain's, on a
// regression with one weight whose curvature differs much from minibatch to minibatch: with the
// curvatures A_j of U's estimates, A of U, and the mode 0, the anchor being at c,
//
//	theta' = theta - h (A_j (theta - c) + A c) + sqrt(2hT) xi
func TestControlVariatesMoments(t *testing.T) {
	const burnIn, steps, h, temperature = 20, 40, 0.04, 0.02
	chains := trial.ChainsOf(t, 300)
	d := newTable(12, 1, 2, op.Sequential, false)
	prior := langevin.Gaussian(0.5)
	for _, refresh := range []int{0, 1, 5, 17} {
		b := graph.New(tensor.Float32)
		posterior := langevin.Posterior{DataSize: d.rows, Prior: prior}
		variates := langevin.ControlVariates{BatchSize: d.batch.Size, Refresh: refresh}
		anchor, err := variates.Attach(b, langevin.SGLD{}, posterior, d.loss(b), []float64{h}, []float64{temperature})
		if err != nil {
			t.Fatal(err)
		}
		s := trial.Load(t, b, graph.LoadOptions{Seed: trial.RunSeed, Chains: chains}, 1)
		averages, ones := make([][]float64, chains), make([][]float64, chains)
		for chain := range averages {
			averages[chain] = make([]float64, 2)
			if err := graph.Write(s, trial.ParameterName, chain, 0, []float32{0.4}); err != nil {
				t.Fatal(err)
			}
		}
		plan := langevin.Plan{Steps: burnIn + steps, Thinning: 1}
		err = plan.Run(context.Background(), s, 1, func(p langevin.Window) error {
			for chain := 0; p.To > burnIn && chain < chains; chain++ {
				theta := trial.Values(t, s, trial.ParameterName, chain, 1)[0]
				averages[chain][0] += theta / steps
				averages[chain][1] += theta * theta / steps
			}
			return nil
		}, anchor)
		if err != nil {
			t.Fatal(err)
		}
		theory := func(anchored bool) func([]float64) []float64 {
			mean, square := d.regressionMoments(anchored, refresh, burnIn, steps, h, temperature, 1/(prior.Scale*prior.Scale))
			return func([]float64) []float64 { return []float64{mean, square} }
		}
		for i, z := range scores(averages, ones, theory(true)) {
			if !(math.Abs(z) < trial.ZLimit) {
				t.Errorf("refresh every %d steps: moment %d: z = %.1f", refresh, i+1, z)
			}
		}
		worst := 0.0
		for _, z := range scores(averages, ones, theory(false)) {
			worst = math.Max(worst, math.Abs(z))
		}
		if worst < trial.ZLimit {
			t.Errorf("refresh every %d steps: the noise of plain minibatches is not refuted: z = %.1f", refresh, worst)
		}
	}
}

// regressionMoments are E theta and E theta^2 of the chain from 0.4, averaged over the steps after
// burn-in. The pair (theta, c) moves by a matrix, a shift and noise in each step.
func (d table) regressionMoments(anchored bool, refresh, burnIn, steps int, h, temperature, precision float64) (mean, square float64) {
	slopeAt := func(w float64, rows []int) (slope, curvature float64) {
		n := float64(d.rows)
		at := n * d.gradient([]float64{w}, rows)[0]
		return at, n*d.gradient([]float64{w + 1}, rows)[0] - at
	}
	offset, curvature := slopeAt(0, d.all())
	m, c := 0.4, 0.4               // E theta, E c
	mm, mc, cc := 0.16, 0.16, 0.16 // second moments
	for step := range burnIn + steps {
		if refresh == 0 && step == 0 || refresh > 0 && step%refresh == 0 {
			c, mc, cc = m, mm, mm
		}
		b, a := slopeAt(0, d.minibatch(step))
		// theta' = p theta + q c + r + noise
		p, q, r := 1-h*(a+precision), -h*(curvature-a), -h*offset
		if !anchored {
			q, r = 0, -h*b
		}
		mm, mc, m = p*p*mm+q*q*cc+2*p*q*mc+2*r*(p*m+q*c)+r*r+2*h*temperature, p*mc+q*cc+r*c, p*m+q*c+r
		if step >= burnIn {
			mean += m / float64(steps)
			square += mm / float64(steps)
		}
	}
	return mean, square
}

// TestControlVariatesRefuse: combinations without a meaning are errors.
func TestControlVariatesRefuse(t *testing.T) {
	d := newTable(12, 2, 4, op.Shuffled, false)
	attach := func(c langevin.ControlVariates, change func(b *graph.Builder, loss *graph.Node) *graph.Node) error {
		b := graph.New(tensor.Float32)
		_, err := c.Attach(b, langevin.SGLD{}, langevin.Posterior{DataSize: d.rows}, change(b, d.loss(b)), []float64{1e-3}, []float64{1})
		return err
	}
	same := func(_ *graph.Builder, loss *graph.Node) *graph.Node { return loss }
	good := langevin.ControlVariates{BatchSize: 4, Refresh: 6}
	if err := attach(good, same); err != nil {
		t.Fatal(err)
	}
	for _, c := range []langevin.ControlVariates{{}, {BatchSize: 5}, {BatchSize: 12}, {BatchSize: 24}, {BatchSize: 4, Refresh: -1}, {BatchSize: -4}} {
		if attach(c, same) == nil {
			t.Errorf("%+v: no error", c)
		}
	}
	for name, change := range map[string]func(b *graph.Builder, loss *graph.Node) *graph.Node{
		"random numbers": func(b *graph.Builder, loss *graph.Node) *graph.Node {
			noise := b.Apply(op.Noise{Stream: b.Stream(), As: op.ViewAs(1)}, b.Header())
			return b.Apply(op.Add{}, loss, b.Apply(op.Sum{}, noise))
		},
		"a parameter without an influence": func(b *graph.Builder, loss *graph.Node) *graph.Node {
			b.Parameter("more", nil, 3)
			return loss
		},
		"no loss":      func(*graph.Builder, *graph.Node) *graph.Node { return nil },
		"not a scalar": func(b *graph.Builder, _ *graph.Node) *graph.Node { return b.Parameters()[0] },
		"no parameter in it": func(b *graph.Builder, _ *graph.Node) *graph.Node {
			return b.Apply(op.Sum{}, b.Table("one", []float64{1}))
		},
	} {
		if attach(good, change) == nil {
			t.Errorf("%s: no error", name)
		}
	}
	// A run without the anchor has no gradient.
	b := graph.New(tensor.Float32)
	if _, err := good.Attach(b, langevin.SGLD{}, langevin.Posterior{DataSize: d.rows}, d.loss(b), []float64{1e-3}, []float64{1}); err != nil {
		t.Fatal(err)
	}
	if trial.Load(t, b, graph.LoadOptions{}, 1).Run(1) == nil {
		t.Error("a run without the anchor: no error")
	}
}

// TestAnchorStops: a context that has ended stops the epoch of an anchor and leaves the chain
// unchanged.
func TestAnchorStops(t *testing.T) {
	b := graph.New(tensor.Float64)
	x := b.Apply(op.GatherRows{Batch: op.Batch{Size: 2}}, b.Table("x", []float64{1, 2, 3, 4, 5, 6}), b.Header())
	loss := b.Apply(op.Mean{}, b.Apply(op.Squared{}, b.Apply(op.Subtract{}, x, b.Parameter("mean", nil))))
	a, err := langevin.ControlVariates{BatchSize: 2}.Attach(b, langevin.SGLD{}, langevin.Posterior{DataSize: 6}, loss, []float64{1e-3}, []float64{1})
	if err != nil {
		t.Fatal(err)
	}
	s := trial.Load(t, b, graph.LoadOptions{}, 1)
	var states [2][]byte
	for i := range states {
		if states[i] = make([]byte, s.ChainBytes()); i == 1 {
			ended, stop := context.WithCancel(context.Background())
			stop()
			if err := a.OnStep(ended, s); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v, want the context's", err)
			}
		}
		if err := s.Save(0, states[i]); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(states[0], states[1]) || s.Steps() != 0 {
		t.Errorf("the chain has changed, and is after step %d", s.Steps())
	}
}

// TestControlVariatesBatches: minibatches that would not cover all data in an epoch are errors.
func TestControlVariatesBatches(t *testing.T) {
	for batch, right := range map[op.Batch]bool{
		{Size: 2}: true, {Size: 2, Order: op.Shuffled}: true, {Size: 2, Order: op.Symmetric}: true,
		{Size: 3}: false, {Size: 6}: false, {Size: 2, Order: op.Independent}: false,
	} {
		for rows, right := range map[int]bool{6: right, 3: false} {
			if batch.Size > rows {
				continue
			}
			b := graph.New(tensor.Float64)
			x := b.Apply(op.GatherRows{Batch: batch}, b.Table("x", []float64{1, 2, 3, 4, 5, 6}[:rows]), b.Header())
			loss := b.Apply(op.Mean{}, b.Apply(op.Squared{}, b.Apply(op.Subtract{}, x, b.Parameter("mean", nil))))
			_, err := langevin.ControlVariates{BatchSize: 2}.Attach(b, langevin.SGLD{}, langevin.Posterior{DataSize: 6}, loss, []float64{1e-3}, []float64{1})
			if right != (err == nil) || !right && !strings.Contains(err.Error(), "control variates: gather rows must gather minibatches of BatchSize = 2") {
				t.Errorf("%+v of %d: error %v", batch, rows, err)
			}
		}
	}
}
