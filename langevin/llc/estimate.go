package llc

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/pkg/errors"
	"gonum.org/v1/gonum/stat"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// Estimation is an estimate of the local learning coefficient: a row for each step size of a grid,
// which Verdict judges.
type Estimation struct {
	Examples           int     `json:"examples"` // N
	Weights            int     `json:"weights"`  // number of parameters, d
	InverseTemperature float64 `json:"beta"`
	Localization       float64 `json:"gamma"`
	Sampler            string  `json:"sampler"`
	Batch              int     `json:"batch"`
	Chains             int     `json:"chains"`
	Steps              int     `json:"steps"`
	BurnIn             int     `json:"burnIn"`
	// Loss is L(w*), after Options.Descent steps of descent.
	Loss float64 `json:"loss"`
	// Curvature is the largest eigenvalue of the Hessian of a minibatch's loss at w*.
	Curvature float64 `json:"curvature"`
	// Slack is N beta times the amount by which a minimum, found by gradient descent, is below
	// L(w*). An estimate at this minimum would be larger by about Slack.
	Slack float64 `json:"slack"`
	// Rows are in the order of falling step sizes. The default grid ends where further rows are not
	// expected to change the verdict.
	Rows []Row `json:"rows"`
	// Interrupted reports whether the context ended before the last row was complete. No estimate
	// is then accepted. If it ended later, only Reference is missing.
	Interrupted bool `json:"interrupted,omitempty"`
	// Reference is an estimate by NUTS on all data, without a step size's error; nil without
	// Options.Reference.
	Reference *Row `json:"reference,omitempty"`
}

// Row has the measurements of the chains of one step size. Intervals are computed from the spread
// of the chains.
type Row struct {
	StepSize float64 `json:"epsilon"` // 0 for NUTS
	// Diverged reports whether a chain became infinite; nothing else is then measured.
	Diverged bool `json:"diverged,omitempty"`
	// Made is the number of steps of each chain if these were interrupted, else 0.
	Made int `json:"made,omitempty"`
	// Lambda is the estimate: Raw minus Added if Added is measured, else Raw.
	Lambda diagnostics.Measured `json:"lambda"`
	// Raw is N beta (E[L(w)] - L(w*)), estimated from the losses of minibatches minus the losses of
	// the same examples at w*.
	Raw diagnostics.Measured `json:"raw"`
	// Temperature is the configurational temperature of the chains, in units of the one requested:
	// 1 in equilibrium. All directions have the same weight in it, also those on which the loss
	// does not depend.
	Temperature diagnostics.Measured `json:"temperature"`
	// Added is the part of Raw that is energy added by finite steps and the noise of minibatches.
	// In equilibrium SGLD has E[(w - w*).gU] = T d + h/2 E|gU|^2 exactly, and the loss grows with a
	// power p of the distance, the Exponent: Added is h E[gV.gU]/(2pT), where gV is the part of gU
	// that comes from the loss. This is exact for SGLD on a quadratic loss. It is nil for other
	// samplers.
	Added *diagnostics.Measured `json:"added,omitempty"`
	// Exponent is p, estimated as E[(w - w*).gL]/E[L(w) - L(w*)]: 2 for a quadratic loss.
	Exponent float64 `json:"exponent,omitempty"`
	// RHat is split R-hat of the loss, over means of consecutive steps. Below 1.05 chains agree.
	RHat diagnostics.Number `json:"rHat"`
	// Trend is Raw of the second half of the steps after burn-in minus Raw of the first half.
	Trend diagnostics.Measured `json:"trend"`
	// Localization is the derivative of Raw by the logarithm of gamma, from the covariance of loss
	// and distance: an estimate minus this is, to first order, its value without localization.
	Localization diagnostics.Measured `json:"localization"`
	// Trace is N beta (L(w) - L(w*)) by chain, at evenly spaced steps, burn-in included.
	Trace [][]float64 `json:"trace,omitempty"`
}

// LossTemperature returns the temperature, in units of the one requested, of the directions that
// the loss depends on: Raw/Lambda. It is NaN for samplers other than SGLD.
func (r Row) LossTemperature() float64 {
	if r.Added == nil {
		return math.NaN()
	}
	return float64(r.Raw.Value / r.Lambda.Value)
}

// MeanTrace returns the mean over chains of N beta (L(w) - L(w*)) in row i, and the steps at which
// its values were taken. Both are nil if chains diverged.
func (e *Estimation) MeanTrace(i int) (steps, values []float64) {
	trace := e.Rows[i].Trace
	if len(trace) == 0 {
		return nil, nil
	}
	n := len(trace[0])
	for at := range n {
		sum := 0.0
		for _, chain := range trace {
			sum += chain[at]
		}
		steps = append(steps, (float64(at)+0.5)*float64(cmp.Or(e.Rows[i].Made, e.Steps))/float64(n))
		values = append(values, sum/float64(len(trace)))
	}
	return steps, values
}

// estimation is an estimate in progress.
type estimation struct {
	model     Model
	options   Options
	device    tensor.Device
	baseline  []float32 // losses of all examples at the centre
	curvature float64

	done, total int // steps of all chains, without the reference's
}

// Estimate estimates the local learning coefficient of a model at its centre, with chains for each
// step size of the options. Invalid options and models are errors; a step size at which chains
// diverge is not. If the context ends after some steps were measured, Estimate returns what they
// show, together with the context's error.
func Estimate(ctx context.Context, device tensor.Device, m Model, o Options) (*Estimation, error) {
	if err := m.validate(); err != nil {
		return nil, err
	}
	o = o.filled(m.DataSize)
	if err := o.validate(m.DataSize); err != nil {
		return nil, err
	}
	rows, descent := gridSteps, max(o.Steps, o.Descent)
	if o.StepSizes != nil {
		rows = len(o.StepSizes)
	}
	e := &estimation{model: m, options: o, device: device, total: o.Descent + descent + rows*o.Steps*o.Chains}
	if err := e.centre(ctx); err != nil {
		return nil, err
	}
	out := &Estimation{
		Examples: m.DataSize, Weights: m.Weights(), InverseTemperature: o.InverseTemperature, Localization: o.Localization,
		Sampler: o.Sampler.Name(), Batch: o.Batch, Chains: o.Chains, Steps: o.Steps, BurnIn: o.BurnIn,
		Loss: mean(e.baseline), Curvature: e.curvature,
	}
	below, err := e.keptBelow(ctx, descent)
	if err != nil {
		return nil, err
	}
	out.Slack = math.Max(0, float64(m.DataSize)*o.InverseTemperature*(out.Loss-below))
	steps := o.StepSizes
	if steps == nil {
		steps = grid(m.DataSize, o.Batch, o.InverseTemperature, o.Localization, e.curvature)
	}
	for _, epsilon := range falling(steps) {
		row, err := e.keptRow(ctx, epsilon)
		if err != nil && row.Made == 0 {
			return out.interrupted(ctx, err)
		}
		out.Rows = append(out.Rows, row)
		if err != nil {
			return out.interrupted(ctx, err)
		}
		if o.StepSizes == nil && out.settled() {
			break
		}
	}
	if e.done < e.total { // without the last step sizes
		o.Observe(Progress{Task: "llc", Done: e.total, Total: e.total})
	}
	if o.Reference > 0 {
		row, err := e.keptReference(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return out, err // all rows are complete
		case err != nil:
			return nil, err
		}
		out.Reference = &row
	}
	return out, nil
}

// keptOffset returns where the descent to the centre ends: a kept offset, or a new one, which it
// keeps.
func (e *estimation) keptOffset(ctx context.Context) ([]samples.Parameter, error) {
	kept := &e.options.Kept
	if kept.Offset != nil {
		e.done += e.options.Descent
		return kept.Offset, nil
	}
	offset, _, err := e.descend(ctx, e.options.Descent)
	if err == nil && offset == nil {
		err = errors.Errorf("llc: gradient descent from the centre diverges in %d steps", e.options.Descent)
	}
	if err == nil {
		kept.Offset = offset
		e.options.Keep(*kept)
	}
	return offset, err
}

// keptBelow is keptOffset for the mean loss after the given number of steps of descent from the
// centre.
func (e *estimation) keptBelow(ctx context.Context, steps int) (float64, error) {
	kept := &e.options.Kept
	if kept.Below != nil {
		e.done += steps
		return float64(*kept.Below), nil
	}
	_, losses, err := e.descend(ctx, steps)
	if err != nil {
		return 0, err
	}
	below := mean(losses)
	kept.Below = new(diagnostics.Number(below))
	e.options.Keep(*kept)
	return below, nil
}

// keptRow returns the row of a step size: a kept one, or a new one, which it keeps if complete.
func (e *estimation) keptRow(ctx context.Context, epsilon float64) (Row, error) {
	kept := &e.options.Kept
	for _, r := range kept.Rows {
		if r.StepSize == epsilon {
			e.done += e.options.Steps * e.options.Chains
			return r, nil
		}
	}
	r, err := e.row(ctx, epsilon)
	if err == nil {
		kept.Rows = append(kept.Rows, r)
		e.options.Keep(*kept)
	}
	return r, err
}

// keptReference is keptRow for the reference.
func (e *estimation) keptReference(ctx context.Context) (Row, error) {
	kept := &e.options.Kept
	if kept.Reference != nil && kept.Draws == e.options.Reference {
		return *kept.Reference, nil
	}
	r, err := e.reference(ctx)
	if err == nil {
		kept.Reference, kept.Draws = &r, e.options.Reference
		e.options.Keep(*kept)
	}
	return r, err
}

// interrupted returns the estimation together with err if the context has ended and there are rows.
func (e *Estimation) interrupted(ctx context.Context, err error) (*Estimation, error) {
	if ctx.Err() == nil || len(e.Rows) == 0 {
		return nil, err
	}
	e.Interrupted = true
	return e, err
}

// settled reports whether rows of smaller step sizes are not expected to change the verdict: a row
// was accepted and compared with the next one, the centre is not a minimum, or chains were too slow
// twice. Such rows could still be below w*, or make an estimate larger than its interval.
func (e *Estimation) settled() bool {
	problems := e.Problems()
	last := len(problems) - 1
	accepted := slices.Index(problems, None)
	return accepted >= 0 && accepted < last || slices.Contains(problems, Below) || e.missesMinimum(problems) ||
		last > 0 && problems[last] == Moving && problems[last-1] == Moving
}

// missesMinimum reports whether Slack is too large for the row that the verdict uses, even if its
// estimate is at the upper end of its interval. Estimates that are known to be wrong do not count.
func (e *Estimation) missesMinimum(problems []Problem) bool {
	at := slices.Index(problems, None)
	if at < 0 {
		at = e.closest(problems)
	}
	if at < 0 || problems[at] == Moving || problems[at] == Steep {
		return false
	}
	_, high := e.Rows[at].Lambda.Interval()
	return e.Slack > tolerance*math.Max(high, 0)
}

// centre computes the losses and the curvature at the centre, after the descent to it if there is
// one.
func (e *estimation) centre(ctx context.Context) (err error) {
	if e.baseline, err = e.model.lossesAt(e.device, nil); err != nil {
		return err
	}
	if e.curvature, err = e.model.curvature(e.device, e.options.Seed); err != nil || e.options.Descent == 0 {
		return err
	}
	offset, err := e.keptOffset(ctx)
	if err != nil {
		return err
	}
	e.model = e.model.moved(offset)
	if e.baseline, err = e.model.lossesAt(e.device, nil); err != nil {
		return err
	}
	e.curvature, err = e.model.curvature(e.device, e.options.Seed)
	return err
}

// referenceLoss is the traced quantity of NUTS.
const referenceLoss = "loss"

// reference samples the same tempered posterior by NUTS on all data.
func (e *estimation) reference(ctx context.Context) (Row, error) {
	m, o := e.model, e.options
	b := graph.New(tensor.Float64)
	end := b.Within(tensor.Float32)
	loss := b.Apply(op.Mean{}, m.losses(b, op.Batch{Size: m.DataSize}))
	end()
	loss = b.Cast(loss)
	target := mcmc.Target{
		Potential: o.posterior(m.DataSize).Potential(b, loss), Temperature: o.temperature(),
		Quantities: []mcmc.Quantity{{Name: referenceLoss, Node: loss}},
	}
	chains, err := mcmc.NUTS{Warmup: o.Reference}.Attach(b, target)
	if err != nil {
		return Row{}, err
	}
	s, err := m.load(e.device, b, graph.LoadOptions{Seed: o.Seed, Chains: o.Chains})
	if err != nil {
		return Row{}, err
	}
	defer s.Close()
	o.Observe(Progress{Task: "NUTS", Total: o.Reference * o.Chains})
	drawn, err := chains.Sample(ctx, s, o.Reference, 1)
	if err != nil {
		return Row{}, err
	}
	o.Observe(Progress{Task: "NUTS", Done: o.Reference * o.Chains, Total: o.Reference * o.Chains})
	losses, err := drawn.Of(referenceLoss, 0)
	if err != nil {
		return Row{}, err
	}
	return e.referenceRow(losses), nil
}

// referenceRow returns the row of draws of the loss, by chain.
func (e *estimation) referenceRow(losses [][]float64) Row {
	scale, at := float64(e.model.DataSize)*e.options.InverseTemperature, mean(e.baseline)
	var r Row
	var lambdas, trends []float64
	for _, values := range losses {
		var excess []float64
		for _, v := range values {
			excess = append(excess, scale*(v-at))
		}
		r.Trace = append(r.Trace, blocks(excess, min(len(excess), maxTrace)))
		half := len(excess) / 2
		lambdas = append(lambdas, stat.Mean(excess, nil))
		trends = append(trends, stat.Mean(excess[len(excess)-half:], nil)-stat.Mean(excess[:half], nil))
	}
	nan := diagnostics.Number(math.NaN())
	r.Lambda, r.Trend = overChains(lambdas), overChains(trends)
	r.Raw = r.Lambda
	r.Temperature, r.Localization = diagnostics.Measured{Value: nan, StandardError: nan}, diagnostics.Measured{Value: nan, StandardError: nan}
	r.RHat = nan
	if rHat, err := diagnostics.SplitRHat(losses); err == nil {
		r.RHat = diagnostics.Number(rHat)
	}
	return r
}

// Size returns the memory of a session of a row's chains, the largest session that Estimate loads
// without a reference. Invalid models and options are errors.
func Size(device tensor.Device, m Model, o Options) (tensor.Footprint, error) {
	if err := m.validate(); err != nil {
		return tensor.Footprint{}, err
	}
	o = o.filled(m.DataSize)
	if err := o.validate(m.DataSize); err != nil {
		return tensor.Footprint{}, err
	}
	e := &estimation{model: m, options: o, device: device}
	b, err := e.build(o.Sampler, []float64{0}, []float64{0})
	if err != nil {
		return tensor.Footprint{}, err
	}
	program, err := b.Compile()
	if err != nil {
		return tensor.Footprint{}, err
	}
	size, initial, err := program.Size(device, o.Chains)
	size.Host += initial
	return size, err
}
