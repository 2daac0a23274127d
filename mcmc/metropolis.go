package mcmc

import (
	"cmp"
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/tensor"
)

// Metropolis is the algorithm of Metropolis et al. (1953) and Hastings (1970): from theta, a
// proposal theta' of density q(theta'|theta) is accepted with probability
//
//	min(1, exp(-(U(theta') - U(theta))/T) q(theta|theta')/q(theta'|theta))
//
// and otherwise the next draw is theta again. It targets exp(-U/T) without a bias, at any step
// size. One test decides on all parameters of a chain. At each step the graph evaluates U and its
// gradient at the program's parameters, which hold the proposals; the draws are in the states
// "<parameter>.position". A rejected proposal costs no further evaluation.
//
// During warm-up the step size of each chain adapts by dual averaging. The draws of the warm-up are
// not from the target and are left out. At each step the metrics TracePotential, TraceAcceptance,
// TraceStepSize and TraceAccepted of the last proposal are recorded, and for proposals that use
// gradients "theta.g <name>" of the positions, which diagnostics.NewThermometer reads with a data
// size of 1.
type Metropolis struct {
	Proposal         Proposal
	StepSize         float64 // of the first proposal, above 0; its meaning depends on the Proposal
	Warmup           int     // in proposals
	TargetAcceptance float64 // the acceptance rate to which the step size adapts; 0 for the proposal's optimum, and without a warm-up
}

var _ Sampler = Metropolis{}

// Proposal is the proposal distribution of Metropolis: RandomWalk, MALA or HMC.
type Proposal interface {
	// Name returns the name in the literature of Metropolis with this proposal.
	Name() string
	// Validate reports attributes that are out of range.
	Validate() error

	// cycle returns the cycle of steps that a proposal takes.
	cycle() proposalCycle
	// optimum is the acceptance rate at which chains in many dimensions move fastest.
	optimum() float64
	// jitter is the fraction by which the step size varies at random between proposals.
	jitter() float64
	// gradients reports whether proposals need the gradient of U.
	gradients() bool
	// check reports attributes that do not fit the parameters.
	check(parameters []*graph.Node) error
	// attach builds the proposal of one parameter.
	attach(b *graph.Builder, p proposed) proposalNodes
}

// proposalNodes are the nodes of a proposal for one parameter.
type proposalNodes struct {
	logRatio *graph.Node                            // its part of log q(theta|theta')/q(theta'|theta), by tile; nil for 0
	kinetic  *graph.Node                            // its kinetic energy over T where the trajectory started, by tile; nil without momenta
	move     func(decision *graph.Node) *graph.Node // attaches the update, given the node that decides
}

// proposed is a parameter with the inputs of its proposals.
type proposed struct {
	parameter, gradient *graph.Node
	chain               *graph.Node // the chain's words at the beginning of the step, see wordStep
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
		return errors.New("mcmc: Proposal must be RandomWalk, MALA or HMC, got nil")
	case !positive(m.StepSize):
		return errors.Errorf("mcmc: StepSize must be positive, got %v", m.StepSize)
	case m.Warmup < 0 || m.Warmup > math.MaxInt32:
		return errors.Errorf("mcmc: Warmup must be 0 to %d proposals, got %d", math.MaxInt32, m.Warmup)
	case m.Warmup == 0 && m.TargetAcceptance != 0:
		return errors.Errorf("mcmc: TargetAcceptance must be 0 without a warm-up, in which the step size adapts to it, got %v", m.TargetAcceptance)
	case !(m.TargetAcceptance >= 0 && m.TargetAcceptance < 1):
		return errors.Errorf("mcmc: TargetAcceptance must be below 1, or 0 for the optimum, got %v", m.TargetAcceptance)
	}
	return m.Proposal.Validate()
}

// chainState is the name of the state that holds the chain's words.
const chainState = "metropolis"

// Attach implements Sampler.
func (m Metropolis) Attach(b *graph.Builder, target Target) (Chains, error) {
	if err := m.Validate(); err != nil {
		b.Fail(err)
		return nil, b.Err()
	}
	b.Fail(target.validate(b, m.Proposal.cycle().paired, TraceAccepted, TraceEnergy))
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
	var logRatios, kinetics []*graph.Node
	moves := make([]func(decision *graph.Node) *graph.Node, len(parameters))
	for i, parameter := range parameters {
		nodes := m.Proposal.attach(b, proposed{parameter, gradients[i], chain, target.Temperature})
		moves[i] = nodes.move
		if nodes.logRatio != nil {
			logRatios = append(logRatios, nodes.logRatio)
		}
		if nodes.kinetic != nil {
			kinetics = append(kinetics, nodes.kinetic)
		}
	}
	decide.logRatios = len(logRatios)
	decision := b.Apply(decide, slices.Concat([]*graph.Node{target.Potential, chain, b.Header()}, logRatios, kinetics)...)
	for i, parameter := range parameters {
		statistic := moves[i](decision)
		if m.Proposal.gradients() {
			b.Record(langevin.VirialPrefix+parameter.Name(), statistic)
		}
	}
	for _, q := range target.Quantities {
		b.Apply(keepDraw{decide.cycle}, q.Node, b.State(q.Name+drawSuffix, nil, graph.ShapeOf(q.Node)...), decision, b.Header())
	}
	record(b, m.traced(), decision)
	if b.Err() != nil {
		return nil, b.Err()
	}
	return m.chains(target, decide.cycle), nil
}

// traced returns the words that are recorded and traced.
func (m Metropolis) traced() []tracedWord {
	traced := []tracedWord{
		{TracePotential, wordPotential}, {TraceAcceptance, wordProbability}, {TraceStepSize, wordStep}, {TraceAccepted, wordAccepted},
	}
	if _, ok := m.Proposal.(HMC); ok {
		traced = append(traced, tracedWord{TraceEnergy, wordEnergy})
	}
	return traced
}

// start fills in the chain's words before the first step.
func (m Metropolis) start(_ uint64, _ uint32, _ uint16, _ tensor.Shape, words []float64) {
	words[wordLogStep] = math.Log(m.StepSize)
}

func (m Metropolis) decide(temperature float64, stream uint16) decide {
	return decide{
		cycle: m.Proposal.cycle(), temperature: temperature, jitter: m.Proposal.jitter(), warmup: m.Warmup,
		rate: cmp.Or(m.TargetAcceptance, m.Proposal.optimum()), anchor: anchorOf(m.StepSize, m.Warmup), stream: stream,
	}
}

// chains returns the Chains of Metropolis. A proposal's draw is read at the step that starts the
// next one.
func (m Metropolis) chains(target Target, r proposalCycle) Chains {
	return &evaluationChains{sampler: m.Name(), target: target, state: chainState, words: chainWords, traced: m.traced(),
		end: func(from uint64, thinning, draw int) uint64 {
			first := m.Warmup + thinning // in proposals
			if from > 0 {
				if after := r.proposalsDecided(from-1) - m.Warmup; after >= 0 {
					first = m.Warmup + (after/thinning+1)*thinning
				}
			}
			return r.stepsFor(first + draw*thinning)
		}}
}
