package evaluate

import (
	"math"
	"slices"

	"github.com/pkg/errors"
)

// Predictive accumulates a posterior predictive distribution over weighted samples s, p-bar = sum_s
// w_s p_s / sum_s w_s. The weight of a sample of SGLD is its step size (Teh, Thiery, Vollmer 2016);
// a single network has the weight 1. It needs memory for 2 N K + N float64, independent of the
// number of samples. It is not safe for concurrent use.
type Predictive struct {
	examples, classes int
	samples           int
	dirichlet         bool      // members are Dirichlet distributions rather than samples
	weight            float64   // sum_s w_s
	mean              []float64 // [N K] p-bar
	votes             []float64 // [N K] sum_s w_s [k = argmax p_s]
	entropy           []float64 // [N] E_s H[p_s]
	row               []float64 // [K] scratch
}

// NewPredictive returns an empty average over N examples of K classes. It returns an error for
// fewer than 1 example or 2 classes.
func NewPredictive(examples, classes int) (*Predictive, error) {
	if examples < 1 || classes < 2 {
		return nil, errors.Errorf("evaluate: NewPredictive: must have at least 1 example and 2 classes, got %d and %d", examples, classes)
	}
	return &Predictive{
		examples: examples, classes: classes,
		mean:    make([]float64, examples*classes),
		votes:   make([]float64, examples*classes),
		entropy: make([]float64, examples),
		row:     make([]float64, classes),
	}, nil
}

// Add adds one sample's probabilities [N K] with a weight. It returns an error, and leaves the
// average unchanged, if a probability is outside [0, 1], a row does not sum to 1 within 1e-4, or
// the weight is not positive and finite. It divides each row by its sum, which removes the rounding
// of a float32 softmax from the average.
func (p *Predictive) Add(probabilities []float32, weight float64) error {
	return p.add(probabilities, nil, weight)
}

// AddDirichlet adds Dirichlet distributions over probabilities, one for each example, with a
// weight: logits [N K] are the logarithms of their concentrations, and probabilities [N K] their
// means, which are the softmax of the logits. The expected entropy, and with it the mutual
// information, is then computed from the distributions, so that a single sample has mutual
// information, too. It has the errors of Add; a logit that is not finite is also an error.
func (p *Predictive) AddDirichlet(probabilities, logits []float32, weight float64) error {
	if len(logits) != p.examples*p.classes {
		return errors.Errorf("evaluate: Predictive.AddDirichlet: logits must be %d x %d (examples x classes), got %d", p.examples, p.classes, len(logits))
	}
	for i, v := range logits {
		if v-v != 0 {
			return errors.Errorf("evaluate: Predictive.AddDirichlet: example %d: logit must be finite, got %v", i/p.classes, v)
		}
	}
	if err := p.add(probabilities, logits, weight); err != nil {
		return err
	}
	p.dirichlet = true
	return nil
}

// add adds probabilities and, unless logits is nil, the spread of Dirichlet distributions.
func (p *Predictive) add(probabilities, logits []float32, weight float64) error {
	if !(weight > 0) || math.IsInf(p.weight+weight, 0) {
		return errors.Errorf("evaluate: Predictive.Add: weight must be positive and finite, got %v", weight)
	}
	if err := checkRows("Predictive.Add", probabilities, p.examples, p.classes); err != nil {
		return err
	}
	p.weight += weight
	p.samples++
	step := weight / p.weight // means move by this fraction of the difference, which cannot overflow
	for n := range p.examples {
		begin, end := n*p.classes, (n+1)*p.classes
		sum := 0.0
		for k, value := range probabilities[begin:end] {
			p.row[k] = float64(value)
			sum += p.row[k]
		}
		mean := p.mean[begin:end]
		best, _ := largest(p.row)
		for k := range p.row {
			p.row[k] /= sum
			mean[k] += step * (p.row[k] - mean[k])
		}
		p.votes[begin+best] += weight
		expected := entropy(p.row)
		if logits != nil {
			expected -= min(expected, DirichletInformation(p.row, sumExp(logits[begin:end])))
		}
		p.entropy[n] += step * (expected - p.entropy[n])
	}
	return nil
}

// sumExp returns the sum of the logits' exponentials, clamped to minPrecision and maxPrecision.
func sumExp(logits []float32) float64 {
	sum := 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v))
	}
	return min(max(sum, minPrecision), maxPrecision)
}

// Samples returns the number of samples added.
func (p *Predictive) Samples() int { return p.samples }

// Mean returns a copy of the averaged probabilities p-bar [N K], or nil if no sample was added.
// Each row sums to 1, and its maximum is at least 1/K.
func (p *Predictive) Mean() []float64 {
	if p.samples == 0 {
		return nil
	}
	if err := checkRows("Predictive.Mean", p.mean, p.examples, p.classes); err != nil {
		panic(err)
	}
	for n := range p.examples {
		if _, top := largest(p.mean[n*p.classes : (n+1)*p.classes]); top < (1-rowTolerance)/float64(p.classes) {
			panic(errors.Errorf("evaluate: Predictive.Mean: example %d: confidence must be at least 1/%[3]d, got %[2]v", n, top, p.classes))
		}
	}
	return slices.Clone(p.mean)
}

// Uncertainty has measures of uncertainty for each example of a predictive distribution, each [N].
// All except Confidence grow with uncertainty and can be passed to Detect and RiskCoverage;
// Confidence must be negated. Entropies are in nats.
type Uncertainty struct {
	Confidence        []float64 // max_k p-bar_k, in [1/K, 1]
	Entropy           []float64 // H[p-bar], the total uncertainty, in [0, ln K]
	ExpectedEntropy   []float64 // E_s H[p_s], the aleatoric part, which remains if the weights are known
	MutualInformation []float64 // H[p-bar] - E_s H[p_s] >= 0, the epistemic part: disagreement of the samples; 0 for one sample
	VariationRatio    []float64 // 1 - the largest fraction of weight that votes for one class; 0 for one sample
}

// Uncertainty returns the uncertainty of each example, or the zero value if no sample was added.
func (p *Predictive) Uncertainty() Uncertainty { return p.uncertaintyOf(p.Mean()) }

// uncertaintyOf returns the uncertainty of each example, given the averaged probabilities.
func (p *Predictive) uncertaintyOf(mean []float64) Uncertainty {
	if mean == nil {
		return Uncertainty{}
	}
	u := Uncertainty{
		Confidence:        make([]float64, p.examples),
		Entropy:           make([]float64, p.examples),
		ExpectedEntropy:   make([]float64, p.examples),
		MutualInformation: make([]float64, p.examples),
		VariationRatio:    make([]float64, p.examples),
	}
	for n := range p.examples {
		row := mean[n*p.classes : (n+1)*p.classes]
		_, u.Confidence[n] = largest(row)
		u.Entropy[n] = entropy(row)
		u.ExpectedEntropy[n] = p.entropy[n]
		// By Jensen's inequality the difference is >= 0; rounding can make it about -1e-17.
		u.MutualInformation[n] = max(0, u.Entropy[n]-u.ExpectedEntropy[n])
		_, votes := largest(p.votes[n*p.classes : (n+1)*p.classes])
		u.VariationRatio[n] = 1 - votes/p.weight
	}
	return u
}
