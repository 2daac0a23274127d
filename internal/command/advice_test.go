package command

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/config"
	"github.com/pollen-ml/pollen/internal/onnxtest"
	"github.com/pollen-ml/pollen/internal/rundir"
)

// TestDistilOptions: the command that would improve a distilled run has the options of its network,
// method and data.
func TestDistilOptions(t *testing.T) {
	usual := usualDistillation()
	for name, c := range map[string]struct {
		change func(s *bayes.Spec, d *bayes.Distillation, notes map[string]string)
		want   string
	}{
		"one network":    {func(_ *bayes.Spec, d *bayes.Distillation, _ map[string]string) { d.Networks = 1 }, ""},
		"three networks": {func(_ *bayes.Spec, d *bayes.Distillation, _ map[string]string) { d.Networks, d.Copies = 3, 12 }, " --networks 3 --copies 12"},
		"at random":      {func(*bayes.Spec, *bayes.Distillation, map[string]string) {}, " --networks 0"},
		"a start":        {func(s *bayes.Spec, _ *bayes.Distillation, _ map[string]string) { s.Start = "runs/my run" }, " --start 'runs/my run'"},
		"another and a start": {func(s *bayes.Spec, _ *bayes.Distillation, _ map[string]string) {
			s.Network, s.Start = "lenet", "large"
		}, " --model lenet --start large"},
		"another": {func(s *bayes.Spec, d *bayes.Distillation, _ map[string]string) {
			s.Network, d.PrecisionWeight = "lenet", 0.1
		}, " --model lenet --precision-weight 0.1"},
		"a network file": {func(s *bayes.Spec, _ *bayes.Distillation, _ map[string]string) { s.Network = "- flatten\n" }, " --model FILE.yaml"},
		"the network file": {func(s *bayes.Spec, _ *bayes.Distillation, notes map[string]string) {
			s.Network, notes["model"] = "- flatten\n", "/my/net.yaml"
		}, " --model /my/net.yaml"},
		"more images": {func(_ *bayes.Spec, d *bayes.Distillation, notes map[string]string) {
			d.Networks, notes[unlabelledNote], notes[outNote], notes["data-folder"] = 1, "/photos", "notmnist", "/data"
		}, " --data /photos --out notmnist --data-folder /data"},
	} {
		m := bayes.Manifest{Spec: bayes.Spec{Network: "lenet-small"}, Teacher: &bayes.Teacher{Network: "lenet-small"}, Notes: map[string]string{}}
		method := usual
		c.change(&m.Spec, &method, m.Notes)
		m.Spec.Method = method
		if got := distilOptions(m); got != c.want {
			t.Errorf("%s: the options are %q, want %q", name, got, c.want)
		}
	}
}

// The advised command names the ONNX file of another run, and the place of a network file.
func TestAdvisedFiles(t *testing.T) {
	dir := t.TempDir()
	images, runs, file := filepath.Join(dir, "images"), filepath.Join(dir, "runs"), filepath.Join(dir, "net.yaml")
	if err := writeImages(images, 2, 30); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("- flatten\n- linear: {outputs: classes}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fit := func(name, model string, flags ...string) {
		t.Helper()
		flags = append(flags, "--method", "sgd", "--epochs", "1", "--folder", filepath.Join(runs, name))
		succeed(t, append([]string{"fit", "--data", images, "--model", model}, flags...)...)
	}
	fit("a", file)
	m, err := bayes.ReadManifest(filepath.Join(runs, "a"))
	if err != nil || m.Notes["model"] != file {
		t.Errorf("notes %v (%v), want the file %s", m.Notes, err, file)
	}
	run, err := bayes.Open(filepath.Join(runs, "a"))
	if err != nil {
		t.Fatal(err)
	}
	if got := knownNetwork(run); got != nil {
		t.Errorf("without another run: %+v", got)
	}
	backbone := onnxtest.Backbone{Channels: 3, Side: 16, Filters: 4}.Write(t)
	fit("b", backbone, "--input", "caffe")
	got := knownNetwork(run)
	if got == nil || got.Network != backbone {
		t.Fatalf("the known network is %+v, want %q", got, backbone)
	}
	if flags, want := pretrainedFlags(*m, *got), " --input caffe"; !strings.Contains(flags, want) {
		t.Errorf("the flags are %q, want%s", flags, want)
	}
	for name, content := range map[string][]byte{"other channels": nil, "no network": []byte("network")} {
		if content == nil {
			var err error
			if content, err = os.ReadFile(onnxtest.Backbone{Channels: 1, Side: 16, Filters: 4}.Write(t)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(backbone, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := knownNetwork(run); got != nil {
			t.Errorf("%s: the known network is %+v", name, got)
		}
	}
}

// What a run is good enough for depends on how often it is right.
func TestEnough(t *testing.T) {
	for _, c := range []struct {
		accuracy, rHat float64
		want           string
	}{
		{0.9, 1, "If you can live with that, it is good enough for predictions"},
		{0.9, 1.5, "If you can live with that, it is good enough for predictions, but not for what needs samples of the posterior, " +
			"since its chains disagree (split R-hat 1.50)"},
		{0.053, math.NaN(), "It is better than guessing, but most of its answers are wrong"},
		{0.053, 1.5, "It is better than guessing, but most of its answers are wrong, and its chains disagree (split R-hat 1.50)"},
	} {
		if got := enough(c.accuracy, c.rHat); got != c.want {
			t.Errorf("accuracy %v, R-hat %v: %q, want %q", c.accuracy, c.rHat, got, c.want)
		}
	}
}

// A --size or --channels that the network of an ONNX file does not read is an error before images
// are read.
func TestShapeForAnotherShape(t *testing.T) {
	spec := bayes.Spec{Network: onnxtest.Backbone{Channels: 3, Side: 16, Filters: 4}.Write(t)}
	for size, want := range map[string]string{
		"": "", "16": "", "16x16": "", "32": "reads images of 16x16: leave out --size, got 32", "16x32": "got 16x32", "x": "--size must be a number",
	} {
		err := shapeFor(spec, &config.Data{Size: size})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("--size %q: error %v, want %q", size, err, want)
		}
	}
	for channels, want := range map[int]string{0: "", 1: "reads images of 3 channels: leave out --channels, got 1", 3: ""} {
		err := shapeFor(spec, &config.Data{Channels: channels})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("--channels %d: error %v, want %q", channels, err, want)
		}
	}
}

// Chains that agree need a lower temperature if they are underconfident, and otherwise more images.
func TestUnderconfident(t *testing.T) {
	dir := t.TempDir()
	images, dir := filepath.Join(dir, "images"), filepath.Join(dir, "run")
	if err := writeImages(images, 2, 30); err != nil {
		t.Fatal(err)
	}
	succeed(t, "fit", "--data", images, "--model", "mlp-2", "--method", "sgld", "--epochs", "2", "--samples", "1", "--folder", dir)
	run, err := bayes.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for cautious, want := range map[bool]string{true: " --temperature 0.1 ", false: ""} {
		var j judgement
		j.improve(run, 0.99, math.NaN(), cautious, 1)
		if !strings.Contains(j.command, want) || (j.command == "") != (want == "") || strings.Contains(j.remark, "More images") == cautious {
			t.Errorf("underconfident is %v: %+v", cautious, j)
		}
	}
}

// A head that errs often needs trained features, and an ensemble, which has no chains to mix, needs
// more networks.
func TestTuningIsAdvised(t *testing.T) {
	dir := t.TempDir()
	images := filepath.Join(dir, "images")
	if err := writeImages(images, 2, 30); err != nil {
		t.Fatal(err)
	}
	backbone := onnxtest.Backbone{Channels: 3, Side: 16, Filters: 4}.Write(t)
	for i, c := range []struct {
		freeze         string
		headAccuracy   float64
		want, unwanted string
	}{
		{"all", math.NaN(), " --freeze none ", " --chains"},
		{"none", 0.6, " --chains 4 ", " --freeze"}, // its manifest has the rest
		{"none", 0.7, " --freeze all ", " --chains"},
		{"none", math.NaN(), " --freeze all ", " --chains"},
	} {
		runDir := filepath.Join(dir, fmt.Sprint(i))
		out, _ := succeed(t, "fit", "--data", images, "--model", backbone, "--freeze", c.freeze, "--method", "adam",
			"--chains", "2", "--epochs", "1", "--folder", runDir)
		if compared := regexp.MustCompile(`(?m)^score +adam +head$`).MatchString(out); compared != (c.freeze == "none") {
			t.Errorf("freeze %s: a column of the head is %v:\n%s", c.freeze, compared, out)
		}
		run, err := bayes.Open(runDir)
		if err != nil {
			t.Fatal(err)
		}
		var j judgement
		j.improve(run, 0.7, c.headAccuracy, false, math.NaN())
		if !strings.Contains(j.command, c.want) || strings.Contains(j.command, c.unwanted) {
			t.Errorf("freeze %s: advice %+v, want the command with %q and without %q", c.freeze, j, c.want, c.unwanted)
		}
	}
}

// A head that is no better than guessing has the wrong features.
func TestUselessFeatures(t *testing.T) {
	dir := t.TempDir()
	images, from := filepath.Join(dir, "images"), []string{filepath.Join(dir, "1"), filepath.Join(dir, "2")}
	if err := os.Mkdir(images, 0o700); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"x", "y"} { // two classes that differ in their noise only
		if err := writeImages(from[i], i+1, 30); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(from[i], "a"), filepath.Join(images, name)); err != nil {
			t.Fatal(err)
		}
	}
	backbone := onnxtest.Backbone{Channels: 3, Side: 16, Filters: 4}.Write(t)
	out, _ := succeed(t, "fit", "--data", images, "--model", backbone, "--method", "sgd", "--epochs", "2", "--folder", filepath.Join(dir, "run"))
	if want := "The features of " + backbone + " do not separate these classes"; !strings.Contains(out, want) {
		t.Errorf("output\n%s\nwant %q", out, want)
	}
}

// A run's manifest repeats it also when the ONNX file is gone, or another one is in its place: the
// run has a copy.
func TestRepeatedWithoutModel(t *testing.T) {
	dir := t.TempDir()
	images, run := filepath.Join(dir, "images"), filepath.Join(dir, "run")
	if err := writeImages(images, 2, 30); err != nil {
		t.Fatal(err)
	}
	backbone := onnxtest.Backbone{Channels: 3, Side: 16, Filters: 4}.Write(t)
	succeed(t, "fit", "--data", images, "--model", backbone, "--method", "sgd", "--epochs", "1", "--folder", run)
	repeated := func(name, want string) {
		t.Helper()
		again := filepath.Join(dir, name)
		succeed(t, "fit", "--config", filepath.Join(run, config.ManifestFile), "--folder", again)
		m, err := bayes.ReadManifest(again)
		if err != nil || m.Spec.Network != want {
			t.Errorf("%s: the network is %s (%v), want %s", name, m.Spec.Network, err, want)
		}
	}
	repeated("in place", backbone)
	copied := filepath.Join(run, rundir.ModelDir, filepath.Base(backbone))
	if err := os.Rename(onnxtest.Backbone{Channels: 3, Side: 16, Filters: 5}.Write(t), backbone); err != nil {
		t.Fatal(err)
	}
	repeated("replaced", copied)
	if err := os.Remove(backbone); err != nil {
		t.Fatal(err)
	}
	repeated("gone", copied)
}

// The advised command keeps the flags of the run's network and classes.
func TestDataFlags(t *testing.T) {
	var m bayes.Manifest
	m.Notes = map[string]string{"data": "my photos", "device": "cpu", "size": "224x224"}
	m.Spec = bayes.Spec{Network: "lite0.onnx", Cut: "pool", Head: "mlp:64", Freeze: "all", Input: "inception", Subset: 5}
	want := " --data 'my photos' --size 224x224 --model lite0.onnx --cut pool --head mlp:64 --freeze all --input inception --subset 5"
	if got := dataFlags(m); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	m.Spec = bayes.Spec{Network: "layers:\n- linear: 3"}
	if got := dataFlags(m); got != " --data 'my photos' --size 224x224" {
		t.Errorf("of a network file: %q", got)
	}
	m.Notes["model"] = "/my/net.yaml"
	if got := dataFlags(m); got != " --data 'my photos' --size 224x224 --model /my/net.yaml" {
		t.Errorf("of a network file whose place is known: %q", got)
	}
}

// A class that is recognised less often than others is named, and a rare one gets advice.
func TestWorstRecalledIsNamed(t *testing.T) {
	for _, c := range []struct {
		images [2]int
		missed int
		want   string
	}{
		{[2]int{190, 9}, 3, " But it recognises only 6 of 9 images of tumour, a rare class, to which --class-weights balanced gives more weight."},
		{[2]int{100, 80}, 30, " But it recognises only 50 of 80 images of tumour."},
		{[2]int{190, 9}, 1, ""},
	} {
		test := &datasets.Dataset{ClassNames: []string{"healthy", "tumour"}, Classes: 2}
		var probabilities []float64
		for class, n := range c.images {
			for i := range n {
				guess := class
				if class == 1 && i < c.missed {
					guess = 0
				}
				probabilities, test.Labels = append(probabilities, float64(1-guess), float64(guess)), append(test.Labels, int32(class))
			}
		}
		in, err := evaluate.NewPredictions("scans", probabilities, test.Labels, 2)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := worstRecalled(evaluate.Case{In: in}, test); err != nil || got != c.want {
			t.Errorf("%d of %v images are missed: %q (%v), want %q", c.missed, c.images, got, err, c.want)
		}
	}
}
