package cuda

import (
	"cmp"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor"
)

// CallTime is the measured time of a call of a step next to the predicted one. Blocks has the
// call's blocks for each chain.
type CallTime struct {
	Predicted
	Threads  int     // of a block
	Shared   int     // bytes of dynamic shared memory of a block
	Measured float64 // seconds
	Follows  []int   // the earlier calls of the step that this call depends on directly
}

// Rounds of a call's measurement, each of which takes about callRound. The fastest counts.
const (
	callRounds = 3
	callRound  = 5 * time.Millisecond
	callRuns   = 256 // at most, of the CUDA graph in a round
)

// TimeCalls measures each call of a step by itself, as a diagnostic: the call in the form in which
// a run makes it, with packed copies, pooling and joined updates. A call's time is that of a CUDA
// graph of as many repetitions of the call, one after the other, divided by repetitions: it
// includes the launch. Consecutive repetitions overlap as dependent calls of a run do.
//
// The predicted times are those of the model m.
//
// The calls are measured in the order of a step, each on the data that the calls before it made, so
// Run some steps first. Afterwards the chains are where one more step leaves them, except that a
// schedule which does not keep its chains has made its updates many times. With several GPUs only
// the first is measured. After an error the times measured before it are returned, too.
func (r *runner) TimeCalls(repetitions int, m Model) ([]CallTime, error) {
	if r.closed {
		return nil, errors.New("cuda: TimeCalls after Close")
	}
	if repetitions < 1 {
		return nil, errors.Errorf("cuda: repetitions must be at least 1, got %d", repetitions)
	}
	p := r.parts[0]
	m = m.edges(p.dependent)
	footprint := float64(p.chains * (p.bytes[tensor.Chain] + p.bytes[tensor.Scratch]))
	follows := orderOf(p.all(), 1).follows
	var predicted []Predicted
	for _, s := range p.calls {
		predicted = append(predicted, predictedOf(m, p.launches, s.call, p.chains, footprint))
	}
	simulate(predicted, follows, m)
	var times []CallTime
	for i, s := range p.calls {
		t := CallTime{Predicted: predicted[i], Threads: s.threads, Shared: s.shared, Follows: follows[i]}
		err := p.do(func() (err error) {
			t.Measured, err = p.timeCall(i, repetitions)
			return named(err, &p.launches[s.launch])
		})
		if err != nil {
			return times, err
		}
		times = append(times, t)
	}
	return times, nil
}

// timeCall measures call i. The call is launched alone before and after: before, so that a fault is
// the call's; after, since the measurement is undone.
func (p *part) timeCall(i, repetitions int) (seconds float64, err error) {
	p.ahead.fresh = false
	restore := func() error { return nil }
	if p.keeps {
		if err := p.copyMemory(p.kept, p.memory[tensor.Chain]); err != nil {
			return 0, err
		}
		restore = func() error { return p.copyMemory(p.memory[tensor.Chain], p.kept) }
	}
	alone := p.calls[i : i+1]
	if err := p.launchAlone(alone, 0, p.chains); err != nil {
		return 0, err
	}
	repeated := *p
	repeated.calls, repeated.inLine = alone, true
	executable, err := repeated.assemble(repetitions)
	if err != nil {
		return 0, err
	}
	seconds, err = p.timeGraph(executable)
	err = cmp.Or(err, p.check("cuGraphExecDestroy", p.cuGraphExecDestroy(executable)))
	if err == nil {
		err = restore()
	}
	if err == nil {
		err = p.launchAlone(alone, 0, p.chains)
	}
	return seconds / float64(repetitions), err
}

func (p *part) copyMemory(to, from address) error {
	return p.check("cuMemcpyDtoDAsync_v2", p.cuMemcpyDtoDAsync_v2(to, from, p.chainBytes(), p.stream))
}

// timeGraph returns the seconds that a CUDA graph takes, by the host's clock around many launches
// and one synchronization.
func (p *part) timeGraph(executable handle) (best float64, err error) {
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
	runs := min(callRuns, max(1, int(callRound/max(1, once))))
	for round := range callRounds {
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

// LongestLine returns the sum of the measured times along the longest path of calls each of which
// depends on the one before it. A step takes no less unless dependent calls overlap.
func LongestLine(calls []CallTime) float64 {
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
