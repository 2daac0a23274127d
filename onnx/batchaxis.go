package onnx

import (
	"slices"

	"github.com/pkg/errors"
)

// A model exported for a fixed batch size has that size among its constants: in the shapes for
// Reshape and Expand, and in the indices of a Gather from a flattened batch. To translate it for
// another batch size, declared has the shapes of all values at the fixed size. The axis where a
// value's shape differs from its declared shape contains the batch.

const exportDynamic = "export the model with a dynamic batch size"

// batchAxis returns the shape of input i at the declared batch size, and the axis that contains the
// batch. Both shapes are the same, and ok is false, if the model declares no other batch size, or
// if the value does not depend on it.
func (t *translator) batchAxis(i int) (declared []int, axis int, ok bool, err error) {
	if !t.has(i) {
		return nil, 0, false, nil
	}
	return t.batchAxisOf(t.inputs[i])
}

// batchAxisOf is batchAxis for a value.
func (t *translator) batchAxisOf(name string) (declared []int, axis int, ok bool, err error) {
	declared, known := t.declared[name]
	v, made := t.values[name]
	if !known || !made || v.array == nil && v.node == nil {
		return nil, 0, false, nil
	}
	shape := v.shape()
	if slices.Equal(declared, shape) {
		return nil, 0, false, nil
	}
	axis = -1
	if len(declared) != len(shape) {
		return nil, 0, false, t.rebatchedError(name, declared, shape)
	}
	for k, extent := range declared {
		if extent == shape[k] {
			continue
		}
		if axis >= 0 || extent*t.batch != shape[k]*t.fixedBatch {
			return nil, 0, false, t.rebatchedError(name, declared, shape)
		}
		axis = k
	}
	return declared, axis, true, nil
}

// rebatchedError is the error for a value whose shape does not fit the batch.
func (t *translator) rebatchedError(name string, declared, shape []int) error {
	return errors.Errorf("value %s has shape %v for a batch of %d and %v for a batch of %d: %s",
		name, declared, t.fixedBatch, shape, t.batch, exportDynamic)
}

// keepsExamplesApart returns an error if the node combines elements of input 0, or selects some of
// them, along an axis from first on, and before end, that contains the batch.
func (t *translator) keepsExamplesApart(first, end int) error {
	declared, batch, ok, err := t.batchAxis(0)
	if err == nil && ok && batch >= first && batch < end {
		err = errors.Errorf("axis %d of %v contains the batch, whose examples must stay apart: %s", batch, declared, exportDynamic)
	}
	return err
}

// checkBatch returns an error if the node combined examples: if its inputs have the batch in
// different places, or if a value that it computed from the batch does not contain it. Places are
// counted from the last axis, as in broadcasting; an Einsum has labels for them.
func (t *translator) checkBatch() error {
	type place struct{ axis, minor int }
	var at *place
	for i, name := range t.inputs {
		declared, axis, ok, err := t.batchAxis(i)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		p := place{axis - len(declared), max(1, t.minor[name])}
		if t.op == "Einsum" {
			p.axis = t.labelOf(i, axis)
		}
		if at != nil && *at != p {
			return errors.Errorf("inputs have the batch in different places, in %s within axis %d of %v: %s", name, axis, declared, exportDynamic)
		}
		at = &p
	}
	if at == nil {
		return nil
	}
	for _, name := range t.outputs {
		v := t.values[name]
		if _, _, ok, err := t.batchAxisOf(name); err != nil {
			return err
		} else if !ok && v.node != nil {
			return t.rebatchedError(name, t.declared[name], v.shape())
		}
	}
	return nil
}

// rebatched returns the shape to which the node, a Reshape or Flatten, brings input 0 if that
// contains the batch: the shape that it has at the declared batch size, with the actual size in its
// place.
//
// In row-major order, a reshape does not move the batch: it stays behind the same number of
// elements. An axis may contain other axes before the batch, as in [L*B E], which t.minor counts.
func (t *translator) rebatched() (shape []int, ok bool, err error) {
	declared, axis, ok, err := t.batchAxis(0)
	if err != nil || !ok {
		return nil, false, err
	}
	output := t.outputs[0]
	target := t.declared[output]
	inside := max(1, t.minor[t.inputs[0]])
	before, next := product(declared[:axis])*inside, declared[axis]/(inside*t.fixedBatch)
	if next == 1 && axis+1 < len(declared) {
		next = declared[axis+1]
	}
	// The batch gets its own axis if there is one. If it can be merged with the axis before or
	// after it, it is merged with the one before, unless the next axis is divided. A batch of 1 may
	// have several own axes to choose from: it gets the one that keeps its position.
	ahead := axis + t.units[t.inputs[0]]
	found, minor := -1, 0
	for i, outer := 0, 1; i < len(target) && outer <= before; i++ {
		inner := before / outer
		if before%outer == 0 && target[i]%(inner*t.fixedBatch) == 0 {
			own := inner == 1 && target[i] == t.fixedBatch
			if own || found < 0 || inner == 1 && target[i]%next != 0 {
				found, minor = i, inner
			}
			if own && (i >= ahead || len(target)-len(declared) < ahead-axis) {
				break
			}
		}
		outer *= target[i]
	}
	if found < 0 {
		return nil, false, errors.Errorf("shape %v has no axis for the batch of %v: %s", target, declared, exportDynamic)
	}
	shape = slices.Clone(target)
	shape[found] = shape[found] / t.fixedBatch * t.batch
	t.minor[output] = minor
	if minor == 1 {
		t.units[output] = max(0, ahead-found)
	}
	return shape, true, nil
}

// inherit gives an output the entries of t.minor and t.units that an input has. A Transpose moves
// the batch among other axes, and so does what changes the number of axes.
func (t *translator) inherit(output string) {
	for _, name := range t.inputs {
		if minor, ok := t.minor[name]; ok && !isSet(t.minor, output) {
			t.minor[output] = minor
		}
		if units, ok := t.units[name]; ok && !isSet(t.units, output) && t.op != "Transpose" && len(t.declared[name]) == len(t.declared[output]) {
			t.units[output] = units
		}
	}
}

func isSet(of map[string]int, name string) bool {
	_, ok := of[name]
	return ok
}
