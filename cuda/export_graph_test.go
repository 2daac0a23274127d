package cuda

import (
	"github.com/pollen-ml/pollen/cuda/kernels"
	"github.com/pollen-ml/pollen/tensor"
)

// SetSequential sets whether each call follows the one before it in the CUDA graphs of workloads
// that a device loads from now on.
func SetSequential(d tensor.Device, line bool) { d.(*device).options.sequential = line }

// Rows returns the number of rows of each call of a runner's first shard whose kernel takes rows.
func Rows(r tensor.Runner) (rows []int) {
	for _, s := range r.(*runner).shards[0].step {
		if s.RowEnds != nil {
			rows = append(rows, len(s.RowEnds))
		}
	}
	return rows
}

// PlanFor makes a device plan for a number of multiprocessors, whatever number it has. A plan's
// kernels, and how they share the work, are then the same on every GPU of a capability.
func PlanFor(d tensor.Device, multiprocessors int) {
	for _, g := range d.(*device).gpus {
		g.Multiprocessors = multiprocessors
	}
}

// Planner is a device that plans workloads as its first GPU does, and allocates no memory for them.
type Planner struct {
	tensor.Device
	Multiprocessors int // of the GPU; 0 for its own number
	Chains, Steps   int

	// Of the CUDA graph of Steps steps: the number of calls, the number of edges between them, and
	// the number of calls on the longest path.
	Nodes, Edges, Path int
	Workload, Scratch  int // bytes of a chain's scratch memory: requested by the workload, and planned
}

// Load implements tensor.Device.
func (p *Planner) Load(s tensor.Workload) (tensor.Runner, error) {
	d := p.Device.(*device)
	g := d.gpus[0]
	if has := g.Multiprocessors; p.Multiprocessors > 0 {
		g.Multiprocessors = p.Multiprocessors
		defer func() { g.Multiprocessors = has }()
	}
	planned := &shard{gpu: g, chains: p.Chains, launches: s.Launches}
	if err := g.do(func() error { return planned.plan(s, d.options.Precision) }); err != nil {
		return nil, err
	}
	p.Workload, p.Scratch = s.Bytes[tensor.Scratch], planned.bytes[tensor.Scratch]
	all := planned.dependencies(planned.steps(p.Steps))
	p.Nodes, p.Edges, p.Path = len(all), 0, 0
	depth := make([]int, len(all))
	for i, follows := range all {
		p.Edges += len(follows)
		for _, earlier := range follows {
			depth[i] = max(depth[i], depth[earlier])
		}
		depth[i]++
		p.Path = max(p.Path, depth[i])
	}
	return unloaded{}, nil
}

// unloaded is a workload for which no memory was taken.
type unloaded struct{ tensor.Runner }

func (unloaded) Write(*tensor.Buffer, int, int, []byte) error { return nil }

func (unloaded) Close() error { return nil }

// IsSequential reports whether each call follows the one before it in a device's CUDA graphs.
func IsSequential(d tensor.Device) bool { return d.(*device).options.sequential }

// SetPDL sets whether calls of the CUDA graphs that a device makes from now on may begin early, if
// the GPU supports that, and returns the setting before.
func SetPDL(d tensor.Device, on bool) (before bool) {
	for _, g := range d.(*device).gpus {
		before = g.pdl
		g.pdl = on && g.capability() >= kernels.DependentCapability && g.version >= minPDLDriver
	}
	return before
}
