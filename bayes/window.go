package bayes

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/internal/measure"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// observeWindow observes a window of steps: it records traces, measures temperatures, and saves
// samples.
//
// It is called after at most window steps: a window also ends at a sample and where a hook is due.
// Everything that decides about files depends on the step only, never on time, so that a resumed
// run writes the same samples. The exception is a checkpoint at the end of an epoch, which is
// skipped while the last one is still being written; it has no sample.
func (t *training) observeWindow(p langevin.Window) error {
	if err := t.checkEnd(p); err != nil {
		return err
	}
	line := rundir.Metrics{Step: p.To, Epoch: float64(p.To) * float64(t.spec.Batch) / float64(t.data.Len()), Rate: t.rates[p.To-1]}
	chains, err := t.replicas.Cold(t.session)
	if err != nil {
		return err
	}
	losses := make([]float64, len(chains))
	if line.Loss, line.Accuracy, err = t.traces(p, chains, losses); err != nil {
		return err
	}
	t.measured.Loss = line.Loss
	event := newEvent(fitTask, t.data.Name, p.To, t.plan.Steps, t.images(p))
	event.Loss, event.Accuracy = line.Loss, line.Accuracy
	if t.kind.traits().tempered {
		event.Temperature = t.measure(p, chains)
		line.Requested = *t.spec.Temperature
		if !math.IsNaN(event.Temperature) {
			line.Temperature = &event.Temperature
		}
	}
	kept := p.Sample && t.writer.Keeps(p.To)
	states, err := t.observeStates(p.To, kept, &line, &event)
	if err != nil {
		return err
	}
	if kept && t.kind.traits().exact {
		line.Draws = t.drawStatistics(chains, p.To-1)
	}
	if err := t.writer.AddMetrics(line); err != nil {
		return err
	}
	if err := t.checkFinite(states); err != nil {
		return err
	}
	// A sample is always followed by a checkpoint: a process that is killed afterwards must not
	// draw it again with other measurements.
	if kept || p.To == t.plan.Steps || t.endsEpoch(p) && !t.writer.Busy() {
		if err := t.save(states); err != nil {
			return err
		}
	}
	t.watch(p, losses)
	t.observeNoiseShare(p, chains)
	if t.kind.traits().tempered {
		event.RHat = float64(t.measured.LiveRHat())
	}
	t.observe(event)
	return nil
}

// observeStates makes the predictions that are due after a step, on held-out and on validation
// images. It returns the states to save; nil if there are none.
func (t *training) observeStates(step int, kept bool, line *rundir.Metrics, event *Event) ([]samples.Sample, error) {
	// The held-out predictions are observed at some states, samples or not, in the sampling phase
	// only and, with cycles, only where the temperature is the requested one.
	due := t.measured.HeldOut.Due(step) && step > t.plan.BurnIn && t.temperatures[step-1] == t.spec.NoiseTemperature()
	scored := t.measured.Validation.Due(step) || t.measured.Validation != nil && step == t.plan.Steps
	saved := kept && !t.kind.traits().drawn
	if !saved && !due && !scored {
		return nil, nil
	}
	states, err := t.kind.states(&t.job, step)
	if err == nil && due {
		err = t.measured.HeldOut.Observe(states, step)
	}
	if err == nil && scored {
		err = t.score(line, event, states, kept)
	}
	if err != nil || !saved {
		return nil, err
	}
	return states, nil
}

// drawStatistics returns the statistics that a sampler on all data records of its draws at a step,
// by chain. Statistics that are not finite, such as the acceptance before the first proposal, are
// left out.
func (t *training) drawStatistics(chains []int, step int) map[string][]float64 {
	all := map[string][]float64{}
	for name, trace := range map[string]string{
		rundir.DrawPotential: mcmc.TracePotential, rundir.DrawAcceptance: mcmc.TraceAcceptance, rundir.DrawStepSize: mcmc.TraceStepSize,
		rundir.DrawLeapfrogSteps: mcmc.TraceLeapfrogSteps, rundir.DrawDiverged: mcmc.TraceDiverged, rundir.DrawEnergyError: mcmc.TraceEnergyError,
		rundir.DrawEnergy: mcmc.TraceEnergy, rundir.DrawAccepted: mcmc.TraceAccepted,
	} {
		var values []float64
		for _, chain := range chains {
			if v := t.session.Metric(chain, trace, uint64(step)); v-v == 0 {
				values = append(values, v)
			}
		}
		if len(values) == len(chains) {
			all[name] = values
		}
	}
	return all
}

// endsEpoch reports whether an epoch ends within a window of steps.
func (t *training) endsEpoch(p langevin.Window) bool {
	epoch := max(1, t.data.Len()/t.spec.Batch)
	return p.From/epoch != p.To/epoch
}

// measure records the temperatures of a window of steps, and returns their mean.
func (t *training) measure(p langevin.Window, chains []int) float64 {
	for step := max(p.From, t.plan.BurnIn); step < p.To; step++ {
		if t.temperatures[step] != t.spec.NoiseTemperature() {
			continue
		}
		t.measured.AddTemperatures(t.session, chains, step, t.walk != nil)
	}
	return t.measured.WindowTemperature(t.session, chains, p.From, p.To)
}

// traces records the traces for figures and diagnostics. For samplers on all data it records one
// value for each window, since only the present draw is known. It returns the window's mean loss
// and accuracy, and adds each chain's mean loss to losses.
func (t *training) traces(p langevin.Window, chains []int, losses []float64) (loss, accuracy float64, err error) {
	from := p.From
	if t.walk != nil {
		from = p.To - 1
	}
	for step := from; step < p.To; step++ {
		for i, chain := range chains {
			var values [3]float64 // loss, accuracy, weight
			for at, name := range []string{lossMetric, accuracyMetric, watchedMetric} {
				if t.walk == nil {
					values[at] = t.session.Metric(chain, name, uint64(step))
				} else if values[at], err = t.drawn(chain, name); err != nil {
					return 0, 0, err
				}
			}
			loss, accuracy = loss+values[0], accuracy+values[1]
			losses[i] += values[0] / float64(p.To-from)
			sampling := step >= t.plan.BurnIn && (t.plan.Cycles == 0 || t.temperatures[step] == t.spec.NoiseTemperature())
			t.measured.AddStep(i, values[0], values[2], sampling)
		}
	}
	n := float64((p.To - from) * len(chains))
	return loss / n, accuracy / n, nil
}

// diagnose computes diagnostics from the steps made so far. Values that the method does not have
// stay NaN.
func (t *training) diagnose(ctx context.Context, device tensor.Device) (*diagnostics.Report, error) {
	m := t.measured
	d := &diagnostics.Report{
		Made: int(t.session.Steps()), Samples: t.writer.Samples(), Watched: t.manifest.Watched, Trace: m.Trace(),
		Predicted: m.HeldOut.Mixing(), LossRHat: diagnostics.Number(math.NaN()), WeightRHat: diagnostics.Number(math.NaN()), Swaps: diagnostics.Number(math.NaN()),
	}
	if t.warmUp != nil && t.warmUp.done {
		d.WarmStart = t.warmUp.result()
	}
	if t.halves && t.warmUp == nil {
		halvings, err := t.halvings()
		if err != nil {
			return nil, err
		}
		if slices.Max(halvings) > 0 {
			d.Halvings = halvings
		}
	}
	d.Acceptance, d.Diverged = m.Acceptance()
	if t.replicas != nil {
		if v, err := t.replicas.AcceptanceRate(t.session); err == nil {
			d.Swaps = diagnostics.Number(v)
		}
	}
	if t.kind.traits().tempered {
		d.LossRHat, d.WeightRHat = m.LossRHat(), m.WeightRHat()
		d.Weights, d.Losses = m.Weights(), m.Losses()
	}
	var err error
	if d.Temperatures, err = t.temperaturesByLayer(device); err != nil {
		return nil, err
	}
	t.remarkNoiseShare()
	p, err := t.predictionTemperature(ctx, device)
	if p != nil {
		d.Predictions, d.Determination = p.Curvature, p.Determination
		t.remarkResonance(p.Steepness)
	}
	return d, err
}

// observeNoiseShare keeps the mean noise share of a window of steps, see langevin.MatchedFriction.
func (t *training) observeNoiseShare(p langevin.Window, chains []int) {
	if !t.kind.traits().independent {
		return
	}
	t.noiseShare = 0
	for step := p.From; step < p.To; step++ {
		for _, chain := range chains {
			t.noiseShare += t.session.Metric(chain, langevin.NoiseShare, uint64(step)) / float64((p.To-p.From)*len(chains))
		}
	}
}

// The noise shares between which matched friction is efficient and exact: below, chains move more
// slowly than they could, and above, some minibatches' shares exceed 1.
const (
	minNoiseShare = 0.1
	maxNoiseShare = 0.5
)

// remarkNoiseShare remarks on a noise share for which another learning rate would be better.
func (t *training) remarkNoiseShare() {
	switch share := t.noiseShare; {
	case share > maxNoiseShare:
		t.remark(fmt.Sprintf("the noise of minibatches is %.2g of what matched friction can balance in the last steps, and should be at most %g: "+
			"divide the learning rate by %.2g", share, maxNoiseShare, share/maxNoiseShare))
	case share > 0 && share < minNoiseShare:
		t.remark(fmt.Sprintf("the noise of minibatches is only %.2g of what matched friction can balance in the last steps: "+
			"chains move faster, and as exactly, if the learning rate is multiplied by %.2g", share, maxNoiseShare/share))
	}
}

// Symmetric minibatches heat directions of curvature lambda for which m sqrt(lambda h), the phase
// of their oscillation in an epoch of m minibatches, is between these values. Measured: T of
// predictions 5.9 ± .4 with them, 4.6 ± .3 without.
const (
	minResonance = 1.6
	maxResonance = 5
)

// remarkResonance remarks that symmetric minibatches heat a run, judging by the curvature of the
// directions that predictions depend on.
func (t *training) remarkResonance(curvature float64) {
	s, ok := t.kind.(minibatchKind)
	if !ok || !t.spec.Symmetric || !langevin.HasMomentum(s.sampler) {
		return
	}
	n := float64(t.data.Len())
	h := t.rates[t.session.Steps()-1] / n
	if phase := n / float64(t.spec.Batch) * math.Sqrt(curvature*h); phase >= minResonance && phase <= maxResonance {
		t.remark(fmt.Sprintf("symmetric minibatches heat this run: m sqrt(lambda h) is %.2g in the steepest directions, and between %g and %g an epoch and its "+
			"reverse resonate; use larger minibatches, smaller rates or the order shuffled", phase, minResonance, float64(maxResonance)))
	}
}

// subject describes the training for package measure.
func (t *training) subject() measure.Subject {
	return measure.Subject{
		Network: t.parts.network, Posterior: t.posterior(), Temperature: t.spec.NoiseTemperature(), Images: t.inputs, Labels: t.rowLabels(),
		Classes: t.data.Classes, Batch: t.rowBatch(), Seed: t.spec.Seed, Session: t.session, Augment: t.augment,
		ClassWeights: t.classWeights,
	}
}

// temperaturesByLayer returns the temperatures of all parameters, and then by layer.
func (t *training) temperaturesByLayer(device tensor.Device) ([]diagnostics.Temperature, error) {
	noise, err := t.gradientNoise(device)
	if err != nil {
		return nil, err
	}
	return measure.Temperatures(t.measured.Thermometer, t.session.Program().Parameters(), t.spec.NoiseTemperature(), noise), nil
}

// gradientNoise returns the noise of minibatches' gradients by parameter, see
// measure.GradientNoise; nil for methods that do not step along the gradients of minibatches only.
func (t *training) gradientNoise(device tensor.Device) (map[string]float64, error) {
	s, ok := t.kind.(minibatchKind)
	if !ok || t.spec.Anchor > 0 || t.spec.NoiseTemperature() == 0 || t.session.Steps() == 0 {
		return nil, nil
	}
	cold, err := t.replicas.Cold(t.session)
	if err != nil {
		return nil, err
	}
	rate, err := t.rate(cold[0], int(t.session.Steps())-1)
	if err != nil {
		return nil, err
	}
	return measure.GradientNoise(device, t.subject(), s.sampler, cold[0], rate)
}

// measuresPredictions reports whether the temperature of predictions is measured. It is not for
// methods whose samples are not states of a chain, at temperature 0, if images are changed at each
// step, where the potential is not a function of the parameters, and with ClassWeights, where
// likelihoods are not probabilities.
func (t *training) measuresPredictions() bool {
	traits := t.kind.traits()
	return traits.tempered && !traits.collected && !traits.drawn && t.spec.NoiseTemperature() != 0 && !t.spec.Augment.atEachStep() && t.classWeights == nil
}

// predictionTemperature returns the temperature of the directions that predictions depend on, over
// some of the samples, see measure.PredictionTemperature; nil if it is not measured.
func (t *training) predictionTemperature(ctx context.Context, device tensor.Device) (*measure.PredictionTemperatures, error) {
	if ctx.Err() != nil || !t.measuresPredictions() {
		return nil, nil
	}
	files, err := t.writer.SampleFiles()
	if err != nil {
		return nil, err
	}
	return measure.PredictionTemperature(ctx, device, t.subject(), measure.PredictionOptions{
		Files: files, Passes: t.passes(int(t.session.Steps())),
		Damaged: func(err error) { t.remark(fmt.Sprintf("%v; left out of the temperature of predictions", err)) },
		Observe: func(done, total, images int) {
			t.observe(Event{Task: "temperature", On: t.data.Name, Done: done, Total: total, Images: images})
		},
	})
}

// A chain gets a remark if, in the sampling phase, its loss is no better than guessing's for
// guessingWindows windows in a row. The temperature is far off if, after warmWindows windows, it
// differs from the requested one by more than the fraction farOff and by more than manyErrors
// standard errors.
const (
	guessingWindows = 5
	farOff          = 0.5
	manyErrors      = 5
	warmWindows     = 20
)

// watch remarks on chains that are no better than guessing and on temperatures that are far off,
// while there is time to stop the run. If no chain is better than guessing, the network or the rate
// is wrong, which warn reports. In runs with cycles, only the steps at the requested temperature
// count, and the temperature is not watched: it alternates with 0.
func (t *training) watch(p langevin.Window, losses []float64) {
	requested := t.spec.NoiseTemperature()
	if !t.kind.traits().tempered || p.From < t.plan.BurnIn || requested == 0 || t.temperatures[p.From] != requested {
		return
	}
	g := &t.watchdog
	g.windows++
	if g.bad == nil {
		g.bad, g.named = make([]int, len(losses)), make([]bool, len(losses))
	}
	guessing, well := guessing(t.data, t.classWeights), 0
	for _, loss := range losses { // losses of chains that guess are on either side of guessing
		if loss < almostGuessing*guessing {
			well++
		}
	}
	if slices.Min(losses) < guessing/2 { // there is something to learn
		guessing *= almostGuessing
	}
	for i, loss := range losses {
		if loss < guessing {
			g.bad[i] = 0
			continue
		}
		if g.bad[i]++; g.bad[i] >= guessingWindows && well > 0 && !g.named[i] {
			g.named[i] = true
			t.remark(fmt.Sprintf("chain %d has been no better than guessing for %d windows, with a loss of %.3g now, while %d of %d chains are better; "+
				"its samples spoil the average",
				t.spec.FirstChain+i, guessingWindows, loss, well, len(losses)))
		}
	}
	if t.plan.Cycles > 0 {
		return
	}
	measured, std := t.measured.Thermometer.Temperature(), t.measured.Thermometer.TemperatureError()
	if off := math.Abs(measured - requested); !g.warned && g.windows >= warmWindows && off > farOff*requested && off > manyErrors*std {
		g.warned = true
		t.remark(fmt.Sprintf("the temperature is far off: measured %.3g ± %.1g, requested %g; smaller learning rates or a longer burn-in would bring it closer",
			measured, std, requested))
	}
}
