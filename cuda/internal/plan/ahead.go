package plan

import (
	"math"

	"github.com/pollen-ml/pollen/tensor"
)

// A step begins by gathering its minibatch, for which it needs the number of the step. The step
// before it increments that number when everything else is done. So in a CUDA graph of several
// steps every step would begin with three small calls that wait for each other: the record of the
// step before, gathering, and the first layer.
//
// Instead, a call of each step writes a copy of the header with the number of the next step, and
// the calls that need nothing else from the steps before read that copy, ahead of the next step.
// They only wait until what they overwrite has been read for the last time.

// nextHeader is the kernel that writes a header with the number of the next step.
const nextHeader = "next_header"

// Ahead describes the calls of a step that may run before the preceding step has ended.
type Ahead struct {
	Calls []bool // for each call of a step, whether it may be made ahead
	Last  int    // the last of them; -1 if there is none
	Next  Call   // the call that writes the next step's header; its place is after call Last

	header, next *tensor.Buffer
}

// of returns a call as it is made ahead of the next step: it reads the copy of the header.
func (a *Ahead) of(c Call) Call {
	arguments := c.Arguments
	c.Arguments = nil
	for _, argument := range arguments {
		if argument.Buffer == a.header {
			argument.Buffer = a.next
		}
		c.Arguments = append(c.Arguments, argument)
	}
	return c
}

// findAhead returns which calls of a step may be made ahead. Such calls read only the header, data
// that all chains share and no call writes, and scratch memory that only such calls have written.
// They write only to scratch memory.
func findAhead(calls []Call, header *tensor.Buffer) *Ahead {
	a := &Ahead{Calls: make([]bool, len(calls)), Last: -1, header: header}
	if header == nil {
		return a
	}
	for i, c := range calls {
		if a.Calls[i] = c.RowEnds == nil && a.mayRead(calls, i); a.Calls[i] {
			a.Last = i
		}
	}
	if a.Last < 0 {
		return a
	}
	a.next = tensor.NewBuffer("next header", tensor.Scratch, header.DType, header.Elements)
	a.next.Offset = math.MaxInt / 2 // until it is placed
	a.Next = Call{
		Symbol: nextHeader, Blocks: [2]int{1, 1}, Threads: warp, Launch: calls[a.Last].Launch,
		Arguments: []tensor.Argument{tensor.Out(a.next), tensor.In(header)},
	}
	return a
}

// Steps calls visit for each call of n consecutive steps, in sequence. It passes a call of a step,
// as it is made for that step, and its index in calls; or Next and -1.
func (a *Ahead) Steps(calls []Call, n int, visit func(c Call, number int)) {
	for step := range n {
		for i, c := range calls {
			if step > 0 && a.Calls[i] {
				c = a.of(c)
			}
			visit(c, i)
			if i == a.Last && step < n-1 {
				visit(a.Next, -1)
			}
		}
	}
}

// mayRead reports whether a call may run before the step that it belongs to. It must read only data
// that is ready then, and write only scratch memory.
func (a *Ahead) mayRead(calls []Call, i int) bool {
	reads := false
	for _, argument := range calls[i].Arguments {
		b := argument.Buffer
		switch {
		case b == nil:
		case b == a.header:
			if reads = true; argument.Access != tensor.Read {
				return false
			}
		case argument.Access&tensor.Write != 0 && b.Arena != tensor.Scratch:
			return false
		case argument.Access&tensor.Read != 0 && !a.isReady(calls, i, b):
			return false
		default:
			reads = reads || argument.Access&tensor.Read != 0 && b.Arena == tensor.Scratch
		}
	}
	return reads
}

// isReady reports whether a buffer that call i reads has its contents ahead of the step.
func (a *Ahead) isReady(calls []Call, i int, b *tensor.Buffer) bool {
	written := false
	for k, c := range calls {
		for _, argument := range c.Arguments {
			if argument.Buffer == nil || argument.Access&tensor.Write == 0 || !argument.Buffer.Overlaps(b) {
				continue
			}
			if b.Arena != tensor.Scratch || k < i && !a.Calls[k] {
				return false
			}
			written = written || k < i
		}
	}
	return b.Arena == tensor.Shared || b.Arena == tensor.Scratch && written
}

// place places the next step's header in the scratch arena, at offset or after it, and returns the
// offset of its end.
func (a *Ahead) place(offset int) int {
	if a.Last < 0 {
		return offset
	}
	a.next.Offset = tensor.Align(offset)
	return a.next.Offset + tensor.Align(a.next.Bytes())
}
