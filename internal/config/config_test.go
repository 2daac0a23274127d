package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen/bayes"
)

func flags() (f *pflag.FlagSet, batch *int, model *string) {
	f = pflag.NewFlagSet("test", pflag.ContinueOnError)
	return f, f.Int("batch", 1, ""), f.String("model", "", "")
}

func TestSet(t *testing.T) {
	f, batch, model := flags()
	command := pflag.NewFlagSet("command", pflag.ContinueOnError)
	command.String("folder", "", "")
	if err := setFlags([]byte("batch: 20 # images\nmodel: lenet\n"), f, command, nil); err != nil || *batch != 20 || *model != "lenet" {
		t.Errorf("batch %d, model %q (%v)", *batch, *model, err)
	}
	for text, want := range map[string]string{
		"batch: many": "batch must be an integer, got many", "dance: 1": `unknown key "dance"; the keys are batch, model`, "batch: [1]": "got [1]",
		"batchs: 1": `unknown key "batchs"; did you mean --batch?`, "batch_size: 1": `unknown key "batch_size"; the size of a minibatch is set by --batch`,
		"folder: runs/a": `unknown key "folder": it is a flag of the command line only, --folder`,
		"":               "must have at least one setting", "# batch: 20\n": "must have at least one setting", "{}": "must have at least one setting",
		"batch: 1\n---\nbatch: 2": "more than one document", "batch: {": "", strings.Repeat("#", maxBytes+1): "must have at most",
	} {
		if err := setFlags([]byte(text), f, command, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: error %v, want %q", text, err, want)
		}
	}
}

// The help has the seed that a run without --seed has.
func TestDefaultSeed(t *testing.T) {
	spec, err := (&Settings{}).Spec()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range bayes.Settings() {
		if want := fmt.Sprintf("(default %d)", spec.Seed); s.Name == "seed" && !strings.HasSuffix(s.Usage, want) {
			t.Errorf("the help is %q, want %s", s.Usage, want)
		}
	}
}

// A fraction of 0 is none, which is not the default; negative numbers count as 0.
func TestFraction(t *testing.T) {
	for text, want := range map[string]string{"0.25": "0.25", "0": "0", "-1": "0", "-0": "0"} {
		d := DataOf(bayes.Manifest{Notes: map[string]string{"validation": text}})
		notes := map[string]string{}
		if d.Notes(notes); notes["validation"] != want || notes["test"] != "" {
			t.Errorf("validation %s: notes %v, want %s", text, notes, want)
		}
		o, err := d.Options(t.Context(), nil)
		if err != nil || o.Test != 0 || (o.Validation < 0) != (want == "0") {
			t.Errorf("validation %s: %v for package datasets (%v)", text, o.Validation, err)
		}
	}
	for _, text := range []string{"1", "NaN", "none", ""} {
		if new(fraction).Set(text) == nil {
			t.Errorf("share %q is accepted", text)
		}
	}
}

func FuzzSet(f *testing.F) {
	f.Add([]byte("batch: 20\nmodel: lenet\n"))
	f.Add([]byte("a: &a [1]\nb: [*a, *a]\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		set, batch, _ := flags()
		if err := setFlags(content, set, set, nil); err != nil && err.Error() == "" {
			t.Fatalf("an error without a text, batch %d", *batch)
		}
	})
}

func TestOtherKindIsNeverOneTrainedOn(t *testing.T) {
	held, some, all := Data{Name: "notmnist", WithoutClasses: "I,J"}, Data{Name: "notmnist", Classes: "A,B"}, Data{Name: "notmnist"}
	for _, row := range []struct {
		of                                 Data
		name, classes, known               string
		wantClasses, wantWithout, complain string
	}{
		{of: all, name: "glyphs", known: "A,B"},
		{of: all, name: "glyphs", classes: "A", known: "A,B", wantClasses: "A"},
		{of: held, name: "notmnist", known: "A,B", wantClasses: "I,J"},
		{of: held, name: "notmnist", classes: "J", known: "A,B", wantClasses: "J"},
		{of: held, name: "notmnist", classes: "J,B", known: "A,B", complain: `"B"`},
		{of: some, name: "notmnist", known: "A,B", wantWithout: "A,B"},
		{of: some, name: "notmnist", classes: "A", known: "A,B", complain: `"A"`},
		{of: all, name: "notmnist", known: "A,B", complain: "must be other data than the runs' own"},
	} {
		other, err := row.of.OOD(row.name, row.classes, strings.Split(row.known, ","))
		if row.complain != "" {
			if err == nil || !strings.Contains(err.Error(), row.complain) {
				t.Errorf("%+v: error %v, want one about %s", row, err, row.complain)
			}
			continue
		}
		if err != nil || other.Classes != row.wantClasses || other.WithoutClasses != row.wantWithout {
			t.Errorf("%+v: got classes %q without %q, %v", row, other.Classes, other.WithoutClasses, err)
		}
	}
}

func TestRunsAreScoredOnWhatTheyHeldOut(t *testing.T) {
	usual, fewer, some := Data{Name: "notmnist"}, Data{Name: "notmnist", Test: 0.05, Size: "16"}, Data{Name: "notmnist", Classes: "A,B"}
	elsewhere := Data{Name: "glyphs", Test: 0.3}
	digits := []string{"0", "1"}
	for _, row := range []struct {
		own      []Data
		other    []string // classes of run 1, if not the others'
		place    string
		want     Data
		complain string
	}{
		{own: []Data{fewer}, want: fewer},
		{own: []Data{fewer}, place: "notmnist", want: fewer},
		{own: []Data{some}, place: "notmnist", want: some},
		{own: []Data{fewer}, place: "mnist", want: Data{Name: "mnist", Foreign: true}},
		{own: []Data{elsewhere, fewer}, place: "notmnist", want: fewer},
		{own: []Data{usual, usual}, want: usual},
		{own: []Data{usual, elsewhere}, complain: "on notmnist, run 1 on glyphs: choose one with --data"},
		{own: []Data{usual, elsewhere}, other: []string{"1", "0"}, complain: "on notmnist, run 1 on glyphs: choose one with --data"},
		{own: []Data{usual, elsewhere}, other: []string{"A", "B"}, complain: "on notmnist, run 1 on glyphs, which have different classes: score them separately"},
		{own: []Data{usual, fewer}, complain: "run 1 held out other test images of notmnist than run 0"},
		{own: []Data{elsewhere, usual, fewer}, place: "notmnist", complain: "run 2 held out other test images of notmnist than run 1"},
		{own: []Data{usual, some}, complain: "run 1 was trained on other classes of notmnist than run 0"},
	} {
		classes := [][]string{digits, digits, digits}
		if row.other != nil {
			classes[1] = row.other
		}
		got, err := TestData([]string{"run 0", "run 1", "run 2"}, row.own, classes, row.place)
		if row.complain != "" {
			if err == nil || !strings.Contains(err.Error(), row.complain) {
				t.Errorf("%+v: error %v, want one about %q", row, err, row.complain)
			}
		} else if err != nil || got != row.want {
			t.Errorf("%+v: got %+v, %v", row, got, err)
		}
	}
}
