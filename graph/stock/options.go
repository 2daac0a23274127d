package stock

import (
	"fmt"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
)

// machineOptions are Gorgonia's options as far as a Machine supports them, by the names of
// Gorgonia's functions.
type machineOptions struct {
	evaluating bool           // EvalMode
	binds      bool           // BindDualValues
	bound      gorgonia.Nodes // the nodes of BindDualValues; none means all
}

// accumulates reports whether the gradient by an input is added to the present one, which a solver
// sets to 0.
func (o machineOptions) accumulates(n *gorgonia.Node) bool {
	return o.binds && (len(o.bound) == 0 || o.bound.Contains(n))
}

// The bits of a TapeMachine's flags, in Gorgonia's order. Allocation and tracing have no meaning
// here and are ignored; other bits are refused.
const (
	flagAllocate = 1 << 5
	flagTrace    = 1 << 6
	flagBind     = 1 << 7
)

// readOptions applies the options, which are opaque functions, to a TapeMachine of a small graph,
// and reads which fields they have changed, compared with a machine without options. No option is
// silently ignored: one that a Machine cannot follow is an error.
func readOptions(g *gorgonia.ExprGraph, options []gorgonia.VMOpt) (o machineOptions, err error) {
	// -x is the smallest graph that Gorgonia compiles.
	small := gorgonia.NewGraph()
	if _, err := gorgonia.Neg(gorgonia.NewScalar(small, gorgonia.Float64, gorgonia.WithName("x"))); err != nil {
		return o, errors.Wrap(err, "stock: options")
	}
	plain, err := attributesOf(gorgonia.NewTapeMachine(small))
	if err != nil {
		return o, err
	}
	machine, err := tapeMachine(small, options)
	if err != nil {
		return o, err
	}
	asked, err := attributesOf(machine)
	if err != nil {
		return o, err
	}
	// The graph of the program is another one only if WithPrecompiled gave it.
	program := asked.fields.FieldByName("p").Elem().FieldByName("g").UnsafePointer()
	if own := plain.fields.FieldByName("p").Elem().FieldByName("g").UnsafePointer(); program != own && (*gorgonia.ExprGraph)(program) != g {
		return o, errors.New("stock: option WithPrecompiled: the program must be of the whole graph, got one of a part; leave the option out")
	}
	flags := asked.int("runFlags") &^ (flagAllocate | flagTrace | flagBind)
	logs := asked.int("logFlags") != plain.int("logFlags") || !asked.fields.FieldByName("logger").IsNil() ||
		asked.fields.FieldByName("watchRegs").Len()+asked.fields.FieldByName("watchNodeIDs").Len() > 0
	if flags != 0 || logs {
		return o, errors.New("stock: options: a logger, a watch list and a NaN watch are not supported: RunAll reports a loss that is not finite, and its op")
	}
	o.evaluating = asked.bool("evalMode")
	o.binds = asked.int("runFlags")&flagBind != 0
	o.bound = asked.nodes("bindNodesDV")
	if want := fmt.Sprint(plain.fields.FieldByName("valueFmt")); fmt.Sprint(asked.fields.FieldByName("valueFmt")) != want {
		return o, errors.New("stock: option WithValueFmt has no effect here, leave it out")
	}
	return o, nil
}

// tapeMachine is gorgonia.NewTapeMachine, with an error where an option panics, as LispMachine's
// options and nil do.
func tapeMachine(g *gorgonia.ExprGraph, options []gorgonia.VMOpt) (machine any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.Errorf("stock: options: an option is not one of a TapeMachine, such as LispMachine's ExecuteFwdOnly: leave it out, "+
				"and call gorgonia.Grad if the program needs gradients (%v)", p)
		}
	}()
	return gorgonia.NewTapeMachine(g, options...), nil
}
