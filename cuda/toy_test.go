//go:build linux

package cuda

import (
	"bytes"
	"testing"
	"unsafe"

	"github.com/pollen-ml/pollen/tensor"
)

// The toy is a small workload with all parts of a training step: data for all chains, a parameter
// and a header for each, and scratch memory.
//
//	y = factor[i] * x[i] * 3/2        scratch
//	x = x + y + step                  with a workspace in between
//	step = step + 1
const (
	toyElements = 257
	toySeed     = 7
)

type toy struct {
	tensor.Workload
	factor, x, y, header *tensor.Buffer
}

func newToy(chains int) *toy {
	t := &toy{
		factor: tensor.NewBuffer("factor", tensor.Shared, tensor.Float32, toyElements),
		x:      tensor.NewBuffer("x", tensor.Chain, tensor.Float32, toyElements),
		header: tensor.NewBuffer("header", tensor.Chain, tensor.Uint64, 3),
		y:      tensor.NewBuffer("y", tensor.Scratch, tensor.Float32, toyElements),
	}
	t.Chains, t.Keeps = chains, true
	for _, b := range []*tensor.Buffer{t.factor, t.x, t.header, t.y} {
		b.Offset = t.Bytes[b.Arena]
		t.Bytes[b.Arena] += tensor.Align(b.Bytes())
	}
	n := tensor.Int(toyElements)
	workspace := tensor.NewWorkspace(tensor.Float32, toyElements)
	t.Launches = []tensor.Launch{{
		Kernel: "toy_scale_f32", Label: "scale",
		Arguments: []tensor.Argument{tensor.Out(t.y), tensor.In(t.x), tensor.In(t.factor), n, tensor.Float(tensor.Float32, 1.5)},
		Host: tensor.Single(func(a *tensor.Args) {
			toyScale(tensor.Slice[float32](a, 0), tensor.Slice[float32](a, 1), tensor.Slice[float32](a, 2), 1.5)
		}),
	}, {
		Kernel: "toy_add_f32", Label: "add",
		Arguments: []tensor.Argument{tensor.InOut(t.x), tensor.In(t.y), tensor.In(t.header), n},
		Host: tensor.Single(func(a *tensor.Args) {
			toyAdd(tensor.Slice[float32](a, 0), tensor.Slice[float32](a, 1), tensor.Slice[uint64](a, 2))
		}),
	}, {
		Kernel: "toy_advance", Label: "header", Arguments: []tensor.Argument{tensor.InOut(t.header)},
		Host: tensor.Single(func(a *tensor.Args) { tensor.Slice[uint64](a, 0)[2]++ }),
	}}
	for i := range t.Launches {
		l := &t.Launches[i]
		l.Calls = []tensor.Call{{Kernel: l.Kernel, Grid: tensor.Block(warpSize), Arguments: l.Arguments}}
	}
	// The sum takes two kernels on the GPU, like a product that is cut along its depth. The first
	// one copies.
	add := &t.Launches[1].Calls
	*add = []tensor.Call{
		{Kernel: "toy_copy_f32", Grid: tensor.Block(warpSize), Arguments: []tensor.Argument{tensor.Out(workspace), tensor.In(t.y), n}},
		{Kernel: "toy_add_f32", Grid: tensor.Blocks{Count: 1, Threads: warpSize, Shared: 100 << 10},
			Arguments: []tensor.Argument{tensor.InOut(t.x), tensor.In(workspace), tensor.In(t.header), n}},
	}
	return t
}

func toyScale(y, x, factor []float32, by float32) {
	for i := range y {
		y[i] = factor[i] * x[i] * by
	}
}

func toyAdd(x, y []float32, header []uint64) {
	for i := range x {
		x[i] += y[i] + float32(header[2])
	}
}

// toyArgument is an argument as a kernel of the fake driver sees it.
func toyArgument[T any](arguments []unsafe.Pointer, i, chain, n int) []T {
	b := (*[2]uint64)(arguments[i])
	return unsafe.Slice(*(**T)(unsafe.Pointer(new(b[0] + b[1]*uint64(chain)))), n)
}

func toyKernels() map[string]fakeKernel {
	const n = toyElements
	return map[string]fakeKernel{
		"toy_scale_f32": {sizes: []int{16, 16, 16, 4, 4}, run: func(a []unsafe.Pointer, chain int) {
			toyScale(toyArgument[float32](a, 0, chain, n), toyArgument[float32](a, 1, chain, n), toyArgument[float32](a, 2, chain, n), *(*float32)(a[4]))
		}},
		"toy_copy_f32": {sizes: []int{16, 16, 4}, run: func(a []unsafe.Pointer, chain int) {
			copy(toyArgument[float32](a, 0, chain, n), toyArgument[float32](a, 1, chain, n))
		}},
		"toy_add_f32": {sizes: []int{16, 16, 16, 4}, run: func(a []unsafe.Pointer, chain int) {
			toyAdd(toyArgument[float32](a, 0, chain, n), toyArgument[float32](a, 1, chain, n), toyArgument[uint64](a, 2, chain, 3))
		}},
		"toy_advance": {sizes: []int{16}, run: func(a []unsafe.Pointer, chain int) { toyArgument[uint64](a, 0, chain, 3)[2]++ }},
	}
}

var toySources = []ptxFile{
	{name: "toy", capability: 70, minCUDA: 11080, symbols: []string{"toy_scale_f32", "toy_copy_f32", "toy_add_f32"}, head: "old"},
	{name: "toy_sm90", capability: 90, archSpecific: true, minCUDA: 12000, symbols: []string{"toy_scale_f32"}, head: "new"},
	{name: "toy_header", capability: 70, minCUDA: 11080, symbols: []string{"toy_advance"}, head: "header"},
}

// openFake opens GPUs of a fake driver, with little staging memory, so that transfers come in
// pieces.
func openFake(d *fakeDriver, o Options) (*device, error) {
	l, err := newLibrary(d, "fake")
	if err != nil {
		return nil, err
	}
	return open(l, toySources, 512, o)
}

func mustOpenFake(t *testing.T, d *fakeDriver, o Options) *device {
	t.Helper()
	device, err := openFake(d, o)
	if err != nil {
		t.Fatal(err)
	}
	return device
}

// fill writes a toy's inputs, for chains that are numbered from first on.
func (t *toy) fill(r tensor.Runner, first int) error {
	values := make([]float32, toyElements)
	for i := range values {
		values[i] = 0.001 * float32(i%17)
	}
	if err := r.Write(t.factor, 0, 0, tensor.Bytes(values)); err != nil {
		return err
	}
	for chain := range t.Chains {
		for i := range values {
			values[i] = float32(chain+first) + 0.01*float32(i)
		}
		if err := r.Write(t.x, chain, 0, tensor.Bytes(values)); err != nil {
			return err
		}
		if err := r.Write(t.header, chain, 0, tensor.Bytes([]uint64{toySeed, uint64(first + chain), 0})); err != nil {
			return err
		}
	}
	return nil
}

// state returns the whole state of a toy's chains.
func (t *toy) state(r tensor.Runner) ([][]byte, error) {
	whole := tensor.NewBuffer("chain", tensor.Chain, tensor.Uint8, t.Bytes[tensor.Chain])
	whole.Offset = 0
	all := make([][]byte, t.Chains)
	for chain := range all {
		all[chain] = make([]byte, whole.Bytes())
		if err := r.Read(whole, chain, 0, all[chain]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// train runs a short training: load, write, run, a detour that Return undoes, run, read, close.
func (t *toy) train(device tensor.Device, first, steps int) (states [][]byte, err error) {
	r, err := device.Load(t.Workload)
	if err != nil {
		return nil, err
	}
	defer func() {
		if failed := r.Close(); err == nil {
			err = failed
		}
	}()
	if err := t.fill(r, first); err != nil {
		return nil, err
	}
	if err := r.Run(steps); err != nil {
		return nil, err
	}
	if err := r.Keep(); err != nil {
		return nil, err
	}
	if err := r.Run(3); err != nil {
		return nil, err
	}
	if _, err := t.state(r); err != nil {
		return nil, err
	}
	if err := r.Return(); err != nil {
		return nil, err
	}
	if err := r.Run(steps); err != nil {
		return nil, err
	}
	return t.state(r)
}

func same(a, b [][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}
