package graph

import (
	"unsafe"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor"
)

// Write sets an input's values, from element first on. Data is shared by all chains: chain is 0 for
// it.
func Write[T tensor.Element](s *Session, name string, chain, first int, values []T) error {
	return transfer(s, name, chain, first, values, s.runner.Write)
}

// Read gets the values of an input or output, from element first on.
func Read[T tensor.Element](s *Session, name string, chain, first int, values []T) error {
	return transfer(s, name, chain, first, values, s.runner.Read)
}

func transfer[T tensor.Element](s *Session, name string, chain, first int, values []T,
	move func(b *tensor.Buffer, chain, first int, bytes []byte) error,
) error {
	t, err := s.program.find(name)
	if err != nil {
		return err
	}
	if want := tensor.DTypeOf[T](); t.DType != want {
		return errors.Errorf("graph: %s holds %v, got %v", name, t.DType, want)
	}
	return errors.Wrapf(move(t.buffer, chain, first, tensor.Bytes(values)), "graph: %s", name)
}

// ReadFloats gets all values of an input or output of either float type.
func (s *Session) ReadFloats(name string, chain int, values []float32) error {
	if s.program.holdsFloat32(name) {
		return Read(s, name, chain, 0, values)
	}
	wide := make([]float64, len(values))
	err := Read(s, name, chain, 0, wide)
	copy(values, toFloat32(wide))
	return err
}

// WriteFloats sets all values of an input of either float type.
func (s *Session) WriteFloats(name string, chain int, values []float32) error {
	if s.program.holdsFloat32(name) {
		return Write(s, name, chain, 0, values)
	}
	wide := make([]float64, len(values))
	for i, v := range values {
		wide[i] = float64(v)
	}
	return Write(s, name, chain, 0, wide)
}

// ChainBytes is the size of what Save and Restore move.
func (s *Session) ChainBytes() int { return s.chainArena.Bytes() }

// Save copies all that a chain keeps from step to step, its step number included, into state.
func (s *Session) Save(chain int, state []byte) error {
	if len(state) != s.ChainBytes() {
		return errors.Errorf("graph: save: %d bytes, wants %d", len(state), s.ChainBytes())
	}
	return s.runner.Read(s.chainArena, chain, 0, state)
}

// Restore returns a chain to what it was when Save filled state; steps is the number of steps made
// by then. The run continues bit for bit.
func (s *Session) Restore(chain int, state []byte, steps uint64) error {
	if len(state) != s.ChainBytes() {
		return errors.Errorf("graph: restore: %d bytes, wants %d: the state is another program's", len(state), s.ChainBytes())
	}
	s.step = steps
	return s.runner.Write(s.chainArena, chain, 0, state)
}

func view[T tensor.FloatElement](raw []byte) []T {
	var zero T
	if len(raw) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&raw[0])), len(raw)/int(unsafe.Sizeof(zero)))
}
