package bayes

import (
	"reflect"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/optimizers"
)

// The registry has one row for each method: samplers on minibatches, samplers on all data,
// approximations, optimizers. A row has the name for flags and manifests, the method with its
// customary attributes, and its customary schedule. Names are stored in manifests, so they must not
// change. The help lists the methods in this order.
func init() {
	registry = []known{
		{"sgld", langevin.SGLD{}, optimizers.Constant{Rate: 0.2}},
		{"psgld", langevin.PSGLD{Alpha: 0.99, Lambda: 1e-5, Gamma: langevin.GammaFrozen}, optimizers.Constant{Rate: 0.002}},
		{"fsgld", langevin.FisherSGLD{Alpha: 0.99, Damping: 1e-3}, optimizers.Constant{Rate: 0.0001}},
		{"ksgld", langevin.KSGLD{Alpha: 0.99, Damping: 0.1, Refresh: 20, Rest: langevin.SGLD{}}, optimizers.Constant{Rate: 0.05}},
		{"sghmc", langevin.SGHMC{Friction: 0.1}, optimizers.Constant{Rate: 0.02}},
		{"psghmc", langevin.PSGHMC{Friction: 0.1, Alpha: 0.99, Lambda: 1e-5, Gamma: langevin.GammaFrozen}, optimizers.Constant{Rate: 0.0002}},
		{"baoab", langevin.BAOAB{Friction: 0.1}, optimizers.Constant{Rate: 0.02}},
		{"sgnht", langevin.SGNHT{Friction: 0.1, Splitting: langevin.SplittingBADODAB, Coupling: 1e-3}, optimizers.Constant{Rate: 0.02}},
		{"ccadl", langevin.CCAdL{Friction: 0.1, Alpha: 0.999, Coupling: 1e-3}, optimizers.Constant{Rate: 0.02}},
		{"smile", langevin.SMILE{Friction: 0.1}, optimizers.Constant{Rate: 0.02}},
		{"obabo", langevin.OBABO{Friction: 0.1}, optimizers.Constant{Rate: 0.02}},
		{"ubu", langevin.UBU{Friction: 0.1}, optimizers.Constant{Rate: 0.02}},
		{"matched-friction", langevin.MatchedFriction{Friction: 3e-4, Masses: langevin.MassesPrior}, optimizers.Constant{Rate: 5e-6}},

		{"auto", Auto{}, nil},
		{"random-walk", mcmc.RandomWalk{}, nil},
		{"mala", mcmc.MALA{}, nil},
		{"hmc", mcmc.HMC{LeapfrogSteps: 20, Jitter: 0.2}, nil},
		{"mclmc", mcmc.MCLMC{Friction: 0.01, EnergyVariance: 2e-5, MaxVariance: 0.5}, nil},
		{"nuts", NUTS{TargetAcceptance: 0.8, MaxDepth: 10}, nil},

		{"ensemble", Ensemble{}, optimizers.Cosine{First: 0.1}},
		{"mc-dropout", Dropout{Rate: 0.25}, optimizers.Cosine{First: 0.1}},
		{"swag", SWAG{Rank: 20}, optimizers.Constant{Rate: 0.05}},
		{"laplace", LaplaceApproximation{}, optimizers.Cosine{First: 0.1}},
		{"bbb", BayesByBackprop{InitialStd: 0.02}, optimizers.Constant{Rate: 0.001}},
		{"distil", Distillation{PrecisionWeight: 0.03, Copies: 6}, optimizers.Cosine{First: 0.002}},

		{"sgd", optimizers.SGD{}, optimizers.Constant{Rate: 0.1}},
		{"momentum", optimizers.Momentum{Decay: 0.9}, optimizers.Constant{Rate: 0.01}},
		{"nesterov", optimizers.Nesterov{Decay: 0.9}, optimizers.Constant{Rate: 0.01}},
		{"adagrad", optimizers.Adagrad{Epsilon: 1e-8}, optimizers.Constant{Rate: 0.01}},
		{"adadelta", optimizers.Adadelta{Decay: 0.95, Epsilon: 1e-6}, nil},
		{"rmsprop", optimizers.RMSProp{Decay: 0.9, Epsilon: 1e-8}, optimizers.Constant{Rate: 0.001}},
		{"adam", customaryAdam, optimizers.Constant{Rate: 0.001}},
		{"adamw", optimizers.AdamW{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, WeightDecay: 0.01}, optimizers.Constant{Rate: 0.001}},
	}
}

// Register adds a custom method, with its customary attributes and schedule, to those that
// ParseMethod reads. A run keeps its method as text, so a program that trains or opens such a run
// must register the method at its start. The schedule is nil for a method that finds its own step
// size. It is an error if the name or the type is taken, or m is neither an optimizer nor a sampler
// on minibatches. Register is not safe for concurrent use.
func Register(name string, m Method, schedule optimizers.Schedule) error {
	if m == nil || name == "" || strings.ContainsAny(name, ":, ") {
		return invalid("register: must have a word for a name and a method, got %q and %T", name, m)
	}
	switch kind, err := kindOf(m); kind.(type) {
	case nil:
		return err
	case optimizerKind, minibatchKind:
	default:
		return invalid("register: %q of %T: a custom method must be an optimizer or a sampler on minibatches", name, m)
	}
	for _, k := range registry {
		if k.name == name || sameType(k.method, m) {
			return invalid("register: %q of %T: %q is registered already", name, m, k.name)
		}
	}
	registry = append(registry, known{name, m, schedule})
	return nil
}

// kindOf returns the kind of a method. The order of the cases matters: an approximation is its own
// kind, whatever else it implements.
func kindOf(m Method) (methodKind, error) {
	if kind := reflect.ValueOf(m).Kind(); kind != reflect.Struct {
		return nil, invalid("method %T is a %s, must be a struct, whose fields are its attributes", m, kindName(kind))
	}
	switch m := m.(type) {
	case methodKind:
		return m, nil
	case optimizers.Optimizer:
		return optimizerKind{optimizer: m}, nil
	case langevin.Sampler:
		return minibatchKind{sampler: m}, nil
	case Auto:
		return autoKind{}, nil
	case NUTS, mcmc.Proposal, mcmc.MCLMC:
		return fullBatchKind{method: m}, nil
	case mcmc.Sampler:
		return nil, invalid("method %T has a warm-up, which is a Spec's burn-in: use bayes.NUTS, or only the proposal or the dynamics", m)
	}
	return nil, invalid("method %T is neither an optimizer, a sampler, a proposal nor an approximation", m)
}

// kindName returns a word for a kind of type.
func kindName(k reflect.Kind) string {
	if k == reflect.Pointer {
		return "pointer"
	}
	return k.String()
}

// notApplicable returns the error that a setting does not apply to a method, with the methods that
// it applies to.
func notApplicable(setting string, m Method, c methodKind) error {
	var names []string
	for _, k := range registry {
		if other, err := kindOf(k.method); err == nil && other.traits().applies(setting) {
			names = append(names, k.name)
		}
	}
	err := errors.Errorf("pollen: %s applies to %s, not to %s", setting, strings.Join(names, ", "), MethodName(m))
	if _, ok := c.(optimizerKind); ok {
		err = errors.Errorf("%v: an optimizer has one solution, and weight decay for a prior", err)
	}
	return &InvalidError{err}
}
