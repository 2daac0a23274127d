package rundir

import (
	"path/filepath"
	"testing"

	"github.com/pollen-ml/pollen/internal/journal"
)

// TestLastMetrics: the last line is found however long it is, as with the draws of many chains.
func TestLastMetrics(t *testing.T) {
	for _, chains := range []int{0, 1, 300, 3000} {
		path := filepath.Join(t.TempDir(), MetricsFile)
		to, err := journal.Create(path, nil)
		for step := 1; step <= 3 && err == nil; step++ {
			line := Metrics{Step: step}
			if chains > 0 {
				line.Draws = map[string][]float64{DrawPotential: make([]float64, chains)}
				for i := range chains {
					line.Draws[DrawPotential][i] = 1 / float64(3+i)
				}
			}
			err = to.Add(line)
		}
		if err == nil {
			err = to.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		if line, err := lastMetrics(path); err != nil || line.Step != 3 {
			t.Errorf("with draws of %d chains, the last line is of step %d (%v), want 3", chains, line.Step, err)
		}
	}
}
