package bayes

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/optimizers"
)

// Method is a way to train: an optimizer of package optimizers; a sampler on minibatches of package
// langevin; a sampler on all data, which is a proposal of package mcmc, mcmc.MCLMC or NUTS; an
// approximation of this package, such as Ensemble or SWAG; Auto, which chooses a sampler; or a
// custom type that implements optimizers.Optimizer or langevin.Sampler, see Register. It must be a
// struct, whose fields are its attributes: the text "sghmc:friction=0.2" is
// langevin.SGHMC{Friction: 0.2}. The temperature and the length of a run are fields of a Spec.
type Method interface {
	// Name returns the method's name in the literature.
	Name() string
	// Validate returns an error if an attribute is out of range.
	Validate() error
}

// registry lists all methods; registry.go fills it. It is a slice rather than a map because help
// and error messages list the methods in its order.
var registry []known

// known is a row of the registry.
type known struct {
	name     string // for ParseMethod
	method   Method // with its customary attributes
	schedule optimizers.Schedule
}

// checkText refuses a method that cannot be restored from its text, as it must be when a run is
// opened. It parses the text and compares, which also catches fields of a custom type that
// attributesOf does not read.
func checkText(m Method) error {
	text := MethodText(m)
	if knownAs(m) == nil {
		return invalid("method %T is not registered: a run could not be opened again; see Register", m)
	}
	if again, err := ParseMethod(text); err != nil || !reflect.DeepEqual(again, m) {
		return invalid("method %q has fields that its text does not: a run could not be opened again; Register a custom type with them", text)
	}
	return nil
}

// MethodNames returns the names that ParseMethod accepts.
func MethodNames() []string {
	var names []string
	for _, k := range registry {
		names = append(names, k.name)
	}
	return names
}

// MethodForms returns the names of the methods that have attributes, with these and their customary
// values, as in "momentum:decay=0.9,weight-decay=0".
func MethodForms() []string {
	var forms []string
	for _, k := range registry {
		if attributes := attributesOf(k.method); len(attributes) > 0 {
			forms = append(forms, k.name+":"+joinAttributes(attributes))
		}
	}
	return forms
}

// ParseMethod reads a method: a name, and after a colon any attributes that differ from the
// customary ones, by name as in "psgld:gamma=none,alpha=0.95", or the first ones in order, as in
// "momentum:0.9,1e-4".
func ParseMethod(text string) (Method, error) {
	name, rest, given := strings.Cut(text, ":")
	for _, k := range registry {
		if k.name != strings.TrimSpace(name) {
			continue
		}
		if !given {
			return k.method, nil
		}
		method, err := withAttributes(k.method, rest)
		if err != nil {
			return nil, &InvalidError{errors.Wrapf(err, "pollen: method %q", text)}
		}
		return method, nil
	}
	return nil, invalid("no method %q; there are %s", name, strings.Join(MethodNames(), ", "))
}

// MethodText returns the text that ParseMethod reads as m. For a method that is not registered it
// is only the name.
func MethodText(m Method) string {
	k := knownAs(m)
	if k == nil {
		return m.Name()
	}
	standard := attributesOf(k.method)
	// An attribute is left out only if it is zero in both: a zero where the customary value is not
	// zero must be written, or ParseMethod would restore the customary one.
	var told []attribute
	for i, a := range attributesOf(m) {
		if a.value.IsZero() && standard[i].value.IsZero() {
			continue
		}
		told = append(told, a)
	}
	if len(told) == 0 {
		return k.name
	}
	return k.name + ":" + joinAttributes(told)
}

// IsOptimizer reports whether a method finds one network rather than samples of a posterior.
func IsOptimizer(m Method) bool {
	_, ok := m.(optimizers.Optimizer)
	return ok
}

// knownAs returns the registry's row for a method's type; nil if it has none.
func knownAs(m Method) *known {
	for i := range registry {
		if sameType(registry[i].method, m) {
			return &registry[i]
		}
	}
	return nil
}

// MethodName returns the name that ParseMethod accepts for a method, without its attributes.
func MethodName(m Method) string {
	if k := knownAs(m); k != nil {
		return k.name
	}
	return m.Name()
}

// scheduleOf returns the customary schedule of a method; nil if it has none.
func scheduleOf(m Method) optimizers.Schedule {
	if k := knownAs(m); k != nil {
		return k.schedule
	}
	return nil
}

// attribute is a field of a method that text can set: a number, a word, true or false. value is the
// field itself, which setValue changes if the struct is addressable.
type attribute struct {
	name  string // of the field, such as "weight-decay"
	value reflect.Value
}

// sameType reports whether two methods have the same type.
func sameType(a, b Method) bool { return reflect.TypeOf(a) == reflect.TypeOf(b) }

// attributesOf returns a method's fields in order. Fields of other kinds, such as maps and
// interfaces, can only be set in Go.
func attributesOf(m Method) []attribute {
	v := reflect.ValueOf(m)
	if v.Kind() != reflect.Struct {
		return nil
	}
	return fieldsOf(v)
}

// fieldsOf returns the exported fields of a struct that are numbers, words or booleans. Augment
// also uses it.
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

// withAttributes returns a copy of a method with the attributes that a text gives, by name or in
// order. As with arguments of a Python function, an attribute without a name must not follow a
// named one.
func withAttributes(m Method, text string) (Method, error) {
	// A method is a struct in an interface, which reflection cannot change in place: copy it into
	// an addressable one.
	changed := reflect.New(reflect.TypeOf(m)).Elem()
	changed.Set(reflect.ValueOf(m))
	fields := fieldsOf(changed)
	unknown := func() error {
		if len(fields) == 0 {
			return errors.New("it has no attributes after a colon")
		}
		return errors.Errorf("must be one of the attributes %s", joinAttributes(attributesOf(m)))
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
			return nil, errors.Wrapf(unknown(), "%q", item)
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
		// "1e3" is an integer here, as it is to people who write configuration files.
		if err != nil || number != float64(int32(number)) {
			return errors.Errorf("%s is not an integer", text)
		}
		v.SetInt(int64(number))
	case reflect.Bool:
		truth, err := strconv.ParseBool(text)
		if err != nil {
			return errors.Errorf("must be true or false, got %q", text)
		}
		v.SetBool(truth)
	default:
		v.SetString(text)
	}
	return nil
}
