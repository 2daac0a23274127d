package ptx_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/cuda/emulator"
	"github.com/pollen-ml/pollen/cuda/emulator/ptx"
)

// operand is a matrix of 16 columns of bf16 in shared memory, from start on, in core matrices of 8
// rows x 16 bytes. These are leading bytes apart along the columns, and stride bytes along the
// rows.
type operand struct{ rows, start, leading, stride int }

func (o operand) place(row, k int) int {
	return o.start + k/8*o.leading + row/8*o.stride + row%8*16 + k%8*2
}

func (o operand) descriptor(shared int) uint64 {
	return uint64(shared+o.start)>>4 | uint64(o.leading)>>4<<16 | uint64(o.stride)>>4<<32
}

// element returns a number that bf16 represents exactly.
func (o operand) element(row, k int) float64 {
	return float64((row*7+k*k*3+o.rows+o.start/16)%16-8) / 4
}

// groupProduct returns a kernel of 128 threads, groupN(out, in): it copies in to shared memory, and
// sets out[i][thread] to register i of the sum of 1 and twice the product a b, which has columns
// columns.
func groupProduct(columns int, a, b operand) (name, text string) {
	name = fmt.Sprint("group", columns)
	var registers, clear, stores strings.Builder
	for i := range columns / 2 {
		fmt.Fprintf(&registers, "%%f%d, ", i)
		fmt.Fprintf(&clear, "mov.f32 %%f%d, 0f3F800000;\n", i)
		fmt.Fprintf(&stores, "st.global.f32 [%%rd1+%d], %%f%d;\n", 4*128*i, i)
	}
	const shared = 1024 // where memory begins
	product := fmt.Sprintf("wgmma.mma_async.sync.aligned.m64n%dk16.f32.bf16.bf16 {%s}, %%rd2, %%rd3, %%p1, 1, 1, 0, 0;\n",
		columns, strings.TrimSuffix(registers.String(), ", "))
	return name, fmt.Sprintf(`.visible .entry %[1]s(
.param .align 8 .b8 %[1]s_param_0[16],
.param .align 8 .b8 %[1]s_param_1[16]
)
.maxntid 128, 1, 1
{
.reg .pred %%p<4>;
.reg .b32 %%r<12>;
.reg .b64 %%rd<8>;
.reg .f32 %%f<%[2]d>;
mov.u32 %%r0, %%tid.x;
mul.wide.u32 %%rd5, %%r0, 4;
ld.param.u64 %%rd1, [%[1]s_param_0];
ld.param.u64 %%rd0, [%[1]s_param_1];
add.s64 %%rd1, %%rd1, %%rd5;
mov.u64 %%rd6, memory;
cvt.u32.u64 %%r2, %%rd6;
add.s32 %%r1, %%r2, %[3]d;
setp.ne.s32 %%p0, %%r0, 0;
@%%p0 bra $L0;
mov.b32 %%r3, 1;
mbarrier.init.shared::cta.b64 [%%r1], %%r3;
fence.proxy.async.shared::cta;
mov.b32 %%r4, %[3]d;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%%r1], %%r4;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%%r2], [%%rd0], %%r4, [%%r1];
$L0:
bar.sync 0;
mov.b32 %%r5, 0;
$L1:
mbarrier.try_wait.parity.shared::cta.b64 %%p2, [%%r1], %%r5;
@!%%p2 bra $L1;
%[4]smov.u64 %%rd2, %[5]d;
mov.u64 %%rd3, %[6]d;
setp.eq.s32 %%p1, %%r5, 0;
wgmma.fence.sync.aligned;
%[7]s%[7]swgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
%[8]sret;
}
`, name, columns/2, sharedBytes, clear.String(), a.descriptor(shared), b.descriptor(shared), product, stores.String())
}

const (
	sharedBytes = 20 << 10
	groupHead   = `.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 16 .b8 memory[];
`
)

var groupOperands = map[int][2]operand{
	8:   {{64, 0, 1024, 128}, {8, 2048, 128, 4096}},
	64:  {{64, 16, 144*8 + 32, 144}, {64, 4096, 16 * 100, 16 * 9}},
	112: {{64, 0, 1024, 128}, {112, 2080, 16 * 300, 16 * 18}},
	256: {{64, 256, 128, 256}, {256, 2400, 4096 + 64, 128}},
}

// groupLaunch runs a kernel of groupProduct once.
func groupLaunch(name string, columns int, a, b operand) *emulator.Recording {
	memory := make([]byte, sharedBytes)
	for _, o := range []operand{a, b} {
		for row := range o.rows {
			for k := range 16 {
				binary.LittleEndian.PutUint16(memory[o.place(row, k):], uint16(math.Float32bits(float32(o.element(row, k)))>>16))
			}
		}
	}
	r := new(emulator.Recording)
	r.Add(1, []emulator.Buffer{{Bytes: 4 * 64 * columns}, {Bytes: len(memory), Contents: memory}}, []emulator.Call{{
		Symbol: name, Blocks: [2]int{1, 1}, Threads: 128, Shared: sharedBytes + 8, Arguments: []emulator.Argument{{Buffer: true, Value: 0}, {Buffer: true, Value: 1}},
	}})
	return r
}

// wrongSums compares the registers of each thread with the product. In the PTX ISA's layout of d,
// registers 4 j and 4 j + 1 of lane 4 g + t of warp w are columns 8 j + 2 t and the next of row 16
// w + g, and the two registers after them the same columns of row 16 w + g + 8.
func wrongSums(memory []byte, columns int, a, b operand) error {
	for thread := range 128 {
		warp, group, t := thread/32, thread%32/4, thread%4
		for i := range columns / 2 {
			row, column := 16*warp+group, i/4*8+2*t+i%2
			if i%4 >= 2 {
				row += 8
			}
			want := 1.0
			for k := range 16 {
				want += 2 * a.element(row, k) * b.element(column, k)
			}
			if got := math.Float32frombits(binary.LittleEndian.Uint32(memory[4*(128*i+thread):])); float64(got) != want {
				return fmt.Errorf("register %d of thread %d is %v, want %v", i, thread, got, want)
			}
		}
	}
	return nil
}

// TestGroupProducts: products of warpgroups follow the PTX ISA, with matrices in several layouts,
// after a copy whose bytes an mbarrier counts.
func TestGroupProducts(t *testing.T) {
	text := groupHead
	for columns, o := range groupOperands {
		_, kernel := groupProduct(columns, o[0], o[1])
		text += kernel
	}
	program, err := emulator.NewReplay(t).Program(text)
	if err != nil {
		t.Fatal(err)
	}
	for columns, o := range groupOperands {
		name, _ := groupProduct(columns, o[0], o[1])
		memory, err := program.Run(t, groupLaunch(name, columns, o[0], o[1]), 20)
		if err == nil {
			err = wrongSums(memory, columns, o[0], o[1])
		}
		if err != nil {
			t.Errorf("%d columns: %v", columns, err)
		}
	}
}

// TestGroupMistakes: mistakes are errors that name them, or change the results.
func TestGroupMistakes(t *testing.T) {
	const columns = 64
	o := groupOperands[columns]
	_, kernel := groupProduct(columns, o[0], o[1])
	const fence = "wgmma.fence.sync.aligned;\n"
	describe := fmt.Sprintf("mov.u64 %%rd2, %d;\n", o[0].descriptor(1024))
	withA := func(a uint64) string { return fmt.Sprintf("mov.u64 %%rd2, %d;\n", a) }
	// shuffled traps unless the given lane's number is five more than the number of its warp's
	// first lane.
	shuffled := func(lane int) string {
		return fmt.Sprintf("shfl.sync.idx.b32 %%r6, %%r0, %d, 31, -1;\nand.b32 %%r7, %%r0, -32;\nadd.s32 %%r7, %%r7, 5;\n"+
			"setp.eq.s32 %%p3, %%r6, %%r7;\n@%%p3 bra $L9;\ntrap;\n$L9:\n", lane)
	}
	rows := []struct{ from, to, want string }{
		{"", "", ""},
		{fence, "", "multiplies without a fence"},
		{"wgmma.commit_group.sync.aligned;\n", "", "differs"},
		{"wgmma.wait_group.sync.aligned 0;\n", "", "differs"},
		{"wgmma.wait_group.sync.aligned 0;\n", "wgmma.wait_group.sync.aligned 1;\n", "differs"},
		{"wgmma.commit_group.sync.aligned;\n", "wgmma.commit_group.sync.aligned;\nmov.f32 %f3, 0f00000000;\n", "changes a sum"},
		{"wgmma.commit_group.sync.aligned;\n", "wgmma.commit_group.sync.aligned;\n@%p0 bra $L2;\nst.shared.u32 [%r2+16], %r1;\n$L2:\n", "another thread read since"},
		{"wgmma.commit_group.sync.aligned;\n", "wgmma.commit_group.sync.aligned;\nbar.sync 0;\n@%p0 bra $L2;\nst.shared.u32 [%r2+16], %r1;\n$L2:\n",
			"have changed while a product read them"},
		{fence, fence + "setp.ne.s32 %p1, %r5, 0;\n", "differs"},
		{fence, fence + "@%p0 bra $L2;\nret;\n$L2:\n", "waits in wgmma for others that do not come"},
		{describe, withA(o[0].descriptor(1024) ^ 1<<62), "swizzling mode, which is not supported"},
		{describe, withA(o[0].descriptor(1024) ^ 1<<49), "swizzling mode, which is not supported"},
		{describe, withA(o[0].descriptor(1040)), "differs"},
		{describe, withA(operand{64, o[0].start, o[0].leading + 16, o[0].stride}.descriptor(1024)), "differs"},
		{describe, withA(operand{64, o[0].start, o[0].stride, o[0].leading}.descriptor(1024)), "differs"},
		{describe, withA(operand{64, o[0].start, 1 << 16, o[0].stride}.descriptor(1024)), "outside shared memory"},
		{describe, describe + "cvt.u64.u32 %rd6, %r0;\nadd.s64 %rd2, %rd2, %rd6;\n", "describes other operands"},
		{"{%f0, %f1", "{%f1, %f0", "in another order"},
		{"mbarrier.init.shared::cta.b64 [%r1], %r3;\n", "", "not initialised"},
		{"mbarrier.init.shared::cta.b64 [%r1], %r3;\n", "mbarrier.init.shared::cta.b64 [%r1], %r3;\nmbarrier.init.shared::cta.b64 [%r1], %r3;\n", "twice"},
		{"mov.b32 %r3, 1;\n", "mov.b32 %r3, 2;\n", "waits in an mbarrier for others that do not come"},
		{"fence.proxy.async.shared::cta;\n", "", "no fence after it was initialised"},
		{"@!%p2 bra $L1;\n", "", "ends while copies to it are under way"},
		{"@!%p2 bra $L1;\n", "@%p2 bra $L2;\ntrap;\n$L2:\n", "kernel23: block (0, 0, 0), thread (127, 0, 0) traps"},
		{"_, [%r1], %r4;\n", "_, [%r1], 20496;\n", "kernel24: block (0, 0, 0), thread (0, 0, 0) waits in an mbarrier for others that do not come"},
		{"mov.b32 %r5, 0;\n", "mov.b32 %r5, 1;\n", "ends while copies to it are under way"},
		{"bar.sync 0;\n", "", "not initialised"},
		{"[%r2], [%rd0], %r4, [%r1];\n", "[%r2+16], [%rd0], %r4, [%r1];\n", "outside shared memory"},
		{"[%r2], [%rd0], %r4, [%r1];\n", "[%r2], [%rd0+8], %r4, [%r1];\n", "misaligned"},
		{"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], %r4;\n", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], %r3;\n", "mbarrier for others"},
		// A plain arrival counts like one with bytes.
		{"mov.b32 %r3, 1;\nmbarrier.init.shared::cta.b64 [%r1], %r3;\n",
			"mov.b32 %r3, 2;\nmbarrier.init.shared::cta.b64 [%r1], %r3;\nmbarrier.arrive.shared::cta.b64 _, [%r1];\n", ""},
		{"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], %r4;\n",
			"mbarrier.arrive.shared::cta.b64 _, [%r1];\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], %r4;\n", "ends while copies to it are under way"},
		{"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], %r4;\n", "mbarrier.arrive.shared::cta.b64 _, [%r1];\n", "ends while copies to it are under way"},
		{"wgmma.wait_group.sync.aligned 0;\n", "wgmma.wait_group.sync.aligned 0;\nbar.warp.sync -1;\n", ""},
		{"wgmma.wait_group.sync.aligned 0;\n", "wgmma.wait_group.sync.aligned 0;\n@%p0 bra $L8;\nbar.warp.sync -1;\n$L8:\n", "waits in warpBarrier"},
		{"mul.wide.u32", shuffled(5) + "mul.wide.u32", ""},
		{"mul.wide.u32", shuffled(4) + "mul.wide.u32", "traps"},
		{"mbarrier.try_wait", "ret;\nmbarrier.try_wait", "ends while copies to it are under way"},
	}
	text := groupHead
	for i, row := range rows {
		changed := strings.Replace(kernel, row.from, row.to, 1)
		if row.from != "" && changed == kernel {
			t.Fatalf("%q is not there", row.from)
		}
		text += strings.ReplaceAll(changed, "group64", fmt.Sprint("kernel", i))
	}
	program, err := emulator.NewReplay(t).Program(text)
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rows {
		memory, err := program.Run(t, groupLaunch(fmt.Sprint("kernel", i), columns, o[0], o[1]), 10)
		said := ""
		if err != nil {
			said = err.Error()
		} else if err := wrongSums(memory, columns, o[0], o[1]); err != nil {
			said = "differs: " + err.Error()
		}
		if !strings.Contains(said, row.want) || row.want == "" && said != "" {
			t.Errorf("%q instead of %q: got %q, want %q", row.to, row.from, said, row.want)
		}
	}
}

// TestUnknownGroups: unknown forms of these instructions are errors that name them.
func TestUnknownGroups(t *testing.T) {
	registers := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("%%f%d", i))
		}
		return "{" + strings.Join(all, ", ") + "}"
	}
	const product = "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 "
	for _, row := range []struct{ body, want string }{
		{product + registers(4) + ", %rd0, %rd1, %p0, 1, 1, 0, 1;", "of two K-major matrices"},
		{product + registers(4) + ", %rd0, %rd1, %p0, -1, 1, 0, 0;", "of two K-major matrices"},
		{product + registers(3) + ", %rd0, %rd1, %p0, 1, 1, 0, 0;", "3 registers for 8 columns"},
		{product + "{%f0, %f1, %f2, %f2}, %rd0, %rd1, %p0, 1, 1, 0, 0;", "%f2 is used for two sums"},
		{product + "{%f0, %f1, %f2, %r2}, %rd0, %rd1, %p0, 1, 1, 0, 0;", "%r2, of type b32, cannot be a sum"},
		{product + registers(4) + ", {%r1, %r2, %r3, %r4}, %rd1, %p0, 1, 1, 0;", "with an MN-major matrix"},
		{product + registers(4) + ", {%r1, %r2, %r3}, %rd1, %p0, 1, 1, 1;", "with an MN-major matrix"},
		{product + registers(4) + ", {%r1, %r2, %r3, %f3}, %rd1, %p0, 1, 1, 1;", "%f3, of type f32, is not a word of a matrix"},
		{"wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 " + registers(4) + ", %rd0, %rd1, %p0, 1, 1;", "unknown opcode"},
		{"wgmma.wait_group.sync.aligned %r1;", "%r1"},
		{"mbarrier.arrive.expect_tx.shared::cta.b64 %rd0, [%r1], %r2;", "the state"},
		{"mbarrier.try_wait.parity.shared::cta.b64 %p0, [%r1];", "2 operands, must be 3"},
		{"mbarrier.arrive.shared::cta.b64 %rd0, [%r1];", "the state"},
		{"mbarrier.inval.shared::cta.b64 [%r1];", "unknown opcode"},
		{"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd0], %r2;", "3 operands, must be 4"},
		{"fence.proxy.async;", "unknown opcode"},
	} {
		if _, err := ptx.Translate("try.ptx", text(row.body)); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v, want %q", row.body, err, row.want)
		}
	}
}
