package pollen

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/metropolis"
	"github.com/pollen-ml/pollen/samples"
)

// look observes a window of steps: it keeps traces, measures temperatures, and saves samples.
func (t *training) look(p langevin.Progress) error {
	line := metricsLine{Step: p.To, Epoch: float64(p.To) * float64(t.spec.Batch) / float64(t.data.Len()), Rate: t.rates[p.To-1]}
	chains, err := t.replicas.Cold(t.session)
	if err != nil {
		return err
	}
	losses := make([]float64, len(chains))
	if line.Loss, line.Accuracy, err = t.traces(p, chains, losses); err != nil {
		return err
	}
	t.loss = line.Loss
	event := Event{
		Task: "fit", On: t.data.Name, Done: p.To, Total: t.plan.Steps, Images: t.images(p),
		Loss: line.Loss, Accuracy: line.Accuracy, Temperature: math.NaN(),
	}
	if t.course.traits().tempered {
		event.Temperature = t.measure(p, chains)
		line.Requested = *t.spec.Temperature
		if !math.IsNaN(event.Temperature) {
			line.Temperature = &event.Temperature
		}
	}
	if err := t.metrics.Add(line); err != nil {
		return errors.Wrap(err, "pollen: metrics")
	}
	var states []samples.Sample
	due := t.probe.due(t, p.To)
	kept := p.Sample && t.retention().has(p.To, p.To)
	if kept && !t.course.traits().drawn || due {
		if states, err = t.course.states(t, p.To); err != nil {
			return err
		}
	}
	if due {
		if err := t.probe.observe(states, p.To); err != nil {
			return err
		}
	}
	if !kept {
		states = nil
	}
	if kept || p.To == t.plan.Steps || t.endsEpoch(p) && !t.saving.busy() {
		if err := t.save(states); err != nil {
			return err
		}
	}
	t.watch(p, losses)
	event.RHat = t.rHat(shortened(valuesOf(t.weightTrace)))
	t.observe(event)
	return nil
}

// endsEpoch reports whether an epoch ends within a window of steps.
func (t *training) endsEpoch(p langevin.Progress) bool {
	epoch := max(1, t.data.Len()/t.spec.Batch)
	return p.From/epoch != p.To/epoch
}

// images is how many images all chains went through in a window of steps, and in evaluations
// between these.
func (t *training) images(p langevin.Progress) int {
	evaluations := int(t.session.Evaluations()) - t.evaluations
	t.evaluations += evaluations
	return (p.To - p.From + evaluations) * t.spec.Batch * t.session.Chains()
}

// measure observes the temperatures of a window of steps, and returns the mean one.
func (t *training) measure(p langevin.Progress, chains []int) float64 {
	for step := max(p.From, t.plan.BurnIn); step < p.To; step++ {
		if t.temperatures[step] != t.spec.temperature() {
			continue
		}
		t.thermometer.ObserveChains(t.session, step, step+1, chains)
		for _, chain := range chains {
			if t.walk != nil {
				t.proposals++
				t.accepted += t.session.Metric(chain, metropolis.TraceAcceptance, uint64(step))
				t.diverged += t.session.Metric(chain, metropolis.TraceDiverged, uint64(step))
			}
		}
	}
	t.recent.Reset()
	t.recent.ObserveChains(t.session, p.From, p.To, chains)
	return t.recent.Temperature()
}

// liveValues bounds the values of each chain that the live R-hat is computed from, so that it does
// not slow a long run down.
const liveValues = 500

func shortened(traces [][]float64) [][]float64 {
	short := make([][]float64, len(traces))
	for i, trace := range traces {
		short[i] = thinned(trace, liveValues)
	}
	return short
}

// traces keeps what later figures and diagnostics need of chains; with a Metropolis test, one value
// for each window. It returns the window's mean loss and accuracy, and adds up the loss by chain.
func (t *training) traces(p langevin.Progress, chains []int, losses []float64) (loss, accuracy float64, err error) {
	from := p.From
	if t.walk != nil {
		from = p.To - 1
	}
	for step := from; step < p.To; step++ {
		for i, chain := range chains {
			var values [3]float64 // loss, accuracy, weight
			for at, name := range []string{lossMetric, accuracyMetric, watchedMetric} {
				if values[at], err = t.metric(chain, name, step); err != nil {
					return 0, 0, err
				}
			}
			loss, accuracy = loss+values[0], accuracy+values[1]
			losses[i] += values[0] / float64(p.To-from)
			if i == 0 {
				t.trace.add(values[2])
			}
			if step >= t.plan.BurnIn && (t.plan.Cycles == 0 || t.temperatures[step] == t.spec.temperature()) {
				t.lossTrace[i].add(values[0])
				t.weightTrace[i].add(values[2])
			}
		}
	}
	n := float64((p.To - from) * len(chains))
	return loss / n, accuracy / n, nil
}

// metric is what a chain's metric was at a step of the last window, or is at its draw now.
func (t *training) metric(chain int, name string, step int) (float64, error) {
	if t.walk != nil {
		return t.drawn(chain, name)
	}
	return t.session.Metric(chain, name, uint64(step)), nil
}

// save writes samples, and then the state of the chains, from which the run can go on, while the
// next steps run.
func (t *training) save(states []samples.Sample) error {
	if err := t.saved(); err != nil {
		return err
	}
	if err := t.checkRoom(); err != nil {
		return err
	}
	if err := t.metrics.Flush(); err != nil {
		return errors.Wrap(err, "pollen: metrics")
	}
	checkpoint, err := checkpointOf(t)
	if err != nil {
		return err
	}
	made := int(t.session.Steps())
	dropped := t.dropped(t.dropping, made)
	t.dropping = made
	t.saving.begin(func() error {
		if err := t.keep(t.keeping, states...); err != nil {
			return err
		}
		if t.keeping == t.bank {
			t.adding = len(states)
		}
		if err := list(t.index, dropped...); err != nil {
			return err
		}
		// What a checkpoint relies on is on the disk before it.
		if err := t.metrics.Sync(); err != nil {
			return errors.Wrap(err, "pollen: metrics")
		}
		if t.index != nil {
			if err := t.index.Sync(); err != nil {
				return errors.Wrap(err, "pollen: index")
			}
		}
		if err := t.writeCheckpoint(checkpoint); err != nil {
			return err
		}
		removed, err := t.drop(dropped)
		t.adding -= removed
		return err
	})
	return nil
}

// keep writes samples into a bank, and lists them, unless another process writes in the folder.
func (t *training) keep(bank *samples.Bank, states ...samples.Sample) error {
	if err := t.stillHeld(); err != nil {
		return err
	}
	files, err := bank.Write(states...)
	if err != nil {
		return err
	}
	return list(t.index, linesOf(t.folderOf(bank), files)...)
}

// saveNow saves, and waits for the disk.
func (t *training) saveNow() error {
	if err := t.save(nil); err != nil {
		return err
	}
	return t.saved()
}

// saved waits for what save began, and counts its samples once they are on the disk.
func (t *training) saved() error {
	err := t.saving.wait()
	if err == nil {
		t.samples += t.adding
	}
	t.adding = 0
	return err
}

// draw draws the specification's samples of each chain at the end of a run.
func (t *training) draw(draw func(chain, draw int) (samples.Sample, error)) error {
	t.samples = 0
	for chain := range t.spec.Chains {
		for i := range t.spec.Samples {
			sample, err := draw(chain, i)
			if err != nil {
				return err
			}
			if err := t.keep(t.bank, sample); err != nil {
				return err
			}
			t.samples++
		}
	}
	return nil
}

// background does one thing at a time, concurrently with its caller. The zero value is ready.
type background struct{ done chan error }

// begin starts do. What was begun before must have been waited for.
func (b *background) begin(do func() error) {
	b.done = make(chan error, 1)
	go func() { b.done <- do() }()
}

// busy reports whether what was begun is still under way.
func (b *background) busy() bool { return b.done != nil && len(b.done) == 0 }

// wait returns the error of what was begun, once it is done; nil if nothing was.
func (b *background) wait() error {
	if b.done == nil {
		return nil
	}
	err := <-b.done
	b.done = nil
	return err
}
