package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pollen-ml/pollen/graph"
	_ "github.com/pollen-ml/pollen/internal/fixedseed"
	"github.com/pollen-ml/pollen/tensor"
)

// everything has attributes written in every way.
var everything = Sequential{
	GroupNorm{Groups: 1},
	Conv2D{Name: "stem", Filters: 32, Kernel: 3, Stride: 2, Padding: 1, Dilation: 1, NoBias: true, Weight: Normal{Std: 1e-7}},
	FilterResponseNorm{Epsilon: 0.1, NoThreshold: true},
	ELU{},
	Residual{},
	Residual{
		Body: Sequential{
			Conv2D{Filters: 2, Kernel: 1, Weight: He{}, Bias: Constant{Value: -0.5}},
			Residual{Body: Sequential{}, Shortcut: Sequential{ReLU{}}},
		},
		Shortcut: Sequential{Sequential{Tanh{}, Sequential{}}, Sequential(nil)},
	},
	Flatten{},
	Linear{Name: "true", Outputs: 1 << 20, Weight: Orthogonal{Gain: 1.0 / 3}, Bias: Constant{}},
	Linear{Name: "a \"name\":\n#é\u2028", Outputs: 10, Weight: Glorot{Uniform: true}},
}

const everythingText = `- groupnorm: {groups: 1}
- conv2d: {name: stem, filters: 32, kernel: 3, stride: 2, padding: 1, dilation: 1, no-bias: true, weight: {normal: {std: 1e-07}}}
- frn: {epsilon: 0.1, no-threshold: true}
- elu
- residual
- residual:
    body:
      - conv2d: {filters: 2, kernel: 1, weight: he, bias: {constant: {value: -0.5}}}
      - residual:
          body: []
          shortcut:
            - relu
    shortcut:
      - sequential:
          - tanh
          - sequential: []
      - sequential
- flatten
- linear: {name: "true", outputs: 1048576, weight: {orthogonal: {gain: 0.3333333333333333}}, bias: constant}
- linear: {name: "a \"name\":\n#é\u2028", outputs: 10, weight: {glorot: {uniform: true}}}
`

func TestFormat(t *testing.T) {
	got, err := Format(everything)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(everythingText, string(got)); d != "" {
		t.Errorf("text (-want +got):\n%s", d)
	}
	again, err := Parse(got, 3)
	if err != nil || !reflect.DeepEqual(again, everything) {
		t.Errorf("parsed again: %#v, %v", again, err)
	}
}

func TestZooRoundTrips(t *testing.T) {
	for _, name := range []string{
		"lenet", "lenet-small", "mnist-64-64-256", "cnn", "mlp-400-3", "resnet20-frn", "resnet20-frn-silu", "resnet20-frn-x0.5", "resnet20-frn-silu-x2",
	} {
		network, err := New(name, 7)
		if err != nil {
			t.Fatal(err)
		}
		content, err := Format(network)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(content, 5)
		if err != nil || !reflect.DeepEqual(again, network) {
			t.Errorf("%s:\n%s\nis parsed as %#v, %v", name, content, again, err)
		}
	}
}

// drawn is a value of a row's type with any of its attributes, within the limits.
func drawn(t *rapid.T, k kind, depth int) any {
	value := reflect.New(reflect.TypeOf(k.zero)).Elem()
	if value.Type() == sequentialType {
		return drawnLayers(t, depth)
	}
	for i := range value.NumField() {
		field := value.Field(i)
		switch {
		case field.Type() == sequentialType:
			field.Set(reflect.ValueOf(drawnLayers(t, depth)))
		case field.Type() == initializerType:
			if rapid.Bool().Draw(t, "given") {
				row := rapid.SampledFrom(initializerKinds).Draw(t, "initializer")
				field.Set(reflect.ValueOf(drawn(t, row, 0)))
			}
		case field.Kind() == reflect.String:
			field.SetString(rapid.String().Draw(t, "text"))
		case field.Kind() == reflect.Bool:
			field.SetBool(rapid.Bool().Draw(t, "bool"))
		case field.Kind() == reflect.Int:
			field.SetInt(rapid.Int64Range(0, 1<<20).Draw(t, "int"))
		case field.Kind() == reflect.Float64:
			field.SetFloat(rapid.Float64Range(-2, math.MaxFloat64).Draw(t, "float"))
		default:
			t.Fatalf("%s: field %s is a %v, which neither files nor this test can hold", k.name, value.Type().Field(i).Name, field.Type())
		}
	}
	if layer, ok := value.Interface().(limited); ok {
		for _, l := range layer.limits() {
			if field := value.FieldByName(l.attribute); !l.holds() && field.CanInt() {
				field.SetInt(int64(l.min))
			} else if !l.holds() {
				field.SetFloat(l.min)
			}
		}
	}
	if pool := value.FieldByName("Window"); pool.IsValid() && pool.Int() < 1 {
		pool.SetInt(1)
	}
	return value.Interface()
}

func drawnLayers(t *rapid.T, depth int) Sequential {
	if depth == 0 || rapid.Bool().Draw(t, "nil") {
		return nil
	}
	network := Sequential{}
	for range rapid.IntRange(0, 4).Draw(t, "layers") {
		network = append(network, drawn(t, rapid.SampledFrom(layerKinds).Draw(t, "layer"), depth-1).(Layer))
	}
	return network
}

// TestAnyNetworkRoundTrips also fails for a field of a type that files cannot hold.
func TestAnyNetworkRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		network := append(drawnLayers(t, 4), ReLU{})
		content, err := Format(network)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(content, 2)
		if err != nil || !reflect.DeepEqual(again, network) {
			t.Fatalf("%#v is written\n%s\nand parsed as %#v, %v", network, content, again, err)
		}
	})
}

// TestEveryLayerHasARow finds the layers and initializers among this package's types.
func TestEveryLayerHasARow(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			if method, ok := declaration.(*ast.FuncDecl); ok && method.Recv != nil {
				if receiver, ok := method.Recv.List[0].Type.(*ast.Ident); ok && receiver.IsExported() {
					want[method.Name.Name] = append(want[method.Name.Name], receiver.Name)
				}
			}
		}
	}
	for _, of := range []struct {
		table, method string
		rows          []kind
	}{{"layerKinds", "Apply", layerKinds}, {"initializerKinds", "Fill", initializerKinds}} {
		if len(want[of.method]) != len(of.rows) {
			t.Errorf("there are %d types with %s, and %d rows in %s", len(want[of.method]), of.method, len(of.rows), of.table)
		}
		for _, name := range want[of.method] {
			if !slices.ContainsFunc(of.rows, func(k kind) bool { return reflect.TypeOf(k.zero).Name() == name }) {
				t.Errorf("%s has no row in %s, in layers/file.go", name, of.table)
			}
		}
	}
}

// mine is an initializer of another package.
type mine struct{}

func (mine) Fill(uint64, uint32, uint16, tensor.Shape, []float64) {}

// both is a layer whose attributes are in no table.
type both struct{ Conv2D }

func (both) Apply(*graph.Builder, *graph.Node) *graph.Node { return nil }

func TestFormatErrors(t *testing.T) {
	for _, c := range []struct {
		network Sequential
		want    []string
	}{
		{Sequential{ReLU{}, tied{}}, []string{
			"layers: format: layer 2: layers.tied is not one of the layers that network files can hold: conv2d, linear",
		}},
		{Sequential{both{}}, []string{"layer 1: layers.both is not one of the layers"}},
		{Sequential{&Conv2D{Filters: 1, Kernel: 1}}, []string{"layer 1: *layers.Conv2D is not one of the layers"}},
		{Sequential{nil}, []string{"layer 1: <nil> is not one of the layers"}},
		{Sequential{Residual{Body: Sequential{ReLU{}, tied{}}}}, []string{"layer 1 (residual): body: layer 2: layers.tied"}},
		{Sequential{Sequential{tied{}}}, []string{"layer 1 (sequential): layer 1: layers.tied"}},
		{Sequential{Linear{Outputs: 2, Bias: mine{}}}, []string{
			"layer 1 (linear): bias: layers.mine is not one of the initializers that network files can hold: he, lecun",
		}},
		{Sequential{Linear{}}, []string{"layers: format: ", "layer 1 (linear): outputs must be at least 1, and is left out"}},
		{Sequential{Linear{Outputs: 1 << 21}}, []string{"outputs must be at most 1048576, got 2097152"}},
		{Sequential{Dropout{Rate: math.NaN()}}, []string{"rate must be a number, got NaN"}},
		{Sequential{ELU{Alpha: math.Inf(1)}}, []string{"alpha must be a number, got +Inf"}},
		{Sequential{Linear{Name: "\xff", Outputs: 1}}, []string{"names or numbers that network files cannot hold"}},
		{Sequential{}, []string{"layers: format: "}},
		{nil, []string{"layers: format: "}},
	} {
		content, err := Format(c.network)
		if err == nil {
			t.Errorf("%#v: got %s, want an error", c.network, content)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%#v: error %q does not say %q", c.network, err, part)
			}
		}
	}
}
