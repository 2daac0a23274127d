package kernels_test

import (
	"fmt"

	"github.com/pollen-ml/pollen/cuda/kernels"
)

// This example lists the kernels of the file sgld.ptx, which is compiled from sgld.cu.
func ExampleFiles() {
	files, err := kernels.Files()
	if err != nil {
		panic(err)
	}
	for _, f := range files {
		if f.Name != "sgld.ptx" {
			continue
		}
		for _, entry := range f.Entries {
			fmt.Println(entry.Name)
		}
	}
	// Output:
	// fsgld_update_f32
	// fsgld_update_f64
	// psgld_update_f32
	// psgld_update_f64
	// sgld_update_f32
	// sgld_update_f64
}
