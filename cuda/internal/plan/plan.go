package plan

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor"
)

// Plan has the calls for a workload.
type Plan struct {
	// Step has the calls of a whole step. A call may do the work of several launches, and a launch
	// may have no call at all.
	Step []Call
	// Separate has, for each launch, the calls that compute only this launch, with the same bits.
	// They read and write the buffers where the workload placed them.
	Separate [][]Call
	// Ahead describes the calls of Step that may run before the preceding step has ended.
	Ahead *Ahead
	// Scratch is the number of bytes of scratch memory that a chain needs.
	Scratch int
}

// scratchSlack limits the scratch memory that a step may use beyond the need of separate launches,
// to 1/scratchSlack of that need.
const scratchSlack = 8

// New plans a workload: its steps, each of its launches on its own, and the scratch memory that
// either needs.
func New(w tensor.Workload, t Target) (*Plan, error) {
	step, separate, err := planStep(w.Launches, t)
	if err != nil {
		return nil, err
	}
	plan := &Plan{Step: step, Ahead: findAhead(step, w.Header), Scratch: w.Bytes[tensor.Scratch]}
	for i := range w.Launches {
		p := &planner{Target: t, base: tensor.Align(w.Bytes[tensor.Scratch])}
		calls := separate[i](p, &w.Launches[i])
		for k := range calls {
			calls[k].Launch = i
		}
		plan.Separate = append(plan.Separate, calls)
		plan.Scratch = max(plan.Scratch, p.base+p.workspace)
	}
	plan.Scratch = max(plan.Scratch, placeScratch(step, plan.Scratch+plan.Scratch/scratchSlack, plan.Ahead))
	plan.Scratch = plan.Ahead.place(plan.Scratch)
	return plan, nil
}

// Step returns only the calls of a step. Their scratch buffers do not share memory.
func Step(launches []tensor.Launch, t Target) ([]Call, error) {
	calls, _, err := planStep(launches, t)
	return calls, err
}

// planStep returns the calls of a step, and for each launch the lowering that computes it on its
// own. The scratch buffers are placed one after the other, followed by the workspace.
//
// It goes through the launches twice, because an earlier launch may do work that only a later one
// requests: the kernel of a pooled convolution can write the packed copy that the next layer reads,
// and a call that reads a gradient anyway can sum it over each channel for the bias. The first pass
// notes which packed copies are requested, which launch first goes through each gradient, and which
// gathered images are read; the second makes the calls.
func planStep(launches []tensor.Launch, t Target) (calls []Call, separate []lowering, err error) {
	for i := range launches {
		if err := checkCalls(&launches[i]); err != nil {
			return nil, nil, errors.Wrapf(err, "cuda: launch %s (%s)", launches[i].Kernel, launches[i].Label)
		}
		separate = append(separate, lower)
	}
	own, taken := separateScratch(launches)
	pooled := findPoolings(own, separate)
	addGradMasks(own, pooled)
	p := &planner{
		Target: t, requested: map[*tensor.Buffer][]packSpec{}, firstPass: map[*tensor.Buffer]int{}, keptImages: map[*tensor.Buffer]bool{},
	}
	deferred := map[int]*biasGradSum{} // by the launches that have no calls in a step
	pass := func(visit func(launch int, calls []Call)) {
		p.base, p.workspace, p.copies, p.unpoolGrads, p.gathers = taken, 0, map[packKey]*tensor.Buffer{}, nil, map[*tensor.Buffer]*gathered{}
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
			calls := p.noteGathers(&own[i], p.materialize(lowering(p, &own[i])))
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
	return fuseRows(fuseHeads(calls, p), p), separate, checkSums(p.biasGradSums)
}
