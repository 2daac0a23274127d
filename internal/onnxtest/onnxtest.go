package onnxtest

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// Backbone describes a small convolutional network: a convolution with 3x3 kernels, a ReLU, a
// global average pool, and a fully connected layer with 10 outputs.
type Backbone struct {
	Channels, Side int    // of the images
	Filters        int    // of the convolution, which are the features
	Batch          int    // that the file fixes; 0 leaves it open
	External       string // file of the convolution's weights, next to the model; "" is the model
	Operator       string // of the activation; "" is Relu
	Map            bool   // the file ends with the activations of the convolution, before the pooling
	Metadata       map[string]string
}

// Write writes the network as backbone.onnx into a new directory, and returns the path.
func (n Backbone) Write(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "backbone.onnx")
	content, external := n.encode()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if n.External != "" {
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), n.External), external, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// Kernels returns the weights of the convolution, [Filters Channels 3 3], and its bias.
func (n Backbone) Kernels() (weight, bias []float32) {
	random := rand.New(rand.NewPCG(uint64(n.Filters), uint64(n.Channels)))
	fan := float64(9 * n.Channels)
	for range n.Filters * n.Channels * 9 {
		weight = append(weight, float32(random.NormFloat64()*math.Sqrt(2/fan)))
	}
	for range n.Filters {
		bias = append(bias, float32(0.1*random.NormFloat64()))
	}
	return weight, bias
}

func (n Backbone) encode() (model, external []byte) {
	weight, bias := n.Kernels()
	stored := tensor("features.0.weight", []int{n.Filters, n.Channels, 3, 3}, weight)
	if n.External != "" {
		external = floats(weight)
		stored = join(shape([]int{n.Filters, n.Channels, 3, 3}), whole(2, 1), text(8, "features.0.weight"),
			message(13, text(1, "location"), text(2, n.External)), whole(14, 1))
	}
	activation := n.Operator
	if activation == "" {
		activation = "Relu"
	}
	const classes = 10
	output := value("logits", n.Batch, classes)
	if n.Map {
		output = value("b", n.Batch, n.Filters, n.Side, n.Side)
	}
	graph := join(
		message(1, node("conv", "Conv", []string{"images", "features.0.weight", "features.0.bias"}, "a"),
			integers("kernel_shape", 3, 3), integers("pads", 1, 1, 1, 1)),
		message(1, node("act", activation, []string{"a"}, "b")),
		message(1, node("pool", "GlobalAveragePool", []string{"b"}, "c")),
		message(1, node("flatten", "Flatten", []string{"c"}, "d")),
		message(1, node("fc", "Gemm", []string{"d", "fc.weight", "fc.bias"}, "logits"), message(5, text(1, "transB"), whole(3, 1))),
		message(5, stored),
		message(5, tensor("features.0.bias", []int{n.Filters}, bias)),
		message(5, tensor("fc.weight", []int{classes, n.Filters}, make([]float32, classes*n.Filters))),
		message(5, tensor("fc.bias", []int{classes}, make([]float32, classes))),
		message(11, value("images", n.Batch, n.Channels, n.Side, n.Side)),
		message(12, output),
	)
	model = join(whole(1, 8), text(2, "onnxtest"), message(8, whole(2, 13)), message(7, graph))
	for key, text2 := range n.Metadata {
		model = join(model, message(14, text(1, key), text(2, text2)))
	}
	return model, external
}

func join(parts ...[]byte) (all []byte) {
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
}

func message(number protowire.Number, content ...[]byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), join(content...))
}

func text(number protowire.Number, s string) []byte { return message(number, []byte(s)) }

func whole(number protowire.Number, v int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), uint64(v))
}

func shape(extents []int) (all []byte) {
	for _, extent := range extents {
		all = append(all, whole(1, extent)...)
	}
	return all
}

func floats(values []float32) (raw []byte) {
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	return raw
}

func tensor(name string, extents []int, values []float32) []byte {
	return join(shape(extents), whole(2, 1), text(8, name), message(9, floats(values)))
}

func integers(name string, values ...int) []byte {
	all := text(1, name)
	for _, v := range values {
		all = append(all, whole(8, v)...)
	}
	return message(5, all)
}

func node(name, op string, inputs []string, output string) []byte {
	var all []byte
	for _, input := range inputs {
		all = append(all, text(1, input)...)
	}
	return join(all, text(2, output), text(3, name), text(4, op))
}

// value is a description of an input or output. An extent of 0 is open.
func value(name string, extents ...int) []byte {
	var dims []byte
	for _, extent := range extents {
		dim := text(2, "batch")
		if extent > 0 {
			dim = whole(1, extent)
		}
		dims = append(dims, message(1, dim)...)
	}
	return join(text(1, name), message(2, message(1, whole(1, 1), message(2, dims))))
}
