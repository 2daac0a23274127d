package runtest

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/mcmc"
)

// While the step size of HMC adapts, some trajectories reach points where the loss is not finite.
// These proposals are rejected, and the run continues; its reports are about the draws.
func TestDivergingProposalsAreRejected(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "hmc")
	const leaps = 40
	spec := bayes.Spec{
		Network: "mlp-6-4", Method: mcmc.HMC{LeapfrogSteps: leaps}, Batch: 40, Epochs: 8 * leaps, BurnIn: new(4 * leaps), Samples: 4, Seed: 1,
	}
	if _, err := bayes.Fit(context.Background(), spec, stripedSplits(t), dir); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	for _, text := range lines {
		var line struct{ Loss, Accuracy float64 }
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatal(err)
		}
		if !(line.Loss > 0 && line.Loss < 10 && line.Accuracy >= 0 && line.Accuracy <= 1) {
			t.Errorf("%s, want the loss and the accuracy of a draw", text)
		}
	}
	if len(lines) < 8*leaps/10 {
		t.Errorf("%d lines for %d steps, want one for each window of at most 10", len(lines), 8*leaps)
	}
}
