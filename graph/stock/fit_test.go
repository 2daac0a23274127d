package stock_test

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"gorgonia.org/gorgonia"
	dense "gorgonia.org/tensor"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/graph/stock"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor/random"
)

const side = 12

// bars are images with a bright row, a different one for each class.
func bars(t *testing.T, n, classes int) *datasets.Dataset {
	t.Helper()
	images, labels := make([]byte, n*side*side), make([]int32, n)
	for i := range labels {
		labels[i] = int32(i % classes)
		for j := range side * side {
			images[i*side*side+j] = byte((i*31 + j*17) % 64)
			if j/side == 2+3*(i%classes) {
				images[i*side*side+j] = 220
			}
		}
	}
	data, err := datasets.New("bars", images, labels, 1, side, side, nil)
	must(t, err)
	return data
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// glorot is Gorgonia's GlorotN with the same numbers each time: with random ones, one perceptron
// in a hundred would have too few units that are ever above 0.
func glorot(_ dense.Dtype, shape ...int) any {
	z := make([]float32, shape[0]*shape[1])
	random.Normals(z, 0, random.Address{Seed: 1, Stream: uint16(shape[1])})
	for i := range z {
		z[i] *= float32(math.Sqrt(2 / float64(shape[0]+shape[1])))
	}
	return z
}

// perceptronOf is a network of Gorgonia's ops for batches of 5 images.
func perceptronOf(t *testing.T, classes int) (probabilities, x *gorgonia.Node, network *stock.Network) {
	t.Helper()
	g := gorgonia.NewGraph()
	x = gorgonia.NewMatrix(g, dense.Float32, gorgonia.WithShape(5, side*side), gorgonia.WithName("x"))
	w1 := gorgonia.NewMatrix(g, dense.Float32, gorgonia.WithShape(side*side, 8), gorgonia.WithName("w1"), gorgonia.WithInit(glorot))
	w2 := gorgonia.NewMatrix(g, dense.Float32, gorgonia.WithShape(8, classes), gorgonia.WithName("w2"), gorgonia.WithInit(glorot))
	hidden := gorgonia.Must(gorgonia.Rectify(gorgonia.Must(gorgonia.Mul(x, w1))))
	logits := gorgonia.Must(gorgonia.Mul(hidden, w2))
	network, err := stock.NewNetwork(x, logits, w1, w2)
	must(t, err)
	return gorgonia.Must(gorgonia.SoftMax(logits)), x, network
}

// An existing Gorgonia model becomes a Bayesian one: it is sampled, kept, opened again, and its
// samples come back into its own graph, which then predicts as the run does.
func TestFitAdoptedNetwork(t *testing.T) {
	const classes = 3
	data := bars(t, 60, classes)
	probabilities, x, network := perceptronOf(t, classes)
	must(t, bayes.RegisterNetwork("perceptron", layers.Sequential{network}))
	spec := bayes.Spec{
		Network: "perceptron", Method: langevin.SGLD{}, Schedule: optimizers.Constant{Rate: 0.05}, Batch: 20, Epochs: 12, Samples: 3, Chains: 2,
	}
	dir := filepath.Join(t.TempDir(), "run")
	_, err := bayes.Fit(context.Background(), spec, &datasets.Splits{Train: data}, dir)
	must(t, err)
	run, err := bayes.Open(dir)
	must(t, err)
	scores, err := run.Assess(context.Background(), data, nil)
	must(t, err)
	if accuracy := scores.Values["accuracy"]; accuracy < 0.95 {
		t.Errorf("the accuracy is %v, want at least 0.95", accuracy)
	}

	var ours [][]float32 // of each sample
	_, err = run.Predictions(context.Background(), data, func(p []float32, _ float64) error {
		ours = append(ours, append([]float32(nil), p...))
		return nil
	})
	must(t, err)
	files, err := run.Samples()
	must(t, err)
	if len(files) != 6 || len(ours) != 6 {
		t.Fatalf("%d samples and %d predictions, want 6", len(files), len(ours))
	}
	for i, file := range files {
		sample, err := samples.ReadSample(file)
		must(t, err)
		for _, p := range sample.Parameters {
			must(t, network.Let(p.Name, p.Values))
		}
		pixels := make([]float32, 5*side*side)
		for j := range pixels {
			pixels[j] = float32((float64(data.Images[j])/255 - data.Mean[0]) / data.Std[0])
		}
		must(t, gorgonia.Let(x, dense.New(dense.WithShape(5, side*side), dense.WithBacking(pixels))))
		tape := gorgonia.NewTapeMachine(x.Graph())
		must(t, tape.RunAll())
		for j, p := range probabilities.Value().Data().([]float32) {
			if math.Abs(float64(p-ours[i][j])) > 1e-5 {
				t.Fatalf("sample %d, probability %d is %v in Gorgonia's graph, want the run's %v", i, j, p, ours[i][j])
			}
		}
		must(t, tape.Close())
	}
}
