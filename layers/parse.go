package layers

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/nearest"
)

const (
	classesKeyword = "classes" // in a file, stands for the number of classes
	maxFileBytes   = 1 << 17   // of a file
	maxDepth       = 100       // of brackets
	maxInteger     = 1 << 20   // value of an attribute
)

// Parse reads a network from a file in YAML: a list of layers. Each is a name, or a name with
// attributes. Names are the structs' names in lower case, except FilterResponseNorm, which is
// "frn". Attributes are their fields, with hyphens: "no-threshold" for NoThreshold.
//
//	# a small network
//	- conv2d: {filters: 32, kernel: 3, padding: 1, weight: he}
//	- relu
//	- residual:
//	    body:
//	      - conv2d: {filters: 32, kernel: 3, padding: 1, weight: {normal: {std: 0.1}}}
//	      - frn: {no-threshold: true}
//	- globalaveragepool
//	- linear: {outputs: classes}
//
// The word classes stands for the number of classes, wherever an integer can stand. An attribute
// that is left out is the field's zero. Where the zero stands for a default, as a stride's does, an
// explicit 0 is an error. Errors name the layer and the attribute, and show the place in the file.
// Whether the layers fit together depends on the images, see Check.
func Parse(content []byte, classes int) (Sequential, error) {
	if classes < 1 {
		return nil, errors.Errorf("layers: network file: classes must be at least 1, got %d", classes)
	}
	if len(content) > maxFileBytes {
		return nil, errors.Errorf("layers: network file: the file must have at most %d bytes, got %d", maxFileBytes, len(content))
	}
	r := reader{lines: strings.Split(string(content), "\n"), classes: classes}
	network, err := r.file(content)
	if err != nil {
		return nil, errors.WithMessage(err, "layers: network file")
	}
	return network, nil
}

// reader makes layers of YAML's nodes.
type reader struct {
	lines   []string
	classes int
}

func (r reader) file(content []byte) (Sequential, error) {
	tokens := lexer.Tokenize(string(content))
	if err := r.checkDepth(tokens); err != nil {
		return nil, err
	}
	file, err := parser.Parse(tokens, 0)
	var problem yaml.Error
	if errors.As(err, &problem) && problem.GetToken() != nil {
		return nil, r.fail(problem.GetToken(), "%s", problem.GetMessage())
	}
	if err != nil {
		return nil, err
	}
	var bodies []ast.Node
	for _, document := range file.Docs {
		if _, directive := document.Body.(*ast.DirectiveNode); document.Body != nil && !directive {
			bodies = append(bodies, document.Body)
		}
	}
	if len(bodies) != 1 {
		return nil, errors.Errorf("the file must be one document, a list of layers, got %d", len(bodies))
	}
	network, err := r.sequential(bodies[0])
	if err == nil && len(network) == 0 {
		err = r.fail(tokenOf(bodies[0]), "no layers")
	}
	return network, err
}

// checkDepth returns an error for files that are nested more deeply than layers are. It works on
// tokens, because the parser needs memory in proportion to the square of the depth.
func (r reader) checkDepth(tokens token.Tokens) error {
	depth, hyphen := 0, 0 // hyphen is the line of the last hyphen
	for _, t := range tokens {
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType:
			if t.Position.Line == hyphen {
				return r.fail(t, "there must be one hyphen before each layer, got a second one on a line")
			}
			hyphen = t.Position.Line
		case token.MappingKeyType:
			return r.fail(t, "the file must be a list of layers, got a question mark")
		}
		if depth > maxDepth {
			return r.fail(t, "brackets must be nested at most %d deep", maxDepth)
		}
	}
	return nil
}

// sequential reads a list of layers.
func (r reader) sequential(n ast.Node) (Sequential, error) {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		return nil, r.fail(tokenOf(n), "there must be a list of layers, each after a hyphen, got %s", describe(n))
	}
	network := Sequential{}
	for i, item := range list.Values {
		layer, name, err := r.element(item, "layer", layerKinds)
		if err != nil {
			place := fmt.Sprintf("layer %d", i+1)
			if name != "" {
				place += " (" + name + ")"
			}
			return nil, errors.WithMessage(err, place)
		}
		network = append(network, layer.(Layer))
	}
	return network, nil
}

// element reads a layer or an initializer: its name, or a mapping from its name to its attributes.
// It also returns the name if it is a valid one, for errors.
func (r reader) element(n ast.Node, what string, kinds []kind) (value any, name string, err error) {
	key, attributes := n, ast.Node(nil)
	if pairs, ok := pairsOf(n); ok {
		if len(pairs) != 1 {
			return nil, "", r.fail(tokenOf(n), "there must be one %s, got %d names; attributes stand in braces, or further to the right", what, len(pairs))
		}
		key, attributes = pairs[0].Key, pairs[0].Value
	}
	text, ok := key.(*ast.StringNode)
	if !ok {
		return nil, "", r.fail(tokenOf(key), "the name of the %s must be one of %s, got %s", what, strings.Join(kindNames(kinds), ", "), describe(key))
	}
	for _, k := range kinds {
		if k.name == text.Value {
			value, err = r.fill(k, key, attributes)
			return value, k.name, err
		}
	}
	return nil, "", r.fail(key.GetToken(), "no %s %q; %s", what, abbreviate(text.Value), nearest.Among(text.Value, kindNames(kinds)))
}

// fill returns a value of a kind with the attributes that are given.
func (r reader) fill(k kind, key, attributes ast.Node) (any, error) {
	if attributes == nil {
		return k.zero, r.limits(k.zero, key, nil)
	}
	value := reflect.New(reflect.TypeOf(k.zero)).Elem()
	if value.Type() == sequentialType {
		return r.sequential(attributes)
	}
	names := attributeNames(value.Type())
	pairs, ok := pairsOf(attributes)
	if !ok {
		return nil, r.fail(tokenOf(attributes), "attributes must be given by name%s, in braces or further to the right on separate lines, got %s",
			example(names), describe(attributes))
	}
	places := map[string]ast.Node{}
	for _, pair := range pairs {
		text, _ := pair.Key.(*ast.StringNode)
		field := -1
		for i, name := range names {
			if text != nil && text.Value == name {
				field = i
			}
		}
		if field < 0 {
			known := "it has none"
			if len(names) > 0 {
				known = nearest.Among(pair.Key.String(), names)
			}
			return nil, r.fail(pair.Key.GetToken(), "no attribute %q; %s", abbreviate(pair.Key.String()), known)
		}
		if err := r.attribute(value.Field(field), names[field], pair.Value); err != nil {
			return nil, err
		}
		places[names[field]] = pair.Value
	}
	return value.Interface(), r.limits(value.Interface(), key, places)
}

// example returns the first of some attributes as text for an error.
func example(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(", such as %s: ...", names[0])
}

// limits returns an error for an attribute outside its limits. places has the nodes of the
// attributes that the file sets.
func (r reader) limits(value any, key ast.Node, places map[string]ast.Node) error {
	layer, ok := value.(limited)
	if !ok {
		return nil
	}
	for _, l := range layer.limits() {
		name := attributeName(l.attribute)
		place, given := places[name]
		switch {
		case l.holds() && !(given && l.optional && l.value == 0):
		case given:
			return r.fail(tokenOf(place), "%s must be %s, got %v", name, l, l.value)
		default:
			return r.fail(tokenOf(key), "%s must be %s, and is left out", name, l)
		}
	}
	return nil
}

// fail returns an error with the line of a token, and a caret below its column.
func (r reader) fail(at *token.Token, format string, arguments ...any) error {
	const before, after = 100, 60 // of the column, in a line that is longer
	line, column := at.Position.Line, max(at.Position.Column, 1)
	text := []rune{}
	if line >= 1 && line <= len(r.lines) {
		text = []rune(strings.TrimRight(r.lines[line-1], "\r"))
	}
	column = min(column, len(text)+1)
	from, to := max(0, column-1-before), min(len(text), column-1+after)
	number := fmt.Sprintf("%4d | ", line)
	shown := strings.ReplaceAll(string(text[from:to]), "\t", " ")
	caret := strings.Repeat(" ", len(number)+column-1-from) + "^"
	return errors.Errorf("%s\n%s%s\n%s", fmt.Sprintf(format, arguments...), number, shown, caret)
}
