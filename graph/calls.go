package graph

import (
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor"
)

// checkLaunches refuses launches that leave a value's output as the memory happened to be, or whose
// calls are wrong.
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

// checkCalls refuses a launch whose calls do not do what its arguments say: the memory plan and the
// order of launches rest on them.
func checkCalls(l *tensor.Launch) error {
	if len(l.Calls) == 0 {
		return errors.Errorf("graph: launch %s (%s) has no calls for a GPU, wants one at least", l.Kernel, l.Label)
	}
	access, written := map[*tensor.Buffer]tensor.Access{}, map[*tensor.Buffer]bool{}
	for _, a := range l.Arguments {
		if a.Buffer != nil {
			access[a.Buffer] |= a.Access
		}
	}
	for _, c := range l.Calls {
		if c.Grid == nil {
			return errors.Errorf("graph: launch %s (%s): call %s has no grid", l.Kernel, l.Label, c.Kernel)
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

// checkAccess compares a call's buffers with what its launch may do with them, and with what
// earlier calls have written.
func checkAccess(c tensor.Call, access map[*tensor.Buffer]tensor.Access, written map[*tensor.Buffer]bool) error {
	for i, a := range c.Arguments {
		b := a.Buffer
		if b == nil {
			continue
		}
		writes := a.Access&tensor.Write != 0
		switch of, known := access[b]; {
		case b.Arena == tensor.Workspaces && !writes && !written[b]:
			return errors.Errorf("argument %d is workspace that no call before has written", i)
		case b.Arena == tensor.Workspaces:
		case !known:
			return errors.Errorf("argument %d, %v, is none of the launch's arguments", i, b)
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
