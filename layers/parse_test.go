package layers

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text string
		want Sequential
	}{
		{"- relu", Sequential{ReLU{}}},
		{"# comment\n---\n- relu # comment\n- 'tanh'\n- silu: {}\n", Sequential{ReLU{}, Tanh{}, SiLU{}}},
		{"%YAML 1.2\n---\n- relu\n...\n", Sequential{ReLU{}}},
		{"- linear:\n    outputs: classes\n    bias: {constant: {value: -1e-3}}\r\n", Sequential{Linear{Outputs: 43, Bias: Constant{-1e-3}}}},
		{"- conv2d: {filters: classes, kernel: 0x3}\n", Sequential{Conv2D{Filters: 43, Kernel: 3}}},
		{"- conv2d:\n    filters: 2\n    kernel: 3\n    weight:\n      orthogonal:\n        gain: 2\n",
			Sequential{Conv2D{Filters: 2, Kernel: 3, Weight: Orthogonal{2}}}},
		{"[relu, {maxpool: {window: 2, padding: 0}}, {residual: {body: [relu]}}]",
			Sequential{ReLU{}, MaxPool{Window: 2}, Residual{Body: Sequential{ReLU{}}}}},
		{"- linear: {name: classes, outputs: 1}", Sequential{Linear{Name: "classes", Outputs: 1}}},
		{everythingText, everything},
	} {
		got, err := Parse([]byte(c.text), 43)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: got %#v, %v, want %#v", c.text, got, err, c.want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	layerNames := strings.Join(kindNames(layerKinds), ", ")
	for _, c := range []struct{ text, want string }{
		{"", "the file must be one document, a list of layers, got 0"},
		{"# nothing\n", "the file must be one document, a list of layers, got 0"},
		{"- relu\n---\n- relu\n", "the file must be one document, a list of layers, got 2"},
		{"[]", "no layers\n   1 | []\n       ^"},
		{"relu", "there must be a list of layers, each after a hyphen, got relu\n   1 | relu\n       ^"},
		{"layers:\n- relu\n", "there must be a list of layers, each after a hyphen, got a mapping\n   1 | layers:\n       ^"},
		{"- relu\n- relu\n- relu\n- conv2d: {kernel: 3, filters: 0}\n",
			"layer 4 (conv2d): filters must be at least 1, got 0\n   4 | - conv2d: {kernel: 3, filters: 0}\n                                      ^"},
		{"- conv2d: {filters: 3}\n", "layer 1 (conv2d): kernel must be at least 1, and is left out\n   1 | - conv2d: {filters: 3}\n         ^"},
		{"- linear", "layer 1 (linear): outputs must be at least 1, and is left out\n   1 | - linear\n         ^"},
		{"- conv2d:\n    fliters: 32\n", "layer 1 (conv2d): no attribute \"fliters\"; " +
			"did you mean filters? There are name, filters, kernel, stride, padding, dilation, no-bias, weight, bias\n   2 |     fliters: 32\n           ^"},
		{"- relu: {alpha: 1}", "layer 1 (relu): no attribute \"alpha\"; it has none\n   1 | - relu: {alpha: 1}\n                ^"},
		{"- convolution: {}", "layer 1: no layer \"convolution\"; there are " + layerNames + "\n   1 | - convolution: {}\n         ^"},
		{"- ReLU", "layer 1: no layer \"ReLU\"; did you mean relu? There are " + layerNames + "\n   1 | - ReLU\n         ^"},
		{"- " + strings.Repeat("x", 41), "layer 1: no layer \"" + strings.Repeat("x", 40) + "...\"; there are " + layerNames +
			"\n   1 | - " + strings.Repeat("x", 41) + "\n         ^"},
		{"- 3", "layer 1: the name of the layer must be one of " + layerNames + ", got 3\n   1 | - 3\n         ^"},
		{"- conv2d:\n  filters: 3\n", "layer 1: there must be one layer, got 2 names; attributes stand in braces, or further to the right\n" +
			"   1 | - conv2d:\n         ^"},
		{"- relu:\n", "layer 1 (relu): attributes must be given by name, in braces or further to the right on separate lines, got nothing\n" +
			"   1 | - relu:\n              ^"},
		{"- residual:\n  - relu\n", "layer 1 (residual): attributes must be given by name, such as body: ..., " +
			"in braces or further to the right on separate lines, got a list\n   2 |   - relu\n         ^"},
		{"- linear: {outputs: class}", "layer 1 (linear): outputs must be an integer or classes, got class\n" +
			"   1 | - linear: {outputs: class}\n                           ^"},
		{"- linear: {outputs: 1.5}", "layer 1 (linear): outputs must be an integer or classes, got 1.5\n" +
			"   1 | - linear: {outputs: 1.5}\n                           ^"},
		{"- linear: {outputs: 18446744073709551615}", "layer 1 (linear): outputs must be at most 1048576, got 18446744073709551615\n" +
			"   1 | - linear: {outputs: 18446744073709551615}\n                           ^"},
		{"- linear: {outputs: 1, no-bias: yes}", "layer 1 (linear): no-bias must be true or false, got yes\n" +
			"   1 | - linear: {outputs: 1, no-bias: yes}\n                                       ^"},
		{"- linear: {outputs: 1, name: 7}", "layer 1 (linear): name must be a text, in quotation marks if it looks like something else, got 7\n" +
			"   1 | - linear: {outputs: 1, name: 7}\n                                    ^"},
		{"- linear: {outputs: 1, weight: hee}", "layer 1 (linear): weight: no initializer \"hee\"; did you mean he? " +
			"There are he, lecun, glorot, orthogonal, normal, constant\n   1 | - linear: {outputs: 1, weight: hee}\n                                      ^"},
		{"- linear: {outputs: 1, weight: {normal: {std: -1}}}", "layer 1 (linear): weight (normal): std must be at least 0, got -1\n" +
			"   1 | - linear: {outputs: 1, weight: {normal: {std: -1}}}\n                                                     ^"},
		{"- conv2d: {filters: 4, kernel: 3, stride: 0}", "layer 1 (conv2d): stride must be at least 1, got 0\n" +
			"   1 | - conv2d: {filters: 4, kernel: 3, stride: 0}\n                                                 ^"},
		{"- maxpool: {window: 2, stride: 0}", "layer 1 (maxpool): stride must be at least 1, got 0\n" +
			"   1 | - maxpool: {window: 2, stride: 0}\n                                      ^"},
		{"- frn: {epsilon: 0}", "layer 1 (frn): epsilon must be positive, got 0\n" +
			"   1 | - frn: {epsilon: 0}\n                        ^"},
		{"- dropout: {rate: 1}", "layer 1 (dropout): rate must be at least 0 and below 1, got 1\n   1 | - dropout: {rate: 1}\n                         ^"},
		{"- dropout: {rate: '0.5'}", "layer 1 (dropout): rate must be a number, got '0.5'\n   1 | - dropout: {rate: '0.5'}\n                         ^"},
		{"- dropout: {rate: .inf}", "layer 1 (dropout): rate must be a number, got .inf\n   1 | - dropout: {rate: .inf}\n                         ^"},
		{"- elu: {alpha: 1e999}", "layer 1 (elu): alpha must be a number, got 1e999\n   1 | - elu: {alpha: 1e999}\n                      ^"},
		{"- residual:\n    body:\n      - relu\n      - maxpool: {window: 2, padding: 2}\n",
			"layer 1 (residual): body: layer 2 (maxpool): padding must be at least 0 and below 2, got 2\n" +
				"   4 |       - maxpool: {window: 2, padding: 2}\n                                             ^"},
		{"- residual: {body: relu}", "layer 1 (residual): body: there must be a list of layers, each after a hyphen, got relu\n" +
			"   1 | - residual: {body: relu}\n                          ^"},
		{"- relu\n- conv2d: {filters: 3\n", "could not find flow mapping end token '}'\n   2 | - conv2d: {filters: 3\n                 ^"},
		{"- linear:\n    outputs: 3\n    outputs: 4\n", "mapping key \"outputs\" already defined at [2:5]\n   3 |     outputs: 4\n           ^"},
		{"- &a relu\n- *a\n", "layer 1: the name of the layer must be one of " + layerNames + ", got an anchor, an alias or a tag\n   1 | - &a relu\n         ^"},
		{"- - relu", "there must be one hyphen before each layer, got a second one on a line\n   1 | - - relu\n         ^"},
		{"- ? relu", "the file must be a list of layers, got a question mark\n   1 | - ? relu\n         ^"},
		{strings.Repeat(" ", maxFileBytes+1), "the file must have at most 131072 bytes, got 131073"},
	} {
		network, err := Parse([]byte(c.text), 43)
		if err == nil || network != nil {
			t.Errorf("%q: got %#v, %v, want an error", c.text, network, err)
		} else if d := cmp.Diff("layers: network file: "+c.want, err.Error()); d != "" {
			t.Errorf("%q (-want +got):\n%s", c.text, d)
		}
	}
	if _, err := Parse([]byte("- relu"), 0); err == nil || !strings.Contains(err.Error(), "layers: network file: classes must be at least 1, got 0") {
		t.Errorf("no classes: got %v", err)
	}
}

// TestLongLinesAreCut keeps a line of any length out of an error, with the caret in its place.
func TestLongLinesAreCut(t *testing.T) {
	text := "[" + strings.Repeat("relu, ", 1000) + "oops, " + strings.Repeat("relu, ", 1000) + "relu]"
	_, err := Parse([]byte(text), 2)
	if err == nil {
		t.Fatal("got no error")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 3 || len(lines[1]) > 200 {
		t.Fatalf("got %q", lines)
	}
	if caret := strings.Index(lines[2], "^"); caret < 0 || !strings.HasPrefix(lines[1][caret:], "oops") || !strings.Contains(lines[0], "layer 1001: ") {
		t.Errorf("got\n%v", err)
	}
}

// TestDeepFiles: what would exhaust a parser's memory or stack is refused at once.
func TestDeepFiles(t *testing.T) {
	for _, deep := range []string{"[", "- ", "? ", "- - ", "{relu: ", "- relu: [", "[{residual: {body: "} {
		_, err := Parse([]byte(strings.Repeat(deep, 1<<16/len(deep))), 2)
		if err == nil || !strings.HasPrefix(err.Error(), "layers: network file: ") || len(err.Error()) > 1000 {
			t.Errorf("%q many times: got %.1000v", deep, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		everythingText, "[relu, {maxpool: {window: 2}}]", "- residual: {body: [relu], shortcut: []}", "- &a !!str relu\n- *a\n", "? - : {",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		network, err := Parse(content, 7)
		if err != nil {
			return
		}
		again, err := Format(network)
		if err != nil {
			t.Fatalf("%#v: %v", network, err)
		}
		parsed, err := Parse(again, 1)
		if err != nil || !reflect.DeepEqual(parsed, network) {
			t.Fatalf("%#v is written\n%s\nand parsed as %#v, %v", network, again, parsed, err)
		}
	})
}
