package optimizers

import (
	"math"
	"strconv"
	"strings"

	"github.com/pkg/errors"
)

// smallest is the least positive number that float32 holds with all its digits, and whose inverse
// it also holds.
const smallest = 0x1p-126

// check is the first error of an optimizer's hyperparameters.
func check(o Optimizer, errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return errors.Wrapf(err, "optimizers: %s", o.Name())
		}
	}
	return nil
}

func nonNegative(field string, v float64) error {
	if v >= 0 && v <= math.MaxFloat32 {
		return nil
	}
	return errors.Errorf("%s is %v, wants a number of at least 0 that float32 can hold", field, v)
}

func positive(field string, v float64) error {
	if v >= smallest && v <= math.MaxFloat32 {
		return nil
	}
	return errors.Errorf("%s is %v, wants a number above 0 that float32 can hold", field, v)
}

// belowOne also refuses what float32 rounds to 1: a memory without end.
func belowOne(field string, v float64) error {
	if v >= 0 && float32(v) < 1 {
		return nil
	}
	return errors.Errorf("%s is %v, wants 0 <= %s < 1", field, v, field)
}

// kind is a named rule: the names of its hyperparameters in order, their customary values, and how
// to make an Optimizer of them.
type kind struct {
	name, fields string
	defaults     []float64
	build        func(v []float64) Optimizer
}

var kinds = []kind{
	{"sgd", "WEIGHT_DECAY", []float64{0},
		func(v []float64) Optimizer { return SGD{v[0]} }},
	{"momentum", "DECAY,WEIGHT_DECAY", []float64{0.9, 0},
		func(v []float64) Optimizer { return Momentum{v[0], v[1]} }},
	{"nesterov", "DECAY,WEIGHT_DECAY", []float64{0.9, 0},
		func(v []float64) Optimizer { return Nesterov{v[0], v[1]} }},
	{"adagrad", "EPSILON,WEIGHT_DECAY", []float64{1e-8, 0},
		func(v []float64) Optimizer { return Adagrad{v[0], v[1]} }},
	{"adadelta", "DECAY,EPSILON,WEIGHT_DECAY", []float64{0.95, 1e-6, 0},
		func(v []float64) Optimizer { return Adadelta{v[0], v[1], v[2]} }},
	{"rmsprop", "DECAY,EPSILON,WEIGHT_DECAY", []float64{0.9, 1e-8, 0},
		func(v []float64) Optimizer { return RMSProp{v[0], v[1], v[2]} }},
	{"adam", "BETA1,BETA2,EPSILON,WEIGHT_DECAY", []float64{0.9, 0.999, 1e-8, 0},
		func(v []float64) Optimizer { return Adam{v[0], v[1], v[2], v[3]} }},
	{"adamw", "BETA1,BETA2,EPSILON,WEIGHT_DECAY", []float64{0.9, 0.999, 1e-8, 0.01},
		func(v []float64) Optimizer { return AdamW{v[0], v[1], v[2], v[3]} }},
}

// Names are the names that New takes.
func Names() []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.name
	}
	return names
}

// New is the optimizer of that name with its customary hyperparameters. Values after a colon
// replace the first of them, in the order of the struct's fields: "momentum", "momentum:0.95",
// "momentum:0.95,1e-4".
func New(text string) (Optimizer, error) {
	name, rest, given := strings.Cut(text, ":")
	for _, k := range kinds {
		if k.name != strings.TrimSpace(name) {
			continue
		}
		values := append([]float64(nil), k.defaults...)
		if given {
			numbers, err := parseNumbers(rest)
			if err != nil || len(numbers) > len(values) {
				return nil, errors.Errorf("optimizers: %q: wants %s, or %s:%s, of which the last ones may be left out", text, k.name, k.name, k.fields)
			}
			copy(values, numbers)
		}
		o := k.build(values)
		if err := o.Validate(); err != nil {
			return nil, err
		}
		return o, nil
	}
	return nil, errors.Errorf("optimizers: no optimizer %q; there are %s", name, strings.Join(Names(), ", "))
}

// parseNumbers reads numbers separated by commas.
func parseNumbers(text string) ([]float64, error) {
	parts := strings.Split(text, ",")
	numbers := make([]float64, len(parts))
	for i, part := range parts {
		v, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil {
			return nil, errors.Errorf("%q is not a number", part)
		}
		numbers[i] = v
	}
	return numbers, nil
}
