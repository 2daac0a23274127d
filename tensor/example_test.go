package tensor_test

import (
	"fmt"

	"github.com/pollen-ml/pollen/tensor"
)

// A workload of one launch that doubles each chain's values. Package graph makes workloads from
// graphs; this one is written by hand. The launch refers to no chain: the example writes to chain
// 1, and after ten steps each of its values is 1024 times as large.
func Example() {
	x := tensor.NewBuffer("x", tensor.Chain, tensor.Float32, 3)
	x.Offset = 0
	double := tensor.Rows(x.Elements, 1, func(a *tensor.Args, lo, hi int) {
		x := tensor.Slice[float32](a, 0)
		for i := lo; i < hi; i++ {
			x[i] *= 2
		}
	})
	launch := tensor.Launch{Kernel: "double_f32", Label: "double", Arguments: []tensor.Argument{tensor.InOut(x)}, Host: double}

	host := tensor.NewHost(2)
	defer host.Close()
	runner, err := host.Load(tensor.Workload{
		Launches: []tensor.Launch{launch},
		Bytes:    [3]int{tensor.Chain: tensor.Align(x.Bytes())},
		Chains:   2,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer runner.Close()
	values := []float32{1, 2, 3}
	err = runner.Write(x, 1, 0, tensor.Bytes(values))
	if err == nil {
		err = runner.Run(10)
	}
	if err == nil {
		err = runner.Read(x, 1, 0, tensor.Bytes(values))
	}
	fmt.Println(values, err)
	// Output:
	// [1024 2048 3072] <nil>
}
