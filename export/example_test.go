package export_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/export"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/onnx"
)

// Train a run and write it to a file for ONNX Runtime, which computes the average over all samples.
func ExampleONNX() {
	dir, err := os.MkdirTemp("", "export")
	check(err)
	defer os.RemoveAll(dir)
	pixels, labels := make([]byte, 40*8*8), make([]int32, 40)
	for i := range pixels {
		labels[i/64] = int32(i / 64 % 2)
		pixels[i] = byte(200*(i/64%2) + i*i%50) // dark or bright
	}
	images, err := datasets.New("brightness", pixels, labels, 1, 8, 8, []string{"dark", "bright"})
	check(err)
	spec := bayes.Spec{Network: "mlp-16", Method: langevin.SGLD{}, Epochs: 4, Samples: 5}
	ctx := context.Background()
	run, err := bayes.Fit(ctx, spec, &datasets.Splits{Train: images}, filepath.Join(dir, "run"))
	check(err)

	path := filepath.Join(dir, "brightness.onnx")
	remarks, err := export.ONNX(ctx, run, path, export.ONNXOptions{})
	check(err)
	fmt.Println(len(remarks), "remark: the run has no calibration, and the file no decisions")
	model, err := onnx.Open(path)
	check(err)
	for _, v := range append(model.Inputs, model.Outputs...) {
		fmt.Println(v.Name, v.Type, v.Shape)
	}
	// Output:
	// 1 remark: the run has no calibration, and the file no decisions
	// images uint8 [-1 1 8 8]
	// probabilities float32 [-1 2]
	// entropy float32 [-1]
	// mutual_information float32 [-1]
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
