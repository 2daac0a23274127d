package plan

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor"
)

// Precision is how matrix products are computed: operands are rounded to it, sums are always
// float32.
type Precision string

// The precisions.
const (
	FP32 Precision = "fp32"
	TF32 Precision = "tf32"
	BF16 Precision = "bf16"
)

// The compute capabilities at which plans change, 10 major + minor. SM80 is the first with
// cp.async, ldmatrix and the tensor cores that the kernels use. SM90 is the only one with wgmma:
// kernels compiled for sm_90a load on no other GPU, not even a later one.
const (
	SM80 = 80
	SM90 = 90
)

// Target is the GPU that a plan is made for, and what the plan may use of it.
type Target struct {
	Precision       Precision
	Multiprocessors int
	Capability      int // 10 major + minor
	Shared          int // the most bytes of shared memory that a block may have
	Chains          int // each is one more block in the grid's z dimension

	WGMMA     bool // convolutions in bf16 may use wgmma; needs capability SM90
	NoPacking bool // convolutions do not work on packed copies
	NoWindows bool // no kernel works on pooling windows
}

// Call is one launch of a kernel. Its grid is Blocks[0] x Blocks[1] x chains.
type Call struct {
	Symbol    string // of the kernel
	Blocks    [2]int // for each chain
	Threads   int    // of a block
	Shared    int    // bytes of dynamic shared memory of a block
	Arguments []tensor.Argument
	Cycles    float64 // clock cycles that a product is estimated to take, all chains together; 0 for other kernels
	Launch    int     // index of the launch whose work this is; the last of them if it does several launches' work

	// RowEnds is set for a kernel that takes rows of arguments. Arguments then holds len(RowEnds)
	// rows of equal length, and row i belongs to the blocks from RowEnds[i-1] to RowEnds[i]-1.
	RowEnds []int

	droppable *droppable // a result that need not be written, or nil
}

// Plan is the calls for a workload.
type Plan struct {
	// Step is the calls of a whole step. A call may do the work of several launches, and a launch
	// may have no call at all.
	Step []Call
	// Separate has, for each launch, the calls that compute only this launch, to the same bits.
	// They read and write the buffers where the workload placed them.
	Separate [][]Call
	// Scratch is the bytes of scratch memory that a chain needs.
	Scratch int
}

// scratchSlack bounds the scratch memory by which a step may exceed what launches on their own
// need: to 1/scratchSlack of that.
const scratchSlack = 8

// New plans a workload: its steps, each of its launches on its own, and the scratch memory that
// either needs.
func New(w tensor.Workload, t Target) (*Plan, error) {
	p := planner{Target: t}
	step, separate, err := p.planStep(w.Launches)
	if err != nil {
		return nil, err
	}
	plan := &Plan{Step: step, Scratch: w.Bytes[tensor.Scratch]}
	for i := range w.Launches {
		p.base, p.workspace = tensor.Align(w.Bytes[tensor.Scratch]), 0
		calls := separate[i](&p, &w.Launches[i])
		for k := range calls {
			calls[k].Launch = i
		}
		plan.Separate = append(plan.Separate, calls)
		plan.Scratch = max(plan.Scratch, p.base+p.workspace)
	}
	plan.Scratch = max(plan.Scratch, placeScratch(step, plan.Scratch+plan.Scratch/scratchSlack))
	return plan, nil
}

// Step returns only the calls of a step, each of whose scratch buffers has memory of its own.
func Step(launches []tensor.Launch, t Target) ([]Call, error) {
	p := planner{Target: t}
	calls, _, err := p.planStep(launches)
	return calls, err
}

// planStep returns the calls of a step, and for each launch the lowering that computes it on its
// own. Scratch buffers lie one behind the other, and the workspace behind them.
//
// It goes through the launches twice, because an earlier launch may do work that only a later one
// asks for: the kernel of a pooled convolution can write the packed copy that the next layer reads,
// and a call that reads a gradient anyway can leave its sum over each channel for the bias.
// The first pass notes which packed copies are requested and which launch first goes through each
// gradient; the second makes the calls.
func (p *planner) planStep(launches []tensor.Launch) (calls []Call, separate []lowering, err error) {
	for i := range launches {
		if err := checkCalls(&launches[i]); err != nil {
			return nil, nil, errors.Wrapf(err, "cuda: launch %s (%s)", launches[i].Kernel, launches[i].Label)
		}
		separate = append(separate, lower)
	}
	own, taken := separateScratch(launches)
	pooled := findPoolings(own)
	defer func() {
		p.copies, p.unpoolGrads, p.requested, p.firstPass, p.biasGradSums = nil, nil, nil, nil, nil
	}()
	p.requested, p.firstPass = map[*tensor.Buffer][]packSpec{}, map[*tensor.Buffer]int{}
	deferred := map[int]*biasGradSum{} // by the launches that have no calls in a step
	pass := func(visit func(launch int, calls []Call)) {
		p.base, p.workspace, p.copies, p.unpoolGrads = taken, 0, map[packKey]*tensor.Buffer{}, nil
		for i := range own {
			lowering := pooled[i]
			if lowering == nil {
				lowering = lower
			}
			if s := p.deferredSum(own, i); s != nil {
				deferred[i], p.biasGradSums = s, append(p.biasGradSums, s)
				continue
			}
			p.summedUnpool, p.launch = nil, i
			calls := p.materialize(lowering(p, &own[i]))
			p.invalidate(calls)
			visit(i, calls)
		}
	}
	pass(func(int, []Call) {})
	pass(func(i int, made []Call) {
		for _, c := range made {
			c.Launch = i
			calls = append(calls, c)
		}
		if u := p.summedUnpool; u != nil {
			separate[i] = func(p *planner, l *tensor.Launch) []Call { return u.separate(p, l, lower) }
		}
	})
	for i, s := range deferred {
		separate[i] = s.separate
	}
	dropUnread(calls)
	return fuseRows(calls, p), separate, checkSums(p.biasGradSums)
}
