package bayes

import (
	"reflect"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/mcmc"
)

// Auto chooses a sampler, its number of steps and the fields left out of the Spec, by the data, the
// measured speed of the device, and Spec.Budget, the time that the steps may take. The manifest
// records the choice. It prefers the sampler that is closest to the posterior:
//
//  1. mcmc.MCLMC, which uses all data at each step and adapts its step size, if the budget is
//     enough for minExactSteps.
//  2. langevin.SGNHT in minibatches of a sixth of the data, if it is enough for minLargeSteps. The
//     noise of such minibatches hardly heats.
//  3. langevin.SGNHT in small minibatches, whose noise the thermostat compensates on average, but
//     not in the directions that predictions depend on. A remark names what is lost.
//
// The rate of SGNHT follows from the noise of minibatches that a pilot run measures: it is at most
// twice the rate of the pilot, which was stable. Auto runs 4 chains and keeps 100 samples of all
// chains together, or 400 of a linear head on frozen features with up to 10 classes. The prior is
// langevin.FanIn(2), which is close to the distribution of initial weights, except for pretrained
// networks. If Spec.Epochs is given, it decides instead of the budget, and no speed is measured.
type Auto struct{}

// Name implements Method.
func (Auto) Name() string { return "auto" }

// Validate implements Method.
func (Auto) Validate() error { return nil }

// autoKind is the kind of Auto. It only decides which settings apply, and never runs.
type autoKind struct{ plain }

func (autoKind) traits() kindTraits {
	return kindTraits{tempered: true, settings: slices.Concat(samplerSettings, []string{"budget"})}
}

func (autoKind) check(s *Spec) error {
	if s.Temperature != nil && !(*s.Temperature > 0) {
		return errors.Errorf("pollen: auto: temperature must be positive, got %v", *s.Temperature)
	}
	switch {
	case s.Budget < 0:
		return errors.Errorf("pollen: auto: budget must be positive, got %v", s.Budget)
	case s.Budget > 0 && s.Epochs > 0:
		return errors.Errorf("pollen: auto: budget is %v and epochs is %d: only one of them may be given", s.Budget, s.Epochs)
	case s.FirstChain > 0 && s.Epochs == 0:
		return errors.New("pollen: auto: first-chain needs epochs: without them, parts of a run would choose by the speed of their own machines")
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

// mayChoose reports whether Auto may choose a method.
func mayChoose(m Method) bool {
	return reflect.DeepEqual(m, exactSampler()) || reflect.DeepEqual(m, autoSampler())
}
