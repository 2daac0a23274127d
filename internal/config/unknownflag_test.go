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

// Errors of unknown flags suggest one flag, and do not list all.
func TestFlagError(t *testing.T) {
	for argument, want := range map[string]string{
		"--epohcs": "pollen: unknown flag: --epohcs; did you mean --epochs?", "--xyz": "pollen: unknown flag: --xyz",
		"--epochs=many": `pollen: --epochs must be an integer, got "many"`,
	} {
		f := pflag.NewFlagSet("test", pflag.ContinueOnError)
		f.Int("epochs", 1, "")
		f.String("model", "", "")
		if got := FlagError(f, f.Parse([]string{argument})); got.Error() != want {
			t.Errorf("%s: error %q, want %q", argument, got, want)
		}
	}
}
