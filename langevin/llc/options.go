package llc

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/samples"
)

// Options set how a learning coefficient is estimated. Only Localization has no default.
type Options struct {
	// Localization is gamma, the precision of the Gaussian around w*. A direction of curvature k of
	// the loss contributes N beta k/(N beta k + gamma) of what it would without a localization.
	Localization float64
	// InverseTemperature is beta. The default is 1/log N.
	InverseTemperature float64
	// StepSizes are the epsilons of the grid, one row each. By default there are up to five, each
	// half of the one before, and the grid ends when the verdict is settled. The largest is derived
	// from the curvature of the loss and the noise of minibatches.
	StepSizes []float64
	// Sampler moves the chains. The default is SGLD, the only sampler for which the energy added by
	// finite steps is measured. KSGLD is refused. A preconditioner without a step at which it
	// freezes does so at the end of burn-in.
	Sampler langevin.Sampler
	// Batch is the number of examples of a minibatch. The default is 100, or all data if there are
	// at most 200 examples.
	Batch int
	// Chains is the number of chains of a row, which all begin at w*. It must be at least 2,
	// because the intervals are computed from the spread of the chains. The default is 8.
	Chains int
	// Steps is the number of steps of each chain; the first BurnIn are not used. The defaults are
	// 2000 and half of Steps.
	Steps, BurnIn int
	// Descent is the number of steps of gradient descent to a local minimum, which becomes the
	// centre. By default the centre is not moved, and gradient descent only measures how far a
	// minimum is below L(w*).
	Descent int
	// Reference is the number of draws of each chain of NUTS on all data, after an equal number of
	// warm-up draws. They estimate the coefficient without an error from the sampler. The default
	// is none.
	Reference int
	// Seed determines all random numbers.
	Seed uint64
	// Observe, if not nil, is called while chains run.
	Observe func(Progress)
	// Kept has the descents and rows of an earlier estimate, of the same model and options, which
	// are not computed again. StepSizes may differ.
	Kept Kept
	// Keep, if not nil, is called whenever a descent or a row is complete, with all that are.
	Keep func(Kept)
}

// Kept is what an estimate has computed so far, to continue it after an interruption.
type Kept struct {
	// Offset is where the descent of Options.Descent steps ended, relative to the model's centre;
	// nil before that.
	Offset []samples.Parameter `json:"-"`
	// Below is the mean loss at the end of the descent that measures Estimation.Slack; nil before
	// that.
	Below *diagnostics.Number `json:"below,omitempty"`

	Rows []Row `json:"rows"` // complete ones, each of another step size
	// Reference is a reference of Draws draws for each chain, nil if there is none.
	Reference *Row `json:"reference,omitempty"`
	Draws     int  `json:"draws,omitempty"`
}

// validate reports rows that no estimate has.
func (k Kept) validate() error {
	rows := k.Rows
	if k.Reference != nil {
		rows = append(slices.Clone(rows), *k.Reference)
	}
	for _, r := range rows {
		for _, chain := range r.Trace {
			if r.Made != 0 || len(chain) == 0 || len(chain) != len(r.Trace[0]) {
				return errors.Errorf("llc: Kept: the row of step size %v is not complete", r.StepSize)
			}
		}
	}
	return nil
}

// Progress reports how far an estimate has advanced.
type Progress struct {
	Task        string // "llc" for the descent and all step sizes together, then "NUTS" for the reference
	Done, Total int    // steps of all chains of the task
	Images      int    // examples evaluated since the last call
}

// The defaults of Options.
const (
	defaultBatch  = 100
	fullBatch     = 200 // data sets of at most this size are not divided into minibatches
	defaultChains = 8
	defaultSteps  = 2000
)

// filled returns the options with their defaults filled in.
func (o Options) filled(dataSize int) Options {
	o.InverseTemperature = cmp.Or(o.InverseTemperature, 1/math.Log(float64(dataSize)))
	if o.Batch == 0 {
		o.Batch = defaultBatch
		if dataSize <= fullBatch {
			o.Batch = dataSize
		}
	}
	o.Chains = cmp.Or(o.Chains, defaultChains)
	o.Steps = cmp.Or(o.Steps, defaultSteps)
	o.BurnIn = cmp.Or(o.BurnIn, o.Steps/2)
	if o.Sampler == nil {
		o.Sampler = langevin.SGLD{}
	}
	o.Sampler = langevin.FrozenAt(o.Sampler, max(1, o.BurnIn))
	if independent, ok := o.Sampler.(langevin.IndependentBatches); ok {
		o.Sampler = independent.InBatches(o.Batch)
	}
	if o.Observe == nil {
		o.Observe = func(Progress) {}
	}
	if o.Keep == nil {
		o.Keep = func(Kept) {}
	}
	o.Kept.Rows = slices.Clone(o.Kept.Rows)
	return o
}

// MinMeasured is the minimum number of steps after burn-in, one for each block of R-hat.
const MinMeasured = traceBlocks

// validate reports options that are out of range, after their defaults were filled in.
func (o Options) validate(dataSize int) error {
	positive := func(v float64) bool { return v > 0 && v < math.Inf(1) }
	switch {
	case !positive(o.Localization):
		return errors.Errorf("llc: Localization must be positive, got %v", o.Localization)
	case !positive(o.InverseTemperature):
		return errors.Errorf("llc: InverseTemperature must be positive, got %v", o.InverseTemperature)
	case o.Batch < 1 || o.Batch > dataSize:
		return errors.Errorf("llc: Batch must be 1 to %d, the number of examples, got %d", dataSize, o.Batch)
	case o.Chains < 2:
		return errors.Errorf("llc: Chains must be at least 2, got %d", o.Chains)
	case o.BurnIn < 0 || o.Steps-o.BurnIn < MinMeasured:
		return errors.Errorf("llc: there must be at least %d steps after burn-in, got %d of %d with a BurnIn of %d",
			MinMeasured, o.Steps-o.BurnIn, o.Steps, o.BurnIn)
	case o.Descent < 0 || o.Reference < 0 || o.Reference > 0 && o.Reference < MinMeasured:
		return errors.Errorf("llc: Descent must be at least 0, and Reference 0 or at least %d, got %d and %d", MinMeasured, o.Descent, o.Reference)
	}
	for i, step := range o.StepSizes {
		if !positive(step) || slices.Contains(o.StepSizes[:i], step) {
			return errors.Errorf("llc: StepSizes must be positive, and each once, got %v", step)
		}
	}
	if _, ok := o.Sampler.(langevin.KSGLD); ok {
		return errors.New("llc: the sampler must not be ksgld, which finds no layers: the parameters are offsets from w*")
	}
	if err := o.Kept.validate(); err != nil {
		return err
	}
	return o.Sampler.Validate()
}

// Describe returns a sentence on the work that an estimate takes on a number of examples.
func Describe(dataSize int, o Options) string {
	o = o.filled(dataSize)
	rows := fmt.Sprintf("%d step sizes", len(o.StepSizes))
	if o.StepSizes == nil {
		rows = fmt.Sprintf("up to %d step sizes", gridSteps)
	}
	return fmt.Sprintf("gradient descent of %d steps, then %s with %d chains of %d steps each, on minibatches of %d examples",
		o.Descent+max(o.Steps, o.Descent), rows, o.Chains, o.Steps, o.Batch)
}

// Settings returns the options that all rows of an estimate depend on, by name, with their defaults
// filled in. Rows can be Kept for another estimate of the same model if these are equal.
func (o Options) Settings(dataSize int) map[string]string {
	o = o.filled(dataSize)
	return map[string]string{
		"gamma": fmt.Sprint(o.Localization), "beta": fmt.Sprint(o.InverseTemperature),
		"method": strings.TrimSuffix(fmt.Sprintf("%s%+v", o.Sampler.Name(), o.Sampler), "{}"),
		"batch":  fmt.Sprint(o.Batch), "chains": fmt.Sprint(o.Chains), "steps": fmt.Sprint(o.Steps),
		"burn-in-steps": fmt.Sprint(o.BurnIn), "descent": fmt.Sprint(o.Descent), "seed": fmt.Sprint(o.Seed),
	}
}

// temperature returns T = 1/beta.
func (o Options) temperature() float64 { return 1 / o.InverseTemperature }

// stepSize returns the step size of package langevin.
func (o Options) stepSize(epsilon float64) float64 { return epsilon / (2 * o.temperature()) }

// posterior returns the posterior whose samples at the temperature T follow the tempered posterior
// p(w).
func (o Options) posterior(dataSize int) langevin.Posterior {
	return langevin.Posterior{DataSize: dataSize, Prior: langevin.Gaussian(math.Sqrt(1 / (o.Localization * o.temperature())))}
}
