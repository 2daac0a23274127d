package kernels

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// The opcodes that matter here, of sm_90: the lower 12 bits of an instruction.
const (
	opBranch = 0x947
	opCall   = 0x944
	opExit   = 0x94d
)

// wide is IMAD.WIDE, of which Philox has twenty for four numbers; mma are the tensor cores'
// instructions.
var (
	wide = map[uint64]bool{0x225: true, 0x825: true, 0xc25: true, 0x425: true}
	mma  = map[uint64]bool{0x23c: true}
	fma  = map[uint64]bool{0x223: true}
	move = map[uint64]bool{0x386: true, 0x986: true} // stores to global memory
)

// countedBy is the version of the assembler whose code Loops describes: others generate a few
// instructions more or less.
const countedBy = "V12.9.86"

// machine is the machine code of a kernel.
type machine []instruction

type instruction struct{ Low, High uint64 }

func (m machine) op(i int) uint64 { return m[i].Low & 0xfff }

// target returns the target of the branch at i.
func (m machine) target(i int) int {
	words := int64(m[i].Low>>34)<<8 | int64(m[i].Low>>16&0xff) // of four bytes
	words |= int64(m[i].High) << 38
	return i + 1 + int(words<<8>>8/4)
}

// always reports whether the branch at i is unconditional.
func (m machine) always(i int) bool { return m[i].Low>>12&15 == 7 && m[i].High>>23&15 == 7 }

// loops returns the loops, each from its first instruction to the branch back.
func (m machine) loops() (all [][2]int) {
	for i := range m {
		if m.op(i) == opBranch && m.target(i) < i {
			all = append(all, [2]int{m.target(i), i})
		}
	}
	return all
}

// count returns the number of a loop's instructions that are of a kind.
func (m machine) count(loop [2]int, kind map[uint64]bool) (n int) {
	for i := loop[0]; i <= loop[1]; i++ {
		if kind[m.op(i)] {
			n++
		}
	}
	return n
}

// way returns the minimum number of instructions from one to another within a loop, without a call;
// from one to itself, for a whole round. It is 0 if there is no path.
func (m machine) way(loop [2]int, from, to int) int {
	const none = 1 << 30
	least := make([]int, loop[1]-loop[0]+2)
	for i := range least {
		least[i] = none
	}
	least[from-loop[0]] = 1
	for i := from; i < to; i++ {
		n := least[i-loop[0]]
		if n == none || m.op(i) == opExit || m.op(i) == opCall {
			continue
		}
		next := []int{i + 1}
		if m.op(i) == opBranch {
			if next = []int{m.target(i)}; !m.always(i) {
				next = append(next, i+1)
			}
		}
		for _, j := range next {
			if j > i && j <= to {
				least[j-loop[0]] = min(least[j-loop[0]], n+1)
			}
		}
	}
	if n := least[to-loop[0]]; n != none {
		return n
	}
	return 0
}

// smallest returns the smallest loop with the given number of instructions of some kinds.
func (m machine) smallest(least int, kinds ...map[uint64]bool) (best [2]int) {
	for _, loop := range m.loops() {
		n := 0
		for _, kind := range kinds {
			n += m.count(loop, kind)
		}
		if size := best[1] - best[0]; n >= least && (size == 0 || loop[1]-loop[0] < size) {
			best = loop
		}
	}
	return best
}

// slots counts a kernel's Loop.Slots: for a product, all of the innermost loop that multiplies; for
// a kernel that makes noise, the shortest path through the middle of Philox; for packed copies, the
// whole kernel; for others, the shortest path through a store.
func (m machine) slots(symbol string) (int, error) {
	if strings.HasPrefix(symbol, "matmul") || strings.HasPrefix(symbol, "conv2d") {
		if loop := m.smallest(8, mma, fma); loop[1] > 0 {
			return loop[1] - loop[0] + 1, nil
		}
		return 0, fmt.Errorf("%s has no loop that multiplies", symbol)
	}
	if strings.HasPrefix(symbol, "nhwc_pack") {
		for i := len(m) - 1; i >= 0; i-- {
			if m.op(i) == opExit {
				return i + 1, nil
			}
		}
	}
	loop, kind, middle := m.smallest(18, wide), wide, 10
	if loop[1] == 0 {
		loop, kind, middle = m.smallest(1, move), move, 1
	}
	for i := loop[0]; i <= loop[1]; i++ {
		if kind[m.op(i)] {
			middle--
		}
		if middle > 0 || !kind[m.op(i)] {
			continue
		}
		if to, on := m.way(loop, loop[0], i), m.way(loop, i, loop[1]); to > 0 && on > 0 {
			return to + on - 1, nil
		}
		break
	}
	return 0, fmt.Errorf("%s has no known loop", symbol)
}

// machineCode returns the code that NVIDIA's assembler generates for an entry for sm_90.
func machineCode(t *testing.T, ptxas string, f File, e Entry) machine {
	t.Helper()
	c := assembled(ptxas, f.architecture(90), f)
	if c.err != nil {
		t.Fatalf("%s: %v: %s", f.Name, c.err, c.said)
	}
	content := slices.Clone(c.code)
	const fileVersion = 20 // where ELF files have ELF's version, and NVIDIA's files another number
	content[fileVersion] = 1
	assembly, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	code, err := assembly.Section(".text." + e.Name).Data()
	if err != nil {
		t.Fatal(err)
	}
	m := make(machine, len(code)/16)
	if err := binary.Read(bytes.NewReader(code), binary.LittleEndian, m); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestSlots compares Loops with the instructions that NVIDIA's assembler generates, if it is
// installed. With -v it reports the counts.
func TestSlots(t *testing.T) {
	ptxas := assembler(t)
	if version, err := exec.Command(ptxas, "--version").Output(); err != nil || !strings.Contains(string(version), countedBy) {
		t.Skipf("the counts are those of %s: %v\n%s", countedBy, err, version)
	}
	left := map[string]bool{}
	for symbol := range Loops {
		left[symbol] = true
	}
	files := mustFiles(t)
	slices.Reverse(files) // x_sm80 before x
	for _, f := range files {
		for _, e := range f.Entries {
			want, known := Loops[e.Name]
			if !known || !left[e.Name] {
				continue
			}
			delete(left, e.Name)
			got, err := machineCode(t, ptxas, f, e).slots(e.Name)
			if err != nil || got != want.Slots {
				t.Errorf("\t%q: {%d, %d}, // not %d: %v", e.Name, got, want.Items, want.Slots, err)
			}
		}
	}
	for symbol := range left {
		t.Errorf("there is no kernel %s", symbol)
	}
}
