package plan

import (
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/tensor"
)

// TestFindAhead: calls may be made ahead of a step if they need only the header from the preceding
// step.
func TestFindAhead(t *testing.T) {
	offset := 0
	buffer := func(arena tensor.Arena) *tensor.Buffer {
		b := tensor.NewBuffer("b", arena, tensor.Uint64, 8)
		b.Offset, offset = offset, offset+tensor.Align(b.Bytes())
		return b
	}
	header, weights := buffer(tensor.Chain), buffer(tensor.Chain)
	images, store := buffer(tensor.Shared), buffer(tensor.Shared)
	x, augmented, y, noise, mixed := buffer(tensor.Scratch), buffer(tensor.Scratch), buffer(tensor.Scratch), buffer(tensor.Scratch), buffer(tensor.Scratch)
	in, out := tensor.In, tensor.Out
	var calls []Call
	var want []bool
	add := func(ahead bool, arguments ...tensor.Argument) {
		calls, want = append(calls, Call{Symbol: "c", Blocks: [2]int{1, 1}, Threads: 32, Arguments: append(arguments, tensor.Int(1))}), append(want, ahead)
	}
	add(true, out(x), in(images), in(header))           // gathers
	add(true, out(augmented), in(x), in(header))        // augments the gathered images
	add(false, out(y), in(augmented), in(weights))      // a layer
	add(false, out(mixed), in(y), in(header))           // of the layer's result
	add(false, out(mixed), in(store), in(header))       // of data that the step changes
	add(true, out(noise), in(header))                   // noise
	add(false, tensor.InOut(weights), in(noise))        // an update
	add(false, tensor.InOut(store), in(y), in(header))  // writes data
	add(false, out(weights), in(header))                // writes a chain's state
	add(false, tensor.InOut(header), in(y), in(header)) // the end of the step
	a := findAhead(calls, header)
	if !slices.Equal(a.Calls, want) || a.Last != 5 {
		t.Errorf("ahead are %v, the last is %d, want %v", a.Calls, a.Last, want)
	}
	if end := a.place(100); end <= 100 || a.Next.Arguments[0].Buffer.Offset < 100 {
		t.Errorf("the next header is at %d of %d", a.Next.Arguments[0].Buffer.Offset, end)
	}
	if c := a.of(calls[0]); c.Arguments[2].Buffer != a.Next.Arguments[0].Buffer || calls[0].Arguments[2].Buffer != header {
		t.Error("a call ahead must read the next header, and the step's own call the header")
	}
	var sequence []int
	a.Steps(calls[:6], 2, func(_ Call, number int) { sequence = append(sequence, number) })
	if want := []int{0, 1, 2, 3, 4, 5, -1, 0, 1, 2, 3, 4, 5}; !slices.Equal(sequence, want) {
		t.Errorf("two steps are %v, want %v", sequence, want)
	}
	if a := findAhead(calls, nil); a.Last != -1 || a.place(100) != 100 {
		t.Error("without a header no call is ahead")
	}
}
