package tensor

import "fmt"

// Arena says how often a buffer exists and how long its contents last.
type Arena uint8

// The three arenas.
const (
	Shared  Arena = iota // one copy for all chains: data sets, schedules
	Chain                // one copy per chain, kept from step to step: parameters, state, header
	Scratch              // one per chain at work, undefined as steps begin: activations, gradients
	arenas
)

// Workspaces is the arena of data kept between the calls of one launch. A GPU finds the memory
// itself; a schedule has none for it.
const Workspaces Arena = arenas

// String names the arena.
func (a Arena) String() string { return [...]string{"shared", "chain", "scratch", "workspace"}[a] }

// Alignment divides every buffer's offset, in bytes: a cache line, and enough for any vector load.
const Alignment = 64

// Align rounds bytes up to a multiple of Alignment.
func Align(bytes int) int { return (bytes + Alignment - 1) &^ (Alignment - 1) }

// Buffer is a region of an arena. Offset, in bytes from the arena's base, is set by the memory
// plan; until then it is -1.
type Buffer struct {
	Name     string
	Arena    Arena
	DType    DType
	Elements int
	Offset   int
}

// NewBuffer returns a buffer that has no place yet.
func NewBuffer(name string, arena Arena, dtype DType, elements int) *Buffer {
	return &Buffer{Name: name, Arena: arena, DType: dtype, Elements: elements, Offset: -1}
}

// Bytes is the buffer's size.
func (b *Buffer) Bytes() int { return b.Elements * b.DType.Size() }

// Overlaps reports whether two buffers share memory.
func (b *Buffer) Overlaps(o *Buffer) bool {
	return b.Arena == o.Arena && b.Offset < o.Offset+o.Bytes() && o.Offset < b.Offset+b.Bytes()
}

// String is "conv1.weight chain+4096 float32[1600]".
func (b *Buffer) String() string {
	return fmt.Sprintf("%s %s+%d %s[%d]", b.Name, b.Arena, b.Offset, b.DType, b.Elements)
}
