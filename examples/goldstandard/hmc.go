package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/metropolis"
	"github.com/pollen-ml/pollen/tensor"
)

// The trajectories' length, 0.3 of time, is a quarter of the period of a weight that the data do not bind. Chains of one session start at different
// values.
const (
	chains     = 2
	hmcLeaps   = 60
	hmcStep    = 0.005
	hmcWarmup  = 40
	hmcDraws   = 100
	hmcPerLine = 10
)

// reference is a sample of the posterior: predictions, and how sure each draw was of each test image's label.
type reference struct {
	mean       []float64
	confidence [][][]float64 // by image, chain and draw
	acceptance float64
	stepSize   float64
}

// hmc draws from the posterior of all the data by chains of a seed.
func (s *study) hmc(seed uint64, progress io.Writer) (*reference, error) {
	network, err := layers.New(model, classes)
	if err != nil {
		return nil, err
	}
	b := graph.New(tensor.Float64)
	x, labels := op.Minibatch(b, op.Batch{Size: dataSize}, s.shape(), s.train.Mean, s.train.Deviation)
	loss := b.Apply(op.CrossEntropy{}, network.Apply(b, x), labels)
	sampler := metropolis.Metropolis{
		Proposal: metropolis.HMC{Leaps: hmcLeaps, Jitter: 0.2}, StepSize: hmcStep, Warmup: s.scaled(hmcWarmup), AcceptanceRate: 0.8,
	}
	walk, err := sampler.Attach(b, metropolis.Target{Potential: posterior.Potential(b, loss), Temperature: 1})
	if err != nil {
		return nil, err
	}
	session, err := s.session(b, seed, chains)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	p, err := s.predictions(network)
	if err != nil {
		return nil, err
	}
	defer p.predictor.Close()
	r := &reference{confidence: make([][][]float64, testSize)}
	for i := range r.confidence {
		r.confidence[i] = make([][]float64, chains)
	}
	draws := s.scaled(hmcDraws)
	for draw := range draws {
		traces, err := walk.Draw(s.ctx, session, 1, 1)
		if err != nil {
			return nil, err
		}
		if err := r.observe(traces, draws); err != nil {
			return nil, err
		}
		for chain := range chains {
			sample, err := walk.Take(session, chain)
			if err != nil {
				return nil, err
			}
			if err := p.add(sample); err != nil {
				return nil, err
			}
			for i, label := range s.test.Labels {
				r.confidence[i][chain] = append(r.confidence[i][chain], float64(p.last[i*classes+int(label)]))
			}
		}
		if (draw+1)%hmcPerLine == 0 {
			fmt.Fprintf(progress, "HMC, seed %d: %d of %d draws of each chain\n", seed, draw+1, draws)
		}
	}
	r.mean = p.mean.Mean()
	return r, nil
}

// observe averages acceptance and step size over draws and chains.
func (r *reference) observe(traces *metropolis.Traces, draws int) error {
	for name, to := range map[string]*float64{metropolis.TraceAcceptance: &r.acceptance, metropolis.TraceStepSize: &r.stepSize} {
		values, err := traces.Of(name, 0)
		if err != nil {
			return err
		}
		for _, chain := range values {
			*to += chain[0] / float64(chains*draws)
		}
	}
	return nil
}

// printConvergence tells whether all chains, of both seeds, predict alike.
func printConvergence(out io.Writer, first, second *reference) {
	var rHats []float64
	for i := range first.confidence {
		v, err := diagnostics.SplitRHat(slices.Concat(first.confidence[i], second.confidence[i]))
		if err == nil {
			rHats = append(rHats, v)
		}
	}
	fmt.Fprintf(out, "HMC: 2 seeds x %d chains x %d draws of %d leaps, acceptance %.2f, step size %.4f\n", chains, len(first.confidence[0][0]), hmcLeaps,
		(first.acceptance+second.acceptance)/2, (first.stepSize+second.stepSize)/2)
	if len(rHats) > 0 {
		slices.Sort(rHats)
		fmt.Fprintf(out, "Split R-hat of the label's probability over %d test images: median %.3f, 95 %% of them below %.3f\n",
			len(rHats), rHats[len(rHats)/2], rHats[len(rHats)*95/100])
	}
}

func (s *study) shape() tensor.Shape { return tensor.Shape{dataSize, 1, s.train.Height, s.train.Width} }

// session loads a graph that reads the digits.
func (s *study) session(b *graph.Builder, seed uint64, chains int) (*graph.Session, error) {
	program, err := b.Compile()
	if err != nil {
		return nil, err
	}
	session, err := program.Load(s.device, graph.LoadOptions{Seed: seed, Chains: chains})
	if err != nil {
		return nil, err
	}
	if err := graph.Write(session, "images", 0, 0, s.train.Images); err != nil {
		session.Close()
		return nil, err
	}
	return session, graph.Write(session, "labels", 0, 0, s.train.Labels)
}
