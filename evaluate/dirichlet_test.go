package evaluate

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distmv"
)

// The mutual information is the entropy of the mean minus the expected entropy, with the digamma
// function of another implementation.
func TestDirichletInformation(t *testing.T) {
	for _, alpha := range [][]float64{{1, 1}, {0.3, 4, 0.02}, {20, 1.5, 3, 7}, {900, 2, 0.5}, {1e-3, 0.5}, {12, 11, 10.5, 9.5}} {
		precision := 0.0
		for _, a := range alpha {
			precision += a
		}
		mean, total, expected := make([]float64, len(alpha)), 0.0, 0.0
		for k, a := range alpha {
			mean[k] = a / precision
			total -= mean[k] * math.Log(mean[k])
			expected -= mean[k] * (mathext.Digamma(a+1) - mathext.Digamma(precision+1))
		}
		want := total - expected
		if got := DirichletInformation(mean, precision); math.Abs(got-want) > 1e-9*max(1, want) {
			t.Errorf("concentrations %v: mutual information %v, want %v", alpha, got, want)
		}
		// Where the information is tiny, the precision that follows from it is, too.
		if got := DirichletPrecision(mean, want); math.Abs(math.Log(got/precision)) > 1e-3 {
			t.Errorf("concentrations %v: the precision of information %v is %v, want %v", alpha, want, got, precision)
		}
	}
	mean := []float64{0.7, 0.2, 0.1, 0}
	if got, want := DirichletInformation(mean, 1e9), 2/(2*1e9); math.Abs(got/want-1) > 1e-6 {
		t.Errorf("at a precision of 1e9 the mutual information is %v, want %v: (classes - 1) / (2 precision)", got, want)
	}
	if got, want := DirichletPrecision(mean, 0), maxPrecision; got != want {
		t.Errorf("without information the precision is %v, want %v", got, want)
	}
	if got, want := DirichletPrecision(mean, 5), minPrecision; got != want {
		t.Errorf("with more information than the entropy the precision is %v, want %v", got, want)
	}
}

// Samples of a Dirichlet distribution have its precision.
func TestRecoversDirichlet(t *testing.T) {
	for _, alpha := range [][]float64{{8, 1, 1}, {0.9, 0.05, 0.4, 0.2}, {60, 30, 5}} {
		d := distmv.NewDirichlet(alpha, rand.NewPCG(1, 2))
		p, err := NewPredictive(1, len(alpha))
		if err != nil {
			t.Fatal(err)
		}
		precision, row := 0.0, make([]float32, len(alpha))
		for _, a := range alpha {
			precision += a
		}
		for range 4000 {
			sum := 0.0
			for k, v := range d.Rand(nil) {
				row[k] = float32(v)
				sum += v
			}
			if math.Abs(sum-1) > 1e-4 {
				continue // all concentrations were below float64's smallest number
			}
			if err := p.Add(row, 1); err != nil {
				t.Fatal(err)
			}
		}
		got := DirichletPrecision(p.Mean(), p.Uncertainty().MutualInformation[0])
		if math.Abs(got/precision-1) > 0.05 {
			t.Errorf("the precision of samples with concentrations %v is %v, want %v", alpha, got, precision)
		}
	}
}

func TestAddDirichlet(t *testing.T) {
	logits := []float32{1, 0, -1, 3, 3, 3}
	means := make([]float32, len(logits))
	for n := range 2 {
		row := logits[3*n : 3*n+3]
		for k, v := range row {
			means[3*n+k] = float32(math.Exp(float64(v)) / sumExp(row))
		}
	}
	p, err := NewPredictive(2, 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.AddDirichlet(means, logits, 2); err != nil {
		t.Fatal(err)
	}
	q := p.Predictions("data", nil)
	if q.Samples != 1 || !q.Dirichlet || !mutualInformationOOD.Applies(q) || variationRatioOOD.Applies(q) {
		t.Errorf("predictions %+v, want 1 sample with mutual information and without votes", q)
	}
	for n, want := range []float64{
		DirichletInformation(p.Mean()[:3], math.Exp(1)+1+math.Exp(-1)), DirichletInformation([]float64{1. / 3, 1. / 3, 1. / 3}, 3*math.Exp(3)),
	} {
		if got := q.MutualInformation[n]; math.Abs(got-want) > 1e-6 || got+q.ExpectedEntropy[n]-q.Entropy[n] > 1e-12 {
			t.Errorf("example %d: mutual information %v and expected entropy %v of entropy %v, want %v", n, got, q.ExpectedEntropy[n], q.Entropy[n], want)
		}
	}
	for what, bad := range map[string][]float32{"too few": logits[:3], "infinite": {1, 0, -1, 3, float32(math.Inf(1)), 3}} {
		if err := p.AddDirichlet(means, bad, 1); err == nil || p.Samples() != 1 {
			t.Errorf("%s logits: error %v with %d samples, want one and 1", what, err, p.Samples())
		}
	}
}
