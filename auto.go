package pollen

import (
	"reflect"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/mcmc"
)

// Auto chooses a sampler and its step size by the data. The manifest records the choice. For up to
// 2000 examples that are not augmented it is mcmc.MCLMC, which uses all data at each step and
// adapts its step size. Otherwise it is langevin.SGNHT, whose thermostat compensates the noise of
// minibatches, with the rate at which that noise is 4 times the friction's in the noisiest layer,
// as a pilot run measures it, but at most twice the rate of the pilot, which was stable.
type Auto struct{}

// Name implements Method.
func (Auto) Name() string { return "auto" }

// Validate implements Method.
func (Auto) Validate() error { return nil }

// The criteria of Auto.
const (
	autoExact  = 2000 // largest number of examples for a sampler on all data
	autoNoise  = 4    // noise of the noisiest layer over the friction's
	autoEpochs = 2    // of the pilot
	autoSteps  = 400  // of the pilot, at least
	autoFaster = 2    // largest factor between the rates of the run and of a stable pilot
	autoTries  = 4    // rates to try, each a quarter of the one before, while numbers do not stay finite
)

// autoKind is the kind of Auto. It only decides which settings apply, and never runs.
type autoKind struct{ plain }

func (autoKind) traits() kindTraits       { return kindTraits{tempered: true} }
func (autoKind) applies(name string) bool { return fullBatchKind{}.applies(name) }

func (autoKind) check(s *Spec) error {
	if s.Temperature != nil && !(*s.Temperature > 0) {
		return errors.Errorf("pollen: auto: temperature must be positive, got %v", *s.Temperature)
	}
	return nil
}

func (autoKind) attach(*job, *graph.Builder, inputs) (logits, loss *graph.Node, err error) {
	return nil, nil, errors.New("pollen: auto: no sampler was chosen")
}

// autoSampler returns the sampler on minibatches that Auto chooses.
func autoSampler() Method {
	return langevin.SGNHT{Friction: 0.05, Splitting: langevin.SplittingBADODAB, Coupling: 3e-3}
}

// exactSampler returns the sampler on all data that Auto chooses.
func exactSampler() Method { return knownAs(mcmc.MCLMC{}).method }

// examplesOf returns the number of examples of data that a run trains on.
func (s Spec) examplesOf(data *datasets.Dataset) int {
	if s.Subset > 0 {
		return min(s.Subset, data.Len())
	}
	return data.Len()
}

// choosesExact reports whether Auto chooses the sampler on all data for a number of examples.
func (s Spec) choosesExact(examples int) bool {
	return examples <= autoExact && s.Augment.isNone() && (s.Batch == 0 || s.Batch == examples)
}

// mayChoose reports whether Auto may choose a method.
func mayChoose(m Method) bool {
	return reflect.DeepEqual(m, exactSampler()) || reflect.DeepEqual(m, autoSampler())
}
