package mcmc

import (
	"context"
	"iter"
	"slices"
	"strconv"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/samples"
)

// nutsChains are the Chains of NUTS.
type nutsChains struct {
	nuts       NUTS
	target     Target
	streams    nutsStreams
	parameters []string
	sizes      []int
	dimensions int // of all parameters together

	session *graph.Session
	chains  []*nutsChain // a cache of the session's states, which are authoritative
}

// Sample implements Chains.
func (w *nutsChains) Sample(ctx context.Context, s *graph.Session, draws, thinning int) (*langevin.Traces, error) {
	if err := checkSample(ctx, w.nuts.Name(), s, draws, thinning); err != nil {
		return nil, err
	}
	traces := w.target.traces(s.Chains(), nutsTraced...)
	first := max(int(s.Steps()), w.nuts.Warmup)
	for made := int(s.Steps()); made < first+draws*thinning; {
		if err := w.OnStep(ctx, s); err != nil {
			return nil, err
		}
		if err := s.Run(1); err != nil {
			return nil, err
		}
		made++
		if made <= first || (made-first)%thinning != 0 {
			continue
		}
		for chain := range s.Chains() {
			for _, name := range append([]string{TracePotential}, nutsTraced...) {
				traces.Extend(name, chain)[0] = s.Metric(chain, name, uint64(made-1))
			}
			if err := w.target.read(s, chain, traces); err != nil {
				return nil, err
			}
		}
	}
	return traces, nil
}

// Due implements langevin.Hook: every draw has a trajectory.
func (*nutsChains) Due(int) bool { return true }

// OnStep implements langevin.Hook. It makes a trajectory of each chain, and puts the draw from it
// into the parameters.
func (w *nutsChains) OnStep(ctx context.Context, s *graph.Session) error {
	if w.session == nil {
		w.session, w.chains = s, make([]*nutsChain, s.Chains())
	}
	if s != w.session {
		return errors.New("mcmc: nuts: the chains are in another session")
	}
	starts := make([]*nutsPoint, len(w.chains))
	for i := range w.chains {
		if err := w.restore(i); err != nil {
			return err
		}
		starts[i] = w.chains[i].current
	}
	err := w.evaluateAll(ctx)
	for _, chain := range w.chains {
		if err == nil {
			err = errors.Wrapf(chain.err, "mcmc: nuts: chain %d", chain.number)
		}
	}
	if err == nil {
		return w.save()
	}
	for i, start := range starts {
		if back := w.write(i, start.q); back != nil {
			return back
		}
	}
	return err
}

// restore reads all that a chain keeps from draw to draw.
func (w *nutsChains) restore(i int) error {
	if w.chains[i] == nil {
		w.chains[i] = newNUTSChain(w)
	}
	chain := w.chains[i]
	header, err := w.session.Header(i)
	if err != nil {
		return errors.Wrap(err, "mcmc: nuts")
	}
	chain.seed, chain.number, chain.draws = header[graph.HeaderSeed], uint32(header[graph.HeaderChain]), int(w.session.Steps())
	position := make([]float64, w.dimensions)
	at := 0
	for j, name := range w.parameters {
		if err := graph.Read(w.session, name, i, 0, position[at:at+w.sizes[j]]); err != nil {
			return errors.Wrap(err, "mcmc: nuts")
		}
		at += w.sizes[j]
	}
	if !slices.Equal(position, chain.current.q) {
		chain.current = &nutsPoint{q: position}
	}
	pointers := chain.words()
	words := make([]float64, len(pointers))
	err = chain.transfer(words, func(name string, values []float64) error { return graph.Read(w.session, name, i, 0, values) })
	for j, word := range pointers {
		*word = words[j]
	}
	return err
}

// save writes what restore reads.
func (w *nutsChains) save() error {
	for i, chain := range w.chains {
		if err := w.write(i, chain.current.q); err != nil {
			return err
		}
		header, err := w.session.Header(i)
		if err != nil {
			return errors.Wrap(err, "mcmc: nuts")
		}
		chain.prepared = preparedWord(header[graph.HeaderStep])
		var words []float64
		for _, word := range chain.words() {
			words = append(words, *word)
		}
		err = chain.transfer(words, func(name string, values []float64) error { return graph.Write(w.session, name, i, 0, values) })
		if err != nil {
			return err
		}
	}
	return nil
}

// transfer reads or writes a chain's states with move.
func (c *nutsChain) transfer(words []float64, move func(name string, values []float64) error) error {
	for _, state := range []struct {
		name   string
		values []float64
	}{{nutsWords, words}, {nutsInverseMasses, c.inverseMasses}, {nutsMeans, c.warmup.means}, {nutsSquares, c.warmup.squares}} {
		if err := move(state.name, state.values); err != nil {
			return errors.Wrap(err, "mcmc: nuts")
		}
	}
	return nil
}

// evaluateAll evaluates the points that the chains' trajectories request, for all chains at once,
// until no chain requests any.
func (w *nutsChains) evaluateAll(ctx context.Context) error {
	requests := make([]func() (*nutsPoint, bool), len(w.chains))
	for i, chain := range w.chains {
		next, stop := iter.Pull(chain.draw())
		defer stop()
		requests[i] = next
	}
	asked := make([]*nutsPoint, len(requests))
	for {
		waiting := false
		for i, next := range requests {
			asked[i], _ = next()
			if asked[i] == nil {
				continue
			}
			waiting = true
			if err := w.write(i, asked[i].q); err != nil {
				return err
			}
		}
		if !waiting {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return errors.Wrap(err, "mcmc: nuts: stopped")
		}
		if err := w.session.Evaluate(); err != nil {
			return err
		}
		for i, point := range asked {
			if point == nil {
				continue
			}
			if err := w.read(i, point); err != nil {
				return err
			}
		}
	}
}

// write puts a position into the parameters.
func (w *nutsChains) write(chain int, q []float64) error {
	for i, name := range w.parameters {
		if err := graph.Write(w.session, name, chain, 0, q[:w.sizes[i]]); err != nil {
			return errors.Wrap(err, "mcmc: nuts")
		}
		q = q[w.sizes[i]:]
	}
	return nil
}

// read reads the potential and its gradient at the parameters.
func (w *nutsChains) read(chain int, point *nutsPoint) error {
	var potential [1]float64
	if err := graph.Read(w.session, potentialOutput, chain, 0, potential[:]); err != nil {
		return errors.Wrap(err, "mcmc: nuts")
	}
	point.u, point.gradient = potential[0], make([]float64, w.dimensions)
	at := 0
	for i, size := range w.sizes {
		if err := graph.Read(w.session, gradientOutput+strconv.Itoa(i), chain, 0, point.gradient[at:at+size]); err != nil {
			return errors.Wrap(err, "mcmc: nuts")
		}
		at += size
	}
	return nil
}

// Current implements Chains.
func (w *nutsChains) Current(s *graph.Session, chain int) (samples.Sample, error) {
	return samples.FromSession(s, chain, 1)
}
