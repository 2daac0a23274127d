package measure_test

import (
	"context"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/internal/letters"
	"github.com/pollen-ml/pollen/internal/measure"
	"github.com/pollen-ml/pollen/internal/testenv"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// softmaxRegression returns the specification of a softmax regression by a method at a
// temperature.
func softmaxRegression(t *testing.T, method string, temperature float64) bayes.Spec {
	return bayes.Spec{
		Layers: layers.Sequential{layers.Flatten{}, layers.Linear{Outputs: 4}}, Method: methodOf(t, method), Temperature: new(temperature),
		Prior: new(langevin.Gaussian(0.1)), Schedule: optimizers.Constant{Rate: 0.05},
	}
}

// subjectOf returns the subject of measurements on a run of a specification.
func subjectOf(t *testing.T, spec bayes.Spec, data *datasets.Dataset) measure.Subject {
	network, err := spec.Build(data.Classes)
	must(t, err)
	return measure.Subject{
		Network: network, Posterior: langevin.Posterior{DataSize: data.Len(), Prior: *spec.Prior, Layers: spec.Priors},
		Images: samples.Images{
			Pixels: data.Images, Channels: data.Channels, Height: data.Height, Width: data.Width, Mean: data.Mean, Std: data.Std,
		},
		Labels: data.Labels, Classes: data.Classes,
		Batch: spec.Batch, Seed: spec.Seed, Augment: func(_ *graph.Builder, x *graph.Node) *graph.Node { return x },
	}
}

func fieldOf(t *testing.T, spec bayes.Spec, data *datasets.Dataset) measure.Field {
	device := tensor.NewHost(1)
	t.Cleanup(func() { device.Close() })
	f, err := measure.NewField(device, subjectOf(t, spec, data))
	must(t, err)
	t.Cleanup(f.Close)
	return f
}

// TestField compares gL.gU and the divergence of gL with softmax regression's in closed form; the
// prior and the labels' distribution must matter.
func TestField(t *testing.T) {
	const size = 1200 // minibatches of 12
	data := letters.Noisy(t, size)
	spec := softmaxRegression(t, "sghmc", 0.2)
	spec.Epochs, spec.Samples, spec.Batch = 3, 1, 20
	run := fit(t, spec, trainOn(data))
	files, err := run.Samples()
	must(t, err)
	sample, err := samples.ReadSample(files[0])
	must(t, err)
	predicted, err := run.Predictions(t.Context(), data, nil)
	must(t, err)

	m, width := run.Manifest(), data.ImageSize()+1 // the bias's input is 1
	gradient, divergence := make([]float64, 4*width), 0.0
	for i := range size {
		p := predicted.Probabilities[4*i:][:4]
		length, spread := 0.0, 1.0
		for _, q := range p {
			spread -= q * q
		}
		for j := range width {
			x := 1.0
			if j < width-1 {
				x = (float64(data.Image(i)[j])/255 - m.Data.Mean[0]) / m.Data.Std[0]
			}
			length += x * x
			for k, q := range p {
				if int(data.Labels[i]) == k {
					q--
				}
				gradient[k*width+j] += q * x
			}
		}
		divergence += length * spread
	}
	weights := func(j, k int) float64 { // of input j and output k
		for _, p := range sample.Parameters {
			if len(p.Values) == 4 && j == width-1 {
				return float64(p.Values[k])
			}
			if len(p.Values) > 4 && j < width-1 {
				return float64(p.Values[k*(width-1)+j])
			}
		}
		return math.NaN()
	}
	product, without := 0.0, 0.0
	for k := range 4 {
		for j := range width {
			g := gradient[k*width+j]
			product += g * (g + weights(j, k)/(0.1*0.1))
			without += g * g
		}
	}

	f := fieldOf(t, spec, data)
	gotProduct, sum := 0.0, 0.0
	const repetitions = 20 // of the labels that are drawn
	for range repetitions {
		one, err := f.At(t.Context(), sample)
		must(t, err)
		gotProduct = one[measure.ByCurvature].Product
		sum += one[measure.ByCurvature].Divergence / repetitions
	}
	if off := math.Abs(gotProduct/product - 1); !(off < 1e-3) || math.Abs(without/product-1) < 0.01 {
		t.Errorf("gL.gU is %.6g, want %.6g, and %.6g without the prior", gotProduct, product, without)
	}
	if off := math.Abs(sum/divergence - 1); !(off < 0.05) {
		t.Errorf("the divergence is %.6g, want %.6g", sum, divergence)
	}

	// By determination, F.gU equals the field's at the sample, wherever it was computed before.
	at, err := f.At(t.Context(), sample)
	must(t, err)
	field, err := f.DeterminedAt(t.Context(), sample)
	must(t, err)
	slope, err := f.GradientAt(t.Context(), sample)
	must(t, err)
	product = 0
	for p, parameter := range sample.Parameters {
		for i, v := range parameter.Values {
			product += field[p][i] * (slope[p][i] + float64(v)/(0.1*0.1))
		}
	}
	if got := at[measure.ByDetermination].Product; !(math.Abs(got/product-1) < 1e-5) {
		t.Errorf("by determination F.gU is %v, want %v", got, product)
	}
}

// TestPriorGradients: nothing of the likelihood is in them, and a flat prior has none.
func TestPriorGradients(t *testing.T) {
	spec := softmaxRegression(t, "sghmc", 1)
	spec.Epochs, spec.Samples, spec.Batch = 3, 1, 20
	spec.Priors = map[string]langevin.Prior{"linear1.bias": langevin.Flat()}
	device := tensor.NewHost(1)
	defer device.Close()
	sample := samples.Sample{Parameters: []samples.Parameter{
		{Name: "linear1.weight", Shape: tensor.Shape{2, 3}, Values: []float32{0, 1, -2, 3, 1e-9, 0.5}},
		{Name: "linear1.bias", Shape: tensor.Shape{2}, Values: []float32{1, 2}},
	}}
	session, err := measure.PriorGradients(device, subjectOf(t, spec, squares(t, 100, 4, 1)), []graph.Tensor{
		{Name: "linear1.weight", DType: tensor.Float32, Shape: tensor.Shape{2, 3}}, {Name: "linear1.bias", DType: tensor.Float32, Shape: tensor.Shape{2}},
	})
	must(t, err)
	defer session.Close()
	must(t, sample.Put(session, 0))
	must(t, session.Run(1))
	var buffer []float32
	must(t, measure.ReadGradients(session, sample, &buffer, func(p int, gradient []float32) {
		for i, g := range gradient {
			want := float64(1-p) * float64(sample.Parameters[p].Values[i]) / (0.1 * 0.1)
			if !(math.Abs(float64(g)-want) <= 1e-6*math.Abs(want)) {
				t.Errorf("parameter %d, element %d: %v, want %v", p, i, g, want)
			}
		}
	}))
}

// TestCurvedLogits compares the divergence of gL with differences of gL along each parameter, where
// tanh curves the logits.
func TestCurvedLogits(t *testing.T) {
	testenv.NeedsAll(t, "long chains")
	const repetitions, distance = 300, 5e-3 // the latter changes the sums by less than 1 %
	data := letters.Noisy(t, 120)
	spec := bayes.Spec{
		Layers: layers.Sequential{layers.Flatten{}, layers.Linear{Outputs: 10}, layers.Tanh{}, layers.Linear{Outputs: 4}},
		Method: methodOf(t, "sghmc"), Prior: new(langevin.Gaussian(0.3)), Schedule: optimizers.Constant{Rate: 0.05},
		Epochs: 40, Samples: 8, Batch: 20,
	}
	files, err := fit(t, spec, trainOn(data)).Samples()
	must(t, err)
	f := fieldOf(t, spec, data)
	exact, estimated, fisher := 0.0, 0.0, 0.0
	determined, estimatedDetermined := 0.0, 0.0
	for _, file := range files[:1] { // a gradient for each of its weights takes long
		sample, err := samples.ReadSample(file)
		must(t, err)
		for range repetitions {
			at, err := f.At(t.Context(), sample)
			must(t, err)
			all := at[measure.ByCurvature].Divergence
			estimatedDetermined += at[measure.ByDetermination].Divergence / repetitions
			part, err := f.Fisher(t.Context(), sample)
			must(t, err)
			estimated, fisher = estimated+all/repetitions, fisher+part/repetitions
		}
		for p := range sample.Parameters {
			values := sample.Parameters[p].Values
			for i, v := range values {
				values[i] = v + distance
				above, err := f.GradientAt(t.Context(), sample)
				must(t, err)
				determinedAbove, err := f.DeterminedAt(t.Context(), sample)
				must(t, err)
				values[i] = v - distance
				below, err := f.GradientAt(t.Context(), sample)
				must(t, err)
				determinedBelow, err := f.DeterminedAt(t.Context(), sample)
				must(t, err)
				values[i] = v
				determined += (determinedAbove[p][i] - determinedBelow[p][i]) / (2 * distance)
				exact += (above[p][i] - below[p][i]) / (2 * distance)
			}
		}
	}
	t.Logf("the divergence is %.4g, by random directions %.4g, by the Fisher information only %.4g", exact, estimated, fisher)
	if !(math.Abs(estimated/exact-1) < 0.05) || !(fisher < 0.8*exact) {
		t.Error("they are not within 5 %, or the logits are hardly curved")
	}
	t.Logf("by determination it is %.4g, by random directions %.4g", determined, estimatedDetermined)
	if !(math.Abs(estimatedDetermined/determined-1) < 0.05) {
		t.Error("by determination they are not within 5 %")
	}
}

// TestSolve compares the field by determination with a dense inverse, for two parameters of fewer
// and of more weights than are multiplied at a time, and few or many columns.
func TestSolve(t *testing.T) {
	const scale, tau = 1.5, 0.5
	precisions := []float64{2, 0.7}
	for _, c := range []struct{ rank, first, weights int }{{3, 2, 7}, {3, 13, 600}, {9, 560, 620}} {
		rank, weights := c.rank, c.weights
		z := trial.NormalDraws(rank*weights+weights, 4)
		columns, rows, g := make([]float32, rank*weights), mat.NewDense(rank, weights, nil), z[rank*weights:]
		for i := range columns {
			columns[i] = float32(z[i])
			rows.Set(i/weights, i%weights, scale*float64(columns[i]))
		}
		var dense mat.Dense
		dense.Mul(rows.T(), rows)
		for i := range weights {
			precision := precisions[0]
			if i >= c.first {
				precision = precisions[1]
			}
			dense.Set(i, i, dense.At(i, i)+precision+tau)
		}
		var want mat.VecDense
		must(t, want.SolveVec(&dense, mat.NewVecDense(weights, g)))
		got, err := measure.Solve(columns, scale, precisions, tau, [][]float64{g[:c.first], g[c.first:]})
		must(t, err)
		for i, v := range slices.Concat(got...) {
			if !(math.Abs(v-want.AtVec(i)) < 1e-12) {
				t.Errorf("%d weights: element %d is %v, want %v", weights, i, v, want.AtVec(i))
			}
		}
	}
}

// TestRatio: the jackknife's standard error of a mean is s/sqrt(n).
func TestRatio(t *testing.T) {
	over, under := []float64{1, 4, 2, 9}, []float64{1, 1, 1, 1}
	squares := 0.0
	for _, v := range over {
		squares += (v - 4) * (v - 4)
	}
	want := math.Sqrt(squares / 3 / 4)
	if got := measure.Ratio(over, under); got.Value != 4 || !(math.Abs(float64(got.StandardError)-want) < 1e-12) || got.Groups != 4 {
		t.Errorf("%+v, want 4 with the standard error %v of 4 groups", got, want)
	}
	long := slices.Repeat(over, 25)
	if got := measure.Ratio(long, slices.Repeat(under, 25)); got.Groups != 16 {
		t.Errorf("%d groups of 100 terms, want 16", got.Groups)
	}
}

// TestFinitePopulation: the mean of 2 of the numbers 1 to 5, drawn without replacement, has the
// variance s^2/2 (1 - 2/5).
func TestFinitePopulation(t *testing.T) {
	const n, batch, variance = 5, 2, 2.5 // s^2
	squares, pairs := 0.0, 0.0
	for a := 1; a <= n; a++ {
		for b := a + 1; b <= n; b++ {
			mean := float64(a+b) / 2
			squares, pairs = squares+(mean-3)*(mean-3), pairs+1
		}
	}
	if got, want := measure.FinitePopulation(batch, 4, n)*variance/batch, squares/pairs; !(math.Abs(got-want) < 1e-12) {
		t.Errorf("the variance is %v, want %v", got, want)
	}
	if got := measure.FinitePopulation(batch, n, n); got != 1 {
		t.Errorf("of minibatches of all data the factor is %v, want 1", got)
	}
}

// TestWeightedTemperature: samples count as much as they do in predictions, and a network with
// dropout is measured without it.
func TestWeightedTemperature(t *testing.T) {
	data := letters.Noisy(t, 60)
	spec := softmaxRegression(t, "sgld", 0.2)
	spec.Layers = layers.Sequential{layers.Flatten{}, layers.Dropout{Rate: 0.5, AlsoPredicting: true}, layers.Linear{Outputs: 4}}
	spec.Schedule, spec.Batch, spec.Epochs, spec.Samples = optimizers.Cosine{First: 0.05, Last: 0.001}, 20, 90, 4
	run := fit(t, spec, trainOn(data))
	found, err := run.Diagnostics()
	must(t, err)
	files, err := run.Samples()
	must(t, err)
	f := fieldOf(t, spec, data)
	var over, under, unweighted [2][]float64
	for _, file := range files {
		sample, err := samples.ReadSample(file)
		must(t, err)
		at, err := f.At(t.Context(), sample)
		must(t, err)
		once, err := f.GradientAt(t.Context(), sample)
		must(t, err)
		again, err := f.GradientAt(t.Context(), sample)
		must(t, err)
		if !reflect.DeepEqual(once, again) {
			t.Fatal("the gradient is random: dropout was not left out")
		}
		for w, one := range at {
			over[w], under[w] = append(over[w], sample.Weight*one.Product), append(under[w], sample.Weight*one.Divergence)
			unweighted[w] = append(unweighted[w], one.Product)
		}
	}
	for w, got := range []*diagnostics.Measured{found.Predictions, found.Determination} {
		if want := measure.Ratio(over[w], under[w]); got == nil || *got != *want {
			t.Errorf("weighting %d: %v, want %v of weighted samples", w, got, want)
		}
		if slices.Equal(over[w], unweighted[w]) {
			t.Error("the samples have equal weights, which tests nothing")
		}
	}
}

var squares = letters.Squares

// trainOn are splits with only training data.
func trainOn(data *datasets.Dataset) *datasets.Splits { return &datasets.Splits{Train: data} }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// methodOf parses a method.
func methodOf(t testing.TB, text string) bayes.Method {
	t.Helper()
	m, err := bayes.ParseMethod(text)
	must(t, err)
	return m
}

// fit makes a run in a new folder.
func fit(t testing.TB, spec bayes.Spec, data *datasets.Splits, options ...bayes.Option) *bayes.Run {
	t.Helper()
	run, err := bayes.Fit(context.Background(), spec, data, filepath.Join(t.TempDir(), "run"), options...)
	must(t, err)
	return run
}
