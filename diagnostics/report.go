package diagnostics

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Report describes the chains of a run, from its first step on, however often it was resumed.
// Values that were not measured are NaN, null in JSON.
type Report struct {
	// Made is the number of steps made, From the step at which the diagnostics begin, 0, and
	// Samples the number of samples of all chains.
	Made    int `json:"made"`
	From    int `json:"from"`
	Samples int `json:"samples"`

	// Watched is the weight whose trace is recorded, and Trace its values in the first chain, at
	// evenly spaced steps.
	Watched string    `json:"watched"`
	Trace   []float64 `json:"trace"`

	// WarmStart is where the chains began; nil without a warm start, and for a gathered run.
	WarmStart *WarmStart `json:"warmStart,omitempty"`

	// Halvings has the number of times that each chain was trained again, at half its learning rate
	// each time, because it diverged; nil if none was. Chains that sample are never trained again,
	// see WarmStart.
	Halvings []int `json:"halvings,omitempty"`

	// Predicted describes how well the chains mix in their predictions for held-out images,
	// measured also at states between samples; nil without held-out images.
	Predicted *Mixing `json:"predicted,omitempty"`

	// WeightRHat is split R-hat of the watched weight in the sampling phase, near 1 if the chains
	// agree. LossRHat is split R-hat of the loss. On minibatches the loss is mostly their noise, so
	// that LossRHat is near 1 even for chains that do not agree.
	WeightRHat Number `json:"weightRHat"`
	LossRHat   Number `json:"lossRHat"`

	// Weights and Losses are values of the watched weight and of the loss, by chain, evenly spaced,
	// from which the R-hat of a gathered run is computed.
	Weights [][]float64 `json:"weights,omitempty"`
	Losses  [][]float64 `json:"losses,omitempty"`

	// Temperatures has the temperature of all weights, and then of each layer.
	Temperatures []Temperature `json:"temperatures,omitempty"`
	// Predictions is the temperature of the directions of weight space that predictions depend on,
	// weighted by their curvature lambda. It serves as an alarm, which the few steepest directions
	// decide. Determination weights each direction by lambda/(lambda + prior) instead, so that each
	// direction that the data determine counts once, as in the spread of predictions. They are nil
	// if they were not measured, the latter also for networks of more than a million weights.
	Predictions   *Measured `json:"predictions,omitempty"`
	Determination *Measured `json:"determination,omitempty"`
	// Acceptance is the mean acceptance probability of a Metropolis test.
	Acceptance Number `json:"acceptance"`
	// Diverged is the fraction of NUTS' trajectories that diverged, see mcmc.TraceDiverged.
	Diverged Number `json:"diverged"`
	// Swaps is the fraction of replica exchange's swap attempts that succeeded.
	Swaps Number `json:"swaps"`
}

// String returns the measurements in a line, such as "500 steps, 20 samples, R-hat of the watched
// weight 1.012, R-hat of predictions 1.004, temperature 0.98 ± 0.02". Verdict judges them.
func (d *Report) String() string {
	text := fmt.Sprintf("%d steps, %d samples", d.Made, d.Samples)
	add := func(what string, v Number) {
		if !math.IsNaN(float64(v)) {
			text += fmt.Sprintf(", %s %.3f", what, float64(v))
		}
	}
	add("R-hat of the watched weight", d.WeightRHat)
	if d.Predicted != nil {
		add("R-hat of predictions", d.Predicted.RHat)
	}
	if len(d.Temperatures) > 0 {
		all := d.Temperatures[0]
		text += fmt.Sprintf(", temperature %v", Measured{Value: all.Configurational, StandardError: all.StandardError})
	}
	add("acceptance", d.Acceptance)
	add("diverged", d.Diverged)
	add("swaps", d.Swaps)
	return text
}

// WarmStart is where the chains of a run began after its warm start, see bayes.Spec.WarmStart.
type WarmStart struct {
	// HeldOut is the number of training images held out, whose loss stopped the optimizer.
	HeldOut int `json:"heldOut"`
	// Epochs is the number of epochs that the optimizer made.
	Epochs int `json:"epochs"`
	// Epoch has, for each chain, the epoch with the best weights, where it began to sample; 0 means
	// initial values. Loss and Accuracy are the scores of these weights on the images held out. All
	// losses have the run's class weights.
	Epoch    []int    `json:"epoch"`
	Loss     []Number `json:"loss"`
	Accuracy []Number `json:"accuracy"`
	// Halvings has the number of times that the learning rate of each chain was halved because it
	// diverged, in the warm start or where a cycle explored.
	Halvings []int `json:"halvings"`
	// Losses has, for each chain, the losses at its initial values and after each epoch, until it
	// had not improved for bayes.Spec.WarmPatience epochs.
	Losses [][]Number `json:"losses"`
}

// String describes the warm start in a sentence.
func (w *WarmStart) String() string {
	var loss, accuracy float64
	for i := range w.Epoch {
		loss += float64(w.Loss[i]) / float64(len(w.Epoch))
		accuracy += float64(w.Accuracy[i]) / float64(len(w.Epoch))
	}
	after := fmt.Sprintf("epoch %d", w.Epoch[0])
	if least, most := slices.Min(w.Epoch), slices.Max(w.Epoch); least < most {
		after = fmt.Sprintf("epochs %d to %d", least, most)
	}
	begin := fmt.Sprintf("where %d epochs of the optimizer were best, after %s", w.Epochs, after)
	if w.Epochs == 1 {
		begin = "after " + after + " of the optimizer"
	}
	return fmt.Sprintf("warm start: the chains begin %s: loss %.3f, accuracy %.3f on %d training images held out", begin, loss, accuracy, w.HeldOut)
}

// Outlier is a chain whose loss in the sampling phase is far above the others', so that its samples
// spoil the average.
type Outlier struct {
	Chain        int     // its index in Report.Losses
	Loss, Median float64 // the chain's mean loss, and the median of these over the chains
}

// Outliers returns the chains whose loss is more than twice the median over the chains, and more
// than half a nat above it.
func (d *Report) Outliers() (all []Outlier) {
	losses := make([]float64, len(d.Losses))
	for i, values := range d.Losses {
		losses[i] = stat.Mean(values, nil)
	}
	chains, median := Outliers(losses)
	for _, i := range chains {
		all = append(all, Outlier{i, losses[i], median})
	}
	return all
}

// Outliers returns the indices of losses, one for each chain, that are far above the others, as
// Report.Outliers does, and the median: the lower of the middle two if the number is even.
func Outliers(losses []float64) (chains []int, median float64) {
	const factor, nats = 2, 0.5
	if len(losses) == 0 {
		return nil, math.NaN()
	}
	median = slices.Sorted(slices.Values(losses))[(len(losses)-1)/2]
	for i, loss := range losses {
		if loss > max(factor*median, median+nats) {
			chains = append(chains, i)
		}
	}
	return chains, median
}
