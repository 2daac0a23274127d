package attributes

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/nearest"
)

// Attribute is a field of a struct.
type Attribute struct {
	Name  string
	value reflect.Value
}

// Of returns the attributes of a struct; nil for another value.
func Of(v any) []Attribute {
	if reflect.ValueOf(v).Kind() != reflect.Struct {
		return nil
	}
	return fields(reflect.ValueOf(v))
}

// In returns the attributes of the struct that v points to, which Set changes.
func In[T any](v *T) []Attribute { return fields(reflect.ValueOf(v).Elem()) }

func fields(v reflect.Value) (list []Attribute) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		switch field.Type.Kind() {
		case reflect.Float64, reflect.Int, reflect.String, reflect.Bool:
			if field.IsExported() {
				list = append(list, Attribute{kebab(field.Name), v.Field(i)})
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

// IsZero reports whether the field is zero.
func (a Attribute) IsZero() bool { return a.value.IsZero() }

// IsBool reports whether the field is true or false.
func (a Attribute) IsBool() bool { return a.value.Kind() == reflect.Bool }

// String returns the name and the value, as in "friction=0.2".
func (a Attribute) String() string { return a.Name + "=" + a.text() }

func (a Attribute) text() string {
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

// Join returns attributes with commas between them.
func Join(list []Attribute) string { return strings.Join(texts(list), ",") }

func texts(list []Attribute) (all []string) {
	for _, a := range list {
		all = append(all, a.String())
	}
	return all
}

// Set sets the field to the value that a text has.
func (a Attribute) Set(text string) error {
	text = strings.TrimSpace(text)
	switch v := a.value; v.Kind() {
	case reflect.Float64:
		number, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return errors.Errorf("%s: %q is not a number", a.Name, text)
		}
		v.SetFloat(number)
	case reflect.Int:
		number, err := strconv.ParseFloat(text, 64)
		// "1e3" is an integer here, as it is to people who write configuration files.
		if err != nil || number != float64(int32(number)) {
			return errors.Errorf("%s: %s is not an integer", a.Name, text)
		}
		v.SetInt(int64(number))
	case reflect.Bool:
		truth, err := strconv.ParseBool(text)
		if err != nil {
			return errors.Errorf("%s: must be true or false, got %q", a.Name, text)
		}
		v.SetBool(truth)
	default:
		v.SetString(text)
	}
	return nil
}

// With returns a copy of a struct with the attributes that a text gives, by name or in order. As
// with arguments of a Python function, an attribute without a name must not follow a named one.
func With(v any, text string) (any, error) {
	// The struct is in an interface, which reflection cannot change in place: copy it into an
	// addressable one.
	changed := reflect.New(reflect.TypeOf(v)).Elem()
	changed.Set(reflect.ValueOf(v))
	list := fields(changed)
	named, given := false, map[int]bool{}
	for i, item := range strings.Split(text, ",") {
		name, value, byName := strings.Cut(item, "=")
		at := i
		if byName {
			named = true
			at = len(list)
			for j, a := range list {
				if a.Name == strings.TrimSpace(name) {
					at = j
				}
			}
		} else {
			value = item
		}
		switch {
		case len(list) == 0:
			return nil, errors.Errorf("%q: it has no attributes after a colon", item)
		case at >= len(list) || named && !byName:
			return nil, errors.Errorf("no attribute %q; %s", item, nearest.Among(item, texts(Of(v))))
		}
		if given[at] {
			return nil, errors.Errorf("%s is given twice", list[at].Name)
		}
		given[at] = true
		if err := list[at].Set(value); err != nil {
			return nil, err
		}
	}
	return changed.Interface(), nil
}
