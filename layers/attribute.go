package layers

import (
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
	"github.com/pkg/errors"
)

// attribute sets a field to the value of a YAML node.
func (r reader) attribute(field reflect.Value, name string, n ast.Node) (err error) {
	switch {
	case field.Type() == sequentialType:
		var body Sequential
		if body, err = r.sequential(n); err == nil {
			field.Set(reflect.ValueOf(body))
		}
		return errors.WithMessage(err, name)
	case field.Type() == initializerType:
		initializer, kind, err := r.element(n, "initializer", initializerKinds)
		if err == nil {
			field.Set(reflect.ValueOf(initializer))
		} else if kind != "" {
			err = errors.WithMessagef(err, "%s (%s)", name, kind)
		} else {
			err = errors.WithMessage(err, name)
		}
		return err
	}
	switch field.Kind() {
	case reflect.String:
		text, ok := n.(*ast.StringNode)
		if !ok {
			return r.fail(tokenOf(n), "%s must be a text, in quotation marks if it looks like something else, got %s", name, describe(n))
		}
		field.SetString(text.Value)
	case reflect.Bool:
		b, ok := n.(*ast.BoolNode)
		if !ok {
			return r.fail(tokenOf(n), "%s must be true or false, got %s", name, describe(n))
		}
		field.SetBool(b.Value)
	case reflect.Int:
		i, ok := r.whole(n)
		if !ok {
			return r.fail(tokenOf(n), "%s must be an integer or %s, got %s", name, classesKeyword, describe(n))
		}
		if i > maxInteger {
			return r.fail(tokenOf(n), "%s must be at most %d, got %s", name, maxInteger, describe(n))
		}
		field.SetInt(i)
	case reflect.Float64:
		x, ok := number(n)
		if !ok {
			return r.fail(tokenOf(n), "%s must be a number, got %s", name, describe(n))
		}
		field.SetFloat(x)
	default:
		return r.fail(tokenOf(n), "%s has type %v, which network files cannot hold", name, field.Type())
	}
	return nil
}

// whole reads an integer, or classesKeyword as the number of classes.
func (r reader) whole(n ast.Node) (int64, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return int64(r.classes), n.Value == classesKeyword
	case *ast.IntegerNode:
		switch i := n.Value.(type) {
		case int64:
			return i, true
		case uint64:
			return int64(min(i, maxInteger+1)), true
		}
	}
	return 0, false
}

// decimal matches a number of YAML 1.2, including some that goccy reads as text, such as 1e-6.
var decimal = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)

// number reads a finite number without quotation marks.
func number(n ast.Node) (float64, bool) {
	at := n.GetToken()
	if quoted := at.Type == token.SingleQuoteType || at.Type == token.DoubleQuoteType; quoted || !decimal.MatchString(at.Value) {
		return 0, false
	}
	x, err := strconv.ParseFloat(at.Value, 64)
	return x, err == nil
}

// pairsOf returns the keys and values of a mapping.
func pairsOf(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}

// tokenOf returns the first token of a node, for the place of an error.
func tokenOf(n ast.Node) *token.Token {
	if mapping, ok := n.(*ast.MappingNode); ok && mapping.IsFlowStyle {
		return mapping.Start
	}
	if pairs, ok := pairsOf(n); ok && len(pairs) > 0 {
		return pairs[0].Key.GetToken()
	}
	return n.GetToken()
}

// describe returns a node as text for an error.
func describe(n ast.Node) string {
	switch n.(type) {
	case *ast.NullNode:
		return "nothing"
	case *ast.SequenceNode:
		return "a list"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		return "an anchor, an alias or a tag"
	}
	return abbreviate(n.String())
}

// abbreviate returns a text in one line, cut after 40 characters.
func abbreviate(text string) string {
	letters := []rune(strings.Join(strings.Fields(text), " "))
	if len(letters) > 40 {
		return string(letters[:40]) + "..."
	}
	return string(letters)
}
