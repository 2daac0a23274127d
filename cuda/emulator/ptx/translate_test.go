package ptx_test

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/cuda/emulator"
	"github.com/pollen-ml/pollen/cuda/emulator/ptx"
	"github.com/pollen-ml/pollen/cuda/kernels"
)

// text returns kernels kernel0(out, in, n), kernel1 and so on, of 64 threads. When a body begins,
// %rd0 and %rd1 have the addresses of the thread's word of in and of out, %r0 the thread's number,
// and %r1 its word of in. After the body, %r1 is stored to out. More registers are declared.
func text(bodies ...string) string {
	all := `.version 7.8
.target sm_80
.address_size 64
.weak .shared .align 4 .b8 one[256];
.weak .shared .align 16 .b8 two[128];
.extern .shared .align 16 .b8 memory[];
`
	for i, body := range bodies {
		all += strings.ReplaceAll(`.visible .entry kernel(
.param .align 8 .b8 kernel_param_0[16],
.param .align 8 .b8 kernel_param_1[16],
.param .u32 kernel_param_2
)
.maxntid 64, 1, 1
{
.local .align 4 .b8 own[8];
.reg .pred %p<4>;
.reg .b16 %rs<4>;
.reg .b32 %r<12>;
.reg .b64 %rd<8>;
.reg .f32 %f<4>;
mov.u32 %r0, %tid.x;
mul.wide.u32 %rd5, %r0, 4;
ld.param.u64 %rd1, [kernel_param_0];
ld.param.u64 %rd0, [kernel_param_1];
add.s64 %rd1, %rd1, %rd5;
add.s64 %rd0, %rd0, %rd5;
ld.global.u32 %r1, [%rd0];
`+body+`
st.global.u32 [%rd1], %r1;
ret;
}
`, "kernel", "kernel"+strconv.Itoa(i))
	}
	return all
}

// launch runs kernel i once on in.
func launch(i int, in []uint32) *emulator.Recording { return launchEarly(i, in, false) }

func launchEarly(i int, in []uint32, early bool) *emulator.Recording {
	var contents []byte
	for _, v := range in {
		contents = binary.LittleEndian.AppendUint32(contents, v)
	}
	r := &emulator.Recording{Early: early}
	r.Add(1, []emulator.Buffer{{Bytes: 4 * 64}, {Bytes: len(contents), Contents: contents}}, []emulator.Call{{
		Symbol: "kernel" + strconv.Itoa(i), Blocks: [2]int{1, 1}, Threads: 64, Shared: 512,
		Arguments: []emulator.Argument{{Buffer: true, Value: 0}, {Buffer: true, Value: 1}, {Value: 64}},
	}})
	return r
}

func numbered(n int) []uint32 {
	in := make([]uint32, n)
	for i := range in {
		in[i] = uint32(i)
	}
	return in
}

// TestUnknownIsAnError: unknown text is an error that names it.
func TestUnknownIsAnError(t *testing.T) {
	for _, row := range []struct{ body, want string }{
		{"add.rz.f32 %f0, %f1, %f2;", "unknown opcode add.rz.f32"},
		{"add.rn.ftz.f32 %f0, %f1, %f2;", "unknown opcode add.rn.ftz.f32"},
		{"setp.lt.and.s32 %p0, %r0, 1, %p1;", "unknown opcode setp.lt.and.s32"},
		{"ld.volatile.global.u32 %r1, [%rd0];", "unknown opcode ld.volatile.global.u32"},
		{"ld.global.v8.f32 %r1, [%rd0];", "unknown opcode ld.global.v8.f32"},
		{"st.param.u32 [kernel_param_2], %r1;", "unknown opcode st.param.u32"},
		{"mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%f0, %f1, %f2, %f3}, {%r1, %r2}, {%r3}, {%f0, %f1, %f2, %f3};", "m16n8k4"},
		{"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f0, %f1, %f2, %f3}, {%r1, %r2}, {%r3, %r4}, {%f0, %f1, %f2, %f3};", "must be 4"},
		{"bar.sync 1;", "a barrier must be number 0"},
		{"bar.sync 0, 32;", "a barrier must be number 0"},
		{"shfl.sync.bfly.b32 %r1, %r1, 1, 15, -1;", "must be of a whole warp"},
		{"shfl.sync.bfly.b32 %r1, %r1, 1, 31, 255;", "must be of a whole warp"},
		{"bar.warp.sync 255;", "must be of a whole warp"},
		{"shfl.sync.idx.b32 %r1, %r1, 0, 31, 255;", "must be of a whole warp"},
		{"shfl.sync.bfly.b32 %r1|%p0, %r1, 1, 31, -1;", "%r1|%p0 is not declared"},
		{"cp.async.ca.shared.global [%r2], [%rd0], 12, %p0;", "of 12 bytes"},
		{"cp.async.cg.shared.global [%r2], [%rd0], 4, %p0;", "of 4 bytes"},
		{"cp.async.cg.shared.global [%r2], [%rd0], 16;", "3 operands"},
		{"mov.u32 %r1, %laneid;", "%laneid"},
		{"mov.u32 %r1, %r12;", "%r12 is not declared"},
		{"mov.u32 %r1, %rd0;", "%rd0, of type b64, cannot be read as u32"},
		{"mov.u64 %r1, %rd0;", "%r1, of type b32, cannot hold a u64"},
		{"add.s32 %r1, %f1, %r2;", "%f1, of type f32, cannot be read as u32"},
		{"add.s32 %p0, %r1, %r2;", "%p0, of type pred, cannot hold a u32"},
		{"add.rn.f32 %f0, %f1, 1;", "1 is not of type f32"},
		{"add.s32 %r1, %r2, 0f3F800000;", "0f3F800000 is not of type u32"},
		{"add.s32 %r1, %r2;", "2 operands, must be 3"},
		{"mov.u64 %rd2, nowhere;", "unknown operand nowhere"},
		{"@%r1 bra $L;", "%r1, of type b32, cannot be read as pred"},
		{"ld.global.u32 %r1, %rd0;", "%rd0 is not an address"},
		{"add.s32 %r1, %r2, 1", "must end with a semicolon"},
		{".pragma \"unroll\";", "is not supported"},
		{".reg .f16 %h<3>;", "registers of type f16"},
		{"{ .reg .pred a; setp.eq.s32 a, %r1, 0;", "of several lines"},
	} {
		_, err := ptx.Translate("try.ptx", text(row.body))
		if err == nil || !strings.Contains(err.Error(), row.want) || !strings.HasPrefix(err.Error(), "ptx: try.ptx:27: entry kernel0: ") {
			t.Errorf("%s: got %v, want %q in line 27", row.body, err, row.want)
		}
	}
	for _, row := range []struct{ from, to, want string }{
		{".address_size 64", ".address_size 32", "64 bits"},
		{".weak .shared .align 4 .b8 one[256];", ".global .align 4 .b8 one[256];", "is not supported"},
		{".maxntid 64, 1, 1\n", "", "a one-dimensional .maxntid"},
		{".maxntid 64, 1, 1", ".maxntid 8, 8, 1", "is not supported"},
		{".param .u32 kernel0_param_2", ".param .u32 .ptr kernel0_param_2", "is not supported"},
		{"ret;\n}\n", "ret;\n", "must end with }"},
		{".visible .entry kernel0", ".visible .func kernel0", "is not supported"},
	} {
		if _, err := ptx.Translate("try.ptx", strings.Replace(text(""), row.from, row.to, 1)); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v, want %q", row.to, err, row.want)
		}
	}
}

// TestCommittedFiles: all committed PTX can be translated.
func TestCommittedFiles(t *testing.T) {
	files, err := kernels.Files()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if _, err := ptx.Translate(f.Name, f.Text); err != nil {
			t.Error(err)
		}
	}
}

// TestAccessesAreChecked: a wrong access is an error that names it, and a similar correct access is
// not.
func TestAccessesAreChecked(t *testing.T) {
	const (
		stores = "cvt.u32.u64 %r2, %rd5;\nmov.u64 %rd2, one;\nadd.s64 %rd3, %rd2, %rd5;\nst.shared.u32 [%rd3], %r1;\n"
		other  = "xor.b32 %r3, %r2, 4;\ncvt.u64.u32 %rd4, %r3;\nadd.s64 %rd4, %rd4, %rd2;\n"
	)
	rows := []struct{ body, want string }{
		{"ld.global.u32 %r1, [%rd0+2];", "misaligned, in line 27"},
		{"ld.global.u32 %r1, [%rd0+4];", ""},
		{"ld.global.v2.f32 {%f0, %f1}, [%rd0];", "misaligned"},
		{"mov.u64 %rd0, 64;\nld.global.u32 %r1, [%rd0];", "outside global memory"},
		{"mov.u64 %rd0, one;\nld.global.u32 %r1, [%rd0];", "outside global memory"},
		{"mov.b64 %rd2, kernel_param_0;\nld.param.u64 %rd3, [%rd2+8];", ""},
		{"mov.b64 %rd2, kernel_param_0;\nld.param.u64 %rd3, [%rd2+16];", "outside the parameters"},
		{"mov.b64 %rd2, kernel_param_2;\nld.param.u64 %rd3, [%rd2];", "outside the parameters"},
		{"mov.u64 %rd2, own;\nst.local.f32 [%rd2+4], %f0;", ""},
		{"mov.u64 %rd2, own;\nst.local.f32 [%rd2+8], %f0;", "outside local memory"},
		{stores, ""},
		{stores + "ld.shared.u32 %r1, [%rd3];", ""},
		{stores + "ld.shared.u32 %r1, [%rd2+256];", "outside shared memory"},
		{stores + "ld.shared.u32 %r1, [%rd2+-4];", "outside shared memory"},
		{stores + "mov.u64 %rd4, two;\nld.shared.u32 %r1, [%rd4+124];", ""},
		{stores + "mov.u64 %rd4, two;\nld.shared.u32 %r1, [%rd4+128];", "outside shared memory"},
		{stores + "mov.u64 %rd4, two;\nld.shared.u32 %r1, [%rd4+2];", "misaligned"},
		{"mov.u64 %rd4, memory;\nadd.s64 %rd4, %rd4, %rd5;\nst.shared.u32 [%rd4+252], %r1;", ""},
		{"mov.u64 %rd4, memory;\nadd.s64 %rd4, %rd4, %rd5;\nst.shared.u32 [%rd4+264], %r1;", "outside shared memory"},
		{stores + other + "bar.sync 0;\nld.shared.u32 %r1, [%rd4];", ""},
		{stores + other + "ld.shared.u32 %r1, [%rd4];", "another thread read since the last barrier"},
		{stores + other + "bar.sync 0;\nld.shared.u32 %r1, [%rd4];\nst.shared.u32 [%rd3], %r1;", "another thread wrote to since the last barrier"},
		{stores + other + "bar.warp.sync -1;\nld.shared.u32 %r1, [%rd4];", ""},
		{stores + "xor.b32 %r3, %r2, 128;\ncvt.u64.u32 %rd4, %r3;\nadd.s64 %rd4, %rd4, %rd2;\nbar.warp.sync -1;\nld.shared.u32 %r1, [%rd4];",
			"another thread read since the last barrier"},
		{stores + other + "bar.sync 0;\nld.shared.u32 %r1, [%rd4];\nbar.sync 0;\nst.shared.u32 [%rd3], %r1;", ""},
		{stores + "st.shared.u32 [%rd2], %r1;", "writes a word of shared memory that another thread wrote to"},
		{"setp.lt.s32 %p0, %r0, 40;\n@%p0 bar.sync 0;", "waits in barrier for others that do not come"},
		{"mov.u64 %rd4, two;\ncvt.u32.u64 %r2, %rd4;\nsetp.ne.s32 %p0, %r0, 0;\n@%p0 bra $L;\n" +
			"cp.async.cg.shared.global [%r2+8], [%rd0], 16, %p0;\n$L:", "misaligned"},
	}
	var bodies []string
	for _, row := range rows {
		bodies = append(bodies, row.body)
	}
	program, err := emulator.NewReplay(t).Program(text(bodies...))
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rows {
		_, err := program.Run(t, launch(i, numbered(80)), 10)
		said := "nothing"
		if err != nil {
			said = err.Error()
		}
		found := strings.Contains(said, fmt.Sprintf("kernel%d: block (0, 0, 0)", i)) && strings.Contains(said, row.want)
		if row.want == "" && err != nil || row.want != "" && !found {
			t.Errorf("%s\ngot %s, want %q", row.body, said, row.want)
		}
	}
}

// TestEarlyLaunches: a kernel that began before its predecessor had ended must not access global
// memory before it waits, must wait before it lets the next one begin, and must wait at some point.
// A kernel that began later has none of these obligations.
func TestEarlyLaunches(t *testing.T) {
	const wait, next, outside = "griddepcontrol.wait;\n", "griddepcontrol.launch_dependents;\n", "before the wait for the launch that the kernel follows"
	const load, store, skip = "ld.global.u32 %r1, [%rd0];\n", "st.global.u32 [%rd1], %r1;\n", "setp.ne.s32 %p0, %r0, 40;\n@%p0 bra $L;\n"
	rows := []struct{ body, want string }{
		{wait + next + load, ""},
		{wait + load + next, ""},
		{load + wait + next, outside},
		{"mov.u32 %r1, 5;\n" + store + wait + next, outside},
		{load, outside},
		{next + wait + load, "lets the next launch begin before it has waited itself"},
		{skip + "st.global.u32 [%rd1], %r0;\n$L:\n" + wait + load, outside},
		{skip + "ret;\n$L:\n" + wait + load, "thread (40, 0, 0) began before the launch that it follows had ended, and ends without waiting for it"},
		{"mov.u64 %rd2, two;\ncvt.u32.u64 %r2, %rd2;\n" + skip + "cp.async.ca.shared.global [%r2], [%rd0], 4, %p0;\n$L:\n" + wait + load, outside},
	}
	var bodies []string
	for _, row := range rows {
		bodies = append(bodies, row.body)
	}
	all := strings.ReplaceAll(text(bodies...), "add.s64 %rd0, %rd0, %rd5;\n"+load, "add.s64 %rd0, %rd0, %rd5;\n")
	program, err := emulator.NewReplay(t).Program(all)
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rows {
		for _, early := range []bool{false, true} {
			r := launchEarly(i, numbered(80), early)
			_, err := program.Run(t, r, 10)
			said := "nothing"
			if err != nil {
				said = err.Error()
			}
			wrong := early && row.want != ""
			if !wrong && err != nil || wrong && !strings.Contains(said, row.want) {
				t.Errorf("%s\nearly: %t, got %s, want %q", row.body, early, said, row.want)
			}
		}
	}
}

// TestLoadMatrix: in the PTX ISA's layout of an 8 x 8 matrix, the fragment of lane 4 i + j has
// elements 2 j and 2 j + 1 of row i; transposed, of column i.
func TestLoadMatrix(t *testing.T) {
	rows := []struct {
		opcode     string
		matrices   int
		transposed bool
	}{
		{"x1", 1, false}, {"x2", 2, false}, {"x4", 4, false}, {"x1.trans", 1, true}, {"x2.trans", 2, true}, {"x4.trans", 4, true},
	}
	var bodies []string
	for _, row := range rows {
		var registers []string
		for i := range row.matrices {
			registers = append(registers, "%r"+strconv.Itoa(4+i))
		}
		// Element e of all matrices is e; each row of eight is 16 bytes. A lane provides the
		// address of a row, and returns its word of the last matrix.
		bodies = append(bodies, `mov.u64 %rd2, memory;
add.s64 %rd3, %rd2, %rd5;
shl.b32 %r2, %r0, 1;
add.s32 %r3, %r2, 1;
shl.b32 %r3, %r3, 16;
or.b32 %r2, %r2, %r3;
st.shared.u32 [%rd3], %r2;
add.s32 %r2, %r2, 8388736;
st.shared.u32 [%rd3+256], %r2;
bar.sync 0;
and.b32 %r2, %r0, 31;
mul.wide.u32 %rd4, %r2, 16;
add.s64 %rd4, %rd4, %rd2;
ldmatrix.sync.aligned.m8n8.`+row.opcode+`.shared.b16 {`+strings.Join(registers, ", ")+`}, [%rd4];
mov.u32 %r1, `+registers[row.matrices-1]+";")
	}
	program, err := emulator.NewReplay(t).Program(text(bodies...))
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rows {
		memory, err := program.Run(t, launch(i, numbered(64)), 10)
		if err != nil {
			t.Fatal(row.opcode, err)
		}
		for thread := range 64 {
			major, minor := thread%32/4, thread%4
			element := func(k int) uint32 {
				if row.transposed {
					return uint32(64*(row.matrices-1) + 8*(2*minor+k) + major)
				}
				return uint32(64*(row.matrices-1) + 8*major + 2*minor + k)
			}
			if got, want := binary.LittleEndian.Uint32(memory[4*thread:]), element(0)|element(1)<<16; got != want {
				t.Fatalf("%s: thread %d has %x, want %x", row.opcode, thread, got, want)
			}
		}
	}
}
