package bayes

import (
	"context"
	"math"
	"time"

	"github.com/pollen-ml/pollen/graph"
)

// A part of a window takes about partInterval. Between parts, a context that has ended stops the
// run, and progress is reported. At their ends, threads that run whole chains wait for each other:
// slow steps are made fewSteps at a time to lose little by it, as far as they take at most
// maxInterval.
const (
	partInterval = time.Second
	maxInterval  = 10 * time.Second
	fewSteps     = 4
)

// maxGrowth bounds how much longer a part may be than the one before, in steps: the time of the
// first steps is no good estimate of the others'.
const maxGrowth = 4

// pacer divides windows into parts, by the time of the steps before. Windows of fast steps are made
// in one part. What a window records does not depend on its parts.
type pacer struct {
	now    func() time.Time
	report func(made, part int) // called with the steps made of a window, and those not yet reported

	size     int       // of the next part
	part     int       // steps of the last part
	began    time.Time // of the last part
	reported int       // steps of the window
	at       time.Time // of the last report, or the beginning of the window
}

// next is a graph.Pace, except that it does not stop.
func (p *pacer) next(made, left int) int {
	now := p.now()
	if made == 0 {
		p.reported, p.at = 0, now
	} else {
		steps := float64(maxGrowth * p.size)
		if took := now.Sub(p.began); took > 0 {
			in := func(interval time.Duration) float64 { return float64(p.part) * float64(interval) / float64(took) }
			steps = min(steps, max(in(partInterval), min(fewSteps, in(maxInterval))))
		}
		p.size = min(max(1, int(steps)), graph.MetricRows)
	}
	if left > 0 && made > p.reported && now.Sub(p.at) >= partInterval {
		p.report(made, made-p.reported)
		now = p.now()
		p.reported, p.at = made, now
	}
	p.part, p.began = min(p.size, left), now
	return p.part
}

// pace returns the graph.Pace of a task whose progress is counted in steps of t's session, of the
// given total. It stops when ctx ends, and reports events within windows that take long.
func (t *training) pace(ctx context.Context, task, on string, total int) graph.Pace {
	p := &pacer{now: t.now, size: 1}
	p.report = func(made, part int) {
		images := part * t.spec.Batch * t.session.Chains()
		t.reported += images
		t.observe(newEvent(task, on, int(t.session.Steps())+made, total, images))
	}
	return func(made, left int) (int, error) {
		if made == 0 {
			t.reported = 0
		}
		return p.next(made, left), ctx.Err()
	}
}

// The tasks of the events of training.
const (
	fitTask  = "fit"
	warmTask = "warm start"
)

// newEvent returns an event without scores.
func newEvent(task, on string, done, total, images int) Event {
	nan := math.NaN()
	return Event{
		Task: task, On: on, Done: done, Total: total, Images: images,
		Loss: nan, Accuracy: nan, Temperature: nan, RHat: nan,
		ValidationLoss: nan, ValidationAccuracy: nan, ValidationNLL: nan, AverageAccuracy: nan,
	}
}
