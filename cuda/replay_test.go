package cuda_test

import (
	"os"
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/emulator"
	"github.com/pollen-ml/pollen/cuda/internal/plan"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/optest"
	"github.com/pollen-ml/pollen/tensor"
)

// sanitizersVariable names the environment variable that enables the sanitizers.
const sanitizersVariable = "POLLEN_SANITIZERS"

// TestSanitizers runs the kernels of all ops, of a network's training and of all updates under the
// sanitizers, in every precision.
func TestSanitizers(t *testing.T) {
	if os.Getenv(sanitizersVariable) == "" {
		t.Skipf("it takes minutes; %s=1 runs it", sanitizersVariable)
	}
	host := tensor.NewHost(1)
	defer host.Close()
	recorder := cuda.NewRecorder(host)
	optest.RunCases(t, recorder, optest.Cases())
	for rule := range trainings {
		if _, err := train(lenet(t, rule), recorder, 0, 1, trainSteps); err != nil {
			t.Fatal(err)
		}
	}
	for _, u := range updates() {
		b := graph.New(tensor.Float32)
		u.attach(b)
		if err := load(t, b, recorder, 1).Run(updateSteps); err != nil {
			t.Fatal(err)
		}
	}
	for _, precision := range []cuda.Precision{cuda.TF32, cuda.BF16} {
		plan.OnlyPacked(t, precision, len(plan.PackedTiles(precision))-1)
	}
	for i, c := range append(slices.Clone(packedCases), groupedCases...) {
		if c.filters > 32 {
			continue // which takes long
		}
		if i == len(packedCases) {
			plan.OnlyWGMMA(t, len(plan.WGMMATiles())-1)
		}
		program, _ := c.program(t, func(i int) float64 { return float64(i%8) / 4 })
		session, err := program.Load(recorder, graph.LoadOptions{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := session.Run(1); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d launches, %d bytes", recorder.Launches(), recorder.Bytes())
	for sanitizer, recording := range map[emulator.Sanitizer]*emulator.Recording{emulator.Address: &recorder.Recording, emulator.Thread: recorder.Few()} {
		t.Run(string(sanitizer), func(t *testing.T) {
			t.Parallel()
			if text, err := recording.Run(t, sanitizer, ""); err != nil {
				t.Errorf("%v\n%s", err, text)
			}
		})
	}
}
