package llc

import (
	"context"
	"math"
	"strings"

	"github.com/pkg/errors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// The metrics of a step.
const (
	excessMetric   = "excess loss"   // of the minibatch, minus its loss at the centre
	distanceMetric = "distance"      // |w - w*|^2
	slopeMetric    = "squared slope" // |g|^2 of the minibatch's mean loss; of SGLD only
)

// gauged is SGLD that also collects nodes of the squared norms of gradients.
type gauged struct {
	langevin.SGLD
	slopes []*graph.Node
}

// Update implements langevin.Sampler.
func (g *gauged) Update(b *graph.Builder, in langevin.UpdateInputs, parameter, gradient *graph.Node) *graph.Node {
	g.slopes = append(g.slopes, squaredNorm(b, gradient))
	return g.SGLD.Update(b, in, parameter, gradient)
}

func squaredNorm(b *graph.Builder, n *graph.Node) *graph.Node {
	return b.Apply(op.Sum{}, b.Apply(op.Squared{}, n))
}

// record records the sum of some nodes as a metric.
func record(b *graph.Builder, metric string, nodes []*graph.Node) {
	total := nodes[0]
	for _, n := range nodes[1:] {
		total = b.Apply(op.Add{}, total, n)
	}
	b.Record(metric, total)
}

// build returns the graph of chains that make steps of the given sizes and temperatures, by step.
func (e *estimation) build(sampler langevin.Sampler, stepSizes, temperatures []float64) (*graph.Builder, error) {
	m, o := e.model, e.options
	b := graph.New(tensor.Float32)
	batch := op.Batch{Size: o.Batch}
	if o.Batch < m.DataSize {
		batch.Order = op.Independent
	}
	losses := m.losses(b, batch)
	baseline := b.Apply(op.GatherRows{Batch: batch}, b.Data(baselineInput, tensor.Float32, m.DataSize), b.Header())
	excess := b.Apply(op.Mean{}, b.Apply(op.Subtract{}, losses, baseline))
	var distances []*graph.Node
	for _, parameter := range b.Parameters() {
		distances = append(distances, squaredNorm(b, parameter))
	}
	g := &gauged{}
	_, sgld := sampler.(langevin.SGLD)
	if sgld {
		sampler = g
	}
	if err := langevin.Attach(b, sampler, o.posterior(m.DataSize), b.Apply(op.Mean{}, losses), stepSizes, temperatures); err != nil {
		return nil, err
	}
	b.Record(excessMetric, excess)
	record(b, distanceMetric, distances)
	if sgld {
		record(b, slopeMetric, g.slopes)
	}
	return b, b.Err()
}

// chains loads a session whose chains begin at the centre.
func (e *estimation) chains(sampler langevin.Sampler, chains int, stepSizes, temperatures []float64) (*graph.Session, error) {
	b, err := e.build(sampler, stepSizes, temperatures)
	if err != nil {
		return nil, err
	}
	s, err := e.model.load(e.device, b, graph.LoadOptions{Seed: e.options.Seed, Chains: chains})
	if err != nil {
		return nil, err
	}
	if err := graph.Write(s, baselineInput, 0, 0, e.baseline); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// A window, the steps between two calls of the observer, has at most maxWindow steps, and about
// windowImages examples, so that progress is shown, and an interruption noticed, soon.
const (
	maxWindow    = 100
	windowImages = 20_000
)

// window returns the number of steps of a window of some chains.
func (e *estimation) window(chains int) int {
	return min(maxWindow, max(1, windowImages/(chains*e.options.Batch)))
}

// traces are the metrics of a row's chains, by chain and step, burn-in included. virial is
// (w - w*).gU/T, of all of U. slope is 0 for samplers other than SGLD.
type traces struct{ excess, slope, distance, virial [][]float64 }

// add adds a step of a chain. sgld is whether its metrics include the slope.
func (t *traces) add(s *graph.Session, chain int, step uint64, virials []string, scale float64, sgld bool) {
	t.excess[chain] = append(t.excess[chain], s.Metric(chain, excessMetric, step))
	slope := 0.0
	if sgld {
		slope = s.Metric(chain, slopeMetric, step)
	}
	t.slope[chain] = append(t.slope[chain], slope)
	t.distance[chain] = append(t.distance[chain], s.Metric(chain, distanceMetric, step))
	sum := 0.0
	for _, name := range virials {
		sum += s.Metric(chain, name, step)
	}
	t.virial[chain] = append(t.virial[chain], scale*sum)
}

// row samples with the step size epsilon and returns the measurements. If the context ends, it
// returns the context's error, with the measurements if there are enough steps.
func (e *estimation) row(ctx context.Context, epsilon float64) (Row, error) {
	o := e.options
	r := Row{StepSize: epsilon}
	s, err := e.chains(o.Sampler, o.Chains, []float64{o.stepSize(epsilon)}, []float64{o.temperature()})
	if err != nil {
		return r, err
	}
	defer s.Close()
	t := traces{make([][]float64, o.Chains), make([][]float64, o.Chains), make([][]float64, o.Chains), make([][]float64, o.Chains)}
	_, sgld := o.Sampler.(langevin.SGLD)
	var virials []string
	for _, metric := range s.Program().Metrics() {
		if strings.HasPrefix(metric, langevin.VirialPrefix) {
			virials = append(virials, metric)
		}
	}
	scale := float64(e.model.DataSize) * o.InverseTemperature
	thermometer := diagnostics.NewThermometer(s.Program(), e.model.DataSize)
	begun := e.done
	plan := langevin.Plan{Steps: o.Steps, BurnIn: o.BurnIn, Thinning: o.Steps - o.BurnIn}
	err = plan.Run(ctx, s, e.window(o.Chains), func(w langevin.Window) error {
		for step := w.From; step < w.To; step++ {
			for c := range o.Chains {
				t.add(s, c, uint64(step), virials, scale, sgld)
			}
		}
		thermometer.Observe(s, max(w.From, o.BurnIn), w.To)
		e.advance((w.To - w.From) * o.Chains)
		return nil
	})
	var fault *graph.NotFinite
	if errors.As(err, &fault) {
		e.done = begun + o.Steps*o.Chains
		r.Diverged = true
		return r, nil
	}
	if made := int(s.Steps()); err != nil && ctx.Err() != nil && made-o.BurnIn >= MinMeasured {
		r.Made = made
	} else if err != nil {
		return r, err
	}
	e.measure(&r, t)
	r.Temperature = diagnostics.Measured{
		Value:         diagnostics.Number(o.InverseTemperature * thermometer.Temperature()),
		StandardError: diagnostics.Number(o.InverseTemperature * thermometer.TemperatureError()),
	}
	return r, err
}

// advance adds steps of chains to the progress and reports it.
func (e *estimation) advance(steps int) {
	e.done += steps
	e.options.Observe(Progress{"llc", e.done, e.total, steps * e.options.Batch})
}

// descend looks for a local minimum of the loss, with the localization, by gradient descent from
// the centre. It returns the offset after the given number of steps and the losses there. If the
// descent diverges, offset is nil and the losses are those at the centre.
func (e *estimation) descend(ctx context.Context, steps int) (offset []samples.Parameter, losses []float32, err error) {
	sizes := make([]float64, steps)
	// Loss and localization together must be stable.
	largest := 1 / (float64(e.model.DataSize)*e.curvature + e.options.Localization*e.options.temperature())
	for i := range sizes { // by half a cosine, so that the noise of minibatches dies out
		sizes[i] = largest / 2 * (1 + math.Cos(math.Pi*float64(i)/float64(steps)))
	}
	s, err := e.chains(langevin.SGLD{}, 1, sizes, make([]float64, steps))
	if err != nil {
		return nil, nil, err
	}
	defer s.Close()
	begun := e.done
	plan := langevin.Plan{Steps: steps, Thinning: steps}
	err = plan.Run(ctx, s, e.window(1), func(w langevin.Window) error {
		e.advance(w.To - w.From)
		return nil
	})
	if errors.As(err, new(*graph.NotFinite)) {
		e.done = begun + steps
		return nil, e.baseline, nil // no minimum was found
	}
	if err != nil {
		return nil, nil, err
	}
	end, err := samples.FromSession(s, 0, 1)
	if err != nil {
		return nil, nil, err
	}
	losses, err = e.model.lossesAt(e.device, end.Parameters)
	return end.Parameters, losses, err
}

// traceBlocks is the number of blocks of a trace. R-hat is computed from their means, so that the
// noise of single minibatches does not hide differences between chains.
const traceBlocks = 40

// blocks divides values into n blocks, whose lengths differ by at most one, and returns their
// means.
func blocks(values []float64, n int) []float64 {
	means := make([]float64, n)
	for i := range means {
		part := values[i*len(values)/n : (i+1)*len(values)/n]
		means[i] = stat.Mean(part, nil)
	}
	return means
}

// measure computes the estimates of a row from its traces.
func (e *estimation) measure(r *Row, t traces) {
	o := e.options
	scale := float64(e.model.DataSize) * o.InverseTemperature // N beta
	heat := o.stepSize(r.StepSize) * math.Pow(float64(e.model.DataSize), 2) / (2 * o.temperature())
	var raw, virials, trends, sensitivities, heats []float64
	var means [][]float64
	for c := range t.excess {
		r.Trace = append(r.Trace, scaled(scale, blocks(t.excess[c], min(len(t.excess[c]), maxTrace))))
		excess, distance := t.excess[c][o.BurnIn:], t.distance[c][o.BurnIn:]
		means = append(means, blocks(excess, traceBlocks))
		half := len(excess) / 2
		raw = append(raw, scale*stat.Mean(excess, nil))
		virials = append(virials, stat.Mean(t.virial[c][o.BurnIn:], nil)-o.Localization*stat.Mean(distance, nil))
		heats = append(heats, heat*stat.Mean(t.slope[c][o.BurnIn:], nil)+o.stepSize(r.StepSize)*o.Localization*o.temperature()/2*virials[c])
		trends = append(trends, scale*(stat.Mean(excess[len(excess)-half:], nil)-stat.Mean(excess[:half], nil)))
		sensitivities = append(sensitivities, -o.Localization/2*scale*stat.Covariance(excess, distance, nil))
	}
	r.Raw, r.Trend, r.Localization = overChains(raw), overChains(trends), overChains(sensitivities)
	r.Lambda = r.Raw
	if _, ok := o.Sampler.(langevin.SGLD); ok {
		r.Exponent = exponent(stat.Mean(virials, nil), stat.Mean(raw, nil))
		var lambdas []float64
		for c, v := range raw {
			lambdas = append(lambdas, v-heats[c]/r.Exponent)
		}
		a := overChains(scaled(1/r.Exponent, heats))
		r.Added, r.Lambda = &a, overChains(lambdas)
	}
	r.RHat = diagnostics.Number(math.NaN())
	if rHat, err := diagnostics.SplitRHat(means); err == nil {
		r.RHat = diagnostics.Number(rHat)
	}
}

// exponent returns the degree p with which the loss grows from the centre, by E[(w - w*).gL] = p
// E[L(w) - L(w*)]: 2 for a quadratic loss. It is clamped, because its estimate is erratic where the
// centre is not a minimum.
func exponent(virial, excess float64) float64 {
	const least, most = 1, 8
	if !(excess > 0) {
		return 2
	}
	return math.Min(most, math.Max(least, virial/excess))
}

// maxTrace is the maximum number of values of a chain in Row.Trace.
const maxTrace = 200

// overChains returns the mean of independent values, one for each chain, with its standard error.
func overChains(values []float64) diagnostics.Measured {
	n := float64(len(values))
	mean, std := stat.MeanStdDev(values, nil)
	return diagnostics.Measured{
		Value: diagnostics.Number(mean), StandardError: diagnostics.Number(stat.StdErr(std, n)), Groups: len(values),
	}
}

// scaled returns values times a factor.
func scaled(factor float64, values []float64) []float64 {
	return floats.ScaleTo(make([]float64, len(values)), factor, values)
}
