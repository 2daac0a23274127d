package tensor

import (
	"fmt"
	"runtime"

	"github.com/pkg/errors"
)

// hugePageBytes is the size of a huge page on amd64, and on arm64 with base pages of 4 KiB.
const hugePageBytes = 2 << 20

// OutOfMemory is the error that Load returns if the system has no memory for a workload.
type OutOfMemory struct {
	Device string
	Bytes  int // of the allocation that failed
}

// Error implements error.
func (e *OutOfMemory) Error() string {
	return fmt.Sprintf("tensor: %s: the system has no %.1f MB of memory for the arenas", e.Device, float64(e.Bytes)/1e6)
}

// Footprint is the memory in bytes that loading a workload takes: of the host and, for other
// devices, of the device.
type Footprint struct{ Host, Device int }

// Sizer is a Device that can report how much memory a workload takes before it is loaded.
type Sizer interface {
	// Size returns the memory that Load allocates for a workload.
	Size(w Workload) (Footprint, error)
	// Free returns how much memory the device has free; math.MaxInt if it has no memory of its own.
	Free() (bytes int, err error)
}

// SizeOn returns the memory that loading a workload on a device takes. For a device that does not
// implement Sizer, it returns the size of the arenas, with one Scratch for all chains.
func SizeOn(device Device, w Workload) (Footprint, error) {
	if s, ok := device.(Sizer); ok {
		return s.Size(w)
	}
	copies := w.Chains
	if w.Keeps {
		copies *= 2
	}
	return Footprint{Host: w.Bytes[Shared] + copies*w.Bytes[Chain] + w.Bytes[Scratch]}, nil
}

// memory allocates the arenas of a runner, and frees them together. Where the system supports it,
// large blocks are mapped outside of Go's heap. A failure is then an error instead of the end of
// the program, and the arenas do not raise the amount of garbage at which the collector starts.
type memory struct {
	mapped *[][]byte
	failed int // bytes of the first block that could not be allocated; 0 if none
}

// newMemory returns a memory that is freed when owner is unreachable, if free was not called
// before.
func newMemory[T any](owner *T) memory {
	m := memory{mapped: new([][]byte)}
	runtime.AddCleanup(owner, func(mapped *[][]byte) { unmapAll(mapped) }, m.mapped)
	return m
}

// free returns the memory to the system. Slices of it must not be used afterwards.
func (m *memory) free() {
	if m.mapped != nil {
		unmapAll(m.mapped)
	}
}

func unmapAll(mapped *[][]byte) {
	for _, block := range *mapped {
		unmapBlock(block)
	}
	*mapped = nil
}

// err returns the error of the allocations so far.
func (m *memory) err(device string) error {
	if m.failed == 0 {
		return nil
	}
	return errors.WithStack(&OutOfMemory{device, m.failed})
}

// slices returns n zeroed slices of the given size, aligned like the result of bytes, from one
// allocation.
func (m *memory) slices(n, bytes int) [][]byte {
	each := Align(bytes)
	all := m.bytes(n * each)
	many := make([][]byte, n)
	for i := range many {
		if all != nil {
			many[i] = all[i*each:][:bytes:bytes]
		}
	}
	return many
}

// bytes returns zeroed memory that starts at a multiple of Alignment, or nil if there is none.
// Memory of at least hugePageBytes starts on a huge page and asks the system for huge pages:
// kernels sweep many megabytes in each step, and with base pages of 4 KiB these have more page
// table entries than the TLB holds.
func (m *memory) bytes(n int) []byte {
	if n < hugePageBytes {
		return aligned(make([]byte, n+Alignment), n, Alignment)
	}
	if m.failed > 0 {
		return nil
	}
	raw, err := mapBlock(n + hugePageBytes)
	if err != nil {
		m.failed = n
		return nil
	}
	if isMapped {
		*m.mapped = append(*m.mapped, raw)
	}
	block := aligned(raw, n, hugePageBytes)
	adviseHugePages(block)
	return block
}

// aligned returns the n bytes of raw that start at a multiple of alignment.
func aligned(raw []byte, n, alignment int) []byte {
	skip := (alignment - int(addressOf(raw)%uintptr(alignment))) % alignment
	return raw[skip : skip+n : skip+n]
}
