package samples_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// A sample is written to a directory and read again. Programs get samples of a chain by
// [samples.FromSession] and predict with them by a [samples.SamplePredictor].
func ExampleStore() {
	dir, err := os.MkdirTemp("", "samples")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	store := samples.NewStore(dir)
	err = store.Add(samples.Sample{
		Chain: 2, Step: 400, Weight: 0.01,
		Parameters: []samples.Parameter{{Name: "weight", Shape: tensor.Shape{2}, Values: []float32{0.5, -1}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	files, err := store.Files()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, file := range files {
		s, err := samples.ReadSample(file)
		fmt.Println(filepath.Base(file), s.Weight, s.Parameters[0].Values, err)
	}
	// Output:
	// chain00002-step000000400.safetensors 0.01 [0.5 -1] <nil>
}
