package pollen

import (
	"math"

	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/samples"
)

// look observes a window of steps: it keeps traces, measures temperatures, and saves samples.
func (t *training) look(p langevin.Window) error {
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
	event := Event{
		Task: "fit", On: t.data.Name, Done: p.To, Total: t.plan.Steps, Images: t.images(p),
		Loss: line.Loss, Accuracy: line.Accuracy, Temperature: math.NaN(),
	}
	if t.kind.traits().tempered {
		event.Temperature = t.measure(p, chains)
		line.Requested = *t.spec.Temperature
		if !math.IsNaN(event.Temperature) {
			line.Temperature = &event.Temperature
		}
	}
	if err := t.writer.AddMetrics(line); err != nil {
		return err
	}
	var states []samples.Sample
	due := t.measured.HeldOut.Due(p.To) && p.To > t.plan.BurnIn && t.temperatures[p.To-1] == t.spec.temperature()
	kept := p.Sample && t.writer.Keeps(p.To)
	if kept && !t.kind.traits().drawn || due {
		if states, err = t.kind.states(t, p.To); err != nil {
			return err
		}
	}
	if due {
		if err := t.measured.HeldOut.Observe(states, p.To); err != nil {
			return err
		}
	}
	if !kept {
		states = nil
	}
	if kept || p.To == t.plan.Steps || t.endsEpoch(p) && !t.writer.Busy() {
		if err := t.save(states); err != nil {
			return err
		}
	}
	t.watch(p, losses)
	if event.RHat = math.NaN(); t.kind.traits().tempered {
		event.RHat = float64(t.measured.LiveRHat())
	}
	t.observe(event)
	return nil
}

// endsEpoch reports whether an epoch ends within a window of steps.
func (t *training) endsEpoch(p langevin.Window) bool {
	epoch := max(1, t.data.Len()/t.spec.Batch)
	return p.From/epoch != p.To/epoch
}

// images is how many images all chains went through in a window of steps, and in evaluations
// between these.
func (t *training) images(p langevin.Window) int {
	evaluations := int(t.session.Evaluations()) - t.evaluations
	t.evaluations += evaluations
	return (p.To - p.From + evaluations) * t.spec.Batch * t.session.Chains()
}

// measure observes the temperatures of a window of steps, and returns the mean one.
func (t *training) measure(p langevin.Window, chains []int) float64 {
	for step := max(p.From, t.plan.BurnIn); step < p.To; step++ {
		if t.temperatures[step] != t.spec.temperature() {
			continue
		}
		t.measured.AddTemperatures(t.session, chains, step, t.walk != nil)
	}
	return t.measured.WindowTemperature(t.session, chains, p.From, p.To)
}

// traces keeps what later figures and diagnostics need of chains; with a Metropolis test, one value
// for each window. It returns the window's mean loss and accuracy, and adds up the loss by chain.
func (t *training) traces(p langevin.Window, chains []int, losses []float64) (loss, accuracy float64, err error) {
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
			sampling := step >= t.plan.BurnIn && (t.plan.Cycles == 0 || t.temperatures[step] == t.spec.temperature())
			t.measured.AddStep(i, values[0], values[2], sampling)
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
	if err := t.writer.Wait(); err != nil {
		return err
	}
	if err := t.checkRoom(); err != nil {
		return err
	}
	checkpoint, err := t.checkpoint()
	if err != nil {
		return err
	}
	return t.writer.Checkpoint(states, checkpoint)
}

// saveNow saves, and waits for the disk.
func (t *training) saveNow() error {
	if err := t.save(nil); err != nil {
		return err
	}
	return t.writer.Wait()
}
