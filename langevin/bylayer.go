package langevin

import (
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
)

// ByLayer gives a number to single layers or parameters, as in "conv1=0.001/linear2.bias=0.0001". A
// parameter's number overrides its layer's. The zero value is empty.
type ByLayer string

// numbers returns the entries by name.
func (t ByLayer) numbers() (map[string]float64, error) {
	numbers := map[string]float64{}
	if t == "" {
		return numbers, nil
	}
	for _, item := range strings.Split(string(t), "/") {
		name, text, _ := strings.Cut(item, "=")
		v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if name = strings.TrimSpace(name); name == "" || err != nil {
			return nil, errors.Errorf("%q in %q must be LAYER=NUMBER, with / between layers", item, string(t))
		}
		if _, twice := numbers[name]; twice {
			return nil, errors.Errorf("%s is given twice in %q", name, string(t))
		}
		numbers[name] = v
	}
	return numbers, nil
}

// check reports text of another form, and numbers that are out of range. must describes the range
// in the error.
func (t ByLayer) check(ok func(v float64) bool, must string) error {
	numbers, err := t.numbers()
	for name, v := range numbers {
		if !ok(v) {
			return errors.Errorf("%s must be %s, got %v", name, must, v)
		}
	}
	return err
}

// of returns the number of a parameter: its own, else its layer's, else the common one.
func (t ByLayer) of(parameter string, common float64) float64 {
	numbers, _ := t.numbers() // check has refused other text
	for _, name := range []string{parameter, LayerOf(parameter)} {
		if v, ok := numbers[name]; ok {
			return v
		}
	}
	return common
}

// layerAttributed is a Sampler with attributes by layer.
type layerAttributed interface{ byLayer() []ByLayer }

// checkByLayer reports attributes of layers that the network does not have.
func checkByLayer(sampler Sampler, parameters []*graph.Node) error {
	known := map[string]bool{}
	for _, p := range parameters {
		known[p.Name()], known[LayerOf(p.Name())] = true, true
	}
	for _, s := range withRest(sampler) {
		l, ok := s.(layerAttributed)
		if !ok {
			continue
		}
		for _, t := range l.byLayer() {
			numbers, _ := t.numbers() // Validate has refused other text
			for name := range numbers {
				if !known[name] {
					return errors.Errorf("langevin: %s: a number for layer %q, which is not among the parameters", s.Name(), name)
				}
			}
		}
	}
	return nil
}

// LayerOf returns the layer of a parameter: "conv1" for "conv1.weight".
func LayerOf(parameter string) string {
	if i := strings.LastIndexByte(parameter, '.'); i >= 0 {
		return parameter[:i]
	}
	return parameter
}
