package metropolis

import (
	"context"
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// Metropolis is the algorithm of Metropolis et al. (1953) and Hastings (1970): from theta, a
// proposal theta' of density q(theta'|theta) is accepted with probability
//
//	min(1, exp(-(U(theta') - U(theta))/T) q(theta|theta')/q(theta'|theta))
//
// and otherwise theta is the next draw again. It targets exp(-U/T) without a bias, at any step
// size. There is one test for all parameters of a chain. Each step, the graph evaluates U, and its
// gradient, at the program's parameters, which hold the proposals; the draws are in the states
// "<parameter>.position". A rejected proposal costs no further evaluation.
//
// During warm-up the step size of each chain adapts by dual averaging; its draws are not of the
// target and are left out. At each step the metrics TracePotential, TraceAcceptance and
// TraceStepSize of the last proposal are recorded, and for proposals that use gradients
// "theta.g <name>" of the positions, which NewThermometer reads with a data size of 1.
type Metropolis struct {
	Proposal       Proposal
	StepSize       float64 // of the first proposal; see the proposal's comment
	Warmup         int     // proposals
	AcceptanceRate float64 // that the step size adapts to; 0 means the proposal's optimum; must be 0 without a warm-up
}

var _ Sampler = Metropolis{}

// Proposal is how Metropolis proposes: RandomWalk, MALA or HMC.
type Proposal interface {
	// Name is what Metropolis with this proposal is called in the literature.
	Name() string
	// Validate refuses attributes out of their range.
	Validate() error

	// rhythm says when proposals start.
	rhythm() rhythm
	// optimum is the rate of acceptance at which chains in many dimensions move fastest.
	optimum() float64
	// jitter is the share of itself by which the step size varies at random between proposals.
	jitter() float64
	// gradients reports whether proposals need the gradient of U.
	gradients() bool
	// check refuses attributes that do not fit the parameters.
	check(parameters []*graph.Node) error
	// attach makes what proposes a parameter: share is its part of the logarithm of
	// q(theta|theta')/q(theta'|theta), by tiles, nil for 0; move attaches the update, given the
	// node that decides.
	attach(b *graph.Builder, p proposed) (share *graph.Node, move func(decision *graph.Node) *graph.Node)
}

// proposed is a parameter with what its proposals are made from.
type proposed struct {
	name                string
	parameter, gradient *graph.Node
	chain               *graph.Node // the words of the chain, see wordStep, as the step finds them
	temperature         float64
}

// Name implements Sampler.
func (m Metropolis) Name() string {
	if m.Proposal == nil {
		return "metropolis"
	}
	return m.Proposal.Name()
}

// Validate implements Sampler.
func (m Metropolis) Validate() error {
	switch {
	case m.Proposal == nil:
		return errors.New("metropolis: no proposal: wants RandomWalk, MALA or HMC")
	case !(m.StepSize > 0 && m.StepSize < math.Inf(1)):
		return errors.Errorf("metropolis: step size is %v, wants a positive number", m.StepSize)
	case m.Warmup < 0 || m.Warmup > math.MaxInt32:
		return errors.Errorf("metropolis: warm-up of %d proposals, wants 0 to %d", m.Warmup, math.MaxInt32)
	case m.Warmup == 0 && m.AcceptanceRate != 0:
		return errors.Errorf("metropolis: acceptance rate is %v without a warm-up, in which the step size could adapt to it", m.AcceptanceRate)
	case !(m.AcceptanceRate >= 0 && m.AcceptanceRate < 1):
		return errors.Errorf("metropolis: acceptance rate is %v, wants one below 1, or 0 for the optimum", m.AcceptanceRate)
	}
	return m.Proposal.Validate()
}

// chainState is the name of the chain's words among the states.
const chainState = "metropolis"

// positionSuffix ends the names of the states that hold parameters' draws.
const positionSuffix = ".position"

// Attach implements Sampler.
func (m Metropolis) Attach(b *graph.Builder, target Target) (Walk, error) {
	b.Fail(m.Validate())
	b.Fail(target.validate(b))
	if b.Err() != nil {
		return nil, b.Err()
	}
	parameters := b.Parameters()
	if err := m.Proposal.check(parameters); err != nil {
		b.Fail(err)
		return nil, b.Err()
	}
	gradients := make([]*graph.Node, len(parameters))
	if m.Proposal.gradients() {
		gradients = b.Gradients(target.Potential, parameters...)
	}
	chain := b.State(chainState, m.start, chainWords)
	decide := m.decide(target.Temperature, b.Stream())
	inputs := []*graph.Node{target.Potential, chain, b.Header()}
	moves := make([]func(decision *graph.Node) *graph.Node, len(parameters))
	for i, parameter := range parameters {
		p := proposed{parameter.Name(), parameter, gradients[i], chain, target.Temperature}
		var share *graph.Node
		if share, moves[i] = m.Proposal.attach(b, p); share != nil {
			inputs = append(inputs, share)
		}
	}
	decision := b.Apply(decide, inputs...)
	for i, parameter := range parameters {
		statistic := moves[i](decision)
		if m.Proposal.gradients() {
			b.Record(langevin.VirialPrefix+parameter.Name(), statistic)
		}
	}
	for _, q := range target.Quantities {
		b.Apply(keep{decide.rhythm}, q.Node, b.State(q.Name+drawSuffix, nil, graph.ShapeOf(q.Node)...), decision, b.Header())
	}
	for _, traced := range tracedWords {
		b.Record(traced.name, b.Apply(op.Element{Index: traced.word}, decision))
	}
	if b.Err() != nil {
		return nil, b.Err()
	}
	return &metropolisWalk{target, decide.rhythm, m.Warmup}, nil
}

// start is the chain's words before the first step.
func (m Metropolis) start(_ uint64, _ uint32, _ uint16, _ tensor.Shape, words []float64) {
	words[wordLogStep] = math.Log(m.StepSize)
}

func (m Metropolis) decide(temperature float64, stream uint16) decide {
	d := decide{
		rhythm: m.Proposal.rhythm(), temperature: temperature, jitter: m.Proposal.jitter(),
		warmup: m.Warmup, rate: m.AcceptanceRate, anchor: anchorOf(m.StepSize), stream: stream,
	}
	if d.rate == 0 {
		d.rate = m.Proposal.optimum()
	}
	return d
}

// metropolisWalk is Metropolis' Walk.
type metropolisWalk struct {
	target Target
	rhythm rhythm
	warmup int
}

// Due implements langevin.Intervention: there is nothing to do between steps.
func (*metropolisWalk) Due(int) bool { return false }

// Intervene implements langevin.Intervention.
func (*metropolisWalk) Intervene(context.Context, *graph.Session) error { return nil }

// Draw implements Walk.
func (w *metropolisWalk) Draw(ctx context.Context, s *graph.Session, draws, thinning int) (*Traces, error) {
	if draws < 1 || thinning < 1 {
		return nil, errors.Errorf("metropolis: %d draws with thinning %d, wants at least 1 of each", draws, thinning)
	}
	traces := w.target.traces(s.Chains())
	next := w.nextDraw(s.Steps(), thinning)
	for range draws {
		for end := w.rhythm.end(next); s.Steps() < end; {
			if err := ctx.Err(); err != nil {
				return nil, errors.Wrapf(err, "metropolis: stopped after %d draws of %d", traces.draws, draws)
			}
			if err := s.Run(int(min(end-s.Steps(), graph.MetricRows))); err != nil {
				return nil, err
			}
		}
		for chain := range s.Chains() {
			if err := w.read(s, chain, traces); err != nil {
				return nil, err
			}
		}
		traces.draws++
		next += thinning
	}
	return traces, nil
}

// nextDraw is the number of proposals before the first draw that is made after that many steps.
func (w *metropolisWalk) nextDraw(steps uint64, thinning int) int {
	decided := 0
	if steps > 0 {
		decided = w.rhythm.decided(steps - 1)
	}
	if decided < w.warmup {
		return w.warmup + thinning
	}
	return w.warmup + ((decided-w.warmup)/thinning+1)*thinning
}

// read appends a chain's present draw to traces.
func (w *metropolisWalk) read(s *graph.Session, chain int, traces *Traces) error {
	var words [chainWords]float64
	if err := graph.Read(s, chainState, chain, 0, words[:]); err != nil {
		return errors.Wrap(err, "metropolis")
	}
	for _, traced := range tracedWords {
		traces.extend(traced.name, chain)[0] = words[traced.word]
	}
	return w.target.read(s, chain, traces)
}

// Take implements Walk.
func (w *metropolisWalk) Take(s *graph.Session, chain int) (samples.Sample, error) {
	return takePositions(s, chain)
}

// takePositions is the chain's state as a sample, of the positions and not of the parameters, which
// have gone on.
func takePositions(s *graph.Session, chain int) (samples.Sample, error) {
	sample, err := samples.Take(s, chain, 1)
	if err != nil {
		return samples.Sample{}, err
	}
	for _, p := range sample.Parameters {
		if err := s.ReadFloats(p.Name+positionSuffix, chain, p.Values); err != nil {
			return samples.Sample{}, errors.Wrap(err, "metropolis")
		}
	}
	return sample, nil
}
