package stock

import (
	"fmt"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
)

// machineOptions are what Gorgonia's options ask for.
type machineOptions struct {
	evaluating bool           // EvalMode
	binds      bool           // BindDualValues
	bound      gorgonia.Nodes // of which nodes; none is all
}

// accumulates reports whether the gradient by an input is added to what it was, until a solver
// takes it.
func (o machineOptions) accumulates(n *gorgonia.Node) bool {
	return o.binds && (len(o.bound) == 0 || o.bound.Contains(n))
}

// The bits of a TapeMachine's flags, in Gorgonia's order.
const (
	flagAllocate = 1 << 5
	flagTrace    = 1 << 6
	flagBind     = 1 << 7
)

// readOptions gives the options to a TapeMachine of a small graph, and reads what they did to it.
func readOptions(g *gorgonia.ExprGraph, options []gorgonia.VMOpt) (o machineOptions, err error) {
	small := gorgonia.NewGraph()
	if _, err := gorgonia.Neg(gorgonia.NewScalar(small, gorgonia.Float64, gorgonia.WithName("x"))); err != nil {
		return o, errors.Wrap(err, "stock: options")
	}
	plain, err := attributesOf(gorgonia.NewTapeMachine(small))
	if err != nil {
		return o, err
	}
	asked, err := attributesOf(gorgonia.NewTapeMachine(small, options...))
	if err != nil {
		return o, err
	}
	program := asked.fields.FieldByName("p").Elem().FieldByName("g").UnsafePointer()
	if own := plain.fields.FieldByName("p").Elem().FieldByName("g").UnsafePointer(); program != own && (*gorgonia.ExprGraph)(program) != g {
		return o, errors.New("stock: option WithPrecompiled: the program is of a part of the graph, wants one of Compile; leave the option out")
	}
	flags := asked.int("runFlags") &^ (flagAllocate | flagTrace | flagBind)
	logs := asked.int("logFlags") != plain.int("logFlags") || !asked.fields.FieldByName("logger").IsNil() ||
		asked.fields.FieldByName("watchRegs").Len()+asked.fields.FieldByName("watchNodeIDs").Len() > 0
	if flags != 0 || logs {
		return o, errors.New("stock: options: wants no logger, watch list or NaN watch: RunAll reports a loss that is not finite, and the op that made it")
	}
	o.evaluating = asked.bool("evalMode")
	o.binds = asked.int("runFlags")&flagBind != 0
	o.bound = asked.nodes("bindNodesDV")
	if want := fmt.Sprint(plain.fields.FieldByName("valueFmt")); fmt.Sprint(asked.fields.FieldByName("valueFmt")) != want {
		return o, errors.New("stock: option WithValueFmt has no effect here, leave it out")
	}
	return o, nil
}
