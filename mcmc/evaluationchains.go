package mcmc

import (
	"context"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op/array"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/samples"
)

// evaluationChains are the Chains of a sampler whose steps are evaluations of U, with no work on
// the host in between. A chain has words in a state, some of them traced, and its draws in the
// states "<parameter>.position".
type evaluationChains struct {
	sampler string
	target  Target
	state   string // name of the state that holds the words
	words   int
	traced  []tracedWord
	// end returns the number of steps of the program after which draw number 0, 1, ... of a call of
	// Sample can be read, if the call begins after from steps.
	end        func(from uint64, thinning, draw int) uint64
	unadjusted bool // nothing is rejected: the acceptance is 1 and has no word
}

// tracedWord is a word that is recorded at each step and traced at each draw.
type tracedWord struct {
	name string
	word int
}

// record records the traced words of a decision as metrics.
func record(b *graph.Builder, traced []tracedWord, decision *graph.Node) {
	for _, t := range traced {
		b.Record(t.name, b.Apply(array.Element{Index: t.word}, decision))
	}
}

// Due implements langevin.Hook: there is nothing to do between steps.
func (*evaluationChains) Due(int) bool { return false }

// OnStep implements langevin.Hook.
func (*evaluationChains) OnStep(context.Context, *graph.Session) error { return nil }

// Sample implements Chains.
func (w *evaluationChains) Sample(ctx context.Context, s *graph.Session, draws, thinning int) (*langevin.Traces, error) {
	if err := checkSample(ctx, w.sampler, s, draws, thinning); err != nil {
		return nil, err
	}
	var names []string
	for _, t := range w.traced {
		names = append(names, t.name)
	}
	traces, from := w.target.traces(s.Chains(), names...), s.Steps()
	for draw := range draws {
		for end := w.end(from, thinning, draw); s.Steps() < end; {
			if err := ctx.Err(); err != nil {
				return nil, errors.Wrapf(err, "mcmc: %s: stopped after %d draws of %d", w.sampler, traces.Draws(), draws)
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
	}
	return traces, nil
}

// read appends a chain's present draw to the traces.
func (w *evaluationChains) read(s *graph.Session, chain int, traces *langevin.Traces) error {
	words := make([]float64, w.words)
	if err := graph.Read(s, w.state, chain, 0, words); err != nil {
		return errors.Wrap(err, "mcmc")
	}
	for _, t := range w.traced {
		traces.Extend(t.name, chain)[0] = words[t.word]
	}
	if w.unadjusted {
		traces.Extend(TraceAcceptance, chain)[0] = 1
	}
	return w.target.read(s, chain, traces)
}

// Current implements Chains. It reads the positions, not the parameters, which hold the next
// proposal.
func (w *evaluationChains) Current(s *graph.Session, chain int) (samples.Sample, error) {
	sample, err := samples.FromSession(s, chain, 1)
	if err != nil {
		return samples.Sample{}, err
	}
	for _, p := range sample.Parameters {
		if err := s.ReadFloats(p.Name+langevin.PositionSuffix, chain, p.Values); err != nil {
			return samples.Sample{}, errors.Wrap(err, "mcmc")
		}
	}
	return sample, nil
}
