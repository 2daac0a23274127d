package layers

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"
)

// Format returns a network as text that Parse reads; the number of classes is written as a number.
// Parsing the text gives an equal network. It returns an error for a layer or initializer of
// another package, and for attributes that Parse would not accept.
func Format(network Sequential) ([]byte, error) {
	var w writer
	if err := w.sequential(network, ""); err != nil {
		return nil, errors.WithMessage(err, "layers: format")
	}
	content := []byte(w.text.String())
	again, err := Parse(content, 1)
	if err != nil {
		return nil, errors.WithMessage(err, "layers: format")
	}
	if !reflect.DeepEqual(again, network) {
		return nil, errors.New("layers: format: the network has names or numbers that network files cannot hold")
	}
	return content, nil
}

// writer writes layers as YAML.
type writer struct{ text strings.Builder }

// sequential writes a list of layers, each on separate lines.
func (w *writer) sequential(network Sequential, indent string) error {
	for i, layer := range network {
		name, err := kindOf(layer, "layers", layerKinds)
		if err != nil {
			return errors.WithMessagef(err, "layer %d", i+1)
		}
		if err := w.layer(name, layer, indent); err != nil {
			return errors.WithMessagef(err, "layer %d (%s)", i+1, name)
		}
	}
	return nil
}

func (w *writer) layer(name string, layer Layer, indent string) error {
	value := reflect.ValueOf(layer)
	if body, ok := layer.(Sequential); ok {
		return w.body("- "+name, body, indent)
	}
	if !slices.ContainsFunc(reflect.VisibleFields(value.Type()), isSequential) {
		text, err := oneLine(name, value)
		fmt.Fprintf(&w.text, "%s- %s\n", indent, text)
		return err
	}
	given := nonzero(value)
	if len(given) == 0 {
		fmt.Fprintf(&w.text, "%s- %s\n", indent, name)
		return nil
	}
	fmt.Fprintf(&w.text, "%s- %s:\n", indent, name)
	indent += "    "
	for _, field := range given {
		var err error
		attribute := attributeName(field.Name)
		if body, ok := value.FieldByIndex(field.Index).Interface().(Sequential); ok {
			err = w.body(attribute, body, indent)
		} else {
			var text string
			text, err = scalar(value.FieldByIndex(field.Index))
			fmt.Fprintf(&w.text, "%s%s: %s\n", indent, attribute, text)
		}
		if err != nil {
			return errors.WithMessage(err, attribute)
		}
	}
	return nil
}

// body writes a list of layers below its name.
func (w *writer) body(name string, layers Sequential, indent string) error {
	switch {
	case layers == nil:
		fmt.Fprintf(&w.text, "%s%s\n", indent, name)
		return nil
	case len(layers) == 0:
		fmt.Fprintf(&w.text, "%s%s: []\n", indent, name)
		return nil
	}
	fmt.Fprintf(&w.text, "%s%s:\n", indent, name)
	if strings.HasPrefix(name, "- ") {
		indent += "  "
	}
	return w.sequential(layers, indent+"  ")
}

// oneLine returns a layer or an initializer with its attributes, "maxpool: {window: 2}", or only
// its name.
func oneLine(name string, value reflect.Value) (string, error) {
	var attributes []string
	for _, field := range nonzero(value) {
		attribute := attributeName(field.Name)
		text, err := scalar(value.FieldByIndex(field.Index))
		if err != nil {
			return "", errors.WithMessage(err, attribute)
		}
		attributes = append(attributes, attribute+": "+text)
	}
	if len(attributes) == 0 {
		return name, nil
	}
	return name + ": {" + strings.Join(attributes, ", ") + "}", nil
}

// plainText matches text that needs no quotation marks in YAML, unless it is one of its keywords.
var (
	plainText    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*$`)
	yamlKeywords = regexp.MustCompile(`^(?i:y|n|yes|no|on|off|true|false|null)$`)
)

// scalar returns an attribute as text within a line.
func scalar(value reflect.Value) (string, error) {
	if value.Type() == initializerType {
		name, err := kindOf(value.Interface(), "initializers", initializerKinds)
		if err != nil {
			return "", err
		}
		text, err := oneLine(name, value.Elem())
		if strings.Contains(text, ":") {
			text = "{" + text + "}"
		}
		return text, err
	}
	switch value.Kind() {
	case reflect.String:
		if text := value.String(); !plainText.MatchString(text) || yamlKeywords.MatchString(text) {
			return strconv.Quote(text), nil
		}
		return value.String(), nil
	case reflect.Float64:
		return strconv.FormatFloat(value.Float(), 'g', -1, 64), nil
	}
	return fmt.Sprint(value.Interface()), nil
}

// kindOf returns the name of a value's kind in files.
func kindOf(value any, what string, kinds []kind) (string, error) {
	for _, k := range kinds {
		if reflect.TypeOf(k.zero) == reflect.TypeOf(value) {
			return k.name, nil
		}
	}
	return "", errors.Errorf("%T is not one of the %s that network files can hold: %s", value, what, strings.Join(kindNames(kinds), ", "))
}

// nonzero returns the fields that are not zero.
func nonzero(value reflect.Value) []reflect.StructField {
	var given []reflect.StructField
	for i := range value.NumField() {
		if !value.Field(i).IsZero() {
			given = append(given, value.Type().Field(i))
		}
	}
	return given
}

func isSequential(field reflect.StructField) bool { return field.Type == sequentialType }
