package kernel

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestInstructionSetIsLowered runs this test's program again with a lower instruction set.
func TestInstructionSetIsLowered(t *testing.T) {
	const asked = "POLLEN_TEST_INSTRUCTION_SET"
	if os.Getenv(asked) != "" {
		t.Log("uses " + InstructionSet())
		return
	}
	for lowered, want := range map[string]instructions{"avx2": portableGo, "avx512f": min(inUse, avx2)} {
		again := exec.Command(os.Args[0], "-test.run=^TestInstructionSetIsLowered$", "-test.v")
		again.Env = append(os.Environ(), asked+"=1", "GODEBUG="+os.Getenv("GODEBUG")+",cpu."+lowered+"=off")
		output, err := again.CombinedOutput()
		if err != nil || !strings.Contains(string(output), "uses "+want.String()) {
			t.Errorf("with %s off: %v, %s, want %v", lowered, err, output, want)
		}
	}
}

// AVX-512 gives AVX2's bits in everything that rounds differently from portable Go.
func TestAVX512GivesTheBitsOfAVX2(t *testing.T) {
	want := make(map[string][]float32)
	onEachInstructionSet(t, func(t *testing.T) {
		for name, p := range bitPlans(t) {
			if inUse == portableGo {
				continue
			}
			got := execute(t, &p, random[float32](newRandom(), &p), true, nil)
			if inUse == avx2 {
				want[name] = got
			}
			compareBits(t, name, got, want[name])
		}
	})
}

func compareBits(t *testing.T, name string, got, want []float32) {
	t.Helper()
	for i, v := range got {
		if math.Float32bits(v) != math.Float32bits(want[i]) {
			t.Fatalf("%s: element %d is %g, with AVX2 %g", name, i, v, want[i])
		}
	}
}

// bitPlans are products of every tile height, with every epilogue, and convolutions of every kind.
func bitPlans(t *testing.T) map[string]Routine {
	t.Helper()
	plans := samplePlans(t)
	put := func(name string, p Routine, err error) {
		if err != nil {
			t.Fatal(err)
		}
		plans[name] = p
	}
	for rows := 1; rows <= 2*mostRows+1; rows++ {
		g := Gemm{M: rows, N: 16 + rows, K: 31 + 2*rows, TransposeA: rows%2 == 0, Accumulate: rows%3 == 0, Bias: BiasKind(rows % 3), ReLU: rows%5 == 0}
		p, err := g.Plan()
		put(fmt.Sprintf("%+v", g), p, err)
		c := Conv2D{B: 2, C: 1 + rows%4, H: 7, W: 11 + rows%6, K: rows, R: 2, S: 1 + rows%5, PadH: 1, PadW: rows % 2}
		c.StrideH, c.StrideW, c.DilationH, c.DilationW = 1, 1, 1, 1
		p, err = c.Forward()
		put(fmt.Sprintf("forward %+v", c), p, err)
		c.Direct = true
		p, err = c.Forward()
		put(fmt.Sprintf("forward %+v", c), p, err)
		q := Pool2D{B: 2, C: 3, H: 6, W: rows + 7, R: 2, S: 2, StrideH: 2, StrideW: 2, ReLU: rows%2 == 0}
		p, err = q.MaxForward()
		put(fmt.Sprintf("pooled %+v", q), p, err)
		p, err = q.MaxBackward()
		put(fmt.Sprintf("pooled back %+v", q), p, err)
		c.C, c.K = c.K, c.C
		put(fmt.Sprintf("convolved back %+v", c), c.convolveBack(), nil)
		put(fmt.Sprintf("scattered %+v", c), c.scatter(), nil)
		put(fmt.Sprintf("filter %+v", c), c.filterPanels(), nil)
		if c.S == lineTaps {
			put(fmt.Sprintf("lines %+v", c), c.filterLines(), nil)
		}
	}
	for _, v := range winogradCases {
		c := winogradCase(v)
		for _, a := range c.algorithms() {
			put(fmt.Sprintf("filter of patches %d %+v", a.patch, c), c.filterWinograd(a), nil)
			put(fmt.Sprintf("patches back %d %+v", a.patch, c), c.winograd(a, true), nil)
			c.Bias, c.ReLU = true, v[1]%2 == 0
			put(fmt.Sprintf("patches %d %+v", a.patch, c), c.winograd(a, false), nil)
			c.Bias, c.ReLU = false, false
		}
	}
	return plans
}
