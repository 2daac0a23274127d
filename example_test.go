package pollen_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pollen-ml/pollen"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// A run of two chains is made, opened again, and asked what it sees.
func ExampleFit() {
	images, labels := stripes(200)
	stripes, err := datasets.New("stripes", images, labels, 1, 8, 8, []string{"upright", "lying"})
	check(err)
	dir, err := os.MkdirTemp("", "runs")
	check(err)
	defer os.RemoveAll(dir)

	ctx, data := context.Background(), &datasets.Splits{Train: stripes}
	spec := pollen.Spec{Network: "mlp-16", Method: langevin.SGHMC{Friction: 0.1}, Epochs: 10, Chains: 2}
	_, err = pollen.Fit(ctx, spec, data, filepath.Join(dir, "stripes"))
	check(err)

	run, err := pollen.Open(filepath.Join(dir, "stripes"))
	check(err)
	two, err := datasets.New("two", images[:2*8*8], nil, 1, 8, 8, nil)
	check(err)
	answers, err := run.Predict(ctx, two)
	check(err)
	for _, a := range answers {
		fmt.Println(a.Class, a.Confidence > 0.9)
	}
	// Output:
	// upright true
	// lying true
}

// Ten thousand steps of SGLD would sample the posterior of a small network; this example makes a
// hundred, on four chains.
func Example() {
	images, labels := stripes(200)
	network := layers.Sequential{layers.Flatten{}, layers.Linear{Outputs: 16}, layers.ReLU{}, layers.Linear{Outputs: 2}}

	b := graph.New(tensor.Float32)
	x, y := op.Minibatch(b, op.Batch{Size: 20, Shuffled: true}, tensor.Shape{200, 1, 8, 8}, []float64{0.5}, []float64{0.5})
	loss := b.Apply(op.CrossEntropy{}, network.Apply(b, x), y)
	posterior := langevin.Posterior{DataSize: 200, Prior: langevin.Gaussian(0.3)}
	err := langevin.Attach(b, langevin.SGLD{}, posterior, loss, []float64{posterior.StepSize(0.1)}, []float64{1})
	check(err)
	b.Record("loss", loss)
	program, err := b.Compile()
	check(err)
	session, err := program.Load(tensor.NewHost(0), graph.LoadOptions{Seed: 1, Chains: 4})
	check(err)
	check(graph.Write(session, "images", 0, 0, images))
	check(graph.Write(session, "labels", 0, 0, labels))
	check(session.Run(100))

	sample, err := samples.FromSession(session, 3, 1)
	check(err)
	fmt.Println(len(sample.Parameters), "parameters of chain", sample.Chain, "after", sample.Step, "steps")
	// Output: 4 parameters of chain 3 after 100 steps
}

// stripes are images of 8x8 bytes, striped across or along.
func stripes(n int) (images []byte, labels []int32) {
	for i := range n {
		labels = append(labels, int32(i%2))
		for pixel := range 64 {
			row, column := pixel/8, pixel%8
			images = append(images, byte(255*((row*(i%2)+column*(1-i%2))/2%2)))
		}
	}
	return images, labels
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
