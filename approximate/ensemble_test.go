package approximate_test

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// ensemble trains chains of an optimizer, which start at different values, and stores their last
// states in a store.
func ensemble(t *testing.T, first, chains int) (dir string) {
	t.Helper()
	const steps = 30
	f := newFit(t, nil, tensor.Float32)
	b := f.builder
	parameters := b.Parameters()
	optimizers.Update(b, optimizers.Adam{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}, parameters, b.Gradients(f.loss, parameters...),
		b.Table("rates", []float64{1e-2}))
	store, dir := trial.NewStore(t)
	trial.SampleInto(t, store, f.load(t, graph.LoadOptions{Seed: 12, FirstChain: first, Chains: chains}, 2), 100,
		langevin.Plan{Steps: steps, BurnIn: steps - 1, Thinning: 1})
	return dir
}

// TestDeepEnsemble: the last states of independently trained networks form a store, over which
// predictions are averaged as over any other. A member is the same whether it was trained on its
// own or with the others.
func TestDeepEnsemble(t *testing.T) {
	const members, images = 4, 7
	dir := ensemble(t, 0, members)
	files := trial.Contents(t, dir)
	if len(files) != members {
		t.Fatalf("%d files, want one for each of %d members", len(files), members)
	}
	trial.CheckDifferent(t, files)
	for name, content := range trial.Contents(t, ensemble(t, 2, 1)) {
		if !bytes.Equal(content, files[name]) {
			t.Errorf("%s: a run of one chain differs", name)
		}
	}
	average, want := predictive(t, layered, trial.PredictorImages(images), 3), make([]float64, images*trial.NetworkLabels)
	paths, err := samples.NewStore(dir).Files()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		member, err := samples.ReadSample(path)
		if err != nil {
			t.Fatal(err)
		}
		alone := predictive(t, layered, trial.PredictorImages(images), images)
		for i, v := range alone.add(t, member) {
			want[i] += float64(v) / members
		}
		average.add(t, member)
	}
	for i, got := range average.mean.Mean() {
		if !(math.Abs(got-want[i]) < 1e-6) {
			t.Errorf("probability %d is %v, want the members' mean %v", i, got, want[i])
		}
	}
}

// averaged is a predictor with the average of its predictions.
type averaged struct {
	predictor *samples.SamplePredictor
	mean      *evaluate.Predictive
	images    int
}

func predictive(t *testing.T, network func(b *graph.Builder, x *graph.Node) *graph.Node, images samples.Images, batch int) averaged {
	t.Helper()
	host := tensor.NewHost(1)
	p, err := samples.NewSamplePredictor(host, tensor.Float32, images, batch, network)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Close()
		host.Close()
	})
	mean, err := evaluate.NewPredictive(images.Len(), p.Classes())
	if err != nil {
		t.Fatal(err)
	}
	return averaged{p, mean, images.Len()}
}

// add makes one more prediction and adds it to the average.
func (a averaged) add(t *testing.T, s samples.Sample) []float32 {
	t.Helper()
	probabilities := make([]float32, a.images*a.predictor.Classes())
	if err := a.predictor.Predict(s, probabilities); err != nil {
		t.Fatal(err)
	}
	if err := a.mean.Add(probabilities, s.Weight); err != nil {
		t.Fatal(err)
	}
	return probabilities
}

// The network of the dropout tests has few enough hidden units to enumerate all masks.
const (
	droppedUnits = 4
	droppedRate  = 0.3
)

func dropping(also bool) func(b *graph.Builder, x *graph.Node) *graph.Node {
	return layers.Sequential{
		layers.Flatten{}, layers.Linear{Name: "hidden", Outputs: droppedUnits}, layers.ReLU{}, layers.Dropout{Rate: droppedRate, AlsoPredicting: also},
		layers.Linear{Name: "output", Outputs: trial.NetworkLabels},
	}.Apply
}

// droppedSample is a sample of that network.
func droppedSample(t *testing.T) samples.Sample {
	t.Helper()
	b := graph.New(tensor.Float32)
	b.Output("y", dropping(false)(b, b.Data("x", tensor.Float32, 1, trial.ImageChannels, trial.ImageHeight, trial.ImageWidth)))
	return trial.CurrentSample(t, trial.Load(t, b, graph.LoadOptions{Seed: 31}, 1), 0)
}

// exactDropout is the expected probabilities of one image over all masks, in float64.
func exactDropout(s samples.Sample, pixels []byte) []float64 {
	w := map[string][]float64{}
	for _, p := range s.Parameters {
		w[p.Name] = tensor.Convert[float64](p.Values)
	}
	expected := make([]float64, trial.NetworkLabels)
	for mask := range 1 << droppedUnits {
		weight, logits, total := 1.0, append([]float64{}, w["output.bias"]...), 0.0
		for k := range droppedUnits {
			if mask>>k&1 == 0 {
				weight *= droppedRate
				continue
			}
			weight *= 1 - droppedRate
			h := w["hidden.bias"][k]
			for i, v := range pixels {
				h += w["hidden.weight"][k*trial.ImageSize+i] * (float64(v)/255 - trial.ImageMean) / trial.ImageSpread
			}
			for j := range logits {
				logits[j] += w["output.weight"][j*droppedUnits+k] * math.Max(0, h) / (1 - droppedRate)
			}
		}
		for j := range logits {
			logits[j] = math.Exp(logits[j])
			total += logits[j]
		}
		for j, e := range logits {
			expected[j] += weight * e / total
		}
	}
	return expected
}

// TestDropoutPasses: each prediction from one sample is another pass with other masks, the average
// over passes is the expectation over all masks, and another predictor repeats the passes to the
// bit.
func TestDropoutPasses(t *testing.T) {
	const passes, batch = 4000, 3
	s, images := droppedSample(t), trial.PredictorImages(5) // batches straddle two passes
	s.Weight = 1
	a, again := predictive(t, dropping(true), images, batch), predictive(t, dropping(true), images, batch)
	squares := make([]float64, 5*trial.NetworkLabels)
	seen := map[string]bool{}
	for pass := range passes {
		p := a.add(t, s)
		for i, v := range p {
			squares[i] += float64(v) * float64(v) / passes
		}
		if pass < 50 {
			seen[fmt.Sprint(p)] = true
			if second := again.add(t, s); fmt.Sprint(second) != fmt.Sprint(p) {
				t.Fatalf("pass %d of another predictor is %v, want %v", pass, second, p)
			}
		}
	}
	if len(seen) < 45 { // of 5 images with 16 masks each
		t.Errorf("50 passes give %d different predictions", len(seen))
	}
	mean := a.mean.Mean()
	for i := range images.Len() {
		for j, want := range exactDropout(s, images.Pixels[i*trial.ImageSize:(i+1)*trial.ImageSize]) {
			at := i*trial.NetworkLabels + j
			std := math.Sqrt((squares[at] - mean[at]*mean[at]) / passes)
			if z := (mean[at] - want) / std; !(math.Abs(z) < trial.ZLimit) || std < 1e-5 {
				t.Errorf("image %d, class %d: %v on average, exactly %v: z = %.1f", i, j, mean[at], want, z)
			}
		}
	}
	plain := predictive(t, dropping(false), images, batch)
	if first, second := plain.add(t, s), plain.add(t, s); fmt.Sprint(first) != fmt.Sprint(second) {
		t.Error("without AlsoPredicting two passes differ")
	}
}
