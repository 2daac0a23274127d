package bayes_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// Train two chains, open the run again, and predict the classes of two images.
func ExampleFit() {
	images, labels := stripes(200)
	stripes, err := datasets.New("stripes", images, labels, 1, 8, 8, []string{"upright", "lying"})
	check(err)
	dir, err := os.MkdirTemp("", "runs")
	check(err)
	defer os.RemoveAll(dir)

	ctx, data := context.Background(), &datasets.Splits{Train: stripes}
	spec := bayes.Spec{Network: "mlp-16", Method: langevin.SGHMC{Friction: 0.1}, Epochs: 10, Chains: 2}
	_, err = bayes.Fit(ctx, spec, data, filepath.Join(dir, "stripes"))
	check(err)

	run, err := bayes.Open(filepath.Join(dir, "stripes"))
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

// A Spec has a text for each of its settings, which flags, configuration files and manifests use.
func ExampleSpec() {
	spec := bayes.Spec{Network: "lenet-small", Method: langevin.SGHMC{Friction: 0.2}, Epochs: 16, Chains: 4}
	spec, err := spec.Resolve()
	check(err)
	texts := spec.Texts()
	fmt.Println(texts["method"], texts["schedule"], texts["batch"], texts["burn-in"], texts["samples"])
	_, err = bayes.Spec{Method: optimizers.SGD{}, Cycles: 2}.Resolve()
	fmt.Println(errors.As(err, new(*bayes.InvalidError))) // an optimizer has no cycles
	// Output:
	// sghmc:friction=0.2 constant:0.02 100 6 10
	// true
}

// A method's attributes are fields of its type, and its text names them.
func ExampleParseMethod() {
	method, err := bayes.ParseMethod("psgld:alpha=0.95,gamma=none")
	check(err)
	fmt.Println(method.(langevin.PSGLD).Alpha, bayes.MethodText(method))
	fmt.Println(bayes.MethodText(langevin.SGLD{}))
	// Output:
	// 0.95 psgld:alpha=0.95,lambda=1e-05,gamma=none
	// sgld
}

// A run with validation images is calibrated: its answers have a conformal prediction set and report
// whether an image is in distribution.
func ExampleRun_Predict() {
	images, labels := stripes(300)
	all, err := datasets.New("stripes", images, labels, 1, 8, 8, []string{"upright", "lying"})
	check(err)
	train, validation, err := all.Split(200)
	check(err)
	dir, err := os.MkdirTemp("", "runs")
	check(err)
	defer os.RemoveAll(dir)

	ctx := context.Background()
	spec := bayes.Spec{Network: "mlp-16", Method: langevin.SGLD{}, Epochs: 20}
	run, err := bayes.Fit(ctx, spec, &datasets.Splits{Train: train, Validation: validation}, filepath.Join(dir, "run"))
	check(err)
	run = run.With(bayes.WithLevel(0.95))
	one, err := datasets.New("one", images[:8*8], nil, 1, 8, 8, nil)
	check(err)
	answers, err := run.Predict(ctx, one)
	check(err)
	fmt.Println(answers[0].Class, answers[0].PredictionSet, *answers[0].InDistribution)

	// A Predictor gives the same answers, with the samples kept in memory.
	predictor, err := run.Predictor(1)
	check(err)
	defer predictor.Close()
	again, err := predictor.Answer(ctx, images[:8*8])
	check(err)
	fmt.Println(again[0].Class, predictor.Samples(), "samples")
	// Output:
	// upright [upright] true
	// upright 10 samples
}

// Each sample of a run can be evaluated, with the network and the normalisation of the run. The
// average over all of them is what Run.Predictions returns.
func ExampleRun_Draws() {
	images, labels := stripes(200)
	data, err := datasets.New("stripes", images, labels, 1, 8, 8, []string{"upright", "lying"})
	check(err)
	dir, err := os.MkdirTemp("", "runs")
	check(err)
	defer os.RemoveAll(dir)
	spec := bayes.Spec{
		Layers: layers.Sequential{layers.Flatten{}, layers.Linear{Outputs: 8}, layers.ReLU{}, layers.Linear{Outputs: 2}},
		Method: langevin.SGLD{}, Schedule: optimizers.Polynomial{First: 0.1, Last: 0.01, Exponent: 0.55}, Epochs: 20, Samples: 5,
	}
	run, err := bayes.Fit(context.Background(), spec, &datasets.Splits{Train: data}, filepath.Join(dir, "run"))
	check(err)

	network, err := run.Network()
	check(err)
	host := tensor.NewHost(0)
	defer host.Close()
	d := run.Manifest().Data
	input := samples.Images{Channels: d.Channels, Height: d.Height, Width: d.Width, Mean: d.Mean, Std: d.Std, Pixels: data.Images}
	predictor, err := samples.NewSamplePredictor(host, tensor.Float32, input, 50, network.Apply)
	check(err)
	defer predictor.Close()
	average, err := evaluate.NewPredictive(data.Len(), d.Classes())
	check(err)
	draws, err := run.Draws()
	check(err)
	probabilities := make([]float32, data.Len()*d.Classes())
	for i := range draws.Len() {
		sample, err := draws.Weights(i)
		check(err)
		check(predictor.Predict(sample, probabilities))
		check(average.Add(probabilities, sample.Weight))
	}
	scores, err := evaluate.Assess(evaluate.Case{In: average.Predictions("stripes", data.Labels)})
	check(err)
	fmt.Println(average.Samples(), "samples, accuracy", scores.Values["accuracy"])
	// Output: 5 samples, accuracy 1
}

// Packages graph and langevin can be used without a Spec. Ten thousand steps of SGLD would sample
// the posterior of a small network; this example makes a hundred, on four chains.
func Example() {
	images, labels := stripes(200)
	network := layers.Sequential{layers.Flatten{}, layers.Linear{Outputs: 16}, layers.ReLU{}, layers.Linear{Outputs: 2}}

	b := graph.New(tensor.Float32)
	x, y := op.Minibatch(b, op.Batch{Size: 20, Order: op.Shuffled}, tensor.Shape{200, 1, 8, 8}, []float64{0.5}, []float64{0.5})
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

// stripes returns images of 8x8 bytes, striped across or along.
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
