package graph

import (
	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	dense "gorgonia.org/tensor"

	"github.com/pollen-ml/pollen/tensor"
)

// Do implements gorgonia.Op: Pollen's graphs run on Gorgonia's own machines, too.
func (a *application) Do(values ...gorgonia.Value) (gorgonia.Value, error) {
	return runOnHost(a, values)
}

// runOnHost computes one application on Gorgonia's values, in separate memory and on one thread.
// Inputs that the op updates are copied back. It lowers the op as Compile does and runs the
// launches on a host device that it makes for this one op: simple and slow, which is right for the
// oracle of the tests.
func runOnHost(a *application, values []gorgonia.Value) (gorgonia.Value, error) {
	v := &value{label: a.label(), op: a.Op, shape: a.shape, float: a.float, dtype: a.dtype}
	v.buffer = tensor.NewBuffer("output", tensor.Chain, a.dtype, a.shape.Elements())
	for i, shape := range a.inputs {
		in := &value{label: "input", shape: shape, dtype: a.types[i]}
		in.buffer = tensor.NewBuffer("input", tensor.Chain, a.types[i], shape.Elements())
		v.inputs = append(v.inputs, in)
	}
	if isView(v) {
		return viewOf(a, values[0])
	}
	l := lower(v)
	plan := newPlan()
	for _, in := range v.inputs {
		plan.pin(in.buffer)
	}
	plan.pin(v.buffer)
	plan.use(0, l.launches)
	host := tensor.NewHost(1)
	defer host.Close()
	runner, err := host.Load(tensor.Workload{Launches: l.launches, Bytes: plan.offsets(), Chains: 1})
	if err != nil {
		return nil, err
	}
	defer runner.Close()
	for i, in := range v.inputs {
		raw, err := valueBytes(values[i], a.types[i], a.inputs[i])
		if err != nil {
			return nil, errors.Wrapf(err, "graph: %s: input %d", a.label(), i)
		}
		if err := runner.Write(in.buffer, 0, 0, raw); err != nil {
			return nil, err
		}
	}
	if err := runner.Run(1); err != nil {
		return nil, err
	}
	if u, ok := a.Op.(Updater); ok {
		for _, i := range u.Updates() {
			raw, err := valueBytes(values[i], a.types[i], a.inputs[i])
			if err == nil {
				err = runner.Read(v.inputs[i].buffer, 0, 0, raw)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	out, raw := newValue(a.dtype, a.shape)
	err = runner.Read(v.buffer, 0, 0, raw)
	return asResult(out, a.shape), err
}

// viewOf copies, because Gorgonia's machines reuse the memory that a view would share.
func viewOf(a *application, in gorgonia.Value) (gorgonia.Value, error) {
	from, err := valueBytes(in, a.dtype, a.inputs[0])
	if err != nil {
		return nil, err
	}
	out, raw := newValue(a.dtype, a.shape)
	copy(raw, from)
	return asResult(out, a.shape), nil
}

// newValue returns a tensor of zeros and its memory, as bytes that a Runner can read and write.
func newValue(dtype tensor.DType, shape tensor.Shape) (*dense.Dense, []byte) {
	switch dtype {
	case tensor.Float32:
		return newDense[float32](shape)
	case tensor.Float64:
		return newDense[float64](shape)
	case tensor.Uint8:
		return newDense[uint8](shape)
	case tensor.Int32:
		return newDense[int32](shape)
	default:
		return newDense[uint64](shape)
	}
}

// newDense makes a scalar a vector of one element: Gorgonia's scalar tensors do not keep their
// value in a slice.
func newDense[T tensor.Element](shape tensor.Shape) (*dense.Dense, []byte) {
	values := make([]T, shape.Elements())
	if len(shape) == 0 {
		shape = tensor.Shape{1}
	}
	d, err := tensor.ToDense(shape, values)
	if err != nil {
		panic(err) // the length is the shape's
	}
	return d, tensor.Bytes(values)
}

// asResult returns the value of an op. A float scalar, which newDense makes a vector, gets the type
// that Gorgonia's own ops accept as a scalar.
func asResult(d *dense.Dense, shape tensor.Shape) gorgonia.Value {
	if len(shape) > 0 {
		return d
	}
	switch data := d.Data().(type) {
	case []float32:
		return gorgonia.NewF32(data[0])
	case []float64:
		return gorgonia.NewF64(data[0])
	}
	return d
}

// valueBytes returns the memory of one of Gorgonia's values, or a copy if the value is a Go
// scalar. It returns an error if the number of bytes does not fit the shape.
func valueBytes(v gorgonia.Value, dtype tensor.DType, shape tensor.Shape) ([]byte, error) {
	var raw []byte
	switch data := v.Data().(type) {
	case []float32:
		raw = tensor.Bytes(data)
	case []float64:
		raw = tensor.Bytes(data)
	case []uint8:
		raw = data
	case []int32:
		raw = tensor.Bytes(data)
	case []uint64:
		raw = tensor.Bytes(data)
	case float32:
		raw = tensor.Bytes([]float32{data})
	case float64:
		raw = tensor.Bytes([]float64{data})
	}
	if want := shape.Elements() * dtype.Size(); len(raw) != want {
		return nil, errors.Errorf("the value must be %v of %v, %d bytes, got %T of %d bytes", dtype, shape, want, v.Data(), len(raw))
	}
	return raw, nil
}
