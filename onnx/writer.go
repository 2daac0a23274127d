package onnx

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/pkg/errors"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pollen-ml/pollen/tensor"
)

// WrittenOpset is the version of the standard operators that a Writer's models use. onnxruntime has
// it since version 1.12, of 2022.
const WrittenOpset = 17

// irVersion is the version of the file format that belongs to WrittenOpset.
const irVersion = 8

// Writer builds a model node by node and writes it to a file. Strings stand for the values of the
// model: they are the values' names. The zero value is an empty model. The same calls write the
// same bytes.
type Writer struct {
	// Producer and Version name the program that writes the model.
	Producer, Version string

	nodes, tensors, inputs, outputs [][]byte
	metadata                        [][]byte
	scope                           string
	taken                           map[string]bool
}

// Attributes are the attributes of a node: an int, []int, float64, or string for each name.
type Attributes map[string]any

// Scope sets the prefix of the names of nodes and constants that are added next, as in
// "conv1/Conv".
func (w *Writer) Scope(name string) { w.scope = name }

// unique returns a name that no other value has.
func (w *Writer) unique(name string) string {
	if w.scope != "" {
		name = w.scope + "/" + name
	}
	if w.taken == nil {
		w.taken = map[string]bool{}
	}
	free := name
	for n := 2; w.taken[free]; n++ {
		free = fmt.Sprintf("%s_%d", name, n)
	}
	w.taken[free] = true
	return free
}

// Input declares an input of the model and returns its name. An extent of -1 is open.
func (w *Writer) Input(name string, kind ElementType, shape ...int) string {
	w.inputs = append(w.inputs, declaration(name, kind, shape))
	return name
}

// Output makes a value an output of the model called name. An extent of -1 is open.
func (w *Writer) Output(name, value string, kind ElementType, shape ...int) {
	w.addNode("Identity", name, nil, []string{value}, []string{name})
	w.outputs = append(w.outputs, declaration(name, kind, shape))
}

// declaration returns a ValueInfoProto. An open extent has the name "batch".
func declaration(name string, kind ElementType, shape []int) []byte {
	var dims []byte
	for _, extent := range shape {
		dim := text(2, "batch")
		if extent >= 0 {
			dim = whole(1, extent)
		}
		dims = append(dims, message(1, dim)...)
	}
	return append(text(1, name), message(2, message(1, whole(1, int(kind)), message(2, dims)))...)
}

// Floats adds a constant and returns its name. Without extents it is a single number.
func (w *Writer) Floats(name string, values []float32, shape ...int) string {
	return w.constant(name, Float32, tensor.Bytes(values), shape)
}

// Float adds a single number and returns its name.
func (w *Writer) Float(name string, value float64) string {
	return w.Floats(name, []float32{float32(value)})
}

// Integers adds a constant with one axis and returns its name.
func (w *Writer) Integers(name string, values ...int) string {
	wide := make([]uint64, len(values))
	for i, v := range values {
		wide[i] = uint64(v)
	}
	return w.constant(name, Int64, tensor.Bytes(wide), []int{len(values)})
}

func (w *Writer) constant(name string, kind ElementType, raw []byte, shape []int) string {
	name = w.unique(name)
	var header []byte
	for _, extent := range shape {
		header = append(header, whole(1, extent)...)
	}
	header = append(append(header, whole(2, int(kind))...), text(8, name)...)
	w.tensors = append(w.tensors, slices.Concat(header, message(9, raw)))
	return name
}

// Node adds a node and returns the name of its output.
func (w *Writer) Node(op string, attributes Attributes, inputs ...string) string {
	name := w.unique(op)
	w.addNode(op, name, attributes, inputs, []string{name})
	return name
}

// NodeOf adds a node with several outputs and returns their names.
func (w *Writer) NodeOf(op string, outputs int, attributes Attributes, inputs ...string) []string {
	name := w.unique(op)
	names := []string{name}
	for i := 1; i < outputs; i++ {
		names = append(names, w.unique(fmt.Sprintf("%s.%d", op, i)))
	}
	w.addNode(op, name, attributes, inputs, names)
	return names
}

// addNode adds a NodeProto.
func (w *Writer) addNode(op, name string, attributes Attributes, inputs, outputs []string) {
	var all []byte
	for _, in := range inputs {
		all = append(all, text(1, in)...)
	}
	for _, out := range outputs {
		all = append(all, text(2, out)...)
	}
	all = append(append(all, text(3, name)...), text(4, op)...)
	for _, key := range slices.Sorted(maps.Keys(attributes)) {
		all = append(all, message(5, attributeOf(key, attributes[key]))...)
	}
	w.nodes = append(w.nodes, all)
}

// The numbers of the types of attributes.
const (
	floatAttribute    = 1
	integerAttribute  = 2
	textAttribute     = 3
	integersAttribute = 7
)

// attributeOf returns an AttributeProto.
func attributeOf(name string, value any) []byte {
	a := text(1, name)
	switch v := value.(type) {
	case int:
		return slices.Concat(a, whole(3, v), whole(20, integerAttribute))
	case []int:
		for _, i := range v {
			a = append(a, whole(8, i)...)
		}
		return append(a, whole(20, integersAttribute)...)
	case float64:
		return slices.Concat(a, float(2, v), whole(20, floatAttribute))
	case string:
		return slices.Concat(a, text(4, v), whole(20, textAttribute))
	}
	panic(fmt.Sprintf("onnx: attribute %s must be an int, []int, float64 or string, got %T", name, value))
}

// Metadata adds a text that programs can read with the model.
func (w *Writer) Metadata(key, value string) {
	w.metadata = append(w.metadata, message(14, text(1, key), text(2, value)))
}

// UnwritableError is the error for a network that an ONNX file cannot have: one of its ops has no
// translation, or the file would be too large.
type UnwritableError struct{ Cause error }

// Error implements error.
func (e *UnwritableError) Error() string { return e.Cause.Error() }

// Unwrap returns the cause.
func (e *UnwritableError) Unwrap() error { return e.Cause }

// WriteTo writes the model. It returns an UnwritableError if the model is larger than 2 GiB, the
// limit of protocol buffers.
func (w *Writer) WriteTo(to io.Writer) (written int64, err error) {
	head := slices.Concat(whole(1, irVersion), text(2, w.Producer), text(3, w.Version))
	parts := [][]byte{text(2, "posterior predictive")}
	for _, list := range []struct {
		number protowire.Number
		fields [][]byte
	}{{1, w.nodes}, {5, w.tensors}, {11, w.inputs}, {12, w.outputs}} {
		for _, content := range list.fields {
			tag := protowire.AppendTag(nil, list.number, protowire.BytesType)
			parts = append(parts, protowire.AppendVarint(tag, uint64(len(content))), content)
		}
	}
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	if size >= maxFile {
		return 0, &UnwritableError{errors.Errorf("onnx: the model must be smaller than %d bytes, got %d: use fewer samples", maxFile, size)}
	}
	head = protowire.AppendVarint(protowire.AppendTag(head, 7, protowire.BytesType), uint64(size))
	tail := message(8, text(1, ""), whole(2, WrittenOpset))
	parts = slices.Concat([][]byte{head}, parts, [][]byte{tail}, w.metadata)
	for _, part := range parts {
		n, err := to.Write(part)
		if written += int64(n); err != nil {
			return written, errors.Wrap(err, "onnx")
		}
	}
	return written, nil
}
