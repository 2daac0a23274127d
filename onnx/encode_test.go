package onnx

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// The tests write their models themselves, field by field.

// tensorOf is a TensorProto of float32 in raw data.
func tensorOf(name string, shape []int, values ...float64) []byte {
	var raw []byte
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(v)))
	}
	return tensorWith(name, Float32, shape, message(9, raw))
}

// integersOf is a TensorProto of int64.
func integersOf(name string, values ...int) []byte {
	var raw []byte
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
	}
	return tensorWith(name, Int64, []int{len(values)}, message(9, raw))
}

func tensorWith(name string, kind ElementType, shape []int, rest ...[]byte) []byte {
	var all []byte
	for _, extent := range shape {
		all = append(all, whole(1, extent)...)
	}
	all = append(all, whole(2, int(kind))...)
	all = append(all, text(8, name)...)
	for _, part := range rest {
		all = append(all, part...)
	}
	return all
}

// valueOf is a ValueInfoProto of float32; an extent of -1 is open.
func valueOf(name string, shape ...int) []byte {
	var dims []byte
	for _, extent := range shape {
		dim := text(2, "n")
		if extent >= 0 {
			dim = whole(1, extent)
		}
		dims = append(dims, message(1, dim)...)
	}
	return append(text(1, name), message(2, message(1, whole(1, int(Float32)), message(2, dims)))...)
}

// reference is an attribute whose value is an attribute of the function's call.
type reference string

// nodeOf is a NodeProto called after its operator. Attributes are an int, []int, float64, string,
// []byte, a tensor, a reference, or a graphOf.
func nodeOf(op string, inputs, outputs []string, attributes map[string]any) []byte {
	var all []byte
	for _, name := range inputs {
		all = append(all, text(1, name)...)
	}
	for _, name := range outputs {
		all = append(all, text(2, name)...)
	}
	all = append(all, text(3, "my "+op)...)
	all = append(all, text(4, op)...)
	for name, v := range attributes {
		a := text(1, name)
		switch v := v.(type) {
		case int:
			a = append(a, whole(3, v)...)
		case []int:
			for _, i := range v {
				a = append(a, whole(8, i)...)
			}
		case float64:
			a = append(a, float(2, v)...)
		case string:
			a = append(a, text(4, v)...)
		case []byte:
			a = append(a, message(5, v)...)
		case reference:
			a = append(a, text(21, string(v))...)
		case graphOf:
			a = append(a, message(6, v.encode())...)
		}
		all = append(all, message(5, a)...)
	}
	return all
}

// graphOf has parts of a GraphProto.
type graphOf struct {
	nodes, tensors, inputs, outputs [][]byte
}

func (g graphOf) encode() (graph []byte) {
	for number, parts := range map[protowire.Number][][]byte{1: g.nodes, 5: g.tensors, 11: g.inputs, 12: g.outputs} {
		for _, part := range parts {
			graph = append(graph, message(number, part)...)
		}
	}
	return graph
}

// modelOf is a ModelProto of an opset, with functions.
func modelOf(opset int, g graphOf, functions ...[]byte) []byte {
	model := append(append(append(whole(1, 8), text(2, "test")...), message(8, whole(2, opset))...), message(7, g.encode())...)
	for _, f := range functions {
		model = append(model, message(25, f)...)
	}
	return model
}

// functionOf is a FunctionProto of the domain "own".
func functionOf(name string, opset int, inputs, outputs []string, nodes ...[]byte) []byte {
	f := append(append(text(1, name), text(10, "own")...), message(9, whole(2, opset))...)
	for number, parts := range map[protowire.Number][]string{4: inputs, 5: outputs} {
		for _, part := range parts {
			f = append(f, text(number, part)...)
		}
	}
	for _, n := range nodes {
		f = append(f, message(7, n)...)
	}
	return f
}

// callOf is a NodeProto that calls a function of the domain "own".
func callOf(function string, inputs, outputs []string, attributes map[string]any) []byte {
	return append(nodeOf(function, inputs, outputs, attributes), text(7, "own")...)
}

// single is a model that applies one operator to x and to tensors.
func single(op string, attributes map[string]any, shape []int, tensors ...[]byte) []byte {
	inputs := []string{"x"}
	for _, t := range tensors {
		parsed, err := readTensor(t)
		if err != nil {
			panic(err)
		}
		inputs = append(inputs, parsed.Name)
	}
	return modelOf(13, graphOf{
		nodes: [][]byte{nodeOf(op, inputs, []string{"y"}, attributes)}, tensors: tensors,
		inputs: [][]byte{valueOf("x", shape...)}, outputs: [][]byte{valueOf("y")},
	})
}
