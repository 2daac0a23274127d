package cuda

import (
	"github.com/pollen-ml/pollen/cuda/internal/plan"
	"github.com/pollen-ml/pollen/tensor"
)

var _ tensor.Sizer = (*device)(nil)

// Size implements tensor.Sizer. With several GPUs it returns the sum over all of them.
func (d *device) Size(w tensor.Workload) (tensor.Footprint, error) {
	total := uint64(0)
	n := min(len(d.gpus), w.Chains)
	for i, g := range d.gpus[:n] {
		chains := (i+1)*w.Chains/n - i*w.Chains/n
		planned, err := plan.New(w, g.target(d.options.Precision, chains))
		if err != nil {
			return tensor.Footprint{}, err
		}
		each := alignChain(w.Bytes[tensor.Chain]) + alignChain(planned.Scratch)
		if w.Keeps {
			each += alignChain(w.Bytes[tensor.Chain])
		}
		total += alignChain(w.Bytes[tensor.Shared]) + uint64(chains)*each
	}
	return tensor.Footprint{Device: int(total)}, nil
}

// Free implements tensor.Sizer.
func (d *device) Free() (bytes int, err error) {
	for _, g := range d.gpus {
		var free, total uint64
		err := g.do(func() error { return g.check("cuMemGetInfo_v2", g.cuMemGetInfo_v2(&free, &total)) })
		if err != nil {
			return 0, err
		}
		bytes += int(free)
	}
	return bytes, nil
}
