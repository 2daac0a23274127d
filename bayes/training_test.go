package bayes

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/tensor"
)

// states are values of a run's session, by name, after the given number of steps.
func states(t *testing.T, spec Spec, name string, at ...int) [][]float32 {
	t.Helper()
	data := squares(t, 100, 4, 1)
	tr, err := newTraining(spec, data, filepath.Join(t.TempDir(), "run"), environmentOf(nil))
	must(t, err)
	host := tensor.NewHost(1)
	defer host.Close()
	must(t, tr.load(t.Context(), host))
	defer tr.session.Close()
	var all [][]float32
	for _, steps := range at {
		must(t, tr.session.Run(steps-int(tr.session.Steps())))
		values := make([]float32, 3*side*side)
		must(t, graph.Read(tr.session, name, 0, 0, values))
		all = append(all, values)
	}
	return all
}

// pSGLD's second moment, and with it G, adapts during burn-in, and is constant afterwards if it is
// frozen.
func TestPreconditionerFreezes(t *testing.T) {
	spec := Spec{Network: "mlp-3", Batch: 10, Epochs: 4, BurnIn: new(2), Samples: 5}
	for gamma, frozen := range map[string]bool{"frozen": true, "none": false} {
		spec.Method = methodOf(t, "psgld:gamma="+gamma)
		s := states(t, spec, "linear1.weight.second moment", 10, 20, 21, 40)
		if equal(s[0], s[1]) {
			t.Errorf("%s: the second moment does not adapt during burn-in", gamma)
		}
		if equal(s[1], s[2]) != frozen || equal(s[1], s[3]) != frozen {
			t.Errorf("%s: the second moment after burn-in is that of its end: %v after a step, %v after 20", gamma, equal(s[1], s[2]), equal(s[1], s[3]))
		}
	}
}

func equal(a, b []float32) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// A chain that is no better than guessing gets one remark.
func TestWatchdog(t *testing.T) {
	data := squares(t, 100, 4, 1)
	var remarks []string
	tr, err := newTraining(Spec{Network: "mlp-3", Method: langevin.SGLD{}, Batch: 10, Epochs: 6, Chains: 3}, data, "", environmentOf([]Option{
		WithObserver(func(e Event) { remarks = append(remarks, e.Remark) }),
	}))
	must(t, err)
	host := with(t, 1)
	e := environmentOf([]Option{host})
	must(t, tr.load(t.Context(), e.device))
	defer tr.session.Close()
	tr.observing()
	p := langevin.Window{From: tr.plan.BurnIn, To: tr.plan.BurnIn + 1}
	for range 3 * guessingWindows {
		tr.watch(p, []float64{0.1, 2, 0.1})
	}
	want := "chain 1 has been no better than guessing for 5 windows, with a loss of 2 now, while 2 of 3 chains are better"
	if text := strings.Join(remarks, "; "); len(remarks) != 1 || !strings.Contains(text, want) {
		t.Errorf("remarks %q", text)
	}
	// A chain is named once, also if it gets better for a while.
	tr.watch(p, []float64{0.1, 0.1, 0.1})
	for range 3 * guessingWindows {
		tr.watch(p, []float64{0.1, 2, 0.1})
	}
	if len(remarks) != 1 {
		t.Errorf("remarks %q", remarks)
	}
	// The losses of chains that all guess are now above and now below the loss of guessing.
	tr.watchdog, remarks = watchdog{}, nil
	for range 3 * guessingWindows {
		tr.watch(p, []float64{1.11, 1.09, 1.1})
	}
	if len(remarks) > 0 {
		t.Errorf("remarks %q", remarks)
	}
	// All chains at once, early in the run, have learnt nothing yet: another warning says so.
	tr.watchdog, remarks = watchdog{}, nil
	for range 3 * guessingWindows {
		tr.watch(p, []float64{2, 2, 2})
		tr.watch(langevin.Window{From: 0, To: 1}, []float64{0.1, 2, 0.1})
	}
	if len(remarks) > 0 {
		t.Errorf("remarks %q", remarks)
	}
	// A loss far below ln 3 is the loss of guessing if one class has nearly all images.
	tr.watchdog, remarks, tr.data = watchdog{}, nil, imbalanced(data)
	for range 3 * guessingWindows {
		tr.watch(p, []float64{0.1, 0.3, 0.01})
	}
	if text := strings.Join(remarks, "; "); len(remarks) != 1 || !strings.Contains(text, "chain 1 has been no better than guessing") {
		t.Errorf("remarks %q", text)
	}
}

// imbalanced returns the images of data with labels of which 3 % are not 0.
func imbalanced(data *datasets.Dataset) *datasets.Dataset {
	changed := *data
	changed.Labels = make([]int32, data.Len())
	for i := range data.Len() * 3 / 100 {
		changed.Labels[i] = int32(1 + i%(data.Classes-1))
	}
	return &changed
}

// A calibration whose sets have all classes gets a remark, at the level of answers or of scores.
func TestRemarkAllClasses(t *testing.T) {
	var probabilities []float64
	for i := range 40 {
		p := 0.0
		if i < 36 {
			p = 1 - float64(i)/100
		}
		probabilities = append(probabilities, p, 1-p, 0)
	}
	predictions, err := evaluate.NewPredictions("roses", probabilities, make([]int32, 40), 3)
	if err != nil {
		t.Fatal(err)
	}
	c, err := evaluate.Calibrate(predictions)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		level float64
		want  string
	}{
		{0.5, "prediction sets at level 0.95 have all 3 classes, since 10.0 % of the held-out labels"},
		{0.96, "prediction sets at level 0.96 have all 3 classes"},
	} {
		var remarks []string
		run := newRun("", &Manifest{}, environmentOf([]Option{WithLevel(test.level), WithObserver(func(e Event) { remarks = append(remarks, e.Remark) })}))
		run.remarkAllClasses(c)
		if len(remarks) != 1 || !strings.HasPrefix(remarks[0], test.want) || !strings.Contains(remarks[0], "use a level of at most 0.87, ") {
			t.Errorf("level %v: remarks %q, want %q and the level 0.87", test.level, remarks, test.want)
		}
		labels := append([]float64(nil), c.Label...)
		for i := range labels {
			labels[i] = max(labels[i], 0.01)
		}
		other := *c
		other.Label, remarks = labels, nil
		if run.remarkAllClasses(&other); len(remarks) > 0 {
			t.Errorf("level %v, no label of probability 0: remarks %q", test.level, remarks)
		}
	}
}

// Few held-out images get a remark only if the run accepts strange images and rejects hardly any
// held-out image.
func TestRemarkFewHeldOut(t *testing.T) {
	for _, test := range []struct {
		heldOut, accepted int
		want              string
	}{
		{36, 60, "36 held-out images are few"}, {58, 60, "58 held-out images are few"},
		{36, 10, ""}, {59, 60, ""}, {500, 60, ""},
	} {
		predictions, err := evaluate.NewPredictions("roses", slices.Repeat([]float64{0.7, 0.3}, test.heldOut), make([]int32, test.heldOut), 2)
		if err != nil {
			t.Fatal(err)
		}
		for i := range test.heldOut {
			predictions.Nonconformity = append(predictions.Nonconformity, float64(i))
		}
		c, err := evaluate.Calibrate(predictions)
		if err != nil {
			t.Fatal(err)
		}
		c.SelfTest = &evaluate.SelfTest{Kinds: []evaluate.StrangeImages{{Kind: "noise", Images: 100, Accepted: test.accepted}}}
		var remarks []string
		run := newRun("", &Manifest{}, environmentOf([]Option{WithObserver(func(e Event) { remarks = append(remarks, e.Remark) })}))
		if err := run.remarkFewHeldOut(c); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(remarks, "; "); !strings.HasPrefix(got, test.want) || test.want == "" && got != "" {
			t.Errorf("%d held out, %d accepted: remarks %q, want %q", test.heldOut, test.accepted, got, test.want)
		}
	}
}

// CSV distinguishes an empty prediction set, no prediction set and an image that cannot be read,
// and names with separators can be read back.
func TestAnswersToProgramsAreUnambiguous(t *testing.T) {
	classes := []string{"a;b", "花\"", "none"}
	answer := func(file string, set []string) Answer {
		return Answer{File: file, Class: "none", Confidence: 0.5, Probabilities: []float64{0.25, 0.25, 0.5}, PredictionSet: set}
	}
	answers := []Answer{
		answer("all", classes), answer("empty", []string{}), answer("absent", nil), {File: "cut.png", Error: "PNG: unexpected EOF"},
	}
	var text strings.Builder
	if err := WriteCSV(&text, answers, classes); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(text.String())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	set, size, failure := slices.Index(rows[0], "prediction_set"), slices.Index(rows[0], "set_size"), slices.Index(rows[0], "error")
	for i, want := range []struct{ size, failure string }{{"3", ""}, {"0", ""}, {"", ""}, {"", "PNG: unexpected EOF"}} {
		row := rows[i+1]
		if row[0] != answers[i].File || row[size] != want.size || row[failure] != want.failure || (row[1] == "") != (want.failure != "") {
			t.Errorf("row %q, want size %q and error %q", row, want.size, want.failure)
		}
	}
	names := csv.NewReader(strings.NewReader(rows[1][set]))
	names.Comma = ';'
	if got, err := names.Read(); err != nil || !slices.Equal(got, classes) {
		t.Errorf("prediction set %q is %q (%v), want %q", rows[1][set], got, err, classes)
	}
	for i, want := range []string{
		`"predictionSet":["a;b",`, `"predictionSet":[],`, `"file":"absent","class":"none"`, `{"file":"cut.png","error":"PNG: unexpected EOF"}`,
	} {
		got, err := json.Marshal(answers[i])
		if err != nil || !strings.Contains(string(got), want) || strings.Contains(string(got), "predictionSet") != (answers[i].PredictionSet != nil) {
			t.Errorf("JSON %s (%v), want %s", got, err, want)
		}
	}
	if got, want := answers[3].String(), "cut.png: PNG: unexpected EOF"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A loss close to the loss of guessing gets a remark, on either side of it.
func TestWarn(t *testing.T) {
	data := squares(t, 100, 3, 1)
	testWarn(t, data)
	testWarn(t, imbalanced(data))
	want := -0.97*math.Log(0.97) - 0.02*math.Log(0.02) - 0.01*math.Log(0.01)
	if got := guessing(imbalanced(data), nil); math.Abs(got-want) > 1e-12 {
		t.Errorf("guessing has a loss of %v, want %v", got, want)
	}
}

func testWarn(t *testing.T, data *datasets.Dataset) {
	t.Helper()
	guessing := guessing(data, nil)
	const hardly, not = "hardly below the loss of guessing", "not below the loss of guessing"
	for factor, want := range map[float64]string{0.5: "", 0.97: "", 0.99: hardly, 1: not, 1.1: not} {
		got := ""
		options := []Option{with(t, 1), WithObserver(func(e Event) { got += e.Remark })}
		tr, err := newTraining(Spec{Network: "mlp-3", Method: methodOf(t, "sgd")}, data, "", environmentOf(options))
		must(t, err)
		must(t, tr.load(t.Context(), tr.device))
		tr.observing()
		got = ""
		tr.measured.Loss = factor * guessing
		tr.warn()
		tr.session.Close()
		if !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("loss %.2f of guessing: remarks %q, want %q", factor, got, want)
		}
	}
}

// Neither the method auto nor a learning rate is the advice to a run that auto chose, or whose
// method has no learning rate.
func TestWarnAdvice(t *testing.T) {
	for name, want := range map[string]string{
		"sgld": "another learning rate may help, or the method auto", "mclmc": "or another network", "hmc": "or another network",
	} {
		var remarks []string
		options := []Option{with(t, 1), WithObserver(func(e Event) { remarks = append(remarks, e.Remark) })}
		tr, err := newTraining(Spec{Network: "mlp-3", Method: methodOf(t, name)}, squares(t, 100, 3, 1), "", environmentOf(options))
		must(t, err)
		must(t, tr.load(t.Context(), tr.device))
		tr.observing()
		tr.measured.Loss = 2
		remarks = nil
		tr.warn()
		tr.session.Close()
		if len(remarks) != 1 || !strings.Contains(remarks[0], want) || strings.Contains(remarks[0], "auto") != (name == "sgld") {
			t.Errorf("%s: remarks %q, want %q", name, remarks, want)
		}
	}
}
