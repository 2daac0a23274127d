package export

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
)

func TestCard(t *testing.T) {
	run, data := fitted(t, "mlp-8", 1, 3)
	dir := filepath.Join(t.TempDir(), "card")
	remarks, err := Card(t.Context(), run, data.Test, dir, ONNXOptions{}, time.Unix(0, 0))
	if err != nil || len(remarks) > 0 {
		t.Fatal(err, remarks)
	}
	for _, name := range []string{"model.onnx", "posterior.zarr/.zmetadata", "posterior.safetensors", "predictions.npz", "tensorboard"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	content, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# mlp-8 on patterns", "120 images of 16x16 with 1 channels. The 3 classes are across, along, checked.", "| method | sgld |", "| accuracy | ",
		"| coverage of 90 % prediction sets | ", "stretched to this size by a bicubic filter",
		"  | images | accepted | of |", "not tested against images made to deceive",
	} {
		if !strings.Contains(string(content), want) {
			t.Errorf("the card lacks %q:\n%s", want, content)
		}
	}
	// Without test images there are no scores and no predictions; what the run promises stays.
	text, place, remarks := cardOf(t, run, nil)
	if len(remarks) != 2 || !strings.Contains(text, "- The card has no scores, because there are no test images.\n") || strings.Contains(text, "## Scores") ||
		strings.Contains(text, "the test images, for ArviZ") || !strings.Contains(text, "Prediction sets contain the true class") {
		t.Errorf("without test images: remarks %q, the card is\n%s", remarks, text)
	}
	for name, want := range map[string]bool{"predictions.npz": false, "model.onnx": true, "posterior.zarr/.zmetadata": true, "tensorboard": true} {
		if _, err := os.Stat(filepath.Join(place, name)); (err == nil) != want {
			t.Errorf("without test images: %s: %v", name, err)
		}
	}
	unlabelled := *data.Test
	unlabelled.Labels = nil
	if _, err := Card(t.Context(), run, &unlabelled, filepath.Join(t.TempDir(), "card"), ONNXOptions{}, time.Unix(0, 0)); err == nil {
		t.Error("no error without labels")
	}
}

// The card of a distilled run is about one network: it names the teacher, and has no posterior.
func TestCardOfDistilled(t *testing.T) {
	run, data := fitted(t, "distilled", 1, 3)
	_, err := ArviZ(t.Context(), run, data.Test, filepath.Join(t.TempDir(), "zarr"))
	if refused := "was distilled from a posterior and has no draws; export its teacher, "; err == nil || !strings.Contains(err.Error(), refused) {
		t.Errorf("the error is %v, want %q", err, refused)
	}
	dir := filepath.Join(t.TempDir(), "card")
	if _, err := Card(t.Context(), run, data.Test, dir, ONNXOptions{}, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	want := "distilled by Pollen from a Bayesian one (lenet-small by sgld): it predicts what the average of 6 samples does"
	if text := string(content); !strings.Contains(text, want) || strings.Contains(text, "posterior.zarr") {
		t.Errorf("the card is\n%s", text)
	}
	if _, err := os.Stat(filepath.Join(dir, "posterior.zarr")); !os.IsNotExist(err) {
		t.Errorf("there are groups for ArviZ (%v)", err)
	}
}

// cardOf writes a card and returns its text and the remarks.
func cardOf(t *testing.T, run *bayes.Run, test *datasets.Dataset) (text, dir string, remarks []string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "card")
	remarks, err := Card(t.Context(), run, test, dir, ONNXOptions{}, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(content), dir, remarks
}

// contains reports the texts that a card lacks, and those that it must not have.
func contains(t *testing.T, card string, want, refused []string) {
	t.Helper()
	for _, text := range want {
		if !strings.Contains(card, text) {
			t.Errorf("the card lacks %q:\n%s", text, card)
		}
	}
	for _, text := range refused {
		if strings.Contains(card, text) {
			t.Errorf("the card has %q:\n%s", text, card)
		}
	}
}

// Each card says what its predictions average: only samplers have samples of a posterior, and only
// if their chains are in equilibrium.
func TestCardNamesMethod(t *testing.T) {
	data := splits(t, 1)
	for _, c := range []struct {
		method        bayes.Method
		epochs        int
		want, refused []string
	}{
		{optimizers.Adam{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}, 2,
			[]string{"one solution that the optimizer adam of Pollen found. It is not Bayesian", "| `model.onnx` | the network, "},
			[]string{"A Bayesian", "samples", "## Convergence"}},
		{bayes.Ensemble{}, 2,
			[]string{"A deep ensemble that classifies images: the average of 5 networks", "not samples of a posterior"},
			[]string{"A Bayesian", "the samples"}},
		{bayes.SWAG{Rank: 2}, 6, []string{"samples of a Gaussian, which SWAG fitted to its weights"}, []string{"samples of the posterior"}},
		{bayes.LaplaceApproximation{}, 2,
			[]string{"samples of the last layer's weights, by a Laplace approximation"}, []string{"samples of the posterior"}},
		{bayes.BayesByBackprop{InitialStd: 0.02}, 2, []string{"by variational inference"}, []string{"samples of the posterior"}},
		{langevin.SGLD{}, 8,
			[]string{"of sgld, drawn by Pollen. The chains are not in equilibrium, so their average only approximates the average over the posterior of its weights.",
				"## Convergence\n\nThe chains are not in equilibrium: ", "| split R-hat of predictions, 95th percentile over ",
				"| temperature of predictions by curvature, of 1 requested | "},
			[]string{"samples of the posterior"}},
	} {
		run := fittedWith(t, bayes.Spec{Network: "mlp-8", Method: c.method, Epochs: c.epochs}, data)
		card, _, _ := cardOf(t, run, data.Test)
		contains(t, card, append(c.want, "| expected calibration error (ECE) of the probabilities | ", "The calibration images are 60 images of patterns.",
			"Probabilities are not promised to be calibrated"), c.refused)
	}
}

// A card has the scores that package evaluate computes, even for a label whose probability is 0.
func TestCardScores(t *testing.T) {
	images := patterns(t, 3, 1, 1)
	average, err := evaluate.NewPredictions("patterns", []float64{1, 0, 0, 1, 0, 0, 0.25, 0.25, 0.5}, []int32{0, 1, 2}, 3)
	if err != nil {
		t.Fatal(err)
	}
	assessment, err := evaluate.Assess(evaluate.Case{In: average})
	if err != nil {
		t.Fatal(err)
	}
	answers := make([]bayes.Answer, average.Len())
	for i := range answers {
		answers[i].Index, _ = average.Guess(i)
	}
	p := &predicted{images: images, average: average, weights: []float64{1}}
	scores := p.scores(answers, images.ClassNames, 0.9)
	for i, name := range []string{"accuracy", "nll", "brier"} {
		if want := assessment.Values[name]; math.Abs(scores[i].value-want) > 1e-12 {
			t.Errorf("%s is %v, want %v", scores[i].title, scores[i].value, want)
		}
	}
}

// The description of a sampler's run follows the verdict on its chains.
func TestCardOfEquilibrium(t *testing.T) {
	run, data := fitted(t, "frozen", 3, 3)
	p, err := predict(t.Context(), run, data.Test)
	if err != nil {
		t.Fatal(err)
	}
	c := &card{run: run, m: run.Manifest(), test: p}
	layer := func(configurational, kinetic diagnostics.Number) []diagnostics.Temperature {
		at := diagnostics.Temperature{Layer: "head", Weights: 1, Configurational: configurational, Kinetic: kinetic, StandardError: 0.01}
		return []diagnostics.Temperature{at, at}
	}
	for _, test := range []struct {
		diagnostics *diagnostics.Report
		want        string
	}{
		{&diagnostics.Report{Temperatures: layer(1, 1), Predicted: &diagnostics.Mixing{Chains: 2, RHat: 1.001}},
			"the average of 6 samples of the posterior of the weights of its head, drawn by Pollen in 2 chains of sgld."},
		{&diagnostics.Report{Temperatures: layer(1, 1), Predicted: &diagnostics.Mixing{Chains: 2, RHat: 2}},
			"the average of 6 states of 2 chains of sgld, drawn by Pollen. They were not shown to represent"},
		{&diagnostics.Report{Temperatures: layer(2, 2), Predicted: &diagnostics.Mixing{Chains: 2, RHat: 1.001}}, "The chains are not in equilibrium"},
		{&diagnostics.Report{}, "It was not measured whether they are samples of the posterior"},
		{nil, "It was not measured whether they are samples of the posterior"},
	} {
		if text := c.description(test.diagnostics); !strings.Contains(text, test.want) {
			t.Errorf("the description is %q, want %q", text, test.want)
		}
	}
}

// A run with Monte Carlo dropout has a card without the files that it cannot have.
func TestCardOfDropout(t *testing.T) {
	data := splits(t, 1)
	run := fittedWith(t, bayes.Spec{Network: "mlp-8", Method: bayes.Dropout{Rate: 0.25}, Epochs: 2, Samples: 4}, data)
	card, dir, remarks := cardOf(t, run, data.Test)
	contains(t, card,
		[]string{"Monte Carlo dropout. Predictions average 4 passes of 1 trained network", "- The card has no file for ONNX Runtime: ",
			"- The card has no groups for ArviZ: " + markdown(run.Dir()) + " has one set of weights", "The build is unknown. "},
		[]string{"`model.onnx`", "`posterior.zarr`"})
	if len(remarks) != 2 {
		t.Errorf("the remarks are %q, want two", remarks)
	}
	for _, name := range []string{"model.onnx", "posterior.zarr"} {
		if _, err := os.Stat(filepath.Join(dir, name)); !os.IsNotExist(err) {
			t.Errorf("there is %s (%v)", name, err)
		}
	}
}

// The card of a pretrained run names the file, and says which of its weights are frozen.
func TestCardOfPretrained(t *testing.T) {
	for network, want := range map[string]string{
		"frozen":        "All of these are frozen: only the ",
		"partly frozen": "Of these, `features.0.weight` are frozen: the others and those of the head (mlp:5), ",
	} {
		run, data := fitted(t, network, 3, 2)
		card, _, _ := cardOf(t, run, data.Test)
		model := run.Manifest().Model
		const weights = "with 336 weights." // 12 filters of 3x3x3, and their biases
		contains(t, card, []string{want, "`" + model.Files[0] + "` (SHA-256 `" + model.Digest + "`)", weights}, nil)
	}
}

// The card of a gathered run has the seeds of all parts, and R-hat over the chains of all.
func TestCardOfGathered(t *testing.T) {
	data := splits(t, 1)
	var parts []string
	for seed := uint64(1); seed <= 2; seed++ {
		parts = append(parts, fittedWith(t, bayes.Spec{Network: "mlp-8", Method: langevin.SGLD{}, Epochs: 8, Samples: 5, Seed: seed}, data).Dir())
	}
	run, err := bayes.Gather(filepath.Join(t.TempDir(), "run"), parts)
	if err != nil {
		t.Fatal(err)
	}
	card, _, _ := cardOf(t, run, data.Test)
	contains(t, card, []string{"| seed | 1, 2 |", "states of 2 chains", "| split R-hat of predictions, 95th percentile over "}, nil)
}

// Spec.Samples is a minimum: the card and the attributes for ArviZ have the number that was drawn.
func TestDrawnSamples(t *testing.T) {
	data := splits(t, 1)
	run := fittedWith(t, bayes.Spec{Network: "mlp-8", Method: langevin.SGLD{}, Epochs: 8, Samples: 9, Chains: 2}, data)
	draws, err := run.Draws()
	if err != nil {
		t.Fatal(err)
	}
	counts := perChain(draws)
	if len(counts) != 2 || counts[0] == 9 {
		t.Fatalf("the chains have %v samples, want more than 9", counts)
	}
	card, dir, _ := cardOf(t, run, data.Test)
	contains(t, card, []string{fmt.Sprintf("| samples of each chain | %d |", counts[0]), fmt.Sprintf("the average of %d states", draws.Len())}, nil)
	attributes, err := os.ReadFile(filepath.Join(dir, "posterior.zarr", ".zattrs"))
	if want := fmt.Sprintf(`"samples": "%d"`, counts[0]); err != nil || !strings.Contains(string(attributes), want) {
		t.Errorf("the attributes are %s (%v), want %s", attributes, err, want)
	}
}

// The card of a distilled run compares it with its teacher, and repeats remarks on the test images.
func TestCardOfFidelity(t *testing.T) {
	run, data := fitted(t, "distilled", 1, 3)
	card, _, _ := cardOf(t, run, data.Test)
	contains(t, card, []string{"The run was not compared with its teacher", "| `model.onnx` | the network, ", "| `posterior.safetensors` | its weights, "},
		[]string{"the averaged network", "the samples, "})
	if _, err := run.MeasureFidelity(t.Context(), data.Test); err != nil {
		t.Fatal(err)
	}
	test := *data.Test
	test.Remarks = []string{"it has changed"}
	card, _, _ = cardOf(t, run, &test)
	contains(t, card, []string{"Compared with its teacher on 40 images of patterns: the same class for ",
		"| score | teacher | distilled |\n|---|---|---|\n| accuracy | ",
		"- it has changed"}, nil)
}

// Remarks are sentences. The name of the data is as in the manifest.
func TestSentence(t *testing.T) {
	for remark, want := range map[string]string{
		"test images are copies": "Test images are copies.", "flowers has no test images": "flowers has no test images.",
		"flowers: ignored: logs": "flowers: ignored: logs.", "flowerspots": "Flowerspots.", "flowers": "Flowers.",
		"ärzte.csv has no labels": "Ärzte.csv has no labels.",
	} {
		if got := sentence(remark, "flowers"); got != want {
			t.Errorf("%q: %q, want %q", remark, got, want)
		}
	}
	if got := sentence("images", ""); got != "Images." {
		t.Errorf("of data without a name: %q", got)
	}
}

// Where nothing can be written, and for images of unknown classes, nothing is predicted.
func TestRefusedFirst(t *testing.T) {
	run, data := fitted(t, "mlp-8", 1, 2)
	predicted := false
	run = run.With(bayes.WithObserver(func(bayes.Event) { predicted = true }))
	taken := t.TempDir()
	if err := os.WriteFile(filepath.Join(taken, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	unknown := *data.Test
	unknown.ClassNames = []string{"across", "along", "dotted"}
	place := t.TempDir()
	for name, c := range map[string]struct {
		export func() error
		want   string
	}{
		"card": {func() error {
			_, err := Card(t.Context(), run, data.Test, taken, ONNXOptions{}, time.Unix(0, 0))
			return err
		}, taken + " must be new or empty"},
		"card in a missing directory": {func() error {
			_, err := Card(t.Context(), run, data.Test, filepath.Join(taken, "none", "card"), ONNXOptions{}, time.Unix(0, 0))
			return err
		}, "cannot write " + filepath.Join(taken, "none", "card")},
		"arviz": {func() error {
			_, err := ArviZ(t.Context(), run, data.Test, taken)
			return err
		}, "must be new or empty"},
		"npz":     {func() error { return NPZ(t.Context(), run, data.Test, filepath.Join(taken, "none", "x.npz")) }, "cannot write "},
		"classes": {func() error { return NPZ(t.Context(), run, &unknown, filepath.Join(place, "x.npz")) }, `has a class "dotted"`},
		"file":    {func() error { return CheckTarget(filepath.Join(taken, "file"), true) }, "must be a directory"},
	} {
		if err := c.export(); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), ".partial") || predicted {
			t.Errorf("%s: the error is %v, want %q; predicted: %v", name, err, c.want, predicted)
		}
	}
	if left, err := os.ReadDir(place); err != nil || len(left) > 0 {
		t.Errorf("%s has %v (%v), want nothing", place, left, err)
	}
}

// TestIntervals: Wilson's interval of 8 of 10 is .490 to .943, as in Wilson (1927); the interval of
// a mean is 1.96 standard errors.
func TestIntervals(t *testing.T) {
	f := fraction("", 8, 10)
	if f.value != 0.8 || math.Abs(f.low-0.4902) > 1e-4 || math.Abs(f.high-0.9433) > 1e-4 {
		t.Errorf("8 of 10 is %+v", f)
	}
	m := mean("", []float64{1, 2, 3})
	if m.value != 2 || math.Abs(m.high-m.value-1.959964/math.Sqrt(3)) > 1e-9 {
		t.Errorf("the mean of 1, 2, 3 is %+v", m)
	}
	if one := mean("", []float64{1}); one.value != 1 || !math.IsNaN(one.low) || !math.IsNaN(one.high) {
		t.Errorf("the mean of 1 is %+v, want no interval", one)
	}
}
