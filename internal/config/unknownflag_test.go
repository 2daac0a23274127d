package config

import (
	"testing"

	"github.com/spf13/pflag"
)

func TestHint(t *testing.T) {
	f := pflag.NewFlagSet("test", pflag.ContinueOnError)
	for _, name := range []string{"model", "method", "epochs", "schedule", "out"} {
		f.String(name, "", "")
	}
	const rate = "; the learning rate is set by --schedule, as in --schedule constant:0.01 or cosine:0.1,0"
	for unknown, want := range map[string]string{
		"Model": "; it is called --model", "lr": rate, "learning_rate": rate, "lerning-rate": rate,
		"epohcs": "; did you mean --epochs?", "epoch": "; the length of a run is set by --epochs", "metod": "; did you mean --method?",
		"batch-size": "", // the command has no --batch
		"xyz":        "", "ot": "",
	} {
		if got := hint(f, unknown); got != want {
			t.Errorf("--%s: hint %q, want %q", unknown, got, want)
		}
	}
}

func TestNearest(t *testing.T) {
	for _, row := range []struct {
		mistyped, want string
	}{{"fti", "fit"}, {"predcit", "predict"}, {"pridikt", "predict"}, {"predictions", ""}, {"", ""}, {"f", ""}, {"evaluate", ""}, {"fits", "fit"}} {
		if got := Nearest(row.mistyped, []string{"fit", "predict", "eval"}); got != row.want {
			t.Errorf("%q: nearest %q, want %q", row.mistyped, got, row.want)
		}
	}
}
