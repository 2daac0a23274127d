package command

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/evaluate"
)

// succeed runs a command, which must succeed.
func succeed(t *testing.T, arguments ...string) (stdout, stderr string) {
	t.Helper()
	code, stdout, stderr := runInProcess(arguments...)
	if code != 0 {
		t.Fatalf("%s: exit code %d: %s", strings.Join(arguments, " "), code, stderr)
	}
	return stdout, stderr
}

// A run without held-out images reports this when it begins. After it is calibrated on other
// images, its answers have sets and decisions.
func TestCalibrateCommand(t *testing.T) {
	data := t.TempDir()
	for name, each := range map[string]int{"flowers": 30, "more": 15} { // of two classes, a and b
		if err := writeImages(filepath.Join(data, name), 2, each); err != nil {
			t.Fatal(err)
		}
	}
	run, images := filepath.Join(data, "run"), filepath.Join(data, "more", "a")
	_, stderr := succeed(t, "fit", "--data", filepath.Join(data, "flowers"), "--validation", "0", "--model", "mlp-10", "--method", "sghmc", "--epochs", "2",
		"--burn-in", "1", "--folder", run)
	if !strings.Contains(stderr, "no images are held out for calibration") || !strings.Contains(stderr, "calibrate "+run+" --data DIR") {
		t.Errorf("fit: %s, want a remark that there will be no calibration", stderr)
	}
	_, stderr = succeed(t, "fit", "--data", filepath.Join(data, "flowers"), "--model", "mlp-10", "--method", "sgd", "--subset", "20", "--estimate")
	if !regexp.MustCompile(`(?m)^a +10 `).MatchString(stderr) {
		t.Errorf("fit: %s, want a table with the 10 images of the subset in class a", stderr)
	}
	_, stderr = succeed(t, "predict", run, images, "--risk", "0.1")
	if !strings.Contains(stderr, "certifies no risk: hold out images") || !strings.Contains(stderr, "all images should be referred to a person") {
		t.Errorf("predict: %s", stderr)
	}
	if code, _, stderr := runInProcess("calibrate", run); code != exitUsage || !strings.Contains(stderr, "give other images with --data") {
		t.Errorf("calibrate on what was trained on: exit code %d, %s", code, stderr)
	}
	code, _, stderr := runInProcess("calibrate", run, "--data", filepath.Join(data, "more"))
	if code != exitUsage || !strings.Contains(stderr, "trained on 13 of the 30 ") || !strings.Contains(stderr, "remove the 13 from the data") {
		t.Errorf("calibrate on what was partly trained on: exit code %d, %s", code, stderr)
	}
	stdout, stderr := succeed(t, "calibrate", run, "--data", filepath.Join(data, "more"), "--allow-trained")
	if !strings.Contains(stdout, run+" is calibrated on 30 images of more; it was not calibrated.") || !strings.Contains(stdout, "--risk 0.05") ||
		!strings.Contains(stdout, "strange images") || !strings.Contains(stderr, "are not guaranteed") ||
		!regexp.MustCompile(`Class-conditional.*level 0.95.*: a \(15 of 19\), b \(15 of 19\)`).MatchString(stdout) {
		t.Errorf("calibrate: %s", stdout)
	}
	opened, err := bayes.Open(run)
	if err != nil {
		t.Fatal(err)
	}
	calibration, err := opened.Calibration()
	if err != nil || calibration.Notes["data"] != filepath.Join(data, "more") || calibration.Notes[bayes.TrainedNote] != "13" {
		t.Errorf("calibration notes %v (%v)", calibration.Notes, err)
	}
	succeed(t, "verify", run)

	// Answers: every image is answered at a risk of 99 %, and none at 1 %.
	for risk, refer := range map[string]bool{"0.99": false, "0.01": true} {
		stdout, stderr := succeed(t, "predict", run, images, "--risk", risk, "--per-class", "--level", "0.95", "--json")
		var answers []bayes.Answer
		if err := json.Unmarshal([]byte(stdout), &answers); err != nil || len(answers) != 15 {
			t.Fatalf("predict --json: %s (%v)", stdout, err)
		}
		for _, a := range answers {
			if a.Refer == nil || *a.Refer != refer || len(a.PredictionSet) == 0 || len(a.MarginalClasses) != 2 || a.InDistribution == nil {
				t.Errorf("--risk %s: %+v", risk, a)
			}
		}
		if !strings.Contains(stderr, "13 images that it was trained on: prediction sets and certified risks are not guaranteed") {
			t.Errorf("predict: %s, want what the calibration lacks", stderr)
		}
		if !strings.Contains(stderr, "which promises nothing for each of them: a (") {
			t.Errorf("predict: %s, want the classes without a threshold of their own", stderr)
		}
		stdout, _ = succeed(t, "predict", run, images, "--risk", risk)
		if want := map[bool]string{true: "refer to a person", false: "answer"}[refer]; strings.Count(stdout, want) != 15 {
			t.Errorf("predict: %s, want %q fifteen times", stdout, want)
		}
	}

	// Scores: risks, and coverage and sizes by class.
	stdout, _ = succeed(t, "eval", run, "--json", "--per-class", "--sets", "raps:lambda=0.1,kreg=2", "--risk", "0.9", "--risk-confidence", "0.8")
	var runs []struct {
		SetRule evaluate.SetRule
		Risks   []evaluate.Selected
		ByClass []struct {
			Coverage, SetSize *float64
			Threshold         *evaluate.ClassThreshold
		}
	}
	if err := json.Unmarshal([]byte(stdout), &runs); err != nil || len(runs) != 1 || len(runs[0].Risks) != 1 {
		t.Fatalf("eval --json: %s (%v)", stdout, err)
	}
	if r := runs[0].Risks[0]; r.Risk != 0.9 || r.Confidence != 0.8 || r.Images != 30 || r.Certified && r.TestRisk == nil {
		t.Errorf("risks %+v", r)
	}
	if rule := runs[0].SetRule; rule.KReg != 2 || !rule.PerClass || rule.Score != evaluate.RegularizedSets {
		t.Errorf("rule %+v", rule)
	}
	for _, class := range runs[0].ByClass {
		if class.Coverage == nil || class.SetSize == nil || class.Threshold == nil || class.Threshold.Needed != 19 {
			t.Errorf("class %+v", class)
		}
	}
	stdout, _ = succeed(t, "eval", run, "--per-class")
	for _, want := range []string{"at most 2 %, with 90 % confidence", "coverage  set size", "which promises nothing for each of them: a ("} {
		if !strings.Contains(stdout, want) {
			t.Errorf("eval: %s, want %q", stdout, want)
		}
	}
	for _, arguments := range [][]string{{"--sets", "all"}, {"--risk", "2"}, {"--risk-confidence", "0"}} {
		if code, _, stderr := runInProcess(append([]string{"predict", run, images, "--risk", "0.1"}, arguments...)...); code != exitUsage {
			t.Errorf("%v: exit code %d, %s, want %d", arguments, code, stderr, exitUsage)
		}
	}
}

// The reason why no risk is certified is one sentence.
func TestCertificateText(t *testing.T) {
	few := evaluate.Certificate{Risk: 0.02, Confidence: 0.9, Images: 64, Needed: 183}
	wrong := few
	wrong.Images = 200
	groups, wrongGroups := few, wrong
	groups.Grouped, wrongGroups.Grouped = true, true
	for _, c := range []struct {
		certificate evaluate.Certificate
		want        string
	}{
		{few, "no answers with at most 2 % errors can be certified with 90 % confidence: that needs at least 183 held-out images, and there are 64; " +
			"all images should be referred to a person"},
		{wrong, "no answers with at most 2 % errors can be certified with 90 % confidence: too many of the 200 held-out images are classified wrongly; " +
			"all images should be referred to a person"},
		{groups, "no answers with at most 2 % errors can be certified with 90 % confidence: that needs held-out images of at least 183 groups, " +
			"and there are 64 groups; all images should be referred to a person"},
		{wrongGroups, "no answers with at most 2 % errors can be certified with 90 % confidence: too many images, one of each of the 200 held-out groups, " +
			"are classified wrongly; all images should be referred to a person"},
	} {
		if got := certificateText(c.certificate); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
