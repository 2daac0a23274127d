package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A run remembers the column of its labels: other data are scored by the same column, if they have
// it, and predictions do not need it.
func TestLabelColumn(t *testing.T) {
	dir := t.TempDir()
	table := func(name, heading string, labels func(i int) string) string {
		text := heading + strings.Repeat(",p1", 16) + "\n"
		for i := range 8 {
			text += labels(i) + strings.Repeat(fmt.Sprintf(",%d,%d", 40*(i%2), 7*i), 8) + "\n"
		}
		path := filepath.Join(dir, name+".csv")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	both := func(i int) string { return fmt.Sprintf("%d,%d", i%4, i%2) }
	run := filepath.Join(dir, "run")
	for _, step := range []struct {
		arguments []string
		want      string
	}{
		{[]string{"fit", "--data", table("own", "label,species", both), "--label", "species", "--model", "mlp-2", "--method", "sgd", "--epochs", "1",
			"--batch", "2", "--validation", "0", "--test", "0.5", "--folder", run}, "4 images for scores"},
		{[]string{"eval", run}, "accuracy"},
		{[]string{"eval", run, "--data", table("both", "label,species", both)}, "both.csv: columns that are not read: label"},
		{[]string{"eval", run, "--data", table("other", "label", func(i int) string { return fmt.Sprint(i % 2) })}, "accuracy"},
		{[]string{"eval", run, "--data", table("kind", "label,kind", both), "--label", "kind"}, "accuracy"},
		{[]string{"eval", run, "--label", "kind"}, `--label of the run's own data must be "species", as in fit, got "kind"`},
		{[]string{"fit", "--data", table("four", "label", func(i int) string { return fmt.Sprint(i % 4) }), "--label", "spezies"}, `label: must be a column of`},
		{[]string{"predict", run, table("species", "species", func(i int) string { return "0" })}, "species.csv"},
	} {
		code, stdout, stderr := runInProcess(step.arguments...)
		fails := strings.Contains(step.want, "label: must") || strings.Contains(step.want, "data must be")
		if (code != 0) != fails || !strings.Contains(stdout+stderr, step.want) {
			t.Errorf("%q: status %d\n%s%s\nwant %s", step.arguments, code, stdout, stderr, step.want)
		}
	}
}
