package export

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/internal/npz"
	"github.com/pollen-ml/pollen/internal/onnxtest"
	"github.com/pollen-ml/pollen/onnx"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// strangers returns the images of a data set, followed by images of noise of different contrast;
// some are out of distribution.
func strangers(t testing.TB, d *datasets.Dataset, n int) *datasets.Dataset {
	t.Helper()
	noise := make([]float32, n*d.ImageSize())
	random.Uniforms(noise, 0, random.Address{Seed: 8})
	pixels := slices.Clone(d.Images)
	for i, v := range noise {
		pixels = append(pixels, byte(float32(i/d.ImageSize()%256)*v))
	}
	all, err := datasets.New("strangers", pixels, make([]int32, d.Len()+n), d.Channels, d.Height, d.Width, d.ClassNames)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// oneByOne has the networks whose samples cannot be computed together.
var oneByOne = map[string]bool{"partly frozen": true, "offsets": true}

// TestONNXRuntime compares the outputs of onnxruntime with the run's answers for 1000 images.
func TestONNXRuntime(t *testing.T) {
	needsPython(t)
	for _, network := range []string{
		"lenet-small", "cnn", "resnet20-frn-silu", "distilled", "distilled networks", "frozen", "partly frozen", "BGR frozen", "offsets",
	} {
		for _, together := range []int{1, 4} {
			if oneByOne[network] && together > 1 {
				continue // which is refused
			}
			t.Run(fmt.Sprint(network, together), func(t *testing.T) {
				channels := map[string]int{"cnn": 3, "frozen": 3, "BGR frozen": 3}[network]
				run, data := fitted(t, network, max(channels, 1), 3)
				dir := t.TempDir()
				path, reference := filepath.Join(dir, "model.onnx"), filepath.Join(dir, "reference.npz")
				remarks, err := ONNX(t.Context(), run, path, ONNXOptions{Together: together})
				if err != nil {
					t.Fatal(err)
				}
				if len(remarks) > 0 {
					t.Errorf("remarks: %v", remarks)
				}
				images := strangers(t, data.Test, 1000-data.Test.Len())
				answers, err := run.Predict(t.Context(), images)
				if err != nil {
					t.Fatal(err)
				}
				arrays := []npz.Array{{Name: "images", Shape: []int{images.Len(), images.Channels, side, side}, Values: images.Images}}
				if err := npz.Write(reference, append(arrays, answersOf(answers, images)...)...); err != nil {
					t.Fatal(err)
				}
				python(t, "onnx_check.py", path, reference)
			})
		}
	}
}

// TestONNXSets compares the prediction sets of onnxruntime with the run's, by every rule.
func TestONNXSets(t *testing.T) {
	needsPython(t)
	run, data := fitted(t, "mlp-8", 1, 3)
	images := strangers(t, data.Test, 300)
	for _, text := range []string{"threshold", "aps", "raps:lambda=0.05,kreg=1"} {
		for _, more := range []evaluate.SetRule{{}, {PerClass: true}, {AllowEmpty: true}, {PerClass: true, AllowEmpty: true}} {
			rule, err := evaluate.ParseSetScore(text)
			if err != nil {
				t.Fatal(err)
			}
			rule.PerClass, rule.AllowEmpty = more.PerClass, more.AllowEmpty
			t.Run(fmt.Sprint(text, " ", rule.PerClass, rule.AllowEmpty), func(t *testing.T) {
				path, reference := filepath.Join(t.TempDir(), "model.onnx"), filepath.Join(t.TempDir(), "reference.npz")
				if _, err := ONNX(t.Context(), run, path, ONNXOptions{Sets: rule, Level: 0.7}); err != nil {
					t.Fatal(err)
				}
				answers, err := run.With(bayes.WithSetRule(rule), bayes.WithLevel(0.7)).Predict(t.Context(), images)
				if err != nil {
					t.Fatal(err)
				}
				arrays := []npz.Array{{Name: "images", Shape: []int{images.Len(), 1, side, side}, Values: images.Images}}
				if err := npz.Write(reference, append(arrays, answersOf(answers, images)...)...); err != nil {
					t.Fatal(err)
				}
				python(t, "onnx_check.py", path, reference)
			})
		}
	}
}

// answersOf returns answers as the arrays that an ONNX file computes.
func answersOf(answers []bayes.Answer, images *datasets.Dataset) []npz.Array {
	var probabilities, entropy, mutual []float64
	var set, inside []bool
	for _, a := range answers {
		probabilities, entropy, mutual = append(probabilities, a.Probabilities...), append(entropy, a.Entropy), append(mutual, a.MutualInformation)
		for _, class := range images.ClassNames {
			set = append(set, slices.Contains(a.PredictionSet, class))
		}
		inside = append(inside, *a.InDistribution)
	}
	n, k := images.Len(), images.Classes
	return []npz.Array{
		{Name: "probabilities", Shape: []int{n, k}, Values: probabilities}, {Name: "entropy", Shape: []int{n}, Values: entropy},
		{Name: "mutual_information", Shape: []int{n}, Values: mutual}, {Name: "prediction_set", Shape: []int{n, k}, Values: set},
		{Name: "in_distribution", Shape: []int{n}, Values: inside},
	}
}

// TestONNXReadBack computes an exported file by Pollen's own reader of ONNX.
func TestONNXReadBack(t *testing.T) {
	for _, network := range []string{"lenet-small", "frozen", "partly frozen", "BGR frozen", "offsets"} {
		t.Run(network, func(t *testing.T) { checkReadBack(t, network) })
	}
}

func checkReadBack(t *testing.T, network string) {
	channels := map[string]int{"BGR frozen": 3}[network]
	run, data := fitted(t, network, max(channels, 1), 3)
	answers, err := run.Predict(t.Context(), data.Test)
	if err != nil {
		t.Fatal(err)
	}
	pixels := make([]float32, len(data.Test.Images))
	for i, v := range data.Test.Images {
		pixels[i] = float32(v) / 255
	}
	for _, together := range []int{1, 4, 6} {
		path := filepath.Join(t.TempDir(), "model.onnx")
		_, err := ONNX(t.Context(), run, path, ONNXOptions{Float: true, Together: together})
		if oneByOne[network] && together > 1 {
			if want := "compute one after the other (together 1)"; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("together %d: error %v, want %s", together, err, want)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		m, err := onnx.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		var outputs []string
		for _, o := range m.Outputs {
			outputs = append(outputs, fmt.Sprint(o.Name, " ", o.Type, " ", o.Shape))
		}
		want := "probabilities float32 [-1 3], entropy float32 [-1], mutual_information float32 [-1], prediction_set bool [-1 3], in_distribution bool [-1]"
		if got := strings.Join(outputs, ", "); got != want {
			t.Errorf("outputs are %s, want %s", got, want)
		}
		digest, err := run.Digest()
		if err != nil {
			t.Fatal(err)
		}
		if m.Metadata["run_digest"] != digest || m.Metadata["classes"] != `["across","along","checked"]` ||
			m.Metadata["level"] != "0.9" || m.Metadata["resize"] != "stretch, bicubic" || m.Opset != onnx.WrittenOpset {
			t.Errorf("metadata are %v", m.Metadata)
		}
		for output, of := range map[string]func(a bayes.Answer) []float64{
			"probabilities":      func(a bayes.Answer) []float64 { return a.Probabilities },
			"entropy":            func(a bayes.Answer) []float64 { return []float64{a.Entropy} },
			"mutual_information": func(a bayes.Answer) []float64 { return []float64{a.MutualInformation} },
		} {
			var want []float64
			for _, a := range answers {
				want = append(want, of(a)...)
			}
			got := computed(t, m, output, pixels, tensor.Shape{data.Test.Len(), data.Test.Channels, side, side})
			if len(got) != len(want) {
				t.Fatalf("%s: %d numbers, want %d", output, len(got), len(want))
			}
			for i, v := range got {
				if math.Abs(float64(v)-want[i]) > 1e-5 {
					t.Fatalf("together %d: %s %d is %v, want %v", together, output, i, v, want[i])
				}
			}
		}
	}
}

// computed returns an output of a model.
func computed(t *testing.T, m *onnx.Model, output string, pixels []float32, shape tensor.Shape) []float32 {
	t.Helper()
	network, err := m.Network(onnx.Options{Output: output})
	if err != nil {
		t.Fatal(err)
	}
	b := graph.New(tensor.Float32)
	b.Mode = graph.Prediction
	y := network.Apply(b, b.Data("x", tensor.Float32, shape...))
	if b.Err() != nil {
		t.Fatal(b.Err())
	}
	b.Output("y", y)
	got := make([]float32, graph.ShapeOf(y).Elements())
	err = b.OnHost(graph.LoadOptions{}, func(s *graph.Session) error {
		if err := graph.Write(s, "x", 0, 0, pixels); err != nil {
			return err
		}
		if err := s.Run(1); err != nil {
			return err
		}
		return graph.Read(s, "y", 0, 0, got)
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// The file of a frozen network has its weights once, whatever the number of samples.
func TestONNXHasFrozenWeightsOnce(t *testing.T) {
	run, _ := fitted(t, "frozen", 1, 3)
	path := filepath.Join(t.TempDir(), "model.onnx")
	if _, err := ONNX(t.Context(), run, path, ONNXOptions{}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	weight, _ := onnxtest.Backbone{Channels: 1, Filters: 12}.Kernels()
	if n := bytes.Count(content, tensor.Bytes(weight)); n != 1 {
		t.Errorf("the frozen weights are %d times in the file", n)
	}
}

// TestONNXRefuses: options that cannot be satisfied are errors, and omitted outputs are remarked
// on.
func TestONNXRefuses(t *testing.T) {
	run, data := fitted(t, "mlp-8", 1, 3)
	path := filepath.Join(t.TempDir(), "model.onnx")
	for want, o := range map[string]ONNXOptions{
		"samples must be at most the ": {Samples: 70}, "samples must be at least 1, got -1": {Samples: -1},
		"must be between 0 and 1, got 2 and 0.95": {Level: 2}, "must be at least 1, got -2": {Together: -2},
		"randomized prediction sets depend on a hash": {Sets: evaluate.SetRule{Score: evaluate.AdaptiveSets, Randomized: true}},
		"Lambda and KReg apply to raps, not to ":      {Sets: evaluate.SetRule{KReg: 3}},
	} {
		if _, err := ONNX(t.Context(), run, path, o); err == nil || !strings.Contains(err.Error(), want) || !errors.As(err, new(*bayes.InvalidError)) {
			t.Errorf("%+v: error %v, want %s", o, err, want)
		}
	}
	for want, o := range map[string]ONNXOptions{
		"no held-out images are given to calibrate 2 again": {Samples: 2}, "not among the 2 of the file": {Samples: 2, HeldOut: data.Validation},
		"prediction sets at level 0.999 need more than 60 held-out images": {Level: 0.999},
		"decisions at a rate of 0.999 need more than 60 held-out images":   {Rate: 0.999},
	} {
		remarks, err := ONNX(t.Context(), run, path, o)
		if err != nil || !strings.Contains(strings.Join(remarks, " "), want) {
			t.Errorf("%+v: remarks %v, want %s (error %v)", o, remarks, want, err)
		}
	}
}

// TestCalibrateChosen: if all samples are chosen, the calibration for them equals the run's. Where
// images must be independent, it has one image of each group.
func TestCalibrateChosen(t *testing.T) {
	run, data := fitted(t, "mlp-8", 1, 3)
	heldOut := *data.Validation
	for i := range heldOut.Len() {
		heldOut.Groups = append(heldOut.Groups, fmt.Sprint(i/4))
	}
	if err := run.Calibrate(t.Context(), &heldOut); err != nil {
		t.Fatal(err)
	}
	want, err := run.Calibration()
	if err != nil {
		t.Fatal(err)
	}
	p := &predictive{o: ONNXOptions{HeldOut: &heldOut}, m: run.Manifest()}
	if err := p.choose(run); err != nil {
		t.Fatal(err)
	}
	got, err := p.calibrateChosen(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.HeldOut, want.HeldOut) {
		t.Errorf("calibrated on\n%+v, want\n%+v", got.HeldOut, want.HeldOut)
	}
}

// TestONNXOfFewerSamples: prediction sets and the scaling of probabilities are calibrated for the
// average that the file has.
func TestONNXOfFewerSamples(t *testing.T) {
	run, data := fitted(t, "mlp-8", 1, 3)
	draws, err := run.Draws()
	if err != nil {
		t.Fatal(err)
	}
	averageOn := func(d *datasets.Dataset) *evaluate.Predictions {
		average, err := evaluate.NewPredictive(d.Len(), 3)
		if err != nil {
			t.Fatal(err)
		}
		position, all := 0, draws.Len()
		if _, err := run.Predictions(t.Context(), d, func(p []float32, weight float64) error {
			if position++; position != all/2 && position != all {
				return nil
			}
			return average.Add(p, weight)
		}); err != nil {
			t.Fatal(err)
		}
		return average.Predictions(d.Name, d.Labels)
	}
	calibration, err := evaluate.Calibrate(averageOn(data.Validation))
	if err != nil {
		t.Fatal(err)
	}
	mean := averageOn(data.Test)
	scaled, err := calibration.Scaled(mean)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		unscaled bool
		exponent string
		want     []float64
	}{{false, fmt.Sprint(calibration.Exponent), scaled.Probabilities}, {true, "", mean.Probabilities}} {
		path := filepath.Join(t.TempDir(), "model.onnx")
		if _, err := ONNX(t.Context(), run, path, ONNXOptions{Samples: 2, HeldOut: data.Validation, Unscaled: c.unscaled}); err != nil {
			t.Fatal(err)
		}
		testFewerSamples(t, path, data.Test, c.exponent, c.want)
	}
}

// testFewerSamples compares the probabilities and the metadata of a file of two samples.
func testFewerSamples(t *testing.T, path string, images *datasets.Dataset, exponent string, want []float64) {
	t.Helper()
	m, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	// The model's input has bytes; Pollen's reader computes with floats.
	pixels := make([]float32, len(images.Images))
	for i, v := range images.Images {
		pixels[i] = float32(v)
	}
	for i, v := range computed(t, m, "probabilities", pixels, tensor.Shape{images.Len(), 1, side, side}) {
		if math.Abs(float64(v)-want[i]) > 1e-5 {
			t.Fatalf("probability %d is %v, want %v", i, v, want[i])
		}
	}
	if m.Metadata["samples"] != "2" || m.Metadata["level"] != "0.9" || m.Metadata["exponent"] != exponent || len(m.Outputs) != 4 {
		t.Errorf("metadata are %v, with %d outputs", m.Metadata, len(m.Outputs))
	}
}
