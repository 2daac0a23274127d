package evaluate

import (
	"cmp"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/pkg/errors"
)

// maxHeldOut is the maximum number of held-out examples that a Calibration keeps. If there are
// more, it keeps a pseudo-random subset, which is exchangeable with new examples, just as all of
// them are.
const maxHeldOut = 100_000

// HeldOut has the quantities of held-out predictions that prediction sets and certified risks need,
// at any level: a column for each quantity, with an element for each example, sorted by Label in
// descending order.
type HeldOut struct {
	Class []int32   `json:"class"` // the label
	Label []float64 `json:"label"` // the predicted probability of the label
	// Rank is the position of the label, from 1, among the classes in descending order of
	// probability; of equals the one with the lower number comes first. Above is the total
	// probability of the classes before the label.
	Rank  []int     `json:"rank"`
	Above []float64 `json:"above"`
	// Confidence is the largest predicted probability. The prediction is correct if Rank is 1.
	Confidence []float64 `json:"confidence"`
	// Uniform is a pseudo-random number in [0, 1) that is a function of the probabilities: the u of
	// randomized adaptive sets.
	Uniform []float64 `json:"uniform"`
	// Single reports for each example whether it is the one, drawn at random, that represents its
	// group, and SingleOfClass whether it represents the examples of its class in its group. Both
	// are nil if the examples have no groups. Certified risks use only the former, and
	// class-conditional thresholds the latter, which are independent: hundreds of frames of three
	// videos say little more about a new video than three frames. Thresholds of all classes use all
	// examples. Source: Dunn, Wasserman, Ramdas 2023, distribution-free prediction sets for
	// two-layer hierarchical models, single subsampling and pooling.
	Single        []bool `json:"single,omitempty"`
	SingleOfClass []bool `json:"singleOfClass,omitempty"`
}

// newHeldOut returns the columns for labelled predictions, of the examples with the given numbers.
func newHeldOut(p *Predictions, examples []int) HeldOut {
	n := len(examples)
	h := HeldOut{
		Class: make([]int32, n), Label: make([]float64, n), Rank: make([]int, n), Above: make([]float64, n),
		Confidence: make([]float64, n), Uniform: make([]float64, n),
	}
	order := slices.Clone(examples)
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(p.row(b)[p.Labels[b]], p.row(a)[p.Labels[a]]), cmp.Compare(p.Labels[a], p.Labels[b]),
			slices.Compare(p.row(a), p.row(b)))
	})
	var single, singleOfClass []bool
	if p.Groups != nil {
		type ofClass struct {
			group string
			label int32
		}
		groups := make([]ofClass, p.Len())
		for i := range groups {
			groups[i] = ofClass{p.Groups[i], p.Labels[i]}
		}
		single, singleOfClass = singles(p.Groups), singles(groups)
		h.Single, h.SingleOfClass = make([]bool, n), make([]bool, n)
	}
	var ranked ranking
	for i, example := range order {
		row, label := p.row(example), p.Labels[example]
		ranked.of(row)
		h.Class[i], h.Label[i], h.Confidence[i], h.Uniform[i] = label, row[label], row[ranked.order[0]], uniform(row)
		at := slices.Index(ranked.order, int(label))
		h.Rank[i], h.Above[i] = at+1, ranked.above[at]
		if single != nil {
			h.Single[i], h.SingleOfClass[i] = single[example], singleOfClass[example]
		}
	}
	return h
}

// subsetSeed is the seed for drawing subsets of examples. Any fixed number will do: subsets must
// not depend on the predictions.
const subsetSeed = 47

// singles draws one example of each group.
func singles[G comparable](groups []G) []bool {
	single, seen := make([]bool, len(groups)), map[G]bool{}
	for _, i := range rand.New(rand.NewPCG(subsetSeed, 0)).Perm(len(groups)) {
		single[i] = !seen[groups[i]]
		seen[groups[i]] = true
	}
	return single
}

// keptExamples returns the numbers of the examples, of n, that a Calibration keeps.
func keptExamples(n int) []int {
	kept := indices(n)
	if n > maxHeldOut {
		random := rand.New(rand.NewPCG(subsetSeed, uint64(n)))
		random.Shuffle(n, func(i, j int) { kept[i], kept[j] = kept[j], kept[i] })
		kept = kept[:maxHeldOut]
	}
	return kept
}

// indices returns 0 to n-1.
func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// ranking has the classes of a row in descending order of probability, of equals the lower number
// first, and the total probability of the classes before each. Both slices are reused.
type ranking struct {
	order []int
	above []float64
}

func (r *ranking) of(row []float64) {
	r.order, r.above = r.order[:0], r.above[:0]
	for k := range row {
		r.order = append(r.order, k)
	}
	slices.SortStableFunc(r.order, func(a, b int) int { return cmp.Compare(row[b], row[a]) })
	sum := 0.0
	for _, k := range r.order {
		r.above = append(r.above, sum)
		sum += row[k]
	}
}

// uniform returns a number in [0, 1) from a hash of probabilities. This makes the scores of
// randomized sets functions of image and class, so that their coverage is exact and an image gets
// the same set each time.
func uniform(row []float64) float64 {
	h := fnv.New64a()
	var b [8]byte
	for _, p := range row {
		bits := math.Float64bits(p)
		for i := range b {
			b[i] = byte(bits >> (8 * i))
		}
		h.Write(b[:]) // never returns an error
	}
	// FNV's upper bits depend little on the last bytes: mix them (splitmix64's finalizer).
	x := h.Sum64()
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11) / (1 << 53)
}

// check returns an error unless each column has n elements in their ranges.
func (h *HeldOut) check(what string, n, classes int) error {
	for name, size := range map[string]int{
		"class": len(h.Class), "label": len(h.Label), "rank": len(h.Rank), "above": len(h.Above), "confidence": len(h.Confidence), "uniform": len(h.Uniform),
	} {
		if size != n {
			return errors.Errorf("evaluate: %s: calibration must have a %[2]s for each of %[3]d examples, got %[4]d: calibrate again", what, name, n, size)
		}
	}
	if grouped := h.Single != nil || h.SingleOfClass != nil; grouped && (len(h.Single) != n || len(h.SingleOfClass) != n) {
		return errors.Errorf("evaluate: %s: calibration must have a single and a singleOfClass for each of %d examples, got %d and %d: calibrate again",
			what, n, len(h.Single), len(h.SingleOfClass))
	}
	share := func(p float64) bool { return p >= 0 && p <= 1+rowTolerance }
	for i := range n {
		switch {
		case !share(h.Label[i]) || i > 0 && h.Label[i] > h.Label[i-1]:
			return errors.Errorf("evaluate: %s: calibration: probabilities must be descending, got %[3]v at %[2]d", what, i, h.Label[i])
		case h.Class[i] < 0 || int(h.Class[i]) >= classes || h.Rank[i] < 1 || h.Rank[i] > classes:
			return errors.Errorf("evaluate: %s: calibration: class and rank must be of %[3]d classes, got %[4]d and %[5]d at %[2]d",
				what, i, classes, h.Class[i], h.Rank[i])
		case !share(h.Above[i]) || !share(h.Confidence[i]) || !(h.Uniform[i] >= 0 && h.Uniform[i] < 1):
			return errors.Errorf("evaluate: %s: calibration: above, confidence and uniform must be from 0 to 1, got %[3]v, %[4]v and %[5]v at %[2]d",
				what, i, h.Above[i], h.Confidence[i], h.Uniform[i])
		}
	}
	return nil
}
