package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pollen-ml/pollen/tensor"
)

// head is the end of a classifier's forward pass and the beginning of its backward pass: four small
// calls, each waiting for the one before it. One kernel can replace them, with the same bits, and
// each of its blocks computes some rows of the batch (kernels/head.cu).
//
//	slices_f32                      h, the sum of slices, with bias and ReLU; may be missing
//	matmul_thin_dots_16x1_f32       logits = h transpose(w) + bias
//	cross_entropy_bwd_f32           dlogits, the gradient of the logits
//	matmul_thin_shallow_16x1_f32    dh = dlogits w, 0 where h is not positive
//
// headAt recognizes a head by these calls and their operands. The kernel writes all their results.
type head struct {
	sum                          int // the calls' indices; sum is -1 without slices
	dots, loss, shallow          int
	batch, width, classes, parts int
}

const (
	headThreads  = 256
	headShared   = 96 << 10 // a block's shared memory, at most
	headResident = 2
)

// headRows are the numbers of rows per block to choose from.
var headRows = []int{1, 2, 4, 8, 16}

// headCycles is the latency of a row's dependent exchanges, exponentials and divisions, without the
// instructions of other rows. cyclesPerHeadBlock is the time for a block to begin and end; force.go
// changes it.
const headCycles = 3000.0

var cyclesPerHeadBlock = 1500.0

// fuseHeads replaces the calls of each head by one where that is not slower.
func fuseHeads(calls []Call, p *planner) []Call {
	for i := 0; i < len(calls); i++ {
		h := headAt(calls, i)
		if h == nil {
			continue
		}
		if !h.canMove(newDependencies(calls, 1)) {
			continue
		}
		fused, cost := h.fused(calls, p)
		if !(cost < h.separateCost(calls, p)) {
			continue
		}
		members := h.members()
		rest := slices.Clone(calls[:members[0]])
		rest = append(rest, fused)
		for k := members[0] + 1; k < len(calls); k++ {
			if !slices.Contains(members, k) {
				rest = append(rest, calls[k])
			}
		}
		calls, i = rest, members[0]
	}
	return calls
}

// headAt returns the head whose loss is call i, or nil.
func headAt(calls []Call, i int) *head {
	if calls[i].Symbol != "cross_entropy_bwd_f32" {
		return nil
	}
	a := calls[i].Arguments
	dlogits, logits := a[0].Buffer, a[1].Buffer
	h := &head{sum: -1, loss: i, batch: intValue(a[4]), classes: intValue(a[5])}
	h.dots = writerBefore(calls, i, logits)
	if h.dots < 0 || h.classes > maxThin {
		return nil
	}
	dots, ok := thinCallOf(calls[h.dots], thinDots)
	h.width, h.parts = dots.depth, dots.parts
	if !ok || dots.out != logits || dots.transposed != [2]int{0, 1} || dots.rows != h.batch || dots.columns != h.classes ||
		dots.epilogue&^epilogueBiasColumn != 0 {
		return nil
	}
	h.shallow = slices.IndexFunc(calls[i:], func(c Call) bool {
		shallow, ok := thinCallOf(c, thinShallow)
		plain := shallow.epilogue == 0 || shallow.epilogue == epilogueMask && shallow.bias == dots.a
		return ok && plain && shallow.a == dlogits && shallow.b == dots.b && shallow.transposed == [2]int{} &&
			shallow.rows == h.batch && shallow.columns == h.width && shallow.depth == h.classes
	})
	if h.shallow < 0 {
		return nil
	}
	h.shallow += i
	if sum := writerBefore(calls, h.dots, dots.a); sum >= 0 && h.canSum(calls[sum], dots.a) {
		h.sum = sum
	}
	return h
}

// writerBefore returns the last call before call i that writes to a buffer, or -1.
func writerBefore(calls []Call, i int, b *tensor.Buffer) int {
	for i--; i >= 0; i-- {
		if calls[i].writes(b) {
			return i
		}
	}
	return -1
}

// thinCall has the arguments of a thin product's call (lowerThin).
type thinCall struct {
	out, a, b, bias      *tensor.Buffer
	rows, columns, depth int
	transposed           [2]int
	epilogue, parts      int
}

func thinCallOf(c Call, kind thinKind) (t thinCall, ok bool) {
	if !strings.HasPrefix(c.Symbol, fmt.Sprintf("matmul_thin_%s_", kind)) {
		return t, false
	}
	a := c.Arguments
	n := func(i int) int { return intValue(a[i]) }
	return thinCall{
		out: a[0].Buffer, a: a[1].Buffer, b: a[2].Buffer, bias: a[3].Buffer, rows: n(4), columns: n(5), depth: n(6),
		transposed: [2]int{n(7), n(8)}, epilogue: n(9), parts: n(11),
	}, true
}

// canSum reports whether a call adds the slices of the activations h in a way that the kernel can:
// with a bias per column and a ReLU at most.
func (h *head) canSum(c Call, activations *tensor.Buffer) bool {
	if c.Symbol != "slices_f32" || c.Arguments[0].Buffer != activations {
		return false
	}
	elements, inner, count, epilogue := intValue(c.Arguments[4]), intValue(c.Arguments[6]), intValue(c.Arguments[7]), intValue(c.Arguments[8])
	columns := epilogue&epilogueBiasColumn == 0 || inner == 1 && count == h.width
	return elements == h.batch*h.width && columns && epilogue&^(epilogueBiasColumn|epilogueReLU) == 0
}

// members returns the indices of the head's calls, in sequence.
func (h *head) members() []int {
	if h.sum < 0 {
		return []int{h.dots, h.loss, h.shallow}
	}
	return []int{h.sum, h.dots, h.loss, h.shallow}
}

// canMove reports whether all calls of the head may be made where its first call is: none of them
// may follow a call in between that is not of the head.
func (h *head) canMove(d *dependencies) bool {
	members := h.members()
	for _, m := range members[1:] {
		for between := members[0] + 1; between < m; between++ {
			if d.all[m].has(between) && !slices.Contains(members, between) {
				return false
			}
		}
	}
	return true
}

// shared is a block's shared memory if it computes rows rows at a time: the weights, the rows of h,
// and for each row dlogits and the parts of the dot products.
func (h *head) shared(rows, maxClasses int) int {
	const chunk = 16
	return chunk*(ceilDiv(4*h.classes*h.width, chunk)+ceilDiv(4*rows*h.width, chunk)) + 4*rows*maxClasses*(1+h.parts)
}

// fused returns the call of the kernel, and its cycles. The number of rows per block does not
// change the bits.
func (h *head) fused(calls []Call, p *planner) (c Call, least float64) {
	maxClasses := maxThin
	if h.classes <= maxThin/2 {
		maxClasses = maxThin / 2
	}
	dots, loss, shallow := calls[h.dots].Arguments, calls[h.loss].Arguments, calls[h.shallow].Arguments
	activations := dots[1]
	written, from, bias, slicesOf, epilogue := activations, activations, activations, 0, 0
	if h.sum >= 0 {
		a := calls[h.sum].Arguments
		written, from, bias, slicesOf, epilogue = a[0], a[1], a[2], intValue(a[5]), intValue(a[8])
	}
	rows := 0
	least = math.Inf(1)
	for _, r := range headRows {
		if r > headThreads/maxClasses || h.shared(r, maxClasses) > min(headShared, p.Shared) {
			continue
		}
		if cost := h.cost(p, r, slicesOf, maxClasses); cost < least {
			rows, least = r, cost
		}
	}
	if rows == 0 {
		return c, least
	}
	c = Call{
		Symbol: fmt.Sprintf("head_%d_f32", maxClasses), Blocks: [2]int{ceilDiv(h.batch, rows), 1}, Threads: headThreads,
		Shared: h.shared(rows, maxClasses), Cycles: least,
		Arguments: []tensor.Argument{shallow[0], loss[0], dots[0], written, from, bias, dots[2], dots[3], loss[2], loss[3]},
	}
	for _, n := range []int{
		h.batch, h.width, h.classes, slicesOf, epilogue, intValue(dots[9]) & epilogueBiasColumn, intValue(shallow[9]) & epilogueMask, h.parts, rows,
	} {
		c.Arguments = append(c.Arguments, tensor.Int(n))
	}
	for _, m := range h.members() {
		c.Launch = max(c.Launch, calls[m].Launch)
	}
	return c, least
}

// issue estimates the cycles in which a multiprocessor issues the instructions for some rows of the
// batch, two in a cycle.
func (h *head) issue(rows, slicesOf, maxClasses int) float64 {
	warps := ceilDiv(h.width, warp)
	sum := warps * (12 + 4*slicesOf)
	dots := h.parts * ceilDiv(h.classes, 4) * (20 + 40*ceilDiv(h.width, thinDepths*h.parts))
	softmax := 140 * maxClasses / warp
	propagate := warps * (12 + 2*h.classes)
	return float64(rows*(sum+dots+softmax+propagate)) / 2
}

// cost estimates the cycles of the kernel. It is infinite if not all blocks are resident at once.
// The kernel's threads wait for each other most of the time, whereas the separate calls of many
// chains have enough work to fill the GPU: they took an H100 half of the time.
func (h *head) cost(p *planner, rows, slicesOf, maxClasses int) float64 {
	share := ceilDiv(ceilDiv(h.batch, rows)*p.Chains, max(1, p.Multiprocessors))
	if share > headResident && cyclesPerHeadBlock > 0 {
		return math.Inf(1)
	}
	bytes := float64(4 * h.width * (h.classes + rows*(2+slicesOf)))
	waits := headCycles + loadLatency*float64(1+ceilDiv(slicesOf, 16))
	return cyclesPerHeadBlock + waits + float64(share)*max(h.issue(rows, slicesOf, maxClasses), bytes/bytesPerCycle)
}

// separateCost estimates the cycles of the calls that the kernel replaces. The loss takes an H100
// 100 cycles for each row per multiprocessor.
func (h *head) separateCost(calls []Call, p *planner) float64 {
	cost := calls[h.dots].Cycles + calls[h.shallow].Cycles + 2*CyclesPerLaunch
	cost += cyclesPerThinBlock + loadLatency + 100*float64(h.batch*p.Chains)/float64(max(1, p.Multiprocessors))
	if h.sum >= 0 {
		n := intValue(calls[h.sum].Arguments[5])
		cost += split{slices: n, parallel: true}.sumCost(&product{rows: h.batch, columns: h.width}, p.Chains)
	}
	return cost
}
