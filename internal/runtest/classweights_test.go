package runtest

import (
	"context"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
)

// imbalanced are 60 images of 3 classes, without half of the first class.
func imbalanced(t *testing.T) *datasets.Dataset {
	t.Helper()
	all := squares(t, 60, 3, 1)
	few := *all
	few.Images, few.Labels, few.Files = nil, nil, nil
	for i, label := range all.Labels {
		if label > 0 || i%2 == 0 {
			few.Images, few.Labels = append(few.Images, all.Image(i)...), append(few.Labels, label)
		}
	}
	return &few
}

// TestClassWeights: a step of gradient descent on all images with the weights 2, 1, 1 equals a step
// on data with each image of the first class twice, and equal weights change nothing. With control
// variates, which apply the loss a second time, steps stay finite.
func TestClassWeights(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	once := imbalanced(t)
	twice := *once
	twice.Images, twice.Labels = append([]byte(nil), once.Images...), append([]int32(nil), once.Labels...)
	for i, label := range once.Labels {
		if label == 0 {
			twice.Images, twice.Labels = append(twice.Images, once.Image(i)...), append(twice.Labels, 0)
		}
	}
	step := func(name string, data *datasets.Dataset, weights string) []float32 {
		spec := bayes.Spec{Network: "mlp-5", Method: optimizers.SGD{}, Schedule: optimizers.Constant{Rate: 0.1}, Epochs: 3, Batch: data.Len()}
		if weights != "" {
			must(t, spec.Set("class-weights", weights))
		}
		run, err := bayes.Fit(ctx, spec, trainOn(data), filepath.Join(dir, name), with(t, 1))
		must(t, err)
		return lastOf(t, run)[0]
	}
	distance := func(a, b []float32) (most float64) {
		for i := range a {
			most = max(most, math.Abs(float64(a[i]-b[i])))
		}
		return most
	}
	names := once.ClassNames
	plain, same := step("plain", once, ""), step("same", once, strings.Join(names, "=3,")+"=3")
	if d := distance(plain, same); d > 1e-6 {
		t.Errorf("equal weights changed a parameter by %g", d)
	}
	weighted, repeated := step("weighted", once, names[0]+"=2"), step("repeated", &twice, "")
	if d := distance(weighted, repeated); d > 1e-5 {
		t.Errorf("the weight 2 and images that occur twice differ by %g in a parameter", d)
	}
	if d := distance(weighted, plain); d < 1e-3 {
		t.Errorf("the weight 2 changed parameters by at most %g", d)
	}
	spec := bayes.Spec{Network: "mlp-5", Method: langevin.SGLD{}, Epochs: 4, Anchor: 2, Samples: 2, ClassWeights: bayes.ClassWeights{Balanced: true}}
	remarks := ""
	run := fit(t, spec, trainOn(once), with(t, 1), bayes.WithObserver(func(e bayes.Event) { remarks += e.Remark + "\n" }))
	if want := "class weights: " + names[0] + " "; !strings.Contains(remarks, want) {
		t.Errorf("remarks %q, want one with %q", remarks, want)
	}
	if got := run.Manifest().Spec.ClassWeights; !got.Balanced {
		t.Errorf("class weights %v in the manifest, want balanced", got)
	}
}

// TestClassWeightsRefused are weights that do not fit.
func TestClassWeightsRefused(t *testing.T) {
	var spec bayes.Spec
	for text, want := range map[string]string{
		"rare": `class-weights must be balanced, or CLASS=WEIGHT`, "a=0": "a must be positive and finite, got 0",
		"a=x": `a must be a number, got "x"`, "a=1,a=2": "a is given twice",
	} {
		wantInvalid(t, text, spec.Set("class-weights", text), want)
	}
	must(t, spec.Set("class-weights", "unknown=2"))
	_, err := bayes.Fit(context.Background(), spec, trainOn(imbalanced(t)), filepath.Join(t.TempDir(), "run"))
	wantInvalid(t, "a class that there is not", err, `has no class "unknown"; its classes are`)
	spec = bayes.Spec{Method: bayes.LaplaceApproximation{}, ClassWeights: bayes.ClassWeights{Balanced: true}}
	wantInvalid(t, "laplace", spec.Validate(), "laplace: class-weights do not apply")
	both := bayes.ClassWeights{Balanced: true, Of: map[string]float64{"a": 1}}
	wantInvalid(t, "both", bayes.Spec{ClassWeights: both}.Validate(), "either balanced or by class")
}
