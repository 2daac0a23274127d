package stock

import (
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	dense "gorgonia.org/tensor"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// rawValues is memory for an output, in one of the two types; the other slice is nil.
type rawValues struct {
	f32 []float32
	f64 []float64
}

func (r *rawValues) copied() rawValues {
	return rawValues{f32: slices.Clone(r.f32), f64: slices.Clone(r.f64)}
}

// read fills the memory with an output's values, and allocates it at the first call. The type is
// the program's, which all nodes share.
func (r *rawValues) read(s *graph.Session, name string, elements int) error {
	if s.Program().DType() == tensor.Float32 {
		if r.f32 == nil {
			r.f32 = make([]float32, elements)
		}
		return graph.Read(s, name, 0, 0, r.f32)
	}
	if r.f64 == nil {
		r.f64 = make([]float64, elements)
	}
	return graph.Read(s, name, 0, 0, r.f64)
}

// write writes an input from its node's value or, without a node, from values that are computed
// now.
func (m *Machine) write(f feed) error {
	if f.node == nil {
		values := f.values()
		if m.session.Program().DType() == tensor.Float64 {
			return graph.Write(m.session, f.name, 0, 0, values)
		}
		return graph.Write(m.session, f.name, 0, 0, tensor.Convert[float32](values))
	}
	value := f.node.Value()
	if value == nil {
		return refusal(f.node, "it is an input without a value", "Let it have one before RunAll")
	}
	var err error
	// Pollen's memory is always row-major.
	switch data := rowMajor(value).(type) {
	case float32:
		err = upload(m.session, f, []float32{data})
	case float64:
		err = upload(m.session, f, []float64{data})
	case []float32:
		err = upload(m.session, f, data)
	case []float64:
		err = upload(m.session, f, data)
	default:
		err = errors.Errorf("the values must be floats, got %T", data)
	}
	return errors.WithMessagef(err, "stock: %s", labelOf(f.node))
}

// upload writes a node's numbers. graph.Write returns an error if they are of another type than
// the program's.
func upload[T float32 | float64](s *graph.Session, f feed, values []T) error {
	if want := f.node.Shape().TotalSize(); len(values) != want {
		return errors.Errorf("there must be %d values for shape %v, got %d", want, f.node.Shape(), len(values))
	}
	return graph.Write(s, f.name, 0, 0, values)
}

// store binds a value to its node and copies it to the variables of Read.
func (m *Machine) store(r *fetch) error {
	value := r.node.Value()
	if r.name != "" {
		var fresh rawValues // new memory: the program may keep the values of the last run
		if err := fresh.read(m.session, r.name, r.node.Shape().TotalSize()); err != nil {
			return err
		}
		value = valueOf(r.node, fresh)
		if err := gorgonia.UnsafeLet(r.node, value); err != nil {
			return errors.Wrap(err, "stock")
		}
	}
	for _, into := range r.reads {
		if err := copyInto(into, value); err != nil {
			return errors.Wrapf(err, "stock: read of %s", labelOf(r.node))
		}
	}
	return nil
}

// copyInto copies a value to a variable of Read, into the value that it has, as a TapeMachine
// does. A program that reads into the same variable in each iteration thus keeps the same memory.
func copyInto(into *gorgonia.Value, value gorgonia.Value) error {
	var err error
	if *into != nil {
		_, err = gorgonia.Copy(*into, value)
	} else {
		*into, err = gorgonia.CloneValue(value)
	}
	return err
}

// storeLoss binds the loss to its node. It is a metric of the program rather than an output, so
// that a loss that is not finite is found and located, see graph.NotFinite.
func (m *Machine) storeLoss() error {
	if m.loss == nil {
		return nil
	}
	loss := m.session.Metric(0, lossMetric, m.session.Steps()-1)
	value := rawValues{f64: []float64{loss}}
	if m.session.Program().DType() == tensor.Float32 {
		value = rawValues{f32: []float32{float32(loss)}}
	}
	bound := valueOf(m.loss, value)
	for _, into := range m.lossReads {
		if err := copyInto(into, bound); err != nil {
			return errors.Wrap(err, "stock: read of the loss")
		}
	}
	return errors.Wrap(gorgonia.UnsafeLet(m.loss, bound), "stock: loss")
}

// valueOf returns values as a value of Gorgonia for a node: a scalar or a tensor, of bool for a
// comparison. The tensor shares the memory of v, which must not be used for anything else.
func valueOf(n *gorgonia.Node, v rawValues) gorgonia.Value {
	if n.Dtype() == dense.Bool {
		truth := make([]bool, max(len(v.f32), len(v.f64)))
		for i := range truth {
			truth[i] = len(v.f32) > 0 && v.f32[i] != 0 || len(v.f64) > 0 && v.f64[i] != 0
		}
		if n.IsScalar() {
			return gorgonia.NewB(truth[0])
		}
		return dense.New(dense.WithShape(n.Shape()...), dense.WithBacking(truth))
	}
	switch {
	case n.IsScalar() && v.f32 != nil:
		return gorgonia.NewF32(v.f32[0])
	case n.IsScalar():
		return gorgonia.NewF64(v.f64[0])
	case v.f32 != nil:
		return dense.New(dense.WithShape(n.Shape()...), dense.WithBacking(v.f32))
	}
	return dense.New(dense.WithShape(n.Shape()...), dense.WithBacking(v.f64))
}

// storeGradient stores a gradient where Gorgonia's solvers read it, in the input's dual value. It
// writes into the memory of an existing gradient, to which a program or a solver may have a
// reference.
func (m *Machine) storeGradient(r *fetch) error {
	if err := r.raw.read(m.session, r.name, r.node.Shape().TotalSize()); err != nil {
		return err
	}
	present, err := r.node.Grad()
	switch {
	case err == nil && present != nil && (present == r.present || r.isDual()):
		if err := writeGradient(present, r.raw, r.adds); err != nil {
			return errors.WithMessagef(err, "stock: gradient of %s", labelOf(r.node))
		}
	default: // the first run; WithGrad panics if the input has no value, an error of write
		present = valueOf(r.node, r.raw.copied())
		gorgonia.WithGrad(present)(r.node)
	}
	r.present = present
	if r.deriv == nil {
		return nil
	}
	// A solver sets the input's gradient to 0 after its step; the node that Grad returned keeps it.
	return errors.Wrap(gorgonia.UnsafeLet(r.deriv, valueOf(r.node, r.raw.copied())), "stock: gradient")
}

// isDual reports whether the input has a gradient next to its value: Gorgonia's dualValue.
func (r *fetch) isDual() bool {
	a, err := attributesOf(r.node)
	if err != nil {
		return false
	}
	bound := a.fields.FieldByName("boundTo")
	return !bound.IsNil() && bound.Elem().Type().String() == "*gorgonia.dualValue"
}

// writeGradient overwrites the present gradient in place, or adds to it, in whatever order its
// memory has. v is row-major.
func writeGradient(present gorgonia.Value, v rawValues, adds bool) error {
	// The present gradient's memory may have any order, such as a transposed matrix's.
	order := rowMajorOffsets(present)
	switch data := present.Data().(type) {
	case []float32:
		scatter(data, v.f32, order, adds)
	case []float64:
		scatter(data, v.f64, order, adds)
	default:
		switch scalar := present.(type) {
		case *gorgonia.F32:
			value := []float32{float32(*scalar)}
			scatter(value, v.f32, nil, adds)
			*scalar = gorgonia.F32(value[0])
		case *gorgonia.F64:
			value := []float64{float64(*scalar)}
			scatter(value, v.f64, nil, adds)
			*scalar = gorgonia.F64(value[0])
		default:
			return errors.Errorf("%T holds no floats", present)
		}
	}
	return nil
}

// scatter writes numbers in row-major order to places, or adds them; nil places are row-major.
func scatter[T float32 | float64](to, from []T, places []int, adds bool) {
	if places == nil && !adds {
		copy(to, from)
		return
	}
	for i, v := range from {
		at := i
		if places != nil {
			at = places[i]
		}
		if adds {
			v += to[at]
		}
		to[at] = v
	}
}
