package cuda

import (
	"cmp"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/cuda/internal/plan"
	"github.com/pollen-ml/pollen/tensor"
)

// CallTime is the measured time of a call of a step, with the predicted time to compare it with.
type CallTime struct {
	Predicted
	Threads  int     // of a block
	Shared   int     // bytes of dynamic shared memory of a block
	Measured float64 // seconds
	Follows  []int   // the earlier calls of the step that this call must directly follow
}

// A call is measured in rounds of about timingRound. The fastest round counts.
const (
	timingRounds = 3
	timingRound  = 2 * time.Millisecond
	maxGraphRuns = 256 // of the CUDA graph in a round
)

// TimeCalls measures each call of a step, as a diagnostic. A call is timed in the form that a run
// uses, with packed copies, pooling in epilogues and fused updates. Its time is the time of a CUDA
// graph that repeats the call, one after the other, divided by repetitions. It includes the launch,
// and consecutive repetitions overlap as dependent calls of a run do.
//
// The predicted times come from the model m.
//
// TimeCalls goes through a step, and measures each call on the data that the calls before it made,
// so Run some steps first. Afterwards the chains are in the state that one more step would produce,
// unless the workload has no Keeps: its updates have then been applied many times. With several
// GPUs only the first one is measured. If TimeCalls returns an error, it also returns the times
// measured before it.
func (r *runner) TimeCalls(repetitions int, m Model) ([]CallTime, error) {
	if repetitions < 1 {
		return nil, errors.Errorf("cuda: repetitions must be at least 1, got %d", repetitions)
	}
	p := r.shards[0]
	m = m.withPDL(p.pdl)
	footprint := float64(p.chains * (p.bytes[tensor.Chain] + p.bytes[tensor.Scratch]))
	follows := plan.Dependencies(p.stepCalls())
	var predicted []Predicted
	for _, s := range p.step {
		predicted = append(predicted, predictedOf(m, p.launches, s.Call, p.chains, footprint))
	}
	simulate(predicted, follows, m)
	var times []CallTime
	for i, s := range p.step {
		t := CallTime{Predicted: predicted[i], Threads: s.Threads, Shared: s.Shared, Follows: follows[i]}
		err := p.do(func() (err error) {
			t.Measured, err = p.timeCall(i, repetitions)
			return inLaunch(err, &p.launches[s.Launch])
		})
		if err != nil {
			return times, err
		}
		times = append(times, t)
	}
	return times, nil
}

// timeCall measures call i. It also launches the call once before, so that a fault is reported as
// this call's, and once after, because the measurement is undone.
func (p *shard) timeCall(i, repetitions int) (seconds float64, err error) {
	p.readback.valid = false
	restore := func() error { return nil }
	if p.snapshots {
		if err := p.keep(); err != nil {
			return 0, err
		}
		restore = p.restore
	}
	separate := p.step[i : i+1]
	if err := p.launchAndWait(separate, 0, p.chains); err != nil {
		return 0, err
	}
	repeated := *p
	repeated.step, repeated.ahead, repeated.sequential = separate, nil, true
	executable, err := repeated.buildGraph(repetitions)
	if err != nil {
		return 0, err
	}
	seconds, err = p.timeGraph(executable)
	err = cmp.Or(err, p.check("cuGraphExecDestroy", p.cuGraphExecDestroy(executable)))
	if err == nil {
		err = restore()
	}
	if err == nil {
		err = p.launchAndWait(separate, 0, p.chains)
	}
	return seconds / float64(repetitions), err
}

// timeGraph returns the seconds that a CUDA graph takes, by the host's clock around many launches
// and one synchronization.
func (p *shard) timeGraph(executable handle) (best float64, err error) {
	run := func(runs int) (time.Duration, error) {
		begin := time.Now()
		for range runs {
			if err := p.check("cuGraphLaunch", p.cuGraphLaunch(executable, p.stream)); err != nil {
				return 0, err
			}
		}
		err := p.synchronize()
		return time.Since(begin), err
	}
	if _, err := run(1); err != nil { // the first launch also uploads the graph
		return 0, err
	}
	once, err := run(1)
	if err != nil {
		return 0, err
	}
	runs := min(maxGraphRuns, max(1, int(timingRound/max(1, once))))
	for round := range timingRounds {
		took, err := run(runs)
		if err != nil {
			return 0, err
		}
		if seconds := took.Seconds() / float64(runs); round == 0 || seconds < best {
			best = seconds
		}
	}
	return best, nil
}

// CriticalPath returns the sum of the measured times along the longest path of calls each of which
// depends on the one before it. A step takes at least this long, unless dependent calls overlap.
func CriticalPath(calls []CallTime) float64 {
	longest := 0.0
	ends := make([]float64, len(calls))
	for i, c := range calls {
		for _, before := range c.Follows {
			ends[i] = max(ends[i], ends[before])
		}
		ends[i] += c.Measured
		longest = max(longest, ends[i])
	}
	return longest
}
