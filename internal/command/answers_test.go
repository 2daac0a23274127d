package command

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/internal/letters"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/serve"
)

// lettersRun fits a small network to letters, and returns the run's directory and POLLEN_DATA's.
func lettersRun(t *testing.T) (run, data string) {
	t.Helper()
	data = t.TempDir()
	if err := letters.Write(filepath.Join(data, "notmnist"), 200, 60); err != nil {
		t.Fatal(err)
	}
	if err := writeImages(filepath.Join(data, "images"), 2, 5); err != nil {
		t.Fatal(err)
	}
	t.Setenv("POLLEN_DATA", data)
	run = filepath.Join(data, "run")
	if code, _, stderr := runInProcess("fit", "--method", "sgld", "--data", "notmnist", "--validation", "0.2", "--model", "mlp-10",
		"--epochs", "2", "--burn-in", "1",
		"--folder", run); code != 0 {
		t.Fatalf("fit: exit code %d: %s", code, stderr)
	}
	return run, data
}

// Commands that only read a run succeed where nothing can be written.
func TestReadOnlyRun(t *testing.T) {
	run, data := lettersRun(t)
	images := filepath.Join(data, "images")
	end := file.Inject(func(call, _ string, _ int) (int, error) {
		if call == file.CallCreate {
			return 0, syscall.EROFS
		}
		return 0, nil
	})
	defer end()
	for _, arguments := range [][]string{
		{"eval", run}, {"eval", run, "--json"}, {"ood", run, "--out", images}, {"ood", run, "--out", images, "--json"},
		{"ood", run, "--out", filepath.Join(images, "a", "00.png")},
		{"predict", run, images}, {"predict", run, images, "--json"}, {"predict", run, images, "--csv"}, {"verify", run}, {"status", run}, {"status", run, "--json"},
	} {
		code, stdout, stderr := runInProcess(arguments...)
		if code != 0 || stdout == "" {
			t.Errorf("%s: exit code %d, %q, %s, want results", strings.Join(arguments, " "), code, stdout, stderr)
		}
		writes := arguments[0] == "eval" || arguments[0] == "ood"
		if got := strings.Contains(stderr, "no page: "); got != writes {
			t.Errorf("%s: %s, want a remark that there is no page: %v", strings.Join(arguments, " "), stderr, writes)
		}
		if arguments[len(arguments)-1] == "--json" && !json.Valid([]byte(stdout)) {
			t.Errorf("%s: no JSON: %s", strings.Join(arguments, " "), stdout)
		}
	}
	code, stdout, stderr := runInProcess("predict", run, images, "--samples", filepath.Join(data, "samples.npz"))
	if code != exitFailure || strings.Count(stdout, ".png") != 10 || !strings.Contains(stderr, "samples.npz") {
		t.Errorf("predict --samples where nothing can be written: exit code %d, %q, %s, want the answers and an error", code, stdout, stderr)
	}
	opened, err := bayes.Open(run)
	if err != nil {
		t.Fatal(err)
	}
	server, err := serve.New([]serve.Model{{Run: opened}}, serve.Options{})
	if err != nil {
		t.Fatalf("serve: %v", err)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
}

// The class whose prediction sets have the lowest coverage is named in the table and in JSON.
func TestEvalByClass(t *testing.T) {
	run, _ := lettersRun(t)
	_, stdout, _ := runInProcess("eval", run)
	_, line, found := strings.Cut(stdout, run+": of 10 classes, ")
	if name, _, _ := strings.Cut(line, " has the lowest coverage of 95 % sets, 0."); !found || len(name) != 1 || name < "A" || name > "J" {
		t.Errorf("eval: %s, want a line on the worst of 10 classes", stdout)
	}
	_, stdout, _ = runInProcess("eval", run, "--json")
	var runs []struct {
		ByClass []struct {
			Class             string
			Index, Images     int
			Recall            float64
			Coverage, SetSize *float64
		}
		Assessment struct{ Scores map[string]float64 }
	}
	if err := json.Unmarshal([]byte(stdout), &runs); err != nil || len(runs) != 1 || len(runs[0].ByClass) != 10 {
		t.Fatalf("eval --json: %s (%v), want 10 classes", stdout, err)
	}
	images, lowest := 0, 1.0
	for i, class := range runs[0].ByClass {
		if class.Index != i || class.Class != string(rune('A'+i)) || class.Coverage == nil || class.SetSize == nil {
			t.Errorf("class %d: %+v", i, class)
			continue
		}
		images, lowest = images+class.Images, min(lowest, *class.Coverage)
	}
	if want := runs[0].Assessment.Scores["setCoverageWorst"]; images != 60 || lowest != want {
		t.Errorf("%d images, lowest coverage %v, want 60 and %v", images, lowest, want)
	}
}

// changeCalibration changes the calibration of a run.
func changeCalibration(t *testing.T, run string, change func(c *evaluate.Calibration)) {
	t.Helper()
	c, err := rundir.ReadFile[evaluate.Calibration](run, rundir.CalibrationFile)
	if err != nil {
		t.Fatal(err)
	}
	change(c)
	if err := rundir.AddFile(run, rundir.CalibrationFile, c, func(string) {}); err != nil {
		t.Fatal(err)
	}
}

// TestDecisionsThatMeanLittle: answers of a run that accepts strange images come with a remark.
func TestDecisionsThatMeanLittle(t *testing.T) {
	run, data := lettersRun(t)
	image := filepath.Join(data, "images", "a", "00.png")
	for _, accepted := range []int{2, 7} {
		changeCalibration(t, run, func(c *evaluate.Calibration) {
			c.SelfTest = &evaluate.SelfTest{Kinds: []evaluate.StrangeImages{{Kind: "noise", Images: 10, Accepted: accepted}}}
		})
		const words = "images in distribution need not be like the training images: the run cannot tell strange images from its own: rejects 30 % of 10"
		code, _, stderr := runInProcess("predict", run, image)
		if got := strings.Contains(stderr, words); code != 0 || got != (accepted == 7) {
			t.Errorf("%d of 10 strange images accepted: exit code %d, %s", accepted, code, stderr)
		}
	}
}

// Sets that always have all classes get a remark wherever they are shown.
func TestSetsOfAllClasses(t *testing.T) {
	run, data := lettersRun(t)
	changeCalibration(t, run, func(c *evaluate.Calibration) {
		clear(c.Label[len(c.Label)*8/10:])
	})
	const words = "have all 10 classes, since 20.0 % of the held-out labels have a predicted probability of 0: use a level of at most "
	image := filepath.Join(data, "images", "a", "00.png")
	for _, c := range []struct {
		arguments []string
		want      bool
	}{
		{[]string{"predict", run, image}, true},
		{[]string{"predict", run, image, "--level", "0.7"}, false},
		{[]string{"eval", run}, true},
		{[]string{"eval", run, "--json"}, true},
	} {
		code, _, stderr := runInProcess(c.arguments...)
		if got := strings.Contains(stderr, words); code != 0 || got != c.want {
			t.Errorf("%s: exit code %d, %s, want a remark on sets of all classes: %v", strings.Join(c.arguments, " "), code, stderr, c.want)
		}
	}
}
