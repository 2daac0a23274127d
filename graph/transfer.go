package graph

import (
	"unsafe"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor"
)

// Write sets values of a chain's input, starting at element first, so that a large input can be
// written in parts. Inputs made by Builder.Data are shared by all chains: their chain is 0. T must
// be the input's type. The values are copied.
func Write[T tensor.Element](s *Session, name string, chain, first int, values []T) error {
	if !s.program.isInput(name) && s.program.isOutput(name) {
		return errors.Errorf("graph: %s: an output cannot be written, only an input", name)
	}
	return transfer(s, name, chain, first, values, s.runner.Write)
}

// Read fills values from a chain's input or output, starting at element first. T must be its type.
// Outputs have the values of the last step.
func Read[T tensor.Element](s *Session, name string, chain, first int, values []T) error {
	return transfer(s, name, chain, first, values, s.runner.Read)
}

func transfer[T tensor.Element](s *Session, name string, chain, first int, values []T,
	move func(b *tensor.Buffer, chain, first int, bytes []byte) error,
) error {
	t, err := s.program.Tensor(name)
	if err != nil {
		return err
	}
	if want := tensor.DTypeOf[T](); t.DType != want {
		return errors.Errorf("graph: %s: the values must be of %v, got %v", name, t.DType, want)
	}
	if n := t.Shape.Elements(); first < 0 || first > n || len(values) > n-first {
		return errors.Errorf("graph: %s: the values must be within its %d elements, got %d from element %d on", name, n, len(values), first)
	}
	return errors.Wrapf(move(t.buffer, chain, first, tensor.Bytes(values)), "graph: %s", name)
}

// ReadFloats fills values with the first elements of an input or output, converted from either
// float type.
func (s *Session) ReadFloats(name string, chain int, values []float32) error {
	if s.program.holdsFloat32(name) {
		return Read(s, name, chain, 0, values)
	}
	wide := make([]float64, len(values))
	err := Read(s, name, chain, 0, wide)
	copy(values, tensor.Convert[float32](wide))
	return err
}

// WriteFloats sets the first elements of an input to values, converted to either float type.
func (s *Session) WriteFloats(name string, chain int, values []float32) error {
	if s.program.holdsFloat32(name) {
		return Write(s, name, chain, 0, values)
	}
	return Write(s, name, chain, 0, tensor.Convert[float64](values))
}

// ChainBytes returns the size of the state that Save and Restore copy.
func (s *Session) ChainBytes() int { return s.chainArena.Bytes() }

// Save copies everything that a chain keeps from step to step, its header included, into state,
// whose length must be ChainBytes. The copy includes the ring of metrics but no shared inputs:
// data must be written again into a new session.
func (s *Session) Save(chain int, state []byte) error {
	if len(state) != s.ChainBytes() {
		return errors.Errorf("graph: save: the state must have %d bytes, got %d", s.ChainBytes(), len(state))
	}
	return s.runner.Read(s.chainArena, chain, 0, state)
}

// Restore sets a chain to the state that Save copied, after the given number of steps, with the
// metrics of the last of them. The chain continues with the same bits as if it had not been
// interrupted.
func (s *Session) Restore(chain int, state []byte, steps uint64) error {
	if len(state) != s.ChainBytes() {
		return errors.Errorf("graph: restore: the state must have %d bytes, got %d: it is of another program", s.ChainBytes(), len(state))
	}
	if err := s.runner.Write(s.chainArena, chain, 0, state); err != nil {
		return err
	}
	if s.step, s.shifts[chain] = steps, 0; s.rings == nil {
		return nil
	}
	return s.readRing(chain)
}

// view returns bytes as floats, without a copy. raw must be aligned for T.
func view[T tensor.FloatElement](raw []byte) []T {
	var zero T
	if len(raw) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&raw[0])), len(raw)/int(unsafe.Sizeof(zero)))
}
