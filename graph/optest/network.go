package optest

import (
	"fmt"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// The network's data set and its run.
const (
	networkExamples = 37
	networkClasses  = 7
	networkSteps    = 4
	networkChains   = 3
)

// network compiles a whole network with metrics, differentiated from its loss, which the rows do
// not test. All gradients are outputs.
func network(dtype tensor.DType) (*graph.Program, error) {
	b := graph.New(dtype)
	std := func(of float64) graph.Initializer {
		return func(seed uint64, chain uint32, stream uint16, _ tensor.Shape, values []float64) {
			random.Normals(values, 0, random.Address{Seed: seed, Chain: chain, Stream: stream})
			for i := range values {
				values[i] *= of
			}
		}
	}
	batch := op.Batch{Size: 9, Order: op.Shuffled}
	x := b.Apply(op.GatherImages{Batch: batch, Mean: op.ChannelsOf(0.5), Std: op.ChannelsOf(0.25)},
		b.Data("images", tensor.Uint8, networkExamples, 2, 11, 11), b.Header())
	labels := b.Apply(op.GatherLabels{Batch: batch}, b.Data("labels", tensor.Int32, networkExamples), b.Header())
	conv := op.Conv2D{Stride: op.Square(1), Padding: op.Square(1), Dilation: op.Square(1)}
	h := b.Apply(op.ReLU{}, b.Apply(op.BiasAdd{}, b.Apply(conv, x, b.Parameter("w1", std(.3), 5, 2, 3, 3)), b.Parameter("b1", std(.1), 5)))
	h = b.Apply(op.MaxPool2D{Window: op.Square(2), Stride: op.Square(2)}, h)
	h = b.Apply(op.ReLU{}, b.Apply(op.BiasAdd{}, b.Apply(conv, h, b.Parameter("w2", std(.2), 3, 5, 3, 3)), b.Parameter("b2", std(.1), 3)))
	h = b.Apply(op.Flatten(h), h)
	h = b.Apply(op.BiasAdd{}, b.Apply(op.MatMul{TransposeB: true}, h, b.Parameter("w3", std(.2), networkClasses, 75)),
		b.Parameter("b3", nil, networkClasses))
	loss := b.Apply(op.CrossEntropy{}, h, labels)
	for i, g := range b.Gradients(loss, b.Parameters()...) {
		b.Output(fmt.Sprint("gradient ", i), g)
	}
	b.Record("loss", loss)
	b.Record("accuracy", b.Apply(op.Accuracy{}, h, labels))
	return b.Compile()
}

// runNetwork returns, for each chain, the metrics of all steps and then the last gradients.
func runNetwork(device tensor.Device, dtype tensor.DType) ([][]float64, error) {
	p, err := network(dtype)
	if err != nil {
		return nil, err
	}
	s, err := p.Load(device, graph.LoadOptions{Seed: seed, Chains: networkChains})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	pixels, labels := make([]byte, networkExamples*2*11*11), make([]int32, networkExamples)
	for i := range pixels {
		pixels[i] = byte(i*37 + i/242*11)
	}
	for i := range labels {
		labels[i] = int32(i * i % networkClasses)
	}
	if err := graph.Write(s, "images", 0, 0, pixels); err != nil {
		return nil, err
	}
	if err := graph.Write(s, "labels", 0, 0, labels); err != nil {
		return nil, err
	}
	if err := s.Run(networkSteps); err != nil {
		return nil, err
	}
	all := make([][]float64, networkChains)
	for chain := range all {
		for step := range uint64(networkSteps) {
			for _, metric := range p.Metrics() {
				all[chain] = append(all[chain], s.Metric(chain, metric, step))
			}
		}
		for i, w := range p.Parameters() {
			g, err := readFloats(s, dtype, fmt.Sprint("gradient ", i), chain, w.Shape.Elements())
			if err != nil {
				return nil, err
			}
			all[chain] = append(all[chain], g...)
		}
	}
	return all, nil
}

// checkNetwork compares the network on a device with the host's, in float64.
func checkNetwork(device tensor.Device) error {
	host := tensor.NewHost(1)
	defer host.Close()
	want, err := runNetwork(host, tensor.Float64)
	if err != nil {
		return errors.Wrap(err, "the host")
	}
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
		got, err := runNetwork(device, dtype)
		if err != nil {
			return errors.Wrap(err, dtype.String())
		}
		for chain := range want {
			// The longest sum, of the first convolution's gradient, has 9*11*11 terms; four more
			// layers add their errors to its own.
			tol := SumTol(dtype, 5*9*11*11, want[chain])
			if err := Close(got[chain], want[chain], tol); err != nil {
				return errors.Wrapf(err, "%v, chain %d", dtype, chain)
			}
		}
	}
	return nil
}
