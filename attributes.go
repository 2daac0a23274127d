package pollen

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/pkg/errors"
)

// attribute is a field of a method that text can set: a number, a word, true or false.
type attribute struct {
	name  string // the field's, as in "weight-decay"
	value reflect.Value
}

// sameType reports whether two methods are of one type.
func sameType(a, b Method) bool { return reflect.TypeOf(a) == reflect.TypeOf(b) }

// attributesOf are a method's fields, in order. Fields of other kinds, such as maps and interfaces,
// are for Go programs.
func attributesOf(m Method) []attribute {
	v := reflect.ValueOf(m)
	if v.Kind() != reflect.Struct {
		return nil
	}
	return fieldsOf(v)
}

func fieldsOf(v reflect.Value) []attribute {
	var list []attribute
	for i := range v.NumField() {
		field := v.Type().Field(i)
		switch field.Type.Kind() {
		case reflect.Float64, reflect.Int, reflect.String, reflect.Bool:
			if field.IsExported() {
				list = append(list, attribute{kebab(field.Name), v.Field(i)})
			}
		}
	}
	return list
}

// kebab turns "WeightDecay" into "weight-decay", "Beta1" into "beta1".
func kebab(name string) string {
	var text strings.Builder
	for i, r := range name {
		if i > 0 && r >= 'A' && r <= 'Z' {
			text.WriteByte('-')
		}
		text.WriteRune(r)
	}
	return strings.ToLower(text.String())
}

func (a attribute) text() string {
	switch v := a.value; v.Kind() {
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	case reflect.Int:
		return strconv.FormatInt(v.Int(), 10)
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	default:
		return strings.TrimSpace(v.String())
	}
}

func joinAttributes(list []attribute) string {
	var texts []string
	for _, a := range list {
		texts = append(texts, a.name+"="+a.text())
	}
	return strings.Join(texts, ",")
}

// withAttributes copies a method with the attributes that a text gives, by name or in order.
func withAttributes(m Method, text string) (Method, error) {
	changed := reflect.New(reflect.TypeOf(m)).Elem()
	changed.Set(reflect.ValueOf(m))
	fields := fieldsOf(changed)
	wants := func() error {
		if len(fields) == 0 {
			return errors.New("it has no attributes after a colon")
		}
		return errors.Errorf("wants %s", joinAttributes(attributesOf(m)))
	}
	named, given := false, map[int]bool{}
	for i, item := range strings.Split(text, ",") {
		name, value, byName := strings.Cut(item, "=")
		at := i
		if byName {
			named = true
			at = len(fields)
			for j, field := range fields {
				if field.name == strings.TrimSpace(name) {
					at = j
				}
			}
		} else {
			value = item
		}
		if at >= len(fields) || named && !byName {
			return nil, errors.Wrapf(wants(), "%q", item)
		}
		if given[at] {
			return nil, errors.Errorf("%s is given twice", fields[at].name)
		}
		given[at] = true
		if err := setValue(fields[at].value, strings.TrimSpace(value)); err != nil {
			return nil, errors.Wrapf(err, "%s", fields[at].name)
		}
	}
	return changed.Interface().(Method), nil
}

func setValue(v reflect.Value, text string) error {
	switch v.Kind() {
	case reflect.Float64:
		number, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return errors.Errorf("%q is not a number", text)
		}
		v.SetFloat(number)
	case reflect.Int:
		number, err := strconv.ParseFloat(text, 64)
		if err != nil || number != float64(int32(number)) {
			return errors.Errorf("%s is not an integer", text)
		}
		v.SetInt(int64(number))
	case reflect.Bool:
		truth, err := strconv.ParseBool(text)
		if err != nil {
			return errors.Errorf("%q, wants true or false", text)
		}
		v.SetBool(truth)
	default:
		v.SetString(text)
	}
	return nil
}
