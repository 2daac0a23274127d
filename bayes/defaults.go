package bayes

import (
	"strconv"

	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
)

// defaultNetwork is the network to which samplers' customary schedules apply as they are. Other
// networks are wider, and their rates are multiplied by wideFraction: at T = 1 weights grow towards
// their prior's size, and the more inputs a layer has, the smaller its steps must be. Optimizers
// keep their rates.
const (
	defaultNetwork = "lenet-small"
	wideFraction   = 0.25
)

// tuningFraction multiplies the rates of methods without noise that train a pretrained network as a
// whole: at its customary rate, Adam makes EfficientNet-Lite0 forget what it has learnt within 40
// steps.
const tuningFraction = 0.1

// A schedule that begins at steepRate or above gets a warm-up of risingSteps, or of a tenth of the
// run if that is shorter.
const (
	steepRate   = 0.05
	risingSteps = 50
)

// customaryAdam is Adam with the attributes that its authors recommend.
var customaryAdam = optimizers.Adam{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}

// customaryPrior is the default prior. It also applies to weights that start at random if the other
// weights have a prior around their starting values.
var customaryPrior = langevin.Gaussian(0.316)

// tuningPrior is the default prior of weights of an ONNX file that are not frozen. A prior around 0
// would make the network forget what it has learnt. If the weights are sampled, a wider prior than
// sampledTuningPrior would, too: the data constrain few directions of millions of weights, so most
// weights spread as far as the prior allows. Random changes of 0.002 keep what EfficientNet-Lite0
// has learnt, and changes of 0.01 do not, see docs/pretrained.md.
var (
	tuningPrior        = langevin.Start(0.01)
	sampledTuningPrior = langevin.Start(0.002)
)

// Some defaults depend on the number of examples. Small data sets get smaller batches, enough
// epochs for minSteps steps, and samplers' rates scaled by sqrt(n), n examples, since the noise of
// a sampler is proportional to sqrt(rate/n). 2500 examples halve the rate of 10 000 or more.
const (
	standardBatch  = 100
	standardEpochs = 8
	minBatches     = 10     // minimum number of minibatches in the data
	minSteps       = 1000   // minimum number of steps of a run
	rateExamples   = 10_000 // rates are scaled for fewer examples
	// The number of minibatches in all data for which matched friction has its customary rate. Its
	// noise share is proportional to the rate and to the noise of a gradient. In measurements, the
	// share stayed the same for another number of minibatches if the rate was divided by the square
	// root of the ratio of that number to this one.
	independentBatches = 600
	// The number of examples of a large data set, for which no default is scaled down, and the side
	// of its images in pixels.
	manyExamples, standardSide = 1 << 40, 28
)

// customaryBatch returns the default batch size: 100, or a tenth of fewer than 1000 examples, so
// that even a small data set has the noise of minibatches and more than one step per epoch.
func customaryBatch(examples int) int {
	return min(standardBatch, max(1, examples/minBatches))
}

// customaryEpochs returns the default number of epochs: 8, or more if 8 are fewer than minSteps
// steps. 100 examples in batches of 10 need minSteps*10/100 epochs, which is 100.
func customaryEpochs(batch, examples int) int {
	return max(standardEpochs, epochsOf(minSteps, batch, examples))
}

// epochsOf returns the number of epochs that have a number of steps, rounded up.
func epochsOf(steps, batch, examples int) int { return (steps*batch + examples - 1) / examples }

// twoDigits rounds a rate to two significant digits.
func twoDigits(rate float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(rate, 'g', 2, 64), 64)
	if err != nil {
		panic(err) // it was just written
	}
	return rounded
}
