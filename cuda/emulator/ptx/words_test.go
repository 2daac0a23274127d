package ptx_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/cuda/emulator"
)

// across returns the offset of an element of an MN-major matrix, in core matrices of 8 rows of
// depth x 16 bytes of columns.
func (o operand) across(column, k int) int {
	return o.start + k/8*o.leading + column/8*o.stride + k%8*16 + column%8*2
}

// wordsProduct is like groupProduct, with a in registers, whose words follow the copied data in
// memory, and b MN-major.
func wordsProduct(name string, a, b operand) string {
	_, text := groupProduct(64, a, b)
	loads := "add.s64 %rd4, %rd0, %rd5;\n"
	for i := range 4 {
		loads += fmt.Sprintf("ld.global.u32 %%r%d, [%%rd4+%d];\n", 6+i, sharedBytes+4*128*i)
	}
	text = strings.Replace(text, fmt.Sprintf("mov.u64 %%rd2, %d;\n", a.descriptor(1024)), loads, 1)
	text = strings.ReplaceAll(text, "%rd2, %rd3, %p1, 1, 1, 0, 0;", "{%r6, %r7, %r8, %r9}, %rd3, %p1, 1, 1, 1;")
	return strings.ReplaceAll(text, "group64", name)
}

// wordsLaunch runs a kernel of wordsProduct once.
func wordsLaunch(name string, a, b operand) *emulator.Recording {
	memory := make([]byte, sharedBytes+4*4*128)
	bf16 := func(v float64) uint16 { return uint16(math.Float32bits(float32(v)) >> 16) }
	for column := range b.rows {
		for k := range 16 {
			binary.LittleEndian.PutUint16(memory[b.across(column, k):], bf16(b.element(column, k)))
		}
	}
	// In the PTX ISA's layout of a, words 0 and 1 are of rows g and g + 8 of a warp's sixteen, in
	// columns 2 t and 2 t + 1; words 2 and 3 are of the columns eight further on.
	for thread := range 128 {
		for i := range 4 {
			for half := range 2 {
				row, k := thread/32*16+thread%32/4+i%2*8, thread%4*2+half+i/2*8
				binary.LittleEndian.PutUint16(memory[sharedBytes+4*(128*i+thread)+2*half:], bf16(a.element(row, k)))
			}
		}
	}
	r := new(emulator.Recording)
	r.Add(1, []emulator.Buffer{{Bytes: 4 * 64 * 64}, {Bytes: len(memory), Contents: memory}}, []emulator.Call{{
		Symbol: name, Blocks: [2]int{1, 1}, Threads: 128, Shared: sharedBytes + 8, Arguments: []emulator.Argument{{Buffer: true, Value: 0}, {Buffer: true, Value: 1}},
	}})
	return r
}

// TestGroupWords: products of registers with an MN-major matrix follow the PTX ISA, and mistakes
// are found.
func TestGroupWords(t *testing.T) {
	a, b := operand{rows: 64, start: 16}, operand{64, 4096, 16 * 100, 16 * 9}
	const commit = "wgmma.commit_group.sync.aligned;\n"
	describe := fmt.Sprintf("mov.u64 %%rd3, %d;\n", b.descriptor(1024))
	withB := func(b operand) string { return fmt.Sprintf("mov.u64 %%rd3, %d;\n", b.descriptor(1024)) }
	rows := []struct{ from, to, want string }{
		{"", "", ""},
		{commit, commit + "mov.u32 %r8, 5;\n", "registers have changed while a product read them"},
		{commit, commit + "bar.sync 0;\n@%p0 bra $L2;\nst.shared.u32 [%r2+4096], %r1;\n$L2:\n", "have changed while a product read them"},
		{"wgmma.fence.sync.aligned;\n", "", "multiplies registers without a fence"},
		{"wgmma.wait_group.sync.aligned 0;\n", "", "differs"},
		{"{%r6, %r7,", "{%r7, %r6,", "differs"},
		{"%r8, %r9}", "%r9, %r8}", "differs"},
		{describe, withB(operand{64, b.start + 16, b.leading, b.stride}), "differs"},
		{describe, withB(operand{64, b.start, b.stride, b.leading}), "differs"},
		{describe, withB(operand{64, b.start, b.leading, 1 << 14}), "outside shared memory"},
		{describe, fmt.Sprintf("mov.u64 %%rd3, %d;\n", b.descriptor(1024)^1<<62), "swizzling mode, which is not supported"},
		{describe, describe + "cvt.u64.u32 %rd6, %r0;\nadd.s64 %rd3, %rd3, %rd6;\n", "describes other operands"},
	}
	text := groupHead
	kernel := wordsProduct("words", a, b)
	for i, row := range rows {
		changed := strings.Replace(kernel, row.from, row.to, 1)
		if row.from != "" && changed == kernel {
			t.Fatalf("%q is not there", row.from)
		}
		text += strings.ReplaceAll(changed, "words", fmt.Sprint("kernel", i))
	}
	program, err := emulator.NewReplay(t).Program(text)
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rows {
		memory, err := program.Run(t, wordsLaunch(fmt.Sprint("kernel", i), a, b), 10)
		said := ""
		if err != nil {
			said = err.Error()
		} else if err := wrongSums(memory, 64, a, b); err != nil {
			said = "differs: " + err.Error()
		}
		if !strings.Contains(said, row.want) || row.want == "" && said != "" {
			t.Errorf("%q instead of %q: got %q, want %q", row.to, row.from, said, row.want)
		}
	}
}
