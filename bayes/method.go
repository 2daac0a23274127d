package bayes

import (
	"reflect"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/attributes"
	"github.com/pollen-ml/pollen/internal/nearest"
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
// opened. It parses the text and compares, which also catches fields of a custom type that are not
// attributes.
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
		if list := attributes.Of(k.method); len(list) > 0 {
			forms = append(forms, k.name+":"+attributes.Join(list))
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
		method, err := attributes.With(k.method, rest)
		if err != nil {
			return nil, &InvalidError{errors.Wrapf(err, "pollen: method %q", text)}
		}
		return method.(Method), nil
	}
	return nil, invalid("no method %q; %s", name, nearest.Among(name, MethodNames()))
}

// MethodText returns the text that ParseMethod reads as m. For a method that is not registered it
// is only the name, and for nil, the default of a Spec, it is "".
func MethodText(m Method) string {
	k := knownAs(m)
	if k == nil {
		return MethodName(m)
	}
	standard := attributes.Of(k.method)
	// An attribute is left out only if it is zero in both: a zero where the customary value is not
	// zero must be written, or ParseMethod would restore the customary one.
	var told []attributes.Attribute
	for i, a := range attributes.Of(m) {
		if a.IsZero() && standard[i].IsZero() {
			continue
		}
		told = append(told, a)
	}
	if len(told) == 0 {
		return k.name
	}
	return k.name + ":" + attributes.Join(told)
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

// MethodName returns the name that ParseMethod accepts for a method, without its attributes. It is
// "" for nil, the default of a Spec.
func MethodName(m Method) string {
	if m == nil {
		return ""
	}
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

// sameType reports whether two methods have the same type.
func sameType(a, b Method) bool { return reflect.TypeOf(a) == reflect.TypeOf(b) }
