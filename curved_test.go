package pollen

import (
	"math"
	"testing"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// noisy are squares of which every third may have a wrong label, so that gradients stay noisy.
func noisy(t *testing.T, n int) *datasets.Dataset {
	data := squares(t, n, 4, 1)
	for i := 0; i < n; i += 3 {
		data.Labels[i] = int32(i / 3 * 7 % 4)
	}
	return data
}

// softmaxRegression is of a method at that temperature.
func softmaxRegression(t *testing.T, method string, temperature float64) Spec {
	return Spec{
		Layers: layers.Sequential{layers.Flatten{}, layers.Linear{Outputs: 4}}, Method: methodOf(t, method), Temperature: new(temperature),
		Prior: new(langevin.Gaussian(0.1)), Schedule: optimizers.Constant{Rate: 0.05},
	}
}

func fieldOf(t *testing.T, spec Spec, data *datasets.Dataset) *field {
	tr, err := newTraining(spec, data, "", environmentOf(nil))
	must(t, err)
	device := tensor.NewHost(1)
	t.Cleanup(func() { device.Close() })
	f, err := tr.newField(device)
	must(t, err)
	t.Cleanup(f.close)
	return f
}

// TestField compares gL.gU and the divergence of gL with those of softmax regression, in closed
// form, in which the prior and the labels' distribution must matter.
func TestField(t *testing.T) {
	const size = 1203 // three minibatches of 401
	data := noisy(t, size)
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
		var one float64
		gotProduct, one, err = f.at(t.Context(), sample)
		must(t, err)
		sum += one / repetitions
	}
	if off := math.Abs(gotProduct/product - 1); !(off < 1e-3) || math.Abs(without/product-1) < 0.01 {
		t.Errorf("gL.gU is %.6g, want %.6g, and %.6g without the prior", gotProduct, product, without)
	}
	if off := math.Abs(sum/divergence - 1); !(off < 0.05) {
		t.Errorf("the divergence is %.6g, want %.6g", sum, divergence)
	}
}

// TestPriorGradients: nothing of the likelihood is in them, and a flat prior has none.
func TestPriorGradients(t *testing.T) {
	spec := softmaxRegression(t, "sghmc", 1)
	spec.Epochs, spec.Samples, spec.Batch = 3, 1, 20
	spec.Priors = map[string]langevin.Prior{"linear1.bias": langevin.Flat()}
	tr, err := newTraining(spec, squares(t, 100, 4, 1), "", environmentOf(nil))
	must(t, err)
	device := tensor.NewHost(1)
	defer device.Close()
	sample := samples.Sample{Parameters: []samples.Parameter{
		{Name: "linear1.weight", Shape: tensor.Shape{2, 3}, Values: []float32{0, 1, -2, 3, 1e-9, 0.5}},
		{Name: "linear1.bias", Shape: tensor.Shape{2}, Values: []float32{1, 2}},
	}}
	session, err := tr.priorGradients(device, []graph.Tensor{
		{Name: "linear1.weight", DType: tensor.Float32, Shape: tensor.Shape{2, 3}}, {Name: "linear1.bias", DType: tensor.Float32, Shape: tensor.Shape{2}},
	})
	must(t, err)
	defer session.Close()
	must(t, sample.Put(session, 0))
	must(t, session.Run(1))
	must(t, gradientsOf(session, sample, func(p, i int, g float64) {
		want := float64(1-p) * float64(sample.Parameters[p].Values[i]) / (0.1 * 0.1)
		if !(math.Abs(g-want) <= 1e-6*math.Abs(want)) {
			t.Errorf("parameter %d, element %d: %v, want %v", p, i, g, want)
		}
	}))
}

// The error of a mean over parts is that by their own errors, or that by their spread.
func TestMeanOfMeasured(t *testing.T) {
	none := Number(math.NaN())
	for _, c := range []struct {
		measured []Measured
		shares   []float64
		want     Measured
	}{
		{[]Measured{{1, 0.3}}, []float64{7}, Measured{1, 0.3}},
		{[]Measured{{2, 0.3}, {2.25, 0.4}}, []float64{1, 1}, Measured{2.125, 0.25}},
		{[]Measured{{1, 0.3}, {3, 0.4}}, []float64{1, 1}, Measured{2, 1}},
		{[]Measured{{1, none}, {3, none}}, []float64{2, 2}, Measured{2, 1}},
		{[]Measured{{1, 3}, {2, 1}}, []float64{1, 3}, Measured{1.75, Number(math.Sqrt(18) / 4)}},
	} {
		got := meanOf(c.measured, c.shares)
		if math.Abs(float64(got.Value-c.want.Value)) > 1e-12 || math.Abs(float64(got.StandardError-c.want.StandardError)) > 1e-12 {
			t.Errorf("%v by %v: %v, want %v", c.measured, c.shares, *got, c.want)
		}
	}
	if got := meanOf(nil, nil); got != nil {
		t.Errorf("of none: %v", got)
	}
}

// TestCurvedLogits compares the divergence of gL with differences of gL along each parameter, where
// tanh curves the logits.
func TestCurvedLogits(t *testing.T) {
	const repetitions, distance = 50, 1e-2 // the latter changes the sums by less than 1 %
	data := noisy(t, 120)
	spec := Spec{
		Layers: layers.Sequential{layers.Flatten{}, layers.Linear{Outputs: 10}, layers.Tanh{}, layers.Linear{Outputs: 4}},
		Method: methodOf(t, "sghmc"), Prior: new(langevin.Gaussian(0.3)), Schedule: optimizers.Constant{Rate: 0.05},
		Epochs: 40, Samples: 8, Batch: 20,
	}
	files, err := fit(t, spec, trainOn(data)).Samples()
	must(t, err)
	f := fieldOf(t, spec, data)
	exact, estimated, fisher := 0.0, 0.0, 0.0
	for _, file := range files {
		sample, err := samples.ReadSample(file)
		must(t, err)
		here, err := f.slopeAt(t.Context(), sample)
		must(t, err)
		for range repetitions {
			_, all, err := f.at(t.Context(), sample)
			must(t, err)
			part, err := f.fisher(t.Context(), sample, here)
			must(t, err)
			estimated, fisher = estimated+all/repetitions, fisher+part/repetitions
		}
		for p := range sample.Parameters {
			values := sample.Parameters[p].Values
			for i, v := range values {
				values[i] = v + distance
				above, err := f.slopeAt(t.Context(), sample)
				must(t, err)
				values[i] = v - distance
				below, err := f.slopeAt(t.Context(), sample)
				must(t, err)
				values[i] = v
				exact += (above.gradient[p][i] - below.gradient[p][i]) / (2 * distance)
			}
		}
	}
	t.Logf("the divergence is %.4g, by random directions %.4g, by the Fisher information alone %.4g", exact, estimated, fisher)
	if !(math.Abs(estimated/exact-1) < 0.05) || !(fisher < 0.8*exact) {
		t.Error("they are not within 5 %, or the logits are hardly curved")
	}
}
