package command

import (
	"path/filepath"
	"strings"
	"testing"
)

// A teacher that is not good enough gives a remark, with the command that improves it; a good one
// does not.
func TestDistilRemarksOnTeacher(t *testing.T) {
	dir := t.TempDir()
	images := filepath.Join(dir, "images")
	for _, split := range []string{"train", "test"} {
		if err := writeImages(filepath.Join(images, split), 2, 30); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, rate string
		poor       bool
	}{{"poor", "1e-9", true}, {"good", "0.003", false}} {
		teacher := filepath.Join(dir, c.name)
		succeed(t, "fit", "--data", images, "--model", "mlp-10", "--method", "sghmc", "--schedule", "constant:"+c.rate, "--epochs", "200", "--samples", "2",
			"--folder", teacher)
		_, stderr := succeed(t, "distil", teacher, "--epochs", "1", "--copies", "1", "--folder", teacher+"-small")
		const remark = ", which is to be distilled, is not good enough: "
		if strings.Contains(stderr, teacher+remark) != c.poor || c.poor && !strings.Contains(stderr, "To improve it first: ") {
			t.Errorf("%s: %s, want a remark: %v", c.name, stderr, c.poor)
		}
	}
}
