package mcmc

import (
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// The words of a chain under Metropolis. The state "metropolis" has their values before the step,
// the output of decide those after it.
const (
	wordStep        = iota // the step size of the present proposal, jitter included
	wordPotential          // U at the position
	wordAccepted           // 1 when the parameter is copied to the position, 0 when the position is copied to the parameter
	wordProbability        // of accepting the last proposal
	wordLogStep            // of dualAveraging
	wordLogAverage
	wordDeficit
	wordEnergy // of TraceEnergy
	chainWords
)

// proposalCycle counts the steps of proposals. A proposal takes one step for each evaluation of U,
// counted from its start. The step that evaluates U at a proposal decides on it and starts the next
// one. Paired proposals are different: both potentials that the test compares are evaluated for the
// proposal, in its two steps, so that everything else on which the potential depends, such as a
// minibatch, is the same in both.
type proposalCycle struct {
	evaluations int
	paired      bool
}

func (r proposalCycle) starts(step uint64) bool { return step%uint64(r.evaluations) == 0 }

func (r proposalCycle) decides(step uint64) bool {
	if r.paired {
		return step%2 == 1
	}
	return step > 0 && r.starts(step)
}

// proposalsDecided returns the number of proposals that are decided on after the step.
func (r proposalCycle) proposalsDecided(step uint64) int {
	if r.paired {
		step++
	}
	return int(step / uint64(r.evaluations))
}

// arguments returns the cycle as kernels take it.
func (r proposalCycle) arguments() []tensor.Argument {
	paired := 0
	if r.paired {
		paired = 1
	}
	return []tensor.Argument{tensor.Int(r.evaluations), tensor.Int(paired)}
}

// stepsFor returns the number of steps after which the given number of proposals is decided on.
func (r proposalCycle) stepsFor(proposals int) uint64 {
	steps := uint64(proposals) * uint64(r.evaluations)
	if r.paired {
		return steps
	}
	return steps + 1
}

// decide is the Metropolis test of a chain, one for all parameters, and the adaptation of its step
// size. Inputs: U scalar, the chain's words, the header, a log ratio for each parameter or none,
// and a kinetic energy for each parameter or none, see proposalNodes. Output: the words after the
// step, which also overwrite the input. A proposal whose potential or log ratio is NaN is rejected.
type decide struct {
	logRatios   int // the number of inputs that are log ratios
	cycle       proposalCycle
	temperature float64
	jitter      float64
	warmup      int
	rate        float64
	anchor      float64
	stream      uint16
}

func (decide) Name() string   { return "metropolis decide" }
func (decide) Updates() []int { return []int{1} }

func (decide) Shape(in []tensor.Shape) (tensor.Shape, error) {
	words := tensor.Shape{chainWords}
	if len(in) < 3 || len(in[0]) != 0 || !in[1].Equal(words) {
		return nil, errors.Errorf("must have a scalar, %v, the header and log ratios, got shapes %v", words, in)
	}
	return words, nil
}

func (d decide) Lower(l *graph.Lowering) {
	parts := l.Shapes[3:]
	arguments := []tensor.Argument{l.Out(), l.In(0), l.InOut(1), l.In(2)}
	for i := range parts {
		arguments = append(arguments, l.In(3+i))
	}
	arguments = append(append(arguments, d.cycle.arguments()...), tensor.Float(l.DType, d.temperature),
		tensor.Float(l.DType, d.jitter), tensor.Int(d.warmup), tensor.Float(l.DType, d.rate), tensor.Float(l.DType, d.anchor), tensor.Uint(uint32(d.stream)))
	calls := d.calls(l, arguments)
	for _, part := range parts {
		arguments = append(arguments, tensor.Int(part.Elements()))
	}
	l.EmitCalls("metropolis_decide", calls, tensor.Single(func(a *tensor.Args) { d.run(a, len(parts)) }), arguments...)
}

// calls returns the calls that add up the log ratios and the kinetic energies, parameter by
// parameter, and then the test. arguments are the buffers, the log ratios and kinetic energies
// last, and the attributes.
func (d decide) calls(l *graph.Lowering, arguments []tensor.Argument) []tensor.Call {
	const buffers = 4
	parts := len(l.Shapes) - 3
	logRatios, calls := d.sum(l, 3, d.logRatios, arguments[buffers:])
	kinetic, more := d.sum(l, 3+d.logRatios, parts-d.logRatios, arguments[buffers+d.logRatios:])
	return append(append(calls, more...), l.Call("metropolis_decide", tensor.Block(1),
		slices.Concat(arguments[:buffers], []tensor.Argument{tensor.In(logRatios), tensor.In(kinetic)}, arguments[buffers+parts:])...))
}

// sum returns the sum over n inputs, from input first on, and the calls that compute it. It is 0
// for n = 0.
func (decide) sum(l *graph.Lowering, first, n int, arguments []tensor.Argument) (*tensor.Buffer, []tensor.Call) {
	total := tensor.NewWorkspace(tensor.Float64, 1)
	if n == 0 {
		return total, []tensor.Call{l.Call("metropolis_no_shares", tensor.Block(1), tensor.Out(total))}
	}
	var calls []tensor.Call
	for i := range n {
		elements, begins := l.Shapes[first+i].Elements(), 0
		if i == 0 {
			begins = 1
		}
		calls = append(calls, l.Call("metropolis_shares", tensor.Block(min(elements, op.SumThreads)),
			tensor.InOut(total), arguments[i], tensor.Int(elements), tensor.Int(begins)))
	}
	return total, calls
}

// run decides on a proposal when its trajectory has ended, and draws the step size of the next one
// when that starts. The proposal is accepted with probability
//
//	min(1, exp((U(old) - U(new))/T + sum of the log ratios of proposal densities)),
//
// where each log ratio is the sum of its buffer's parts. A probability of NaN, as after a diverged
// trajectory, is a rejection. The energy is (U + K)/T at the new draw: at the start of the
// trajectory if its end is rejected, otherwise at the end, where it is lower by the logarithm of
// the acceptance ratio.
func (d decide) run(a *tensor.Args, parts int) {
	words, header := tensor.Slice[float64](a, 2), tensor.Slice[uint64](a, 3)
	potential, step := tensor.Slice[float64](a, 1)[0], header[graph.HeaderStep]
	var draws [2]float64 // uniform: for the test, and for the jitter
	random.Fractions(draws[:], 0, op.AddressOf(header, d.stream))
	switch {
	case d.cycle.decides(step):
		logarithm := (words[wordPotential] - potential) / d.temperature
		energy := words[wordPotential] / d.temperature
		for i := range parts {
			for _, part := range tensor.Slice[float64](a, 4+i) {
				if i < d.logRatios {
					logarithm += part
				} else {
					energy += part
				}
			}
		}
		probability := min(1, math.Exp(logarithm))
		if math.IsNaN(probability) {
			probability = 0
		}
		words[wordProbability], words[wordAccepted] = probability, 0
		if draws[0] < probability {
			words[wordAccepted], words[wordPotential] = 1, potential
			energy -= logarithm
		}
		words[wordEnergy] = energy
		d.adapt(words, d.cycle.proposalsDecided(step))
	case d.cycle.starts(step):
		words[wordAccepted], words[wordPotential] = 1, potential
	}
	if d.cycle.starts(step) {
		words[wordStep] = math.Exp(words[wordLogStep]) * (1 + float64(d.jitter*(2*draws[1]-1)))
	}
	copy(tensor.Slice[float64](a, 0), words)
}

// adapt updates the step size by proposal number m. The last proposal of the warm-up fixes it.
func (d decide) adapt(words []float64, m int) {
	if m > d.warmup {
		return
	}
	average := dualAveraging{words[wordLogStep], words[wordLogAverage], words[wordDeficit]}
	average.observe(m, words[wordProbability], d.rate, d.anchor)
	if m == d.warmup {
		average.step = average.average
	}
	words[wordLogStep], words[wordLogAverage], words[wordDeficit] = average.step, average.average, average.deficit
}

// keepDraw keeps a quantity's value at the chain's last draw. Inputs: x, its value at the draw
// before, the chain's words, header. Output: 1 when x belongs to a new draw, else 0.
type keepDraw struct{ cycle proposalCycle }

func (keepDraw) Name() string   { return "metropolis keep" }
func (keepDraw) Updates() []int { return []int{1} }

func (keepDraw) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if len(in) != 4 || !in[0].Equal(in[1]) || !in[2].Equal(tensor.Shape{chainWords}) {
		return nil, errors.Errorf("must have a quantity twice, %d words and the header, got shapes %v", chainWords, in)
	}
	return tensor.Shape{}, nil
}

func (k keepDraw) Lower(l *graph.Lowering) {
	n := l.Shapes[0].Elements()
	l.Emit("metropolis_keep", tensor.Threads(n), tensor.Single(k.run),
		append([]tensor.Argument{l.Out(), l.In(0), l.InOut(1), l.In(2), l.In(3), tensor.Int(n)}, k.cycle.arguments()...)...)
}

func (k keepDraw) run(a *tensor.Args) {
	taken, step := tensor.Slice[float64](a, 3)[wordAccepted], tensor.Slice[uint64](a, 4)[graph.HeaderStep]
	if !k.cycle.starts(step) && !k.cycle.decides(step) {
		taken = 0
	}
	if taken == 1 {
		copy(tensor.Slice[float64](a, 2), tensor.Slice[float64](a, 1))
	}
	tensor.Slice[float64](a, 0)[0] = taken
}
