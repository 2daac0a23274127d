package random

import "github.com/pkg/errors"

// Limits of an address. Chain may be any uint32.
const (
	// MaxStep is the largest step (or epoch), 2^48 - 1.
	MaxStep = 1<<48 - 1
	// MaxElements is the length of a stream, 2^34.
	MaxElements = 1 << 34
	// OrderStream is reserved: orders take their keys from it.
	OrderStream = 1<<16 - 1
)

// Address names one stream of random numbers. Different addresses never share a Philox input (key
// and counter), and neither do two quads of one address: the layout (see Key and Counter) is
// injective.
type Address struct {
	Seed   uint64 // seed of the run
	Chain  uint32 // number of the Markov chain within the run
	Step   uint64 // training step, at most MaxStep
	Stream uint16 // purpose within the step (a parameter's noise, a dropout mask), below OrderStream
}

// Validate returns an error if the step or the stream is out of range. Programs call it on
// addresses from outside; the drawing functions panic on an invalid address.
func (a Address) Validate() error {
	if a.Step > MaxStep {
		return errors.Errorf("random: address: Step must be at most %d, got %d", uint64(MaxStep), a.Step)
	}
	if a.Stream == OrderStream {
		return errors.Errorf("random: address: Stream must be below %d, which is reserved for orders, got %d", OrderStream, a.Stream)
	}
	return nil
}

// Key returns the Philox key:
//
//	key[0] = seed bits  0..31
//	key[1] = seed bits 32..63
func (a Address) Key() [2]uint32 {
	return [2]uint32{uint32(a.Seed), uint32(a.Seed >> 32)}
}

// Counter returns the Philox counter of a quad, which holds elements 4*quad to 4*quad+3 of the
// stream:
//
//	counter[0]             = quad
//	counter[1]             = step bits  0..31
//	counter[2] bits  0..15 = step bits 32..47
//	counter[2] bits 16..31 = stream
//	counter[3]             = chain
func (a Address) Counter(quad uint32) [4]uint32 {
	return [4]uint32{quad, uint32(a.Step), uint32(a.Step>>32)&0xffff | uint32(a.Stream)<<16, a.Chain}
}

// mustContain panics, like an index out of range, unless the address is valid and [first,
// first+count) lies within a stream.
func (a Address) mustContain(first, count int) {
	if err := a.Validate(); err != nil {
		panic(err)
	}
	if first < 0 || uint64(first)+uint64(count) > MaxElements {
		panic(errors.Errorf("random: elements must lie in [0, %d), got [%d, %d+%d)", uint64(MaxElements), first, first, count))
	}
}
