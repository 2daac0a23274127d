package kernel

import (
	"fmt"
	"slices"
	"testing"
)

// The phases that prepare B need to run only once: the other phases then compute further products
// without B, with the bits of a routine that packs B elsewhere, if at all.
func TestPreparation(t *testing.T) {
	onEachInstructionSet(t, func(t *testing.T) {
		for _, g := range []Gemm{
			{M: 1, N: 10, K: 50}, {M: 1, N: 33, K: 300, TransposeB: true, Bias: BiasColumn, ReLU: true}, {M: 15, N: 80, K: 700, TransposeB: true},
			{M: 3, N: 200, K: 1280, TransposeA: true},
		} {
			apart, err := g.Plan()
			if err != nil {
				t.Fatal(err)
			}
			g.PackB = true
			plan, err := g.Plan()
			if err != nil {
				t.Fatal(err)
			}
			t.Run(fmt.Sprintf("%+v", g), func(t *testing.T) { checkPreparation(t, &plan, &apart) })
		}
		for _, c := range []Conv2D{
			{B: 1, C: 64, H: 28, W: 28, K: 64, R: 3, S: 3, StrideH: 1, StrideW: 1, PadH: 1, PadW: 1, DilationH: 1, DilationW: 1, FilterImages: 16},
			{B: 2, C: 20, H: 12, W: 12, K: 40, R: 5, S: 5, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1, FilterImages: 16, Bias: true, ReLU: true},
		} {
			plan, err := c.Forward()
			if err != nil {
				t.Fatal(err)
			}
			if !plan.Winograd() {
				t.Fatalf("%+v: not one of Winograd's algorithms", c)
			}
			t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) { checkPreparation(t, &plan, &plan) })
		}
		c := Conv2D{B: 1, C: 300, H: 7, W: 7, K: 40, R: 1, S: 1, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1, Bias: true, ReLU: true}
		channels, direct := c.channels(), c.direct()
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) { checkPreparation(t, &channels, &direct) })
	})
}

// checkPreparation compares the plan with another one, which runs all phases.
func checkPreparation(t *testing.T, plan, other *Routine) {
	if plan.Preparation == 0 {
		t.Fatal("nothing is prepared")
	}
	r := newRandom()
	in := random[float32](r, plan)
	o := Operands[float32]{
		A: in.a, B: in.b, Bias: in.bias, Out: make([]float32, plan.sizeOut),
		Workspace: make([]float32, plan.Workspace), Scratch: make([]float32, plan.Scratch),
	}
	run := func(from int) {
		for phase := from; phase < len(plan.Phases); phase++ {
			for tile := range plan.Phases[phase] {
				Run(plan, phase, tile, o)
			}
		}
	}
	run(0)
	if want := execute(t, other, in, false, nil); !slices.Equal(o.Out, want) {
		t.Error("outputs differ")
	}
	want := inputs[float32]{normals[float32](r, plan.sizeA), in.b, in.bias, in.out}
	o.A, o.B = want.a, make([]float32, plan.sizeB)
	poison(o.B)
	run(plan.Preparation)
	if want := execute(t, other, want, false, nil); !slices.Equal(o.Out, want) {
		t.Error("outputs with the prepared B differ")
	}
}
