package llc

import (
	"fmt"
	"math"
	"slices"

	"github.com/pollen-ml/pollen/diagnostics"
)

// tolerance is the relative error that an accepted estimate may have from each cause. maxAdded is
// the largest fraction of an estimate that may be subtracted as energy added by finite steps: the
// correction is exact for a quadratic loss, and of first order for others.
const (
	tolerance = 0.05
	maxAdded  = 0.1
)

// Problem is what is wrong with a row.
type Problem string

// The problems, in the order in which they are looked for.
const (
	None      Problem = "ok"
	Diverged  Problem = "diverged"  // a chain became infinite
	Below     Problem = "below w*"  // the loss is below the loss at w*, which is no minimum
	Hot       Problem = "hot"       // finite steps or minibatches heat what the loss depends on
	Moving    Problem = "moving"    // chains still move away from w*, or disagree
	Imprecise Problem = "imprecise" // the interval is too wide
	Steep     Problem = "not flat"  // another step size gives another estimate
	Single    Problem = "unchecked" // no neighbouring step size can be compared
)

// Verdict is a judgement on an estimate.
type Verdict struct {
	// Accepted is whether Lambda can be used, and Row the number of its row, -1 for none.
	Accepted bool
	Row      int
	// Lambda is the estimate of the row, also if it is not accepted.
	Lambda diagnostics.Measured
	// Text is a sentence, without its final period.
	Text string
	// Next is what to change in the options for a better estimate; its zero value if there is
	// nothing to change.
	Next Change
}

// Change has new values for some options. Options that are 0 in it stay unchanged.
type Change struct {
	StepSizes    []float64
	Steps        int
	Descent      int
	Localization float64
}

// Problems returns the problem of each row.
func (e *Estimation) Problems() []Problem {
	problems := make([]Problem, len(e.Rows))
	for i := range e.Rows {
		problems[i] = e.problem(i)
	}
	for i, p := range problems {
		if p == None {
			problems[i] = e.flatness(i, problems)
		}
	}
	return problems
}

// problem returns the problem of row i on its own, without comparing it with other rows.
func (e *Estimation) problem(i int) Problem {
	r := e.Rows[i]
	// Without the added energy, the configurational temperature is below 1 while weights still
	// spread.
	left, added := r.Temperature, 0.0
	if r.Added != nil {
		added = 2 * float64(r.Added.Value) / float64(e.Weights)
		left.Value -= diagnostics.Number(added)
	}
	coldest, hottest := left.Interval()
	trendLow, trendHigh := r.Trend.Interval()
	low, high := r.Lambda.Interval()
	size := math.Abs(float64(r.Lambda.Value))
	switch {
	case r.Diverged || math.IsNaN(size):
		return Diverged
	case r.Raw.Value <= 0:
		return Below
	case r.Added != nil && float64(r.Added.Value) > maxAdded*float64(r.Raw.Value),
		r.Added == nil && coldest > 1+tolerance:
		return Hot
	case hottest < 1-tolerance,
		!(float64(r.RHat) < diagnostics.MixedRHat),
		math.Abs(float64(r.Trend.Value)) > tolerance*size && (trendLow > 0 || trendHigh < 0):
		return Moving
	case high-low > 2*tolerance*size:
		return Imprecise
	}
	return None
}

// flatness compares a row with the row of the next smaller step size, or else of the next larger
// one. The error due to the step size is proportional to it: of two step sizes, the error at the
// first is the difference times epsilon/(epsilon - other).
func (e *Estimation) flatness(i int, problems []Problem) Problem {
	j := i + 1
	if j == len(problems) || problems[j] == Moving {
		j = i - 1 // a hot row can be compared: the correction of its estimate has a larger error
	}
	if j < 0 || problems[j] == Diverged || problems[j] == Moving {
		return Single
	}
	a, b := e.Rows[i], e.Rows[j]
	difference := float64(a.Lambda.Value - b.Lambda.Value)
	noise := 2 * math.Hypot(float64(a.Lambda.StandardError), float64(b.Lambda.StandardError))
	factor := math.Abs(a.StepSize / (a.StepSize - b.StepSize))
	if factor*(math.Abs(difference)-noise) > tolerance*math.Abs(float64(a.Lambda.Value)) {
		return Steep
	}
	return None
}

// Verdict names the row whose estimate to use: the one with the largest step size and no problem,
// if the centre is a minimum of the loss. Otherwise it explains why there is none, and what to
// change.
func (e *Estimation) Verdict() Verdict {
	problems := e.Problems()
	v := Verdict{Row: slices.Index(problems, None)}
	v.Accepted = v.Row >= 0
	at := v.Row
	if at < 0 { // the row that comes closest
		at = e.closest(problems)
	}
	if at >= 0 {
		v.Lambda = e.Rows[at].Lambda
	}
	size := float64(v.Lambda.Value)
	switch {
	case slices.Contains(problems, Below), at >= 0 && e.Slack > tolerance*size:
		v.Accepted, v.Row = false, -1
		v.Text = fmt.Sprintf("w* is not a minimum: gradient descent lowers N beta L by %.3g, and the estimate misses as much", e.Slack)
		v.Next = Change{Descent: 4 * e.Steps}
	case v.Accepted:
		v.Text = fmt.Sprintf("lambda = %s at step size %.2g: its chains agree, its temperature is known, and its neighbours agree with it",
			interval(v.Lambda), e.Rows[at].StepSize)
		e.addLocalization(&v)
	case at < 0:
		v.Text = "chains diverge, or are too hot, at every step size"
		v.Next = Change{StepSizes: halvings(e.Rows[len(e.Rows)-1].StepSize/4, gridSteps)}
	default:
		e.explain(&v, at, problems[at])
	}
	if e.Interrupted {
		v = Verdict{Row: -1, Lambda: v.Lambda, Text: "interrupted, so this is partial: " + v.Text}
	}
	return v
}

// interval formats an estimate with its 95 % interval by Student's t.
func interval(m diagnostics.Measured) string {
	low, high := m.Interval()
	digits := max(0, 2-int(math.Floor(math.Log10(math.Max(math.Abs(float64(m.Value)), 1e-3)))))
	return fmt.Sprintf("%.*f (%.*f to %.*f)", digits, float64(m.Value), digits, low, digits, high)
}

// addLocalization adds to the text by how much gamma lowers an accepted estimate, if the effect is
// clearly above the tolerance.
func (e *Estimation) addLocalization(v *Verdict) {
	effect := e.Rows[v.Row].Localization
	_, high := effect.Interval()
	if high < -tolerance*float64(v.Lambda.Value) {
		v.Text += fmt.Sprintf("; gamma lowers it by about %.2g", -float64(effect.Value))
		v.Next = Change{Localization: e.Localization / 4, Steps: 2 * e.Steps}
	}
}

// closest returns the row of the largest step size that neither diverges nor is hot, preferring
// those whose chains have settled; -1 if there is none.
func (e *Estimation) closest(problems []Problem) int {
	for _, wanted := range [][]Problem{{Imprecise, Steep, Single}, {Moving}} {
		for i, p := range problems {
			if slices.Contains(wanted, p) {
				return i
			}
		}
	}
	return -1
}

// explain fills in why a row is not accepted.
func (e *Estimation) explain(v *Verdict, at int, p Problem) {
	r := e.Rows[at]
	here := fmt.Sprintf("at step size %.2g, ", r.StepSize)
	low, high := r.Lambda.Interval()
	switch p {
	case Moving:
		v.Text = fmt.Sprintf("%schains still move or disagree: R-hat is %.2f, the temperature of all weights %.2f, the trend %+.2g of %.3g",
			here, float64(r.RHat), float64(r.Temperature.Value), float64(r.Trend.Value), float64(r.Lambda.Value))
		v.Next = Change{StepSizes: []float64{r.StepSize, round(r.StepSize / 2)}, Steps: 4 * e.Steps}
	case Imprecise:
		half := (high - low) / 2 / math.Abs(float64(r.Lambda.Value))
		v.Text = fmt.Sprintf("%sthe 95 %% interval is %.3g to %.3g, ± %.0f %%, of which %.0f %% is wanted", here, low, high, 100*half, 100*tolerance)
		more := math.Min(16, math.Max(2, math.Ceil(math.Pow(half/tolerance, 2))))
		v.Next = Change{StepSizes: []float64{r.StepSize, round(r.StepSize / 2)}, Steps: int(more) * e.Steps}
	case Single:
		v.Text = here + "no other step size of the grid can be compared, so that nothing shows the error of this one"
		v.Next = Change{StepSizes: []float64{r.StepSize, round(r.StepSize / 2)}, Steps: 2 * e.Steps}
	default:
		v.Text = here + "the estimate differs from that of the next step size: it is not flat yet"
		v.Next = Change{StepSizes: halvings(e.Rows[len(e.Rows)-1].StepSize, 3), Steps: 4 * e.Steps}
	}
}

// halvings returns n step sizes, each half of the one before.
func halvings(first float64, n int) []float64 {
	steps := make([]float64, n)
	for i := range steps {
		steps[i] = round(first * math.Pow(2, -float64(i)))
	}
	return steps
}
