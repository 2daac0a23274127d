package runtest

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/onnxtest"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/samples"
)

// pretrained is a specification with the network of an ONNX file for images of squares.
func pretrained(t *testing.T, n onnxtest.Backbone) bayes.Spec {
	n.Channels, n.Side, n.Filters = 1, side, 12
	return bayes.Spec{Network: n.Write(t), Method: methodOf(t, "hmc"), Epochs: 120, Chains: 2, Samples: 4, Seed: 3}
}

// splitsOf are squares for all purposes.
func splitsOf(t *testing.T) *datasets.Splits {
	return &datasets.Splits{Train: squares(t, 60, 4, 1), Validation: squares(t, 60, 4, 2), Test: squares(t, 20, 4, 3)}
}

// TestFrozenFeatures: a run of a frozen network has samples of its head only, and its predictions
// equal the head's on features that a loop in float64 computes.
func TestFrozenFeatures(t *testing.T) {
	data := splitsOf(t)
	for name, backbone := range map[string]onnxtest.Backbone{"open batch": {}, "fixed batch, external weights": {Batch: 1, External: "weights.bin"}} {
		t.Run(name, func(t *testing.T) {
			run := fit(t, pretrained(t, backbone), data, with(t, 2))
			files, err := run.Samples()
			must(t, err)
			s, err := samples.ReadSample(files[0])
			must(t, err)
			var names []string
			for _, p := range s.Parameters {
				names = append(names, p.Name)
			}
			if want := []string{"head.weight", "head.bias"}; !slices.Equal(names, want) {
				t.Fatalf("a sample has %v, want %v", names, want)
			}
			want := make([]float64, data.Test.Len()*4)
			for _, file := range files {
				s, err := samples.ReadSample(file)
				must(t, err)
				for i := range data.Test.Len() {
					for k, p := range headProbabilities(s, naiveFeatures(onnxtest.Backbone{Channels: 1, Filters: 12}, data.Test.Image(i))) {
						want[i*4+k] += p / float64(len(files))
					}
				}
			}
			must(t, os.Remove(run.Manifest().Spec.Network)) // the run has a copy
			run, err = bayes.Open(run.Dir(), with(t, 1))
			must(t, err)
			got, err := run.Predictions(context.Background(), data.Test, nil)
			must(t, err)
			for i, p := range got.Probabilities {
				if !(math.Abs(p-want[i]) < 1e-5) {
					t.Fatalf("probability %d is %v, want %v", i, p, want[i])
				}
			}
			answers, err := run.Predict(context.Background(), data.Test)
			must(t, err)
			predictor, err := run.Predictor(8)
			must(t, err)
			defer predictor.Close()
			served, err := predictor.Answer(context.Background(), data.Test.Images)
			must(t, err)
			for i, a := range answers {
				if served[i].Class != a.Class || math.Abs(served[i].Confidence-a.Confidence) > 1e-6 || a.InDistribution == nil {
					t.Errorf("image %d: served %+v, predicted %+v", i, served[i], a)
				}
			}
		})
	}
}

// naiveFeatures are the features of a network of package onnxtest, in float64, with the moments of
// ImageNet for grey images.
func naiveFeatures(n onnxtest.Backbone, image []byte) []float64 {
	weight, bias := n.Kernels()
	features := make([]float64, n.Filters)
	for f := range features {
		for y := range side {
			for x := range side {
				sum := float64(bias[f])
				for r := range 3 {
					for c := range 3 {
						if i, j := y+r-1, x+c-1; i >= 0 && i < side && j >= 0 && j < side {
							sum += float64(weight[f*9+r*3+c]) * (float64(image[i*side+j])/255 - 0.456) / 0.224
						}
					}
				}
				features[f] += max(sum, 0) / side / side
			}
		}
	}
	return features
}

// TestInputsOfOtherChannels: networks with 2 and 4 channels get the normalisation that the input
// says, and none is guessed.
func TestInputsOfOtherChannels(t *testing.T) {
	for _, channels := range []int{2, 4} {
		grey := squares(t, 40, 3, 1)
		data := *grey
		data.Channels, data.Images, data.Mean, data.Std = channels, nil, slices.Repeat(grey.Mean, channels), slices.Repeat(grey.Std, channels)
		for i := range grey.Len() {
			data.Images = append(data.Images, slices.Repeat(grey.Image(i), channels)...)
		}
		spec := bayes.Spec{Network: onnxtest.Backbone{Channels: channels, Side: side, Filters: 3}.Write(t), Method: methodOf(t, "sgld"), Epochs: 2}
		_, err := bayes.Fit(context.Background(), spec, trainOn(&data), filepath.Join(t.TempDir(), "run"), with(t, 1))
		wantInvalid(t, "without an input", err, fmt.Sprintf("one for each of %d channels", channels), "got 3 numbers")
		spec.Input = "mean=0.5" + strings.Repeat("/0.25", channels-1) + ",std=2"
		m := fit(t, spec, trainOn(&data), with(t, 1)).Manifest()
		if want := append([]float64{0.5}, slices.Repeat([]float64{0.25}, channels-1)...); !slices.Equal(m.Data.Mean, want) || len(m.Data.Std) != channels {
			t.Errorf("%d channels: mean %v and std %v, want %v and 2s", channels, m.Data.Mean, m.Data.Std, want)
		}
		spec.Input = "mean=0.5,order=bgr"
		_, err = bayes.Fit(context.Background(), spec, trainOn(&data), filepath.Join(t.TempDir(), "run"), with(t, 1))
		wantInvalid(t, "bgr", err, "must not have order=bgr")
	}
}

// headProbabilities are the probabilities of a linear head with the parameters of a sample.
func headProbabilities(s samples.Sample, features []float64) []float64 {
	weight, bias := s.Parameters[0].Values, s.Parameters[1].Values
	logits := make([]float64, len(bias))
	total := 0.0
	for k := range logits {
		logits[k] = float64(bias[k])
		for j, v := range features {
			logits[k] += float64(weight[k*len(features)+j]) * v
		}
		logits[k] = math.Exp(logits[k])
		total += logits[k]
	}
	for k := range logits {
		logits[k] /= total
	}
	return logits
}

// TestPretrainedRunsAreRuns: a run of a frozen network can be stopped and resumed, gathered by
// reference and as a copy, and verified, also when the file that it began with is gone.
func TestPretrainedRunsAreRuns(t *testing.T) {
	data := splitsOf(t)
	spec := pretrained(t, onnxtest.Backbone{})
	whole := fit(t, spec, data, with(t, 1))
	ctx, stop := stopAt(40)
	dir := filepath.Join(t.TempDir(), "stopped")
	if _, err := bayes.Fit(ctx, spec, data, dir, stop, with(t, 1)); err == nil {
		t.Fatal("the run was not stopped")
	}
	if name, ours, theirs := whole.Manifest().Difference(spec); name != "" {
		t.Errorf("the %s is %q in the run and %q in its specification", name, ours, theirs)
	}
	other := spec
	other.FirstChain = 2
	second := fit(t, other, data, with(t, 1))
	must(t, os.Remove(spec.Network))
	resumed, err := bayes.Resume(context.Background(), dir, data, with(t, 1))
	must(t, err)
	if !reflect.DeepEqual(contents(t, whole.Dir()), contents(t, resumed.Dir())) {
		t.Error("a resumed run differs from one that was not interrupted")
	}
	for _, copied := range []bool{false, true} {
		gathered, err := gatherer(copied)(filepath.Join(t.TempDir(), "gathered"), []string{whole.Dir(), second.Dir()})
		must(t, err)
		p, err := gathered.Predictions(context.Background(), data.Test, nil)
		must(t, err)
		if p.Samples != 16 {
			t.Errorf("a gathered run predicts with %d samples, want 16", p.Samples)
		}
	}
	v, err := bayes.Verify(whole.Dir())
	must(t, err)
	if len(v.Damaged) > 0 {
		t.Errorf("verify finds damage: %v", v)
	}
	model := filepath.Join(whole.Dir(), rundir.ModelDir, "backbone.onnx")
	content, err := os.ReadFile(model)
	must(t, err)
	content[len(content)/2]++
	must(t, os.WriteFile(model, content, 0o600))
	if v, err = bayes.Verify(whole.Dir()); err != nil || len(v.Damaged) != 1 || v.Damaged[0].File != model {
		t.Errorf("verify of a changed model: %v, %v, want that file", v, err)
	}
	if again, err := bayes.Open(whole.Dir()); err != nil {
		t.Error(err)
	} else if _, err = again.Predict(context.Background(), data.Test); !errors.As(err, new(*bayes.DamagedError)) {
		t.Errorf("predictions with a changed model: %v, want DamagedError", err)
	}
}

// TestFineTuning: with a prior around the starting weights all weights are sampled, as offsets from
// the file's values. The run resumes to the same bits.
func TestFineTuning(t *testing.T) {
	data := splitsOf(t)
	spec := pretrained(t, onnxtest.Backbone{})
	spec.Freeze, spec.Head, spec.Prior = "none", "mlp:8", new(langevin.Start(0.01))
	spec.Priors = map[string]langevin.Prior{"features.0.bias": langevin.Gaussian(1), "hidden1": langevin.Laplace(0.3)}
	spec.Method, spec.Epochs, spec.Batch = methodOf(t, "mclmc"), 300, 0
	text := spec.Texts()
	if text["prior"] != "start:0.01" {
		t.Errorf("the prior is written as %q", text["prior"])
	}
	ctx, stop := stopAt(100)
	dir := filepath.Join(t.TempDir(), "stopped")
	if _, err := bayes.Fit(ctx, spec, data, dir, stop, with(t, 1)); err == nil {
		t.Fatal("the run was not stopped")
	}
	resumed, err := bayes.Resume(context.Background(), dir, data, with(t, 1))
	must(t, err)
	whole := fit(t, spec, data, with(t, 1))
	if !reflect.DeepEqual(contents(t, whole.Dir()), contents(t, resumed.Dir())) {
		t.Error("a resumed run differs from one that was not interrupted")
	}
	files, err := whole.Samples()
	must(t, err)
	spread := map[string]float64{}
	for _, file := range files {
		s, err := samples.ReadSample(file)
		must(t, err)
		for _, p := range s.Parameters {
			for _, v := range p.Values {
				spread[p.Name] += float64(v) * float64(v) / float64(len(p.Values)*len(files))
			}
		}
	}
	for name, want := range map[string]float64{
		"features.0.weight": 0.01, "features.0.bias": 1, "hidden1.weight": 0.3 * math.Sqrt2, "hidden1.bias": 0.3 * math.Sqrt2,
		"head.weight": 0.316, "head.bias": 0.316,
	} {
		// The prior dominates, with 60 images: the offsets have about its size.
		if got := math.Sqrt(spread[name]); !(got > want/4 && got < 4*want) {
			t.Errorf("%s spreads by %.3g, want about %.3g, of its prior", name, got, want)
		}
	}
	if len(spread) != 6 {
		t.Errorf("samples have the parameters %v", spread)
	}
}

// TestPretrainedRates: methods without noise train all weights at a tenth of the rate that they
// have for a head.
func TestPretrainedRates(t *testing.T) {
	data := splitsOf(t)
	for _, c := range []struct {
		method, freeze string
		want           optimizers.Schedule
	}{
		{"adam", "all", optimizers.Constant{Rate: 0.001}}, {"adam", "none", optimizers.Constant{Rate: 0.0001}},
		{"ensemble", "all", optimizers.Cosine{First: 0.1}}, {"ensemble", "none", optimizers.Cosine{First: 0.01}},
	} {
		spec := pretrained(t, onnxtest.Backbone{})
		spec.Method, spec.Freeze, spec.Epochs, spec.Samples = methodOf(t, c.method), c.freeze, 1, 0
		if c.method == "ensemble" { // narrower priors limit the rate further
			spec.Prior = new(langevin.Gaussian(1))
		}
		if got := fit(t, spec, data, with(t, 1)).Manifest().Spec.Schedule; got != c.want {
			t.Errorf("%s, freeze %s: the schedule is %v, want %v", c.method, c.freeze, got, c.want)
		}
	}
}

// TestAutoOnFeatures: the time of a step of a head does not include computing features, although
// the clock advances then, too.
func TestAutoOnFeatures(t *testing.T) {
	spec := pretrained(t, onnxtest.Backbone{})
	spec.Method, spec.Epochs, spec.Chains, spec.Samples = bayes.Auto{}, 0, 0, 0
	chosen := ""
	steps, err := bayes.Try(t.Context(), spec, splitsOf(t).Train, 2, with(t, 1), ticking(799*time.Millisecond),
		bayes.WithObserver(func(e bayes.Event) {
			if strings.HasPrefix(e.Remark, "chosen: ") {
				chosen = e.Remark
			}
		}))
	must(t, err)
	if steps != 1500 || !strings.HasPrefix(chosen, "chosen: mclmc") {
		t.Errorf("%d steps, want 1500 of mclmc: %s", steps, chosen)
	}
}

// TestPretrainedErrors: mistakes name the file, the node or the setting, before a run begins.
func TestPretrainedErrors(t *testing.T) {
	data := splitsOf(t)
	for name, row := range map[string]struct {
		network onnxtest.Backbone
		change  func(s *bayes.Spec)
		want    string
	}{
		"not a vector":     {change: func(s *bayes.Spec) { s.Cut = "pool" }, want: `got [1 12 1 1] at the value "c": cut the network after its pooling`},
		"not the output":   {change: func(s *bayes.Spec) { s.Cut = "pool" }, want: `its output is "logits"`},
		"a map":            {network: onnxtest.Backbone{Map: true}, want: "the network ends before its pooling: export it with a global average pool"},
		"no such value":    {change: func(s *bayes.Spec) { s.Cut = "elsewhere" }, want: "cut: model "},
		"a value by name":  {change: func(s *bayes.Spec) { s.Cut = "elsewhere" }, want: `no node and no value "elsewhere"`},
		"unknown operator": {network: onnxtest.Backbone{Operator: "Wobble"}, want: "Wobble in node act (Wobble)"},
		"a name":           {change: func(s *bayes.Spec) { s.Freeze = "features.1" }, want: `freeze must be all, none or names of weights`},
		"a head":           {change: func(s *bayes.Spec) { s.Head = "mlp:many" }, want: "head must be linear, mlp:WIDTH"},
		"a JSON head":      {change: func(s *bayes.Spec) { s.Head = "x.json" }, want: "head must be linear, mlp:WIDTH"},
		"another head":     {change: func(s *bayes.Spec) { s.Head = "- conv2d: {filters: 3, kernel: 3}" }, want: "input must have shape [B C H W]"},
		"an input":         {change: func(s *bayes.Spec) { s.Input = "std=0" }, want: "input must be imagenet"},
		"two means of one": {change: func(s *bayes.Spec) { s.Input = "mean=1/2" }, want: "one for each of 1 channels, as in mean=0.5, got 2 numbers"},
		"no ONNX file":     {change: func(s *bayes.Spec) { s.Network, s.Head = "lenet-small", "linear" }, want: "head applies to networks of ONNX files"},
		"a prior": {change: func(s *bayes.Spec) {
			s.Network, s.Prior = "mlp-5", new(langevin.Start(1))
		}, want: "the prior start:S applies to networks of ONNX files, not to mlp-5"},
		"a prior of the head": {change: func(s *bayes.Spec) {
			s.Priors = map[string]langevin.Prior{"head": langevin.Start(1)}
		}, want: "head is after the cut"},
		"a prior of frozen weights": {change: func(s *bayes.Spec) { s.Prior = new(langevin.Start(1)) }, want: "and all are frozen: set freeze to none"},
		"no file":                   {change: func(s *bayes.Spec) { s.Network = "absent.onnx" }, want: "absent.onnx"},
		"half a file": {change: func(s *bayes.Spec) {
			content, err := os.ReadFile(s.Network)
			must(t, err)
			must(t, os.WriteFile(s.Network, content[:len(content)/2], 0o600))
		}, want: "backbone.onnx"},
		"another size": {change: func(s *bayes.Spec) {
			s.Network = onnxtest.Backbone{Channels: 1, Side: 2 * side, Filters: 3}.Write(t)
		}, want: "input images must have shape [B 1 "},
	} {
		t.Run(name, func(t *testing.T) {
			spec := pretrained(t, row.network)
			if row.change != nil {
				row.change(&spec)
			}
			dir := filepath.Join(t.TempDir(), "run")
			_, err := bayes.Fit(context.Background(), spec, data, dir, with(t, 1))
			wantInvalid(t, name, err, row.want)
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				t.Errorf("there is a directory: %v", err)
			}
		})
	}
}
