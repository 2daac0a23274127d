package graph

import (
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor"
)

// checkLaunches returns an error if no launch writes v's output, which would then have the old
// contents of its memory, or if the calls of a launch are wrong. Both are mistakes in an op's
// Lower, and would otherwise show only as wrong numbers.
func checkLaunches(v *value, launches []tensor.Launch) error {
	written := false
	for i := range launches {
		if err := checkCalls(&launches[i]); err != nil {
			return err
		}
		written = written || slices.ContainsFunc(launches[i].Arguments, func(a tensor.Argument) bool {
			return a.Buffer == v.buffer && a.Access&tensor.Write != 0
		})
	}
	if !written {
		return errors.Errorf("graph: %s: %s: Lower emits no launch that writes the output, Out()", v.label, v.op.Name())
	}
	return nil
}

// checkCalls compares the calls of a launch, which a GPU runs, with the launch's arguments, which
// determine the memory plan and the order of launches. A call must not touch a buffer that is not
// an argument, nor write one that is only read; together the calls must write every argument that
// the launch declares as written. The host runs the launch as one function, so tests on a CPU would
// not notice such a mistake.
func checkCalls(l *tensor.Launch) error {
	if len(l.Calls) == 0 {
		return errors.Errorf("graph: launch %s (%s) must have at least one call for a GPU, got none", l.Kernel, l.Label)
	}
	access, written := map[*tensor.Buffer]tensor.Access{}, map[*tensor.Buffer]bool{}
	if err := checkIntegers(l.Arguments); err != nil {
		return errors.Wrapf(err, "graph: %s", l.Label)
	}
	for _, a := range l.Arguments {
		if a.Buffer != nil {
			access[a.Buffer] |= a.Access
		}
	}
	for _, c := range l.Calls {
		if c.Grid == nil {
			return errors.Errorf("graph: launch %s (%s): call %s has no grid", l.Kernel, l.Label, c.Kernel)
		}
		if err := checkIntegers(c.Arguments); err != nil {
			return errors.Wrapf(err, "graph: %s", l.Label)
		}
		if err := checkAccess(c, access, written); err != nil {
			return errors.Wrapf(err, "graph: launch %s (%s): call %s", l.Kernel, l.Label, c.Kernel)
		}
	}
	for b, a := range access {
		if a&tensor.Write != 0 && !written[b] {
			return errors.Errorf("graph: launch %s (%s): no call writes %v", l.Kernel, l.Label, b)
		}
	}
	return nil
}

// checkIntegers returns an error if an integer, usually a number of elements, does not fit into the
// 32 bits of a kernel's argument.
func checkIntegers(arguments []tensor.Argument) error {
	for _, a := range arguments {
		if a.Kind == tensor.OverflowKind {
			return errors.Errorf("sizes must be at most %d, got %d", math.MaxInt32, int64(a.Bits))
		}
	}
	return nil
}

// checkAccess compares the buffers of a call with the access that its launch declares and, for
// workspaces, with the writes of earlier calls. Workspaces are memory that only the calls of one
// launch share; they are not among the launch's arguments.
func checkAccess(c tensor.Call, access map[*tensor.Buffer]tensor.Access, written map[*tensor.Buffer]bool) error {
	for i, a := range c.Arguments {
		b := a.Buffer
		if b == nil {
			continue
		}
		writes := a.Access&tensor.Write != 0
		switch of, known := access[b]; {
		case b.Arena == tensor.Workspaces && !writes && !written[b]:
			return errors.Errorf("argument %d is a workspace that no earlier call has written", i)
		case b.Arena == tensor.Workspaces:
		case !known:
			return errors.Errorf("argument %d, %v, is not an argument of the launch", i, b)
		case writes && of&tensor.Write == 0:
			return errors.Errorf("argument %d, %v, is written, and the launch only reads it", i, b)
		}
	}
	for _, a := range c.Arguments {
		if a.Buffer != nil && a.Access&tensor.Write != 0 {
			written[a.Buffer] = true
		}
	}
	return nil
}
