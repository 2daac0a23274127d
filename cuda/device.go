package cuda

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor"
)

// device presents one or more GPUs as a single tensor.Device.
type device struct {
	gpus    []*gpu
	options Options
}

// Open returns a device of the GPUs that o selects. It returns an error if there is no driver, no
// such GPU, a GPU that the kernels do not support, or a *NoPrecision. It never falls back to
// another device.
func Open(o Options) (tensor.Device, error) {
	l, err := openLibrary(o.Driver)
	if err != nil {
		return nil, err
	}
	from, err := ptxFiles()
	if err != nil {
		return nil, err
	}
	return open(l, from, stagingBytes/2, o)
}

// open opens a device with given kernels and a staging memory of twice half bytes. Tests pass a
// fake driver and a small staging memory, so that transfers come in pieces.
func open(l *library, from []ptxFile, half int, o Options) (*device, error) {
	switch o.Precision {
	case "":
		o.Precision = FP32
	case FP32, TF32, BF16:
	default:
		return nil, errors.Errorf("cuda: Precision must be %s, %s or %s, got %q", FP32, TF32, BF16, o.Precision)
	}
	if len(o.GPUs) == 0 {
		o.GPUs = []int{0}
	}
	allowed, err := readFeatures()
	if err != nil {
		return nil, err
	}
	o.sequential = o.sequential || !allowed.reordering
	d := &device{options: o}
	for i, index := range o.GPUs {
		if slices.Contains(o.GPUs[:i], index) {
			d.Close()
			return nil, errors.Errorf("cuda: GPUs must differ, got %d twice", index)
		}
		g, err := openGPU(l, index, from, half, allowed)
		if err != nil {
			d.Close()
			return nil, err
		}
		d.gpus = append(d.gpus, g)
		if need := (map[Precision]int{TF32: 80, BF16: 80})[o.Precision]; g.capability() < need {
			d.Close()
			return nil, &NoPrecision{Precision: o.Precision, GPU: g.String(), Capability: g.capabilityText()}
		}
	}
	return d, nil
}

// NoPrecision is the error that Open returns if a GPU has no tensor cores for the requested
// precision.
type NoPrecision struct {
	Precision       Precision
	GPU, Capability string
}

// Error implements error.
func (e *NoPrecision) Error() string {
	return fmt.Sprintf("cuda: precision %s needs compute capability 8.0, %s has %s: use fp32", e.Precision, e.GPU, e.Capability)
}

// Name implements tensor.Device: "cuda:0 (NVIDIA H200, compute capability 9.0, CUDA 13.0, fp32)".
// If CapabilityVariable limits the capability, it is "9.0 limited to 8.0".
func (d *device) Name() string {
	var indices []string
	for _, g := range d.gpus {
		indices = append(indices, fmt.Sprint(g.Index))
	}
	g := d.gpus[0]
	return fmt.Sprintf("cuda:%s (%s, compute capability %s, CUDA %s, %s)",
		strings.Join(indices, ","), g.Info.Name, g.capabilityText(), versionString(g.version), d.options.Precision)
}

// Load implements tensor.Device. If the chains do not fit into the GPUs' memory, the error is an
// *OutOfMemory.
func (d *device) Load(w tensor.Workload) (tensor.Runner, error) {
	if w.Chains < 1 {
		return nil, errors.Errorf("cuda: Chains must be at least 1, got %d", w.Chains)
	}
	r := &runner{chains: w.Chains}
	// Chains are split as evenly as possible; with fewer chains than GPUs, the last ones are not
	// used.
	n := min(len(d.gpus), w.Chains)
	for i, g := range d.gpus[:n] {
		begin, end := i*w.Chains/n, (i+1)*w.Chains/n
		p, err := g.load(w, begin, end-begin, d.options)
		if err != nil {
			r.Close()
			var memory *OutOfMemory
			if n > 1 && errors.As(err, &memory) {
				memory.Chains, memory.Fit = w.Chains, min(w.Chains-1, memory.Fit*len(d.gpus))
			}
			return nil, err
		}
		r.shards = append(r.shards, p)
	}
	return r, nil
}

// Close implements tensor.Device.
func (d *device) Close() error {
	var failed error
	for _, g := range d.gpus {
		failed = cmp.Or(failed, g.close())
	}
	return failed
}
