package pollen

import (
	"reflect"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/mcmc"
)

// Auto chooses a sampler and its step size by the data: the manifest has the choice. Up to 2000
// examples that are not augmented it is mcmc.MCLMC, else langevin.SGNHT, at the rate at which
// in one layer, by a pilot, the noise of minibatches is 4 times the friction's, and elsewhere less;
// at most at twice the pilot's rate, which was stable.
type Auto struct{}

// Name implements Method.
func (Auto) Name() string { return "auto" }

// Validate implements Method.
func (Auto) Validate() error { return nil }

// What Auto chooses by.
const (
	autoExact  = 2000 // examples up to which all of them are a step's
	autoNoise  = 4    // of the noisiest layer, over the friction's
	autoEpochs = 2    // of the pilot
	autoSteps  = 400  // of it at least
	autoFaster = 2    // than a pilot that was stable: the rate rises no further
	autoTries  = 4    // of rates, each a quarter of the one before, where numbers do not stay finite
)

// undecided is the course of Auto, which says what applies and never runs.
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

// autoSampler is the sampler on minibatches that Auto chooses.
func autoSampler() Method {
	return langevin.SGNHT{Friction: 0.05, Splitting: langevin.SplittingBADODAB, Coupling: 3e-3}
}

// mayChoose reports whether a method is one of those that Auto chooses from.
func mayChoose(m Method) bool {
	return reflect.DeepEqual(m, knownAs(mcmc.MCLMC{}).method) || reflect.DeepEqual(m, autoSampler())
}
