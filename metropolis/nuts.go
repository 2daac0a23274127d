package metropolis

import (
	"context"
	"iter"
	"math"
	"strconv"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/samples"
)

// NUTS is the no-U-turn sampler (Hoffman and Gelman 2014), in the form with multinomial draws from
// trajectories and the generalised criterion of turning back (Betancourt, A conceptual introduction
// to Hamiltonian Monte Carlo, 2017, appendix A). It is HMC without a number of leaps to choose: a
// trajectory doubles, forwards or backwards in time, until its ends approach each other. It targets
// exp(-U/T).
//
// During warm-up the step size of each chain adapts by dual averaging, and the masses, in windows
// of doubling lengths, to the inverses of the variances.
//
// It is for small models. The graph computes U and its gradient; the trees are grown on the host,
// for all chains side by side, each at its own pace. What a chain has learnt is kept in the walk,
// not in the session: a walk goes on while it is in memory, and cannot be resumed.
type NUTS struct {
	StepSize       float64 // of a leap; with a warm-up, where the search for one begins, 0 meaning 1
	Warmup         int     // draws
	AcceptanceRate float64 // that the step size adapts to; 0 means 0.8; must be 0 without a warm-up
	MaxDepth       int     // how often a trajectory doubles at most; 0 means 10
}

var _ Exact = NUTS{}

// The traces that NUTS has in addition.
const (
	TraceLeaps    = "leaps"    // of the trajectory
	TraceDiverged = "diverged" // 1 when the trajectory's energy rose by more than 1000 T: the step size is too large there
)

// Name implements Exact.
func (NUTS) Name() string { return "nuts" }

// Validate implements Exact.
func (n NUTS) Validate() error {
	switch {
	case !(n.StepSize >= 0 && n.StepSize < math.Inf(1)) || n.StepSize == 0 && n.Warmup == 0:
		return errors.Errorf("metropolis: nuts: step size is %v with a warm-up of %d draws, wants a positive number, or 0 and a warm-up", n.StepSize, n.Warmup)
	case n.Warmup < 0:
		return errors.Errorf("metropolis: nuts: warm-up of %d draws, wants at least 0", n.Warmup)
	case n.Warmup == 0 && n.AcceptanceRate != 0:
		return errors.Errorf("metropolis: nuts: acceptance rate is %v without a warm-up, in which the step size could adapt to it", n.AcceptanceRate)
	case !(n.AcceptanceRate >= 0 && n.AcceptanceRate < 1):
		return errors.Errorf("metropolis: nuts: acceptance rate is %v, wants one below 1, or 0 for 0.8", n.AcceptanceRate)
	case n.MaxDepth < 0 || n.MaxDepth > 30:
		return errors.Errorf("metropolis: nuts: MaxDepth is %d, wants 1 to 30, or 0 for 10", n.MaxDepth)
	}
	return nil
}

// The names of the outputs that the walk reads.
const (
	potentialOutput = "nuts potential"
	slopeOutput     = "nuts slope "
)

// Attach implements Exact.
func (n NUTS) Attach(b *graph.Builder, target Target) (Walk, error) {
	b.Fail(n.Validate())
	b.Fail(target.validate(b, TraceLeaps, TraceDiverged))
	if b.Err() != nil {
		return nil, b.Err()
	}
	n.defaults()
	w := &nutsWalk{nuts: n, target: target, streams: nutsStreams{b.Stream(), b.Stream(), b.Stream()}}
	parameters := b.Parameters()
	gradients := b.Gradients(target.Potential, parameters...)
	b.Header()
	// Outputs are copies: a node can be kept under one name only, and gradients of a sum are one
	// node.
	output := func(name string, n *graph.Node) { b.Output(name, b.Apply(op.Scale{Factor: 1}, n)) }
	output(potentialOutput, target.Potential)
	for i, parameter := range parameters {
		output(slopeOutput+strconv.Itoa(i), gradients[i])
		w.parameters = append(w.parameters, parameter.Name())
		w.sizes = append(w.sizes, graph.ShapeOf(parameter).Elements())
		w.dimensions += w.sizes[i]
	}
	for _, q := range target.Quantities {
		output(q.Name+drawSuffix, q.Node)
		w.quantities += graph.ShapeOf(q.Node).Elements()
	}
	if b.Err() != nil {
		return nil, b.Err()
	}
	return w, nil
}

func (n *NUTS) defaults() {
	if n.StepSize == 0 {
		n.StepSize = 1
	}
	if n.AcceptanceRate == 0 {
		n.AcceptanceRate = 0.8
	}
	if n.MaxDepth == 0 {
		n.MaxDepth = 10
	}
}

// nutsWalk is NUTS' Walk.
type nutsWalk struct {
	nuts       NUTS
	target     Target
	streams    nutsStreams
	parameters []string
	sizes      []int
	dimensions int // of all parameters together
	quantities int // elements of all of them

	session *graph.Session
	chains  []*nutsChain
}

// Draw implements Walk.
func (w *nutsWalk) Draw(ctx context.Context, s *graph.Session, draws, thinning int) (*Traces, error) {
	if draws < 1 || thinning < 1 {
		return nil, errors.Errorf("metropolis: nuts: %d draws with thinning %d, wants at least 1 of each", draws, thinning)
	}
	if err := w.begin(s); err != nil {
		return nil, err
	}
	traces := w.target.traces(s.Chains(), TraceLeaps, TraceDiverged)
	requests := make([]func() (*nutsPoint, bool), len(w.chains))
	for i, chain := range w.chains {
		next, stop := iter.Pull(chain.walk(draws, thinning, func() { w.record(traces, i) }))
		defer stop()
		requests[i] = next
	}
	if err := w.serve(ctx, requests); err != nil {
		return nil, err
	}
	for i, chain := range w.chains {
		if chain.err != nil {
			return nil, errors.Wrapf(chain.err, "metropolis: nuts: chain %d", i)
		}
		if err := w.write(i, chain.now.q); err != nil {
			return nil, err
		}
	}
	traces.draws = draws
	return traces, nil
}

// begin reads where the chains start, at the first call.
func (w *nutsWalk) begin(s *graph.Session) error {
	if w.session == nil {
		var chains []*nutsChain
		for i := range s.Chains() {
			var header [3]uint64
			if err := graph.Read(s, "header", i, 0, header[:]); err != nil {
				return errors.Wrap(err, "metropolis: nuts")
			}
			chain := newNUTSChain(w.nuts, w.target.Temperature, w.streams, header[graph.HeaderSeed], uint32(header[graph.HeaderChain]), w.dimensions)
			at := 0
			for j, name := range w.parameters {
				if err := graph.Read(s, name, i, 0, chain.now.q[at:at+w.sizes[j]]); err != nil {
					return errors.Wrap(err, "metropolis: nuts")
				}
				at += w.sizes[j]
			}
			chains = append(chains, chain)
		}
		w.session, w.chains = s, chains
	}
	if s != w.session {
		return errors.New("metropolis: nuts: the walk is in another session")
	}
	return nil
}

// serve evaluates what chains request, with one step of the session for all, until none does.
func (w *nutsWalk) serve(ctx context.Context, requests []func() (*nutsPoint, bool)) error {
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
			return errors.Wrap(err, "metropolis: nuts: stopped")
		}
		if err := w.session.Run(1); err != nil {
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
func (w *nutsWalk) write(chain int, q []float64) error {
	for i, name := range w.parameters {
		if err := graph.Write(w.session, name, chain, 0, q[:w.sizes[i]]); err != nil {
			return errors.Wrap(err, "metropolis: nuts")
		}
		q = q[w.sizes[i]:]
	}
	return nil
}

// read gets the potential, its slope and the quantities at the parameters.
func (w *nutsWalk) read(chain int, point *nutsPoint) error {
	var potential [1]float64
	if err := graph.Read(w.session, potentialOutput, chain, 0, potential[:]); err != nil {
		return errors.Wrap(err, "metropolis: nuts")
	}
	point.u, point.slope, point.quantities = potential[0], make([]float64, w.dimensions), make([]float64, w.quantities)
	at := 0
	for i, size := range w.sizes {
		if err := graph.Read(w.session, slopeOutput+strconv.Itoa(i), chain, 0, point.slope[at:at+size]); err != nil {
			return errors.Wrap(err, "metropolis: nuts")
		}
		at += size
	}
	at = 0
	for _, q := range w.target.Quantities {
		size := graph.ShapeOf(q.Node).Elements()
		if err := graph.Read(w.session, q.Name+drawSuffix, chain, 0, point.quantities[at:at+size]); err != nil {
			return errors.Wrap(err, "metropolis: nuts")
		}
		at += size
	}
	return nil
}

// record appends a chain's draw to the traces.
func (w *nutsWalk) record(traces *Traces, chain int) {
	c := w.chains[chain]
	traces.extend(TracePotential, chain)[0] = c.now.u
	traces.extend(TraceAcceptance, chain)[0] = c.probability
	traces.extend(TraceStepSize, chain)[0] = c.step
	traces.extend(TraceLeaps, chain)[0] = float64(c.leaps)
	diverged := traces.extend(TraceDiverged, chain)
	if c.diverged {
		diverged[0] = 1
	}
	quantities := c.now.quantities
	for _, q := range w.target.Quantities {
		n := copy(traces.extend(q.Name, chain), quantities)
		quantities = quantities[n:]
	}
}

// Take implements Walk.
func (w *nutsWalk) Take(s *graph.Session, chain int) (samples.Sample, error) {
	return samples.Take(s, chain, 1)
}
