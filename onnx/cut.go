package onnx

import (
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor"
)

// Features returns the value that the last fully connected layer reads: the features that a
// classifier computes its logits from. It is an input of the last Gemm or MatMul with a weight,
// among the nodes that the first output depends on. If there is none, as in a network without its
// classifier, the features are that output.
func (m *Model) Features() (value string, err error) {
	p, err := m.part(Options{})
	if err != nil {
		return "", err
	}
	for _, node := range slices.Backward(p.nodes) {
		if node.op != "Gemm" && node.op != "MatMul" || len(node.inputs) < 2 {
			continue
		}
		if p.isWeight(node.inputs[1]) && !p.isWeight(node.inputs[0]) {
			return node.inputs[0], nil
		}
	}
	return p.output, nil
}

// isWeight reports whether a value is a tensor, or a rearranged one, such as a transposed matrix.
func (p *part) isWeight(name string) bool {
	rearranging := []string{"Transpose", "Reshape", "Cast", "Identity", "DequantizeLinear"}
	for range len(p.nodes) + 1 { // a damaged model has cycles
		if p.model.tensors[name] != nil {
			return true
		}
		maker := p.makers[name]
		if maker == nil || len(maker.inputs) == 0 || !slices.Contains(rearranging, maker.op) {
			return false
		}
		name = maker.inputs[0]
	}
	return false
}

// Value returns the value called name. name may also name the node that makes the value.
func (m *Model) Value(name string) (string, error) {
	for _, n := range m.nodes {
		if slices.Contains(n.outputs, name) {
			return name, nil
		}
	}
	for _, n := range slices.Concat(m.calls, m.nodes) {
		if n.name == name && len(n.outputs) > 0 {
			return n.outputs[0], nil
		}
	}
	return "", errors.Errorf("onnx: the model has no node and no value %q", name)
}

// Starts returns, by name, the values in the file of the weights whose parameters are offsets, see
// Options.Offset.
func (n *Network) Starts() map[string][]float64 {
	starts := map[string][]float64{}
	for _, name := range n.Weights() {
		if t := n.model.tensors[name]; n.offset != nil && n.offset(name) && (n.frozen == nil || !n.frozen(name)) {
			starts[name] = make([]float64, tensor.Shape(t.Shape).Elements())
			t.values(starts[name])
		}
	}
	return starts
}

// Weights returns the names of the network's weights, which are tensors of floats with at least one
// axis, in the order of the file.
func (n *Network) Weights() []string {
	used := map[string]bool{}
	for _, node := range n.nodes {
		for _, name := range node.reads() {
			used[name] = true
		}
	}
	var names []string
	for _, name := range n.model.names {
		if t := n.model.tensors[name]; used[name] && t.Type.Floating() && len(t.Shape) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// FanIns returns, by name, how many inputs one output depends on by the weights of matrix products,
// of Einsum and of ConvTranspose, whose outputs need not be on the first axis.
func (n *Network) FanIns() map[string]int {
	fanIns := map[string]int{}
	for node := range everyNode(n.nodes) {
		for i, name := range node.inputs[:min(2, len(node.inputs))] {
			t := n.model.tensors[name]
			if t == nil || len(t.Shape) < 2 {
				continue
			}
			axis := len(t.Shape) - 1 // of the inputs, in the left factor of a product
			turned := i == 1
			switch node.op {
			case "MatMul":
			case "Gemm":
				turned = turned != (node.integer([]string{"transA", "transB"}[i], 0) != 0)
			case "ConvTranspose":
				fanIns[name] = t.Shape[0] / max(1, node.integer("group", 1)) * product(t.Shape[2:])
				continue
			case "Einsum":
				fanIns[name] = summedElements(node.text("equation", ""), i, t.Shape)
				continue
			default:
				continue
			}
			if turned {
				axis--
			}
			fanIns[name] = t.Shape[axis]
		}
	}
	return fanIns
}

// WeightCount returns the number of elements of Weights.
func (n *Network) WeightCount() (count int) {
	for _, name := range n.Weights() {
		elements := 1
		for _, extent := range n.model.tensors[name].Shape {
			elements *= extent
		}
		count += elements
	}
	return count
}
