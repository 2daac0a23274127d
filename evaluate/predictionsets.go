package evaluate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"
)

// SetScore names the nonconformity score of a class that prediction sets are formed with. In the
// formulas p is the class's probability, above the total probability of the classes ranked before
// it, rank its position among them, from 1, and u a number in [0, 1).
type SetScore string

const (
	// ThresholdSets scores by -p: a set has the classes whose probability reaches a threshold. If
	// the probabilities are correct, no other sets with this coverage are smaller on average
	// (Sadinle, Lei, Wasserman 2019, least ambiguous set-valued classifiers).
	ThresholdSets SetScore = "threshold"
	// AdaptiveSets scores by above + u p: a set has the most probable classes up to a total
	// probability, so that sets are larger for harder images (Romano, Sesia, Candès 2020,
	// classification with valid and adaptive coverage; APS). Without SetRule.Randomized u is 0, as
	// in the authors' code without randomization, whose u counts from the other end.
	AdaptiveSets SetScore = "aps"
	// RegularizedSets scores by above + u p + Lambda max(0, rank - KReg): adaptive sets without
	// their long tails of improbable classes (Angelopoulos, Bates, Malik, Jordan 2021, uncertainty
	// sets for image classifiers; RAPS).
	RegularizedSets SetScore = "raps"
)

// SetRule is a rule by which prediction sets are formed. The zero value has ThresholdSets with one
// threshold for all classes and without empty sets. Every rule has the coverage that Calibration
// describes.
type SetRule struct {
	// Score is the nonconformity score; "" is ThresholdSets.
	Score SetScore `json:"score"`
	// Randomized makes the u of adaptive sets pseudo-random. Their coverage, if they may be empty,
	// is then the level and not more, as few scores tie. u is a function of the probabilities, so
	// that an image has the same set each time.
	Randomized bool `json:"randomized,omitempty"`
	// Lambda and KReg are as in RegularizedSets. The default, 0 and 0, is 0.01 and 5, with which
	// the paper found small sets on ImageNet; other networks may have smaller sets with others.
	Lambda float64 `json:"lambda,omitempty"`
	KReg   int     `json:"kReg,omitempty"`
	// PerClass makes sets class-conditional (Mondrian conformal prediction, Vovk 2013): each class
	// has a threshold from its own held-out examples, and the images of each class are covered with
	// the level. A class with too few examples has the threshold of all classes, without such a
	// guarantee, see ClassThreshold.
	PerClass bool `json:"perClass,omitempty"`
	// AllowEmpty keeps empty sets. Otherwise a set that would be empty contains the most probable
	// class, which can only increase the coverage.
	AllowEmpty bool `json:"allowEmpty,omitempty"`
}

// resolve returns the rule with defaults filled in, or an error for one that is not valid.
func (r SetRule) resolve() (SetRule, error) {
	r.Score = cmp.Or(r.Score, ThresholdSets)
	switch {
	case r.Score != ThresholdSets && r.Score != AdaptiveSets && r.Score != RegularizedSets:
		return r, errors.Errorf("evaluate: SetRule: Score must be %s, %s or %s, got %q", ThresholdSets, AdaptiveSets, RegularizedSets, r.Score)
	case r.Score == ThresholdSets && r.Randomized:
		return r, errors.Errorf("evaluate: SetRule: Randomized applies to %s and %s, not to %s", AdaptiveSets, RegularizedSets, r.Score)
	case r.Score != RegularizedSets && (r.Lambda != 0 || r.KReg != 0):
		return r, errors.Errorf("evaluate: SetRule: Lambda and KReg apply to %s, not to %s", RegularizedSets, r.Score)
	case !(r.Lambda >= 0) || math.IsInf(r.Lambda, 0) || r.KReg < 0:
		return r, errors.Errorf("evaluate: SetRule: Lambda and KReg must not be negative, got %v and %d", r.Lambda, r.KReg)
	}
	if r.Score == RegularizedSets && r.Lambda == 0 && r.KReg == 0 {
		r.Lambda, r.KReg = 0.01, 5
	}
	return r, nil
}

// Validate returns an error for a rule that is not valid.
func (r SetRule) Validate() error {
	_, err := r.resolve()
	return err
}

// String returns the score as ParseSetScore reads it, such as "raps:lambda=0.01,kreg=5".
func (r SetRule) String() string {
	var attributes []string
	if r.Score == RegularizedSets && (r.Lambda != 0 || r.KReg != 0) {
		attributes = append(attributes, fmt.Sprintf("lambda=%g", r.Lambda), fmt.Sprintf("kreg=%d", r.KReg))
	}
	if r.Randomized {
		attributes = append(attributes, "randomized")
	}
	text := string(cmp.Or(r.Score, ThresholdSets))
	if attributes != nil {
		text += ":" + strings.Join(attributes, ",")
	}
	return text
}

// ParseSetScore returns the rule for a text such as "threshold", "aps", "aps:randomized" or
// "raps:lambda=0.01,kreg=5,randomized".
func ParseSetScore(text string) (r SetRule, err error) {
	name, attributes, has := strings.Cut(text, ":")
	r.Score = SetScore(name)
	if has {
		for _, attribute := range strings.Split(attributes, ",") {
			key, value, _ := strings.Cut(attribute, "=")
			switch {
			case attribute == "randomized":
				r.Randomized = true
			case key == "lambda":
				r.Lambda, err = strconv.ParseFloat(value, 64)
			case key == "kreg":
				r.KReg, err = strconv.Atoi(value)
			default:
				err = errors.Errorf("no attribute %q; there are lambda=0.01, kreg=5 and randomized", attribute)
			}
			if err != nil {
				return r, errors.WithMessagef(err, "evaluate: prediction sets %q", text)
			}
		}
	}
	return r, r.Validate()
}

// score returns the nonconformity score of a class.
func (r SetRule) score(p, above float64, rank int, u float64) float64 {
	if r.Score == ThresholdSets {
		return -p
	}
	score := above
	if r.Randomized {
		score += u * p
	}
	return score + r.Lambda*float64(max(0, rank-r.KReg))
}

// ClassThreshold is the threshold for one class.
type ClassThreshold struct {
	// Class is the number of the class, Examples the number of its held-out examples, or of their
	// groups if they have any, and Needed the minimum of Examples for a separate threshold.
	Class    int `json:"index"`
	Examples int `json:"images"`
	Needed   int `json:"needed"`
	// Score is the highest nonconformity score that is in a set. For ThresholdSets it is minus the
	// lowest probability.
	Score float64 `json:"threshold"`
	// Marginal reports that the class has the threshold of all classes, because Examples is less
	// than Needed. It is false for rules with one threshold for all classes.
	Marginal bool `json:"marginal,omitempty"`
}

// Sets forms prediction sets at a level by a rule. Calibration.Sets makes it.
type Sets struct {
	Level float64
	Rule  SetRule // with defaults filled in
	// Marginal is the highest nonconformity score that is in a set, computed over all classes.
	Marginal float64
	// Thresholds are the thresholds of the classes for a class-conditional rule, and nil otherwise.
	Thresholds []ClassThreshold
	// Grouped reports that the held-out examples have groups, so that thresholds count these.
	Grouped bool
}

// NeededExamples returns the minimum number of held-out examples for a level: the smallest n with
// ceil((n+1) level) <= n, which is level / (1 - level), rounded up: 19 for 95 % and 99 for 99 %. It
// is math.MaxInt for a level that is not between 0 and 1, which no number of examples supports.
func NeededExamples(level float64) int {
	if !(level > 0 && level < 1) {
		return math.MaxInt
	}
	return max(1, int(math.Ceil((level-rankTolerance)/(1-level))))
}

// Sets returns the prediction sets of a rule at a level. It returns an error if level is not
// between 0 and 1, if the rule is not valid, and if there are too few held-out examples (see
// Supports): only sets of all classes would then have the coverage.
func (c *Calibration) Sets(level float64, rule SetRule) (*Sets, error) {
	rule, err := rule.resolve()
	if err == nil {
		err = c.checkLevel("PredictionSets", level)
	}
	if err != nil {
		return nil, err
	}
	scores := make([]float64, c.Examples)
	byClass := make([][]float64, c.Classes)
	for i := range scores {
		scores[i] = rule.score(c.Label[i], c.Above[i], c.Rank[i], c.Uniform[i])
		if c.SingleOfClass == nil || c.SingleOfClass[i] {
			byClass[c.Class[i]] = append(byClass[c.Class[i]], scores[i])
		}
	}
	quantile := func(scores []float64) float64 {
		slices.Sort(scores)
		return scores[rank(len(scores), level)-1]
	}
	s := &Sets{Level: level, Rule: rule, Marginal: quantile(scores), Grouped: c.Single != nil}
	if !rule.PerClass {
		return s, nil
	}
	for class, own := range byClass {
		t := ClassThreshold{Class: class, Examples: len(own), Needed: NeededExamples(level), Score: s.Marginal}
		if t.Marginal = rank(len(own), level) > len(own); !t.Marginal {
			t.Score = quantile(own)
		}
		s.Thresholds = append(s.Thresholds, t)
	}
	return s, nil
}

// Fallbacks returns the thresholds of the classes that use the threshold of all classes, because
// they have too few held-out examples.
func (s *Sets) Fallbacks() (classes []ClassThreshold) {
	for _, t := range s.Thresholds {
		if t.Marginal {
			classes = append(classes, t)
		}
	}
	return classes
}

// threshold returns the highest score that is in a set, for a class.
func (s *Sets) threshold(class int) float64 {
	if s.Thresholds == nil {
		return s.Marginal
	}
	return s.Thresholds[class].Score
}

// Of returns the set for each row of the probabilities [N K], the most probable class first. The
// label of a new example is in its set with a probability of at least the level, under the
// conditions of Calibration. It returns an error if a row is not a distribution over the classes.
func (s *Sets) Of(probabilities []float64, classes int) ([][]int, error) {
	if s.Thresholds != nil && classes != len(s.Thresholds) {
		return nil, errors.Errorf("evaluate: PredictionSets: must have the calibration's %[2]d classes, got %[1]d", classes, len(s.Thresholds))
	}
	if err := checkRows("PredictionSets", probabilities, len(probabilities)/max(classes, 1), classes); err != nil {
		return nil, err
	}
	sets := make([][]int, len(probabilities)/classes)
	var ranked ranking
	for n := range sets {
		row := probabilities[n*classes : (n+1)*classes]
		if s.Rule.Score == ThresholdSets {
			sets[n] = s.thresholdSet(row)
			continue
		}
		ranked.of(row)
		u := 0.0
		if s.Rule.Randomized {
			u = uniform(row)
		}
		for i, k := range ranked.order {
			if s.Rule.score(row[k], ranked.above[i], i+1, u) <= s.threshold(k) {
				sets[n] = append(sets[n], k)
			}
		}
		if sets[n] == nil && !s.Rule.AllowEmpty {
			sets[n] = ranked.order[:1:1]
			ranked.order = nil // the set owns this slice now
		}
	}
	return sets, nil
}

// thresholdSet returns the set for a row by ThresholdSets. It ranks only the classes of the set,
// which are usually few.
func (s *Sets) thresholdSet(row []float64) (set []int) {
	for k, p := range row {
		if s.Rule.score(p, 0, 0, 0) <= s.threshold(k) {
			set = append(set, k)
		}
	}
	if set == nil && !s.Rule.AllowEmpty {
		best, _ := largest(row)
		return []int{best}
	}
	slices.SortStableFunc(set, func(a, b int) int { return cmp.Compare(row[b], row[a]) })
	return set
}

// PredictionSets returns the sets of Sets for each row of the probabilities [N K]. It has the
// errors of Sets and Sets.Of.
func (c *Calibration) PredictionSets(probabilities []float64, classes int, level float64, rule SetRule) ([][]int, error) {
	s, err := c.Sets(level, rule)
	if err != nil {
		return nil, err
	}
	if classes != c.Classes {
		return nil, errors.Errorf("evaluate: PredictionSets: must have the calibration's %[2]d classes, got %[1]d", classes, c.Classes)
	}
	return s.Of(probabilities, classes)
}

// ProbabilityThreshold returns the lowest probability of a class in a set of ThresholdSets with one
// threshold for all classes. It returns the errors that Sets does.
func (c *Calibration) ProbabilityThreshold(level float64) (float64, error) {
	if err := c.checkLevel("PredictionSets", level); err != nil {
		return 0, err
	}
	return c.Label[rank(c.Examples, level)-1], nil
}

// CoverageByLevel returns the fraction of a case's examples whose set contains the label, for the
// levels .50, .51, ... .99 that the calibration supports. Sets may be empty here, so that the
// expected coverage is the level even where the accuracy is higher. The errors are as for Assess;
// there must be labels and a calibration.
func CoverageByLevel(c Case) (levels, coverage []float64, err error) {
	if err := c.check(); err != nil {
		return nil, nil, err
	}
	if c.In.Labels == nil || c.Calibration == nil {
		return nil, nil, errors.New("evaluate: CoverageByLevel: must have labels and a calibration")
	}
	h := newHeldOut(c.In, indices(c.In.Len()))
	for percent := 50; percent < 100; percent++ {
		level := float64(percent) / 100
		if !c.Calibration.Supports(level) {
			break
		}
		s, err := c.Calibration.Sets(level, c.Sets)
		if err != nil {
			return nil, nil, err
		}
		covered := 0
		for i, class := range h.Class {
			if s.Rule.score(h.Label[i], h.Above[i], h.Rank[i], h.Uniform[i]) <= s.threshold(int(class)) {
				covered++
			}
		}
		levels, coverage = append(levels, level), append(coverage, float64(covered)/float64(c.In.Len()))
	}
	return levels, coverage, nil
}

// AllClasses explains why prediction sets at a level have all classes for every image, and what to
// do. It returns "" if they do not. They do if the threshold is a probability of 0, because more
// than 1 - level of the held-out labels have this probability.
func (c *Calibration) AllClasses(level float64) (reason string) {
	if threshold, err := c.ProbabilityThreshold(level); err != nil || threshold > 0 {
		return ""
	}
	zeros := 0
	for _, p := range c.Label {
		if p == 0 {
			zeros++
		}
	}
	reason = fmt.Sprintf("prediction sets at level %g have all %d classes, since %.1f %% of the held-out labels have a predicted probability of 0: ",
		level, c.Classes, 100*float64(zeros)/float64(len(c.Label)))
	for percent := 99; percent >= 50; percent-- {
		lower := float64(percent) / 100
		if threshold, err := c.ProbabilityThreshold(lower); err == nil && threshold > 0 {
			return reason + fmt.Sprintf("use a level of at most %g, or a method that is less certain of its mistakes", lower)
		}
	}
	return reason + "use a method that is less certain of its mistakes"
}

var (
	setCoverageScore = Score{
		Name: "setCoverage", Title: "coverage of 95 % sets", Format: "%.3f", Needs: NeedsLabels | NeedsCalibration,
		Meaning: "The fraction of {in} whose conformal prediction set at level 95 % contains the label; at least 95 % are expected. " +
			"Without empty sets it is at least the accuracy.",
		Of: func(c Case) (float64, error) {
			sets, err := c.predictionSets()
			covered := 0.0
			for n, set := range sets {
				if slices.Contains(set, int(c.In.Labels[n])) {
					covered++
				}
			}
			return covered / float64(c.In.Len()), err
		},
	}
	setSizeScore = Score{
		Name: "setSize", Title: "size of 95 % sets", Format: "%.2f", Needs: NeedsCalibration,
		Meaning: "The mean number of classes in the conformal prediction sets at level 95 %. Lower is better.",
		Of: func(c Case) (float64, error) {
			sets, err := c.predictionSets()
			size := 0.0
			for _, set := range sets {
				size += float64(len(set))
			}
			return size / float64(c.In.Len()), err
		},
	}
)

func (c Case) predictionSets() ([][]int, error) {
	return c.Calibration.PredictionSets(c.In.Probabilities, c.In.Classes, Level, c.Sets)
}
