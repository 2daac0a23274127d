package onnx

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// casesVariable names a directory of ONNX's own backend tests, as generate/cases.py writes them: a
// directory per case, with model.onnx, input_0.pb, output_0.pb and so on.
const casesVariable = "POLLEN_ONNX_CASES"

// TestBackend runs ONNX's own tests of the operators that have a translation, and logs a table of
// the cases passed per operator.
func TestBackend(t *testing.T) {
	dir := os.Getenv(casesVariable)
	if dir == "" {
		t.Skipf("%s is not set: python3 onnx/generate/cases.py DIR writes the cases", casesVariable)
	}
	models, err := filepath.Glob(filepath.Join(dir, "*", "model.onnx"))
	if err != nil || len(models) == 0 {
		t.Fatalf("%s has no cases: %v", dir, err)
	}
	type count struct{ passed, all int }
	table := map[string]*count{}
	for _, path := range models {
		c, err := readCase(filepath.Dir(path))
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if c == nil || excluded[c.name] != "" || outOfScope.MatchString(c.name) {
			continue
		}
		for _, name := range c.operators {
			if table[name] == nil {
				table[name] = &count{}
			}
			table[name].all++
		}
		if err := c.run(); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for _, name := range c.operators {
			table[name].passed++
		}
	}
	for _, name := range append(slices.Sorted(maps.Keys(translations)), "If") {
		if n := table[name]; n != nil {
			t.Logf("%-24s %3d of %3d", name, n.passed, n.all)
		}
	}
}

// outOfScope matches cases of translated operators that no image network needs, by name: values
// with no elements, layers in training, operators that are translated for shapes only, images with
// three axes, indices as data, rows of attention whose mask leaves nothing, and numbers beyond
// float32.
var outOfScope = regexp.MustCompile("empty_set|zero_size|allowzero|out_of_bounds|size_one_expanded|training_dropout|" +
	"reduce_prod_|rotary_embedding|flexattention|tf_crop_and_resize|scatternd_(add|max|min|multiply)|" +
	"fullymasked|nan_robustness|softmax_precision|structural_empty|causal_padded_kv_bf16|local_window_gqa_rank4|" +
	"Conv3d|Embedding|operator_add_broadcast|operator_add_size1_(right|singleton)_broadcast|operator_addconstant|symbolic_override_nested")

// excluded has single cases that are out of scope, and why.
var excluded = map[string]string{
	"test_batchnorm_epsilon_training_mode": "training", "test_batchnorm_example_training_mode": "training",
	"test_training_dropout_zero_ratio_mask": "training", "test_training_dropout_zero_ratio": "training",
	"test_identity_opt": "a sequence", "test_identity_sequence": "a sequence",
	"test_maxpool_2d_uint8": "bytes", "test_maxpool_with_argmax_2d_precomputed_pads": "places", "test_maxpool_with_argmax_2d_precomputed_strides": "places",
	"test_convtranspose_3d": "images with three axes", "test_causal_conv_with_state_kernel_size_one_function": "no elements",
}

// forConstants has operators that are translated for shapes and constants only.
var forConstants = map[string]bool{"Ceil": true, "Cos": true, "CumSum": true, "Floor": true, "Mod": true, "Round": true, "ScatterND": true, "Sin": true}

// noInput is the name of the input of a model that has only constants.
const noInput = "no input"

// backendCase is a model with inputs and the outputs that it must have.
type backendCase struct {
	name            string
	model           *Model
	operators       []string
	inputs, outputs []*storedTensor
}

// readCase returns nil for a case with an operator that has no translation.
func readCase(dir string) (*backendCase, error) {
	c := &backendCase{name: filepath.Base(dir)}
	content, err := os.ReadFile(filepath.Join(dir, "model.onnx"))
	if err != nil {
		return nil, err
	}
	if c.model, err = Read(content, nil); err != nil {
		if strings.Contains(err.Error(), "opset") ||
			strings.Contains(err.Error(), "are not supported") || strings.Contains(err.Error(), "sparse") {
			return nil, nil
		}
		return nil, err
	}
	for n := range everyNode(c.model.nodes) {
		if n.branches == nil && translations[n.op] == nil || !standardDomain(n.domain) {
			return nil, nil
		}
		if !slices.Contains(c.operators, n.op) {
			c.operators = append(c.operators, n.op)
		}
	}
	for kind, to := range map[string]*[]*storedTensor{"input": &c.inputs, "output": &c.outputs} {
		for i := 0; ; i++ {
			content, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("%s_%d.pb", kind, i)))
			if os.IsNotExist(err) {
				break
			}
			tensor, err := readTensor(content)
			if err != nil {
				return nil, nil // strings, sequences
			}
			*to = append(*to, tensor)
		}
	}
	if len(c.inputs) < len(c.model.Inputs) || len(c.outputs) != len(c.model.Outputs) {
		return nil, nil
	}
	return c, nil
}

// run feeds the first input that is not known when the graph is built, and makes weights of the
// others.
func (c *backendCase) run() error {
	m := c.model
	fed := slices.IndexFunc(m.Inputs, func(v Value) bool { return v.Type.Floating() && len(v.Shape) > 0 && !forConstants[c.operators[0]] })
	for i, v := range m.Inputs {
		if i != fed {
			w := c.inputs[i]
			w.Name = v.Name
			m.tensors[v.Name], m.names = w, append(m.names, v.Name)
		}
	}
	var x *storedTensor
	if fed >= 0 {
		m.Inputs = m.Inputs[fed : fed+1]
		x = c.inputs[fed]
	} else {
		m.Inputs = []Value{{Name: noInput, Type: Float32, Shape: []int{1}}}
		x = &storedTensor{Type: Float32, Shape: []int{1}, floats: []float64{0}}
	}
	for i, output := range m.Outputs {
		got, err := evaluate(m, output.Name, x)
		if err != nil {
			return errors.WithMessagef(err, "output %s", output.Name)
		}
		if err := near(got, c.outputs[i].array(), tolerance(c.outputs[i].Type), 1e-5); err != nil {
			return errors.WithMessagef(err, "output %s", output.Name)
		}
	}
	return nil
}

// evaluate returns an output of a model for one input.
func evaluate(m *Model, output string, x *storedTensor) (*ndarray, error) {
	network, err := m.Network(Options{Output: output, Frozen: func(string) bool { return m.Inputs[0].Name == noInput }})
	if err != nil {
		return nil, err
	}
	return network.evaluate(output, x)
}

func (n *Network) evaluate(output string, x *storedTensor) (*ndarray, error) {
	b := graph.New(tensor.Float32)
	b.Mode = graph.Prediction
	in := x.array()
	values := make([]float32, len(in.values))
	for i, v := range in.values {
		values[i] = float32(v)
	}
	node := b.Data("input data", tensor.Float32, x.Shape...)
	t, err := n.translate(b, node)
	if err != nil {
		return nil, err
	}
	if v := t.values[output]; v.array != nil || v.node == node && v.margin == nil {
		if v.array == nil {
			return in, nil
		}
		return v.array, nil
	}
	y, err := t.nodeOf(output)
	if err != nil {
		return nil, err
	}
	shape := graph.ShapeOf(y)
	b.Output("output data", y)
	got := make([]float32, shape.Elements())
	err = b.OnHost(graph.LoadOptions{}, func(s *graph.Session) error {
		if err := graph.Write(s, "input data", 0, 0, values); err != nil && !strings.Contains(err.Error(), "no input") {
			return err // unless the output does not depend on it
		}
		if err := s.Run(1); err != nil {
			return err
		}
		return graph.Read(s, "output data", 0, 0, got)
	})
	if err != nil {
		return nil, err
	}
	result := &ndarray{shape: shape, kind: Float32, values: make([]float64, len(got))}
	for i, v := range got {
		result.values[i] = float64(v)
	}
	return result, nil
}

// tolerance is the relative error that ONNX's tests allow.
func tolerance(kind ElementType) float64 {
	if kind == Float16 || kind == BFloat16 {
		return 1e-2
	}
	return 1e-3
}

// near returns an error unless shapes are equal and all elements within the tolerances.
func near(got, want *ndarray, relative, absolute float64) error {
	if !slices.Equal(got.shape, want.shape) {
		return errors.Errorf("shape is %v, want %v", got.shape, want.shape)
	}
	for i, w := range want.values {
		g := got.values[i]
		if g == w || math.IsNaN(g) && math.IsNaN(w) {
			continue
		}
		if !(math.Abs(g-w) <= absolute+relative*math.Abs(w)) {
			return errors.Errorf("element %d of shape %v is %v, want %v", i, want.shape, g, w)
		}
	}
	return nil
}
