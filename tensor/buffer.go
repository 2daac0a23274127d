package tensor

import "fmt"

// Arena determines how many copies of a buffer exist and how long its contents last.
type Arena uint8

// The three arenas.
const (
	Shared  Arena = iota // one copy for all chains: data sets, schedules
	Chain                // one copy per chain, kept from step to step: parameters, state, header
	Scratch              // one copy per running chain, undefined when a step starts: activations, gradients
	arenas
)

// Workspaces is the arena of data that the calls of one launch pass to each other. A GPU allocates
// the memory itself; a Workload has no size for it.
const Workspaces Arena = arenas

// String returns the arena's name.
func (a Arena) String() string { return [...]string{"shared", "chain", "scratch", "workspace"}[a] }

// Alignment divides every buffer's offset. 64 bytes are a cache line and suffice for any vector
// load.
const Alignment = 64

// Align rounds bytes up to a multiple of Alignment.
func Align(bytes int) int { return (bytes + Alignment - 1) &^ (Alignment - 1) }

// Buffer is a region of an arena. Offset counts bytes from the start of a copy of the arena; the
// memory plan sets it, and until then it is -1.
type Buffer struct {
	Name     string
	Arena    Arena
	DType    DType
	Elements int
	Offset   int
}

// NewBuffer returns a buffer without a place: its Offset is -1.
func NewBuffer(name string, arena Arena, dtype DType, elements int) *Buffer {
	return &Buffer{Name: name, Arena: arena, DType: dtype, Elements: elements, Offset: -1}
}

// Bytes returns the size of the buffer.
func (b *Buffer) Bytes() int { return b.Elements * b.DType.Size() }

// Overlaps reports whether two buffers share memory.
func (b *Buffer) Overlaps(o *Buffer) bool {
	return b.Arena == o.Arena && b.Offset < o.Offset+o.Bytes() && o.Offset < b.Offset+b.Bytes()
}

// String returns, for example, "conv1.weight chain+4096 float32[1600]".
func (b *Buffer) String() string {
	return fmt.Sprintf("%s %s+%d %s[%d]", b.Name, b.Arena, b.Offset, b.DType, b.Elements)
}
