package onnx

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pollen-ml/pollen/internal/file"
)

// Model is a network as read from a file: nodes in an order in which each follows its inputs, and
// tensors, which are the weights.
type Model struct {
	// Opset is the version of the standard operators that the model uses.
	Opset int
	// Producer is the program that wrote the file, with its version.
	Producer string
	// Metadata are texts that the producer added.
	Metadata map[string]string
	// Inputs and Outputs are the graph's, without the weights.
	Inputs, Outputs []Value
	// External has the names of the other files with weights, relative to the model's directory.
	External []string

	nodes   []*node
	calls   []*node // of functions, whose nodes are in their place
	tensors map[string]*storedTensor
	names   []string // of tensors, in the order of the file
}

// Value describes an input or an output of a model.
type Value struct {
	Name string
	Type ElementType
	// Shape has -1 for an extent that the model leaves open, such as the batch. It is nil if the
	// model does not declare a shape.
	Shape []int
}

// maxFile is the maximum size of a model and of its external data. Protocol buffers are limited to
// 2 GiB.
const maxFile = 1 << 31

// Open reads a model from a file. Weights that the model keeps in other files are read from its
// directory.
func Open(path string) (*Model, error) {
	content, err := file.Read(path, maxFile)
	if err != nil {
		return nil, errors.Wrap(err, "onnx")
	}
	m, err := Read(content, func(name string) ([]byte, error) {
		if !filepath.IsLocal(name) {
			return nil, errors.Errorf("must be a file below the model's directory, got %q", name)
		}
		return file.Read(filepath.Join(filepath.Dir(path), name), maxFile)
	})
	return m, errors.WithMessage(err, path)
}

// Read reads a model from the content of a file. external returns the content of another file to
// which the model refers; if it is nil, such a model is an error. The model keeps content.
func Read(content []byte, external func(name string) ([]byte, error)) (*Model, error) {
	m := &Model{Metadata: map[string]string{}, tensors: map[string]*storedTensor{}}
	var graph []byte
	var version string
	functions := map[functionName]*function{}
	err := fields(content, func(f field) (err error) {
		switch f.number {
		case 2:
			m.Producer = string(f.bytes)
		case 3:
			version = string(f.bytes)
		case 7:
			graph = f.bytes
		case 8:
			var domain string
			var opset int
			if domain, opset, err = readOpset(f.bytes); standardDomain(domain) {
				m.Opset = opset
			}
		case 14:
			var key, value string
			if key, value, err = pair(f.bytes); err == nil {
				m.Metadata[key] = value
			}
		case 25:
			err = addFunction(functions, f.bytes)
		}
		return err
	})
	switch {
	case err != nil:
	case graph == nil:
		err = errors.New("it has no graph: is it an ONNX model?")
	default:
		m.Producer = strings.TrimSpace(m.Producer + " " + version)
		err = m.graph(graph)
	}
	if err == nil {
		err = m.inline(functions)
	}
	if err == nil {
		err = m.checkNames()
	}
	if err == nil {
		err = m.load(external)
	}
	if err != nil {
		return nil, errors.WithMessage(err, "onnx")
	}
	return m, nil
}

// minOpset is the lowest supported version of the operators. Operators of opset 6 broadcast only
// where their attributes request it, see translator.aligned; from opset 7 on they broadcast as
// NumPy does.
const minOpset = 6

// readOpset reads which version of a domain's operators is used.
func readOpset(message []byte) (domain string, version int, err error) {
	err = fields(message, func(f field) error {
		switch f.number {
		case 1:
			domain = string(f.bytes)
		case 2:
			version = int(f.value)
		}
		return nil
	})
	return domain, version, err
}

func (m *Model) graph(message []byte) error {
	var inputs []Value
	err := fields(message, func(f field) error {
		switch f.number {
		case 1:
			n, err := readNode(f.bytes, 0)
			if err != nil {
				return err
			}
			m.nodes = append(m.nodes, n)
		case 5:
			t, err := readTensor(f.bytes)
			if err != nil {
				return err
			}
			if t.Name == "" || m.tensors[t.Name] != nil {
				return errors.Errorf("tensors must have different names, got two called %q, or none", t.Name)
			}
			m.tensors[t.Name], m.names = t, append(m.names, t.Name)
		case 11, 12:
			v, err := readValue(f.bytes)
			if err != nil {
				return err
			}
			if f.number == 11 {
				inputs = append(inputs, v)
			} else {
				m.Outputs = append(m.Outputs, v)
			}
		case 15:
			return errSparse
		}
		return nil
	})
	for _, v := range inputs { // until version 3 of the format, weights are listed among the inputs
		if m.tensors[v.Name] == nil {
			m.Inputs = append(m.Inputs, v)
		}
	}
	return err
}

func readValue(message []byte) (Value, error) {
	var v Value
	nested := func(number int, use func(f field) error) func(f field) error {
		return func(f field) error {
			if f.number != number || f.kind != protowire.BytesType {
				return nil
			}
			return fields(f.bytes, use)
		}
	}
	dimension := func(f field) error { // one per axis; a name, or nothing, leaves the extent open
		extent := -1
		err := fields(f.bytes, func(f field) error {
			if f.number == 1 {
				extent = int(f.value)
			}
			return nil
		})
		v.Shape = append(v.Shape, extent)
		return err
	}
	tensorType := func(f field) error {
		switch f.number {
		case 1:
			v.Type = ElementType(f.value)
		case 2:
			v.Shape = []int{}
			return fields(f.bytes, func(f field) error {
				if f.number == 1 {
					return dimension(f)
				}
				return nil
			})
		}
		return nil
	}
	err := fields(message, func(f field) error {
		if f.number == 1 {
			v.Name = string(f.bytes)
		}
		return nested(2, nested(1, tensorType))(f)
	})
	return v, errors.WithMessagef(err, "value %s", v.Name)
}

// load reads external data, and checks that every tensor has its values: those of the model, and
// those that are attributes of nodes.
func (m *Model) load(external func(name string) ([]byte, error)) error {
	files := map[string][]byte{}
	for _, name := range m.names {
		if err := m.loadTensor(m.tensors[name], files, external); err != nil {
			return errors.WithMessagef(err, "tensor %s", name)
		}
	}
	for n := range everyNode(m.nodes) {
		for _, name := range slices.Sorted(maps.Keys(n.attributes)) {
			t := n.attributes[name].tensor
			if t == nil {
				continue
			}
			if err := m.loadTensor(t, files, external); err != nil {
				return errors.WithMessagef(err, "node %s: attribute %s", n, name)
			}
		}
	}
	return nil
}

// loadTensor loads a tensor. files has the contents of the files that have been read.
func (m *Model) loadTensor(t *storedTensor, files map[string][]byte, external func(name string) ([]byte, error)) error {
	if t.external == nil {
		return t.check()
	}
	if external == nil {
		return errors.Errorf("it is in the file %q: use Open, or give a function that reads it", t.external.location)
	}
	content, ok := files[t.external.location]
	if !ok {
		var err error
		if content, err = external(t.external.location); err != nil {
			return err
		}
		files[t.external.location] = content
		m.External = append(m.External, t.external.location)
	}
	if err := t.attach(content); err != nil {
		return err
	}
	return t.check()
}

// checkNames returns an error if two nodes make a value of the same name, or if a node makes one
// that is an input or a tensor.
func (m *Model) checkNames() error {
	made := map[string]*node{}
	for _, n := range m.nodes {
		for _, name := range n.outputs {
			before := made[name]
			switch {
			case name == "":
			case before != nil:
				return errors.Errorf("node %s: the value %q is already made by node %s", n, name, before)
			case m.tensors[name] != nil || slices.ContainsFunc(m.Inputs, func(v Value) bool { return v.Name == name }):
				return errors.Errorf("node %s: the value %q is already an input or a tensor of the model", n, name)
			}
			made[name] = n
		}
	}
	return nil
}
