package runtest

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/samples"
)

// The prior of each method that has one takes effect: a narrow prior makes weights small.
func TestPriorHasItsEffect(t *testing.T) {
	data := trainOn(squares(t, 60, 4, 1))
	for _, k := range kinds(t) {
		if k.name == "optimizer" || k.name == "by layers" {
			continue
		}
		if k.name == "matched friction" { // whose steps are small
			k.spec.Epochs = 200
		}
		size := map[float64]float64{}
		for _, std := range []float64{0.03, 3} {
			k.spec.Prior = new(langevin.Gaussian(std))
			files, err := fit(t, k.spec, data).Samples()
			must(t, err)
			s, err := samples.ReadSample(files[len(files)-1])
			must(t, err)
			for _, v := range s.Parameters[0].Values {
				size[std] += math.Abs(float64(v))
			}
		}
		if !(size[0.03] < 0.9*size[3]) {
			t.Errorf("%s: weights of %v in all with a prior of 0.03, %v with one of 3", k.name, size[0.03], size[3])
		}
	}
}

// A subset is the one of Dataset.First, and anchors are as far apart as requested.
func TestSubsetAndAnchor(t *testing.T) {
	data := squares(t, 100, 4, 1)
	first, err := data.First(40)
	must(t, err)
	spec := quick()
	want := contents(t, fit(t, spec, trainOn(first)).Dir())
	spec.Subset = 40
	same(t, "a subset", want, contents(t, fit(t, spec, trainOn(data)).Dir()))

	spec = bayes.Spec{Network: "mlp-3", Method: langevin.SGLD{}, Batch: 20, Epochs: 6, Samples: 3, Anchor: 1}
	each := contents(t, fit(t, spec, trainOn(data)).Dir())
	spec.Anchor = 2
	second := contents(t, fit(t, spec, trainOn(data)).Dir())
	if maps.EqualFunc(each, second, func(a, b []byte) bool { return string(a) == string(b) }) {
		t.Error("an anchor each epoch and each second one are the same")
	}
}

// The symmetric order has the same first epoch as the usual order, and different ones after it.
func TestSymmetricOrder(t *testing.T) {
	data := trainOn(squares(t, 100, 4, 1))
	spec := bayes.Spec{Network: "mlp-3", Method: langevin.SGLD{}, Batch: 20, Epochs: 2, BurnIn: new(0), Samples: 2}
	var after [2][2]samples.Sample
	for i := range after {
		spec.Symmetric = i == 1
		files, err := fit(t, spec, data).Samples()
		must(t, err)
		for epoch, file := range files {
			after[i][epoch], err = samples.ReadSample(file)
			must(t, err)
		}
	}
	for epoch, want := range []bool{true, false} {
		if slices.Equal(after[0][epoch].Parameters[0].Values, after[1][epoch].Parameters[0].Values) != want {
			t.Errorf("after epoch %d the symmetric order has the shuffled one's weights, or not: want %v", epoch+1, want)
		}
	}
	_, err := bayes.Spec{Method: methodOf(t, "hmc"), Symmetric: true}.Resolve()
	wantInvalid(t, "hmc", err, "order")
}
