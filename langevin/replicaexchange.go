package langevin

import (
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// ReplicaExchange runs chains on a ladder of rising temperatures: hot chains find modes, the cold
// one samples (replica exchange SGLD; Deng, Feng, Gao, Liang and Lin 2020). Chains at neighbouring
// temperatures T1 < T2 swap them with the probability
//
//	min(1, exp((1/T1 - 1/T2) (U1 - U2 - (1/T1 - 1/T2) s^2/F)))
//
// where s^2 is the mean of the variances of the estimates of U1 and U2, and F is a correction: F =
// 1 is right for normal errors, and a larger F accepts more swaps with a bias. The minimum with 1
// is a bias, too, unless s is 0. The coldest chains target exp(-U/T) of their temperature. Chains
// exchange only the numbers of their temperatures, not their states. Samplers with momentum are
// refused.
type ReplicaExchange struct {
	Temperatures []float64 // of a ladder, increasing, at least 2; the chains of a session must be whole ladders
	StepFactors  []float64 // factor of the step size at each temperature; empty for 1
	Every        int       // steps between two attempts
	// Minibatches is the number of minibatches that an energy is averaged over. Each costs a step.
	// It is 1 when the loss is of all data, else at least 2: their spread estimates s^2.
	Minibatches int
	Correction  float64 // F, positive; 0 with one minibatch, where s is 0
	// BatchSize is the size of the loss's op.Batch. The minibatches of an energy are then the first
	// of an epoch, which reduces s^2 by the fraction of the data that they hold. 0 lets them come
	// from different epochs.
	BatchSize int
}

// Validate reports attributes that are out of range or have no effect.
func (r ReplicaExchange) Validate() error {
	if len(r.Temperatures) < 2 || len(r.StepFactors) != 0 && len(r.StepFactors) != len(r.Temperatures) {
		return errors.Errorf("langevin: replica exchange: there must be at least 2 temperatures, and a step factor for each or none, got %d and %d",
			len(r.Temperatures), len(r.StepFactors))
	}
	for i, temperature := range r.Temperatures {
		if !positive(temperature) || i > 0 && temperature <= r.Temperatures[i-1] {
			return errors.Errorf("langevin: replica exchange: temperatures must be positive and rise, got %v", r.Temperatures)
		}
	}
	for _, factor := range r.StepFactors {
		if !positive(factor) {
			return errors.Errorf("langevin: replica exchange: step factors must be positive, got %v", r.StepFactors)
		}
	}
	switch {
	case r.Every < 1:
		return errors.Errorf("langevin: replica exchange: Every must be at least 1 step, got %d", r.Every)
	case r.Minibatches < 1:
		return errors.Errorf("langevin: replica exchange: Minibatches must be 1 for a loss of all data, and else at least 2, got %d", r.Minibatches)
	case r.Minibatches == 1 && r.Correction != 0:
		return errors.Errorf("langevin: replica exchange: Correction must be 0 with one minibatch, whose energies have no error, got %v", r.Correction)
	case r.Minibatches > 1 && !positive(r.Correction):
		return errors.Errorf("langevin: replica exchange: Correction must be positive, 1 for normal errors, got %v", r.Correction)
	case r.BatchSize < 0 || r.BatchSize > maxEnergyBatch || r.Minibatches == 1 && r.BatchSize != 0:
		return errors.Errorf("langevin: replica exchange: BatchSize must be 1 to %d for several minibatches of one epoch, else 0, got %d for %d",
			maxEnergyBatch, r.BatchSize, r.Minibatches)
	}
	return nil
}

// maxEnergyBatch is the largest BatchSize for which positions of steps from energyStep on fit into
// 64 bits.
const maxEnergyBatch = 1 << 16

// fitEpoch reports whether the given number of minibatches, from the first that begins in an epoch
// of dataSize examples, all end within that epoch.
func fitEpoch(minibatches, batchSize, dataSize int) bool {
	if dataSize%batchSize != 0 {
		minibatches++ // the first may begin after the epoch does
	}
	return minibatches <= dataSize/batchSize
}

// Attach is the function Attach with a ladder of temperatures instead of the table. The returned
// Replicas must be passed to Plan.Run as a Hook; without it Run returns an error. It records
// energies as the metric "potential". Their float32 resolves about 1e-7 of U, which must be small
// compared with the temperatures.
func (r ReplicaExchange) Attach(b *graph.Builder, sampler Sampler, posterior Posterior, loss *graph.Node, stepSizes []float64) (*Replicas, error) {
	r.Temperatures, r.StepFactors = slices.Clone(r.Temperatures), slices.Clone(r.StepFactors)
	if len(r.StepFactors) == 0 {
		r.StepFactors = slices.Repeat([]float64{1}, len(r.Temperatures))
	}
	parameters := b.Parameters()
	b.Fail(r.Validate())
	b.Fail(checkAttach(b, sampler, posterior, loss, stepSizes, stepSizes))
	if b.Err() == nil && r.BatchSize > 0 && !fitEpoch(r.Minibatches, r.BatchSize, posterior.DataSize) {
		b.Fail(errors.Errorf("langevin: replica exchange: an epoch of %d examples must have %d whole minibatches of %d wherever it begins",
			posterior.DataSize, r.Minibatches, r.BatchSize))
	}
	if r.BatchSize > 0 {
		b.Fail(errors.Wrap(posterior.checkEpochs(b, loss, r.BatchSize), "langevin: replica exchange"))
	}
	if HasMomentum(sampler) {
		b.Fail(errors.Errorf("langevin: replica exchange: the sampler must have no velocities, which belong to a temperature, got %s", sampler.Name()))
	}
	if b.Err() != nil {
		return nil, b.Err()
	}
	sampler, gradients := differentiate(b, sampler, loss, parameters)
	rungs := len(r.Temperatures)
	place := b.State(placeState, func(_ uint64, chain uint32, _ uint16, _ tensor.Shape, words []float64) {
		words[placeRung] = float64(int(chain) % rungs)
	}, placeWords)
	rates := b.Apply(op.ScaledEntry{}, posterior.rates(b, stepSizes), b.Table("replica step factors", r.StepFactors), place, b.Header())
	temperatures := b.Apply(op.ScaledEntry{}, b.Table("unit", []float64{1}), b.Table("replica temperatures", r.Temperatures), place, b.Header())
	inputs := UpdateInputs{DataSize: posterior.DataSize, rows: posterior.rows(), Rates: rates, Temperatures: temperatures}
	if err := attachUpdates(b, sampler, posterior, gradients, inputs); err != nil {
		return nil, err
	}
	b.Record(potentialMetric, posterior.Potential(b, loss))
	return &Replicas{r, posterior.DataSize}, b.Err()
}

// HasMomentum reports whether a sampler has velocities. These belong to a temperature: replica
// exchange, which changes the temperatures of chains, refuses such samplers.
func HasMomentum(sampler Sampler) bool {
	for _, s := range withRest(sampler) {
		switch s.(type) {
		case momentumRule, MatchedFriction:
			return true
		}
	}
	return false
}

// potentialMetric is the name of the metric that holds the energies.
const potentialMetric = "potential"

// Elements of the state called placeState.
const (
	placeRung     = 0 // the number of the chain's temperature, from 0 for the coldest; first, for op.ScaledEntry
	placeAttempts = 1 // swaps attempted while the chain was the colder of the pair
	placeAccepted = 2 // how many of these were accepted
	placeWords    = 3
)
