package langevin

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor/random"
)

// Replicas is the Hook that swaps the temperatures of chains, in a session whose program
// ReplicaExchange was attached to. The rung of a chain is part of its state.
type Replicas struct {
	exchange ReplicaExchange
	dataSize int
}

var _ Hook = (*Replicas)(nil)

func (*Replicas) isReplicas() {}

// swapStream is the stream of the random numbers that decide on swaps. Their address has the seed,
// the first chain of the ladder, the step, and the number of the pair as element. No graph has this
// many streams.
const swapStream = random.OrderStream - 2

// energyStep is the first of the steps whose minibatches estimate energies. No run gets this far.
const energyStep = (random.MaxStep + 1) / 2

// Due implements Hook.
func (r *Replicas) Due(steps int) bool { return steps > 0 && steps%r.exchange.Every == 0 }

// OnStep implements Hook. It attempts swaps in every ladder, alternately between rungs 1 and 2, 3
// and 4 and so on, counted from the coldest, and between 2 and 3, 4 and 5 and so on.
func (r *Replicas) OnStep(_ context.Context, s *graph.Session) error {
	ladders, err := r.ladders(s)
	if err != nil {
		return err
	}
	energies, err := r.energies(s)
	if err != nil {
		return err
	}
	// Neighbouring pairs share a chain, so that only every second pair can swap at one time.
	first := 0
	if rungs := len(r.exchange.Temperatures); rungs > 2 {
		first = int(s.Steps()) / r.exchange.Every % 2
	}
	for _, ladder := range ladders {
		for rung := first; rung+1 < len(ladder); rung += 2 {
			if err := r.attempt(s, ladder, rung, energies); err != nil {
				return err
			}
		}
	}
	return nil
}

// ladders returns the chains of each ladder, the coldest first.
func (r *Replicas) ladders(s *graph.Session) ([][]int, error) {
	rungs := len(r.exchange.Temperatures)
	address, err := addressOf(s, 0)
	if err != nil {
		return nil, err
	}
	if s.Chains()%rungs != 0 || int(address.Chain)%rungs != 0 {
		return nil, errors.Errorf("langevin: replica exchange: chains must be whole ladders of %d, got %d from number %d on", rungs, s.Chains(), address.Chain)
	}
	ladders := make([][]int, s.Chains()/rungs)
	for i := range ladders {
		ladders[i] = slices.Repeat([]int{-1}, rungs)
		for chain := i * rungs; chain < (i+1)*rungs; chain++ {
			place, err := readPlace(s, chain)
			if err != nil {
				return nil, err
			}
			rung := int(place[placeRung])
			if rung < 0 || rung >= rungs || ladders[i][rung] >= 0 {
				return nil, errors.Errorf("langevin: replica exchange: chain %d has rung %d of %d, which is out of range or taken: the state has another ladder",
					chain, rung, rungs)
			}
			ladders[i][rung] = chain
		}
	}
	return ladders, nil
}

// energy is an estimate of U and of the estimate's variance.
type energy struct{ mean, variance float64 }

// energies estimates U at every chain's present state. It runs steps, reads U from their metrics,
// and restores the chains after each. If there are several minibatches, they are taken from steps
// that no run reaches, so that they are independent of the chains' steps.
func (r *Replicas) energies(s *graph.Session) ([]energy, error) {
	kept, steps := make([][]byte, s.Chains()), s.Steps()
	for chain := range kept {
		kept[chain] = make([]byte, s.ChainBytes())
		if err := s.Save(chain, kept[chain]); err != nil {
			return nil, errors.Wrap(err, "langevin: replica exchange")
		}
	}
	n := r.exchange.Minibatches
	estimates, energies := make([][]float64, s.Chains()), make([]energy, s.Chains())
	for i := range n {
		at := steps
		if n > 1 {
			at = r.energyStep(steps/uint64(r.exchange.Every)) + uint64(i)
			if err := restart(s, kept, at); err != nil {
				return nil, err
			}
		}
		if err := s.Run(1); err != nil {
			return nil, cmp.Or(restart(s, kept, steps), err)
		}
		for chain := range estimates {
			estimates[chain] = append(estimates[chain], s.Metric(chain, potentialMetric, at))
		}
	}
	for chain, values := range estimates {
		energies[chain] = energyOf(values)
		if b := r.exchange.BatchSize; b > 0 { // Cochran, Sampling techniques (1977), theorem 2.2
			energies[chain].variance *= 1 - float64(n*b)/float64(r.dataSize)
		}
	}
	return energies, restart(s, kept, steps)
}

// energyStep returns the first of the steps whose minibatches estimate an attempt's energies. With
// a BatchSize it is the first step that begins in an epoch used by this attempt only.
func (r *Replicas) energyStep(attempt uint64) uint64 {
	batch, data := uint64(r.exchange.BatchSize), uint64(r.dataSize)
	if batch == 0 {
		return energyStep + attempt*uint64(r.exchange.Minibatches)
	}
	epoch := energyStep/data*batch + batch + attempt
	return (epoch*data + batch - 1) / batch
}

// addressOf returns the address of the random numbers that decide on swaps at a chain's present
// step.
func addressOf(s *graph.Session, chain int) (random.Address, error) {
	header, err := s.Header(chain)
	if err != nil {
		return random.Address{}, errors.Wrap(err, "langevin: replica exchange")
	}
	return op.AddressOf(header[:], swapStream), nil
}

// restart restores the chains' states and sets their step.
func restart(s *graph.Session, states [][]byte, step uint64) error {
	for chain, state := range states {
		if err := s.Restore(chain, state, step); err != nil {
			return errors.Wrap(err, "langevin: restart")
		}
		if err := s.SetStep(chain, step); err != nil {
			return errors.Wrap(err, "langevin: restart")
		}
	}
	return nil
}

// energyOf returns the mean of the estimates and the variance of that mean.
func energyOf(values []float64) energy {
	n := float64(len(values))
	var e energy
	for _, v := range values {
		e.mean += v / n
	}
	for _, v := range values {
		e.variance += (v - e.mean) * (v - e.mean) / (n * max(1, n-1))
	}
	return e
}

// logOdds returns the logarithm of the probability that the chains of a rung and of the next one
// swap. If it is 0 or more they always swap.
func (r *Replicas) logOdds(rung int, cold, hot energy) float64 {
	delta := 1/r.exchange.Temperatures[rung] - 1/r.exchange.Temperatures[rung+1]
	difference := cold.mean - hot.mean
	if r.exchange.Correction > 0 {
		difference -= delta * (cold.variance + hot.variance) / 2 / r.exchange.Correction
	}
	return delta * difference
}

// attempt swaps the rungs of the chains on a rung and on the next one, with the probability of
// logOdds.
func (r *Replicas) attempt(s *graph.Session, ladder []int, rung int, energies []energy) error {
	cold, hot := ladder[rung], ladder[rung+1]
	// All decisions of a ladder use the address of its first chain.
	address, err := addressOf(s, cold/len(ladder)*len(ladder))
	if err != nil {
		return err
	}
	var draw [1]float64
	random.Fractions(draw[:], rung, address)
	there, err := readPlace(s, cold)
	if err != nil {
		return err
	}
	back, err := readPlace(s, hot)
	if err != nil {
		return err
	}
	// The colder chain counts the attempts, so that each pair is counted once.
	there[placeAttempts]++
	if draw[0] < math.Exp(r.logOdds(rung, energies[cold], energies[hot])) {
		there[placeAccepted]++
		there[placeRung], back[placeRung] = back[placeRung], there[placeRung]
	}
	if err := writePlace(s, cold, there); err != nil {
		return err
	}
	return writePlace(s, hot, back)
}

// readPlace reads a chain's rung and its counts of swaps.
func readPlace(s *graph.Session, chain int) ([]float32, error) {
	place := make([]float32, placeWords)
	return place, errors.Wrap(s.ReadFloats(placeState, chain, place), "langevin: replica exchange")
}

func writePlace(s *graph.Session, chain int, place []float32) error {
	return errors.Wrap(s.WriteFloats(placeState, chain, place), "langevin: replica exchange")
}

// Cold returns the chains that now have the lowest temperature, one of each ladder. A nil Replicas,
// which stands for no exchange, returns all chains.
func (r *Replicas) Cold(s *graph.Session) ([]int, error) {
	if r == nil {
		chains := make([]int, s.Chains())
		for i := range chains {
			chains[i] = i
		}
		return chains, nil
	}
	ladders, err := r.ladders(s)
	chains := make([]int, len(ladders))
	for i, ladder := range ladders {
		chains[i] = ladder[0]
	}
	return chains, err
}

// Samples returns the present state of each ladder's coldest chain as a sample of the given weight.
// A sample's chain is the number of the ladder in the run.
func (r *Replicas) Samples(s *graph.Session, weight float64) ([]samples.Sample, error) {
	chains, err := r.Cold(s)
	if err != nil {
		return nil, err
	}
	var taken []samples.Sample
	for _, chain := range chains {
		sample, err := samples.FromSession(s, chain, weight)
		if err != nil {
			return nil, err
		}
		sample.Chain /= len(r.exchange.Temperatures)
		taken = append(taken, sample)
	}
	return taken, nil
}

// AcceptanceRate returns the fraction of all attempts so far that swapped temperatures, NaN before
// the first attempt.
func (r *Replicas) AcceptanceRate(s *graph.Session) (float64, error) {
	attempts, accepted := 0.0, 0.0
	for chain := range s.Chains() {
		place, err := readPlace(s, chain)
		if err != nil {
			return 0, err
		}
		attempts += float64(place[placeAttempts])
		accepted += float64(place[placeAccepted])
	}
	return accepted / attempts, nil
}
