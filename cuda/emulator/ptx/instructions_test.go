package ptx_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/cuda/emulator"
	"github.com/pollen-ml/pollen/cuda/emulator/ptx"
)

// samples returns operands of a type: the ends of its range, special values, and others.
func samples(kind string) []uint64 {
	if kind == "pred" {
		return []uint64{0, 1}
	}
	size, _ := strconv.Atoi(kind[1:])
	var all []uint64
	if kind[0] == 'f' {
		for _, v := range []float64{0, math.Copysign(0, -1), 1, -1.5, 2.5, 0.1, -1e10, 3e38, 1e-40, -0x1p-149, 0x1p-1022, 1.00390625, 1 + 0x1p-23, 2147483648,
			-2147483649, math.Inf(1), math.Inf(-1), math.NaN()} {
			all = append(all, toBits(v, size))
		}
		if size == 32 {
			return append(all, 0x3f808000, 0x3f818000, 0x3f808001, 0x7f7fffff, 0xff7f8000, 0x7f800001, 0xffffffff)
		}
		return append(all, 0x3ff0000010000000, 0x47efffffffffffff, 0x380fffffffffffff, 0xffffffffffffffff)
	}
	for _, v := range []uint64{0, 1, 2, 3, 7, 31, 32, 33, 63, 64, 200, 1000, 65535, 0x12345678, 0x7fff, 0x8000, 0x7fffffff, 0x80000000, 0xfffffff9,
		0xffffff8000000001, 0x7fffffffffffffff, 0x8000000000000000, 0xfffffffffffffff9, math.MaxUint64} {
		if w := ofSize(v, size); !slices.Contains(all, w) {
			all = append(all, w)
		}
	}
	return all
}

// load returns the instructions that load an operand from memory into a register, and store those
// that store the result. Each operand takes 64 bits of memory.
func load(kind, register string, place int) string {
	at := fmt.Sprintf("[%%rd%d]", place)
	switch kind {
	case "pred":
		return fmt.Sprintf("ld.global.u32 %%r9, %s;\nsetp.ne.s32 %s, %%r9, 0;\n", at, register)
	case "f32", "f64":
		return fmt.Sprintf("ld.global.%s %s, %s;\n", kind, register, at)
	}
	if kind[1:] == "16" {
		return fmt.Sprintf("ld.global.u32 %%r9, %s;\ncvt.u16.u32 %s, %%r9;\n", at, register)
	}
	return fmt.Sprintf("ld.global.u%s %s, %s;\n", kind[1:], register, at)
}

func store(kind, register string) string {
	switch {
	case kind == "pred":
		return fmt.Sprintf("selp.u32 %%r9, 1, 0, %s;\nst.global.u32 [%%rd0], %%r9;\n", register)
	case kind[0] == 'f':
		return fmt.Sprintf("st.global.%s [%%rd0], %s;\n", kind, register)
	case kind[1:] == "16":
		return fmt.Sprintf("cvt.u32.u16 %%r9, %s;\nst.global.u32 [%%rd0], %%r9;\n", register)
	}
	return fmt.Sprintf("st.global.u%s [%%rd0], %s;\n", kind[1:], register)
}

// registerOf returns a register for a value of a type.
func registerOf(kind string, i int) string {
	switch {
	case kind == "pred":
		return "%p" + strconv.Itoa(i)
	case kind[0] == 'f':
		return fmt.Sprintf("%%f%s_%d", kind[1:], i)
	}
	return fmt.Sprintf("%%i%s_%d", kind[1:], i)
}

// kernel returns a kernel that applies an instruction to the operands of each thread.
func kernel(name, opcode string, reads []string, gives string) string {
	var s strings.Builder
	fmt.Fprintf(&s, ".visible .entry %s(\n", name)
	for i := range 4 {
		fmt.Fprintf(&s, ".param .align 8 .b8 %s_param_%d[16],\n", name, i)
	}
	s.WriteString(")\n.maxntid 1024, 1, 1\n{\n.reg .pred %p<4>;\n.reg .b32 %r<10>;\n.reg .b64 %rd<8>;\n")
	for _, size := range []int{16, 32, 64} {
		fmt.Fprintf(&s, ".reg .b%d %%i%d_<4>;\n", size, size)
	}
	s.WriteString(".reg .f32 %f32_<4>;\n.reg .f64 %f64_<4>;\n")
	s.WriteString("mov.u32 %r0, %ctaid.x;\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ntid.x;\nmad.lo.s32 %r3, %r0, %r2, %r1;\nmul.wide.u32 %rd5, %r3, 8;\n")
	for i := range 4 {
		fmt.Fprintf(&s, "ld.param.u64 %%rd%d, [%s_param_%d];\nadd.s64 %%rd%d, %%rd%d, %%rd5;\n", i, name, i, i, i)
	}
	operands := []string{registerOf(gives, 0)}
	for i, kind := range reads {
		s.WriteString(load(kind, registerOf(kind, i+1), i+1))
		operands = append(operands, registerOf(kind, i+1))
	}
	fmt.Fprintf(&s, "%s %s;\n%sret;\n}\n", opcode, strings.Join(operands, ", "), store(gives, operands[0]))
	return s.String()
}

// TestInstructions runs every instruction that computes one register from others, on all
// combinations of samples, and compares with Go's arithmetic.
func TestInstructions(t *testing.T) {
	text := ".version 7.8\n.target sm_80\n.address_size 64\n"
	recording := new(emulator.Recording)
	type call struct {
		opcode  string
		threads int
		x       [3][]uint64
	}
	var calls []call
	opcodes := ptx.Opcodes()
	slices.Sort(opcodes)
	for _, opcode := range opcodes {
		reads, gives := ptx.Operation(opcode)
		name := strings.ReplaceAll(opcode, ".", "_")
		text += kernel(name, opcode, reads, gives)
		c := call{opcode: opcode, threads: 1}
		lists := make([][]uint64, len(reads))
		for i, kind := range reads {
			lists[i] = samples(kind)
			if i == 2 && len(lists[i]) > 8 {
				lists[i] = slices.Concat(lists[i][:4], lists[i][len(lists[i])-4:])
			}
			c.threads *= len(lists[i])
		}
		c.threads = (c.threads + 31) / 32 * 32
		buffers := []emulator.Buffer{{Bytes: 8 * c.threads, Contents: make([]byte, 8*c.threads)}}
		for i := range 3 {
			contents := make([]byte, 8*c.threads)
			for thread := range c.threads {
				if i < len(lists) {
					at := thread
					for _, before := range lists[:i] {
						at /= len(before)
					}
					v := lists[i][at%len(lists[i])]
					c.x[i] = append(c.x[i], v)
					binary.LittleEndian.PutUint64(contents[8*thread:], v)
				}
			}
			buffers = append(buffers, emulator.Buffer{Bytes: len(contents), Contents: contents})
		}
		arguments := []emulator.Argument{{Buffer: true, Value: 0}, {Buffer: true, Value: 1}, {Buffer: true, Value: 2}, {Buffer: true, Value: 3}}
		recording.Add(1, buffers, []emulator.Call{{Symbol: name, Blocks: [2]int{c.threads / 32, 1}, Threads: 32, Arguments: arguments}})
		calls = append(calls, c)
	}
	program, err := emulator.NewReplay(t).Program(text)
	if err != nil {
		t.Fatal(err)
	}
	memory, err := program.Run(t, recording, 60)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range calls {
		reads, gives := ptx.Operation(c.opcode)
		size := 1
		if gives != "pred" {
			size, _ = strconv.Atoi(gives[1:])
		}
		for thread := range c.threads {
			var x []uint64
			for i := range reads {
				x = append(x, c.x[i][thread])
			}
			got, want := binary.LittleEndian.Uint64(memory[8*thread:]), ofSize(meaning(c.opcode, reads, x), size)
			if got != want {
				t.Errorf("%s of %x is %x, want %x", c.opcode, x, got, want)
				break
			}
		}
		memory = memory[4*8*c.threads:]
	}
}
