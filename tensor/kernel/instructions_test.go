package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestInstructionSetIsLowered runs this test's program again with a lower instruction set.
func TestInstructionSetIsLowered(t *testing.T) {
	const asked = "POLLEN_TEST_INSTRUCTION_SET"
	if os.Getenv(asked) != "" {
		t.Log("uses " + InstructionSet())
		return
	}
	lowered := map[string]instructionSet{"avx2": portableGo, "avx512f": min(isa, avx2)}
	if isa == neon {
		lowered = map[string]instructionSet{"asimd": portableGo}
	}
	for feature, want := range lowered {
		again := exec.Command(os.Args[0], "-test.run=^TestInstructionSetIsLowered$", "-test.v")
		again.Env = append(os.Environ(), asked+"=1", "GODEBUG="+os.Getenv("GODEBUG")+",cpu."+feature+"=off")
		output, err := again.CombinedOutput()
		if errors.Is(err, syscall.ENOEXEC) {
			t.Skip("an emulator runs this test, and not what it starts")
		}
		if err != nil || !strings.Contains(string(output), "uses "+want.String()) {
			t.Errorf("with %s off: %v, %s, want %v", feature, err, output, want)
		}
	}
}

// bits are checksums of the results of bitPlans with the instruction sets that have fused
// multiply-adds, by kind: AVX2, AVX-512 and NEON, each tested on machines of its own, agree.
var bits = map[string]uint32{
	"average pool backward":      0x05e2cf68,
	"average pool forward":       0x439b4fa9,
	"conv2d backward filter":     0xc7aeedc1,
	"conv2d backward input":      0x97399343,
	"conv2d forward":             0xf3e973be,
	"conv2d forward by channels": 0x80501af7,
	"convolved back":             0x0a89c4ab,
	"depthwise backward filter":  0xe6b77a2f,
	"depthwise backward input":   0x7e588be0,
	"depthwise forward":          0x57fb8e7d,
	"filter":                     0x5fb1cefb,
	"filter of patches 4":        0x8e19bb66,
	"filter of patches 7":        0x2c7cc03a,
	"forward":                    0xb351292d,
	"gemm":                       0xfca548b4,
	"gemm transposed false":      0xf8a2c371,
	"gemm transposed true":       0x4dd8fc96,
	"grouped backward filter":    0xfcc0172e,
	"grouped backward input":     0xf64b06e5,
	"grouped forward":            0xa2e92093,
	"in groups":                  0x0b1bdc3d,
	"in groups, back":            0x42136ef7,
	"in groups, filter":          0x778f7061,
	"lines":                      0xfc7ec782,
	"max pool backward":          0x2940fa72,
	"max pool forward":           0x2f0419b4,
	"patches 4":                  0xf39d0856,
	"patches 7":                  0x5ea12057,
	"patches back 4":             0x422092a6,
	"patches back 7":             0x13c704b2,
	"pooled":                     0xce7b32d8,
	"pooled back":                0xb1612069,
	"scattered":                  0x68d84513,
	"short gemm":                 0xd73c70c7,
	"windows":                    0xd281ca8a,
	"winograd backward filter":   0x294ee43b,
	"winograd backward input":    0xad4e0aaf,
	"winograd forward":           0x5160e730,
}

// Portable Go rounds products differently, unless its compiler fuses them.
func TestInstructionSetsGiveTheSameBits(t *testing.T) {
	want := make(map[string][]float32)
	onEachInstructionSet(t, func(t *testing.T) {
		if isa == portableGo {
			t.Skip("portable Go rounds products differently, unless its compiler fuses them")
		}
		got := make(map[string]uint32)
		plans := bitPlans(t)
		for _, name := range slices.Sorted(maps.Keys(plans)) {
			p := plans[name]
			y := execute(t, &p, random[float32](newRandom(), &p), true, nil)
			if isa == avx2 {
				want[name] = y
			} else if isa == avx512 {
				compareBits(t, name, y, want[name])
			}
			kind, _, _ := strings.Cut(name, " {")
			for _, v := range y {
				word := binary.LittleEndian.AppendUint32(nil, math.Float32bits(v))
				got[kind] = crc32.Update(got[kind], crc32.IEEETable, word)
			}
		}
		for kind, sum := range got {
			if sum != bits[kind] {
				t.Errorf("products %q have the checksum %#08x, want %#08x", kind, sum, bits[kind])
			}
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

// bitPlans returns products of every tile height, with every epilogue, and convolutions of every
// kind.
func bitPlans(t *testing.T) map[string]Routine {
	t.Helper()
	plans := samplePlans(t)
	put := func(name string, p Routine, err error) {
		if err != nil {
			t.Fatal(err)
		}
		plans[name] = p
	}
	for rows := 1; rows <= 2*maxRows+1; rows++ {
		g := Gemm{M: rows, N: 16 + rows, K: 31 + 2*rows, TransposeA: rows%2 == 0, Accumulate: rows%3 == 0, Bias: BiasKind(rows % 3), ReLU: rows%5 == 0}
		p, err := g.Plan()
		put(fmt.Sprintf("gemm %+v", g), p, err)
		c := Conv2D{B: 2, C: 1 + rows%4, H: 7, W: 11 + rows%6, K: rows, R: 2, S: 1 + rows%5, PadH: 1, PadW: rows % 2}
		c.StrideH, c.StrideW, c.DilationH, c.DilationW = 1, 1, 1, 1
		c.Bias, c.ReLU = rows%2 == 0, rows%4 < 2
		if rows%4 == 1 {
			c.Ceiling = 2
		}
		p, err = c.Forward()
		put(fmt.Sprintf("forward %+v", c), p, err)
		c.Direct = true
		p, err = c.Forward()
		put(fmt.Sprintf("forward %+v", c), p, err)
		c.Bias, c.ReLU, c.Ceiling = false, false, 0
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
	for rows := 1; rows <= maxRows; rows++ { // every remainder of a depth, at every height
		for depth := 4; depth < 8; depth++ {
			g := Gemm{M: rows, N: 17, K: depth, Bias: BiasColumn, ReLU: true}
			p, err := g.Plan()
			put(fmt.Sprintf("short gemm %+v", g), p, err)
			g.TransposeA = true
			p, err = g.Plan()
			put(fmt.Sprintf("short gemm %+v", g), p, err)
			c := Conv2D{B: 2, C: rows, H: 3, W: 9 + depth, K: depth, R: 1, S: 1, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}
			put(fmt.Sprintf("scattered %+v", c), c.scatter(), nil)
			put(fmt.Sprintf("filter %+v", c), c.filterPanels(), nil)
			c.C, c.W, c.K, c.S, c.Bias, c.ReLU, c.Direct = 1, 15+depth, rows, depth, true, true, true
			p, err = c.Forward()
			put(fmt.Sprintf("windows %+v", c), p, err)
		}
	}
	for i := range groupedCases {
		forward, input, filter, g := groupedRoutines(t, i)
		put(fmt.Sprintf("in groups %+v", g), forward, nil)
		put(fmt.Sprintf("in groups, back %+v", g), input, nil)
		put(fmt.Sprintf("in groups, filter %+v", g), filter, nil)
	}
	for _, v := range winogradCases {
		c := winogradCase(v)
		for _, a := range c.algorithms() {
			put(fmt.Sprintf("filter of patches %d %+v", a.patch, c), c.filterWinograd(a), nil)
			put(fmt.Sprintf("patches back %d %+v", a.patch, c), c.winograd(a, true), nil)
			c.Bias, c.ReLU, c.Ceiling = true, v[1]%2 == 0, 0
			if c.ReLU {
				c.Ceiling = 1
			}
			put(fmt.Sprintf("patches %d %+v", a.patch, c), c.winograd(a, false), nil)
			c.Bias, c.ReLU, c.Ceiling = false, false, 0
		}
	}
	return plans
}
