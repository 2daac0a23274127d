package kernels

import (
	"regexp"
	"strings"
	"testing"
)

// TestDependent: the wait comes after the instructions that need only registers and parameters, and
// before everything else.
func TestDependent(t *testing.T) {
	text := func(version, target, load, wait string) string {
		return `.version ` + version + `
.target ` + target + `
.address_size 64
.weak .shared .align 4 .b8 one[256];
.visible .entry first(
.param .u32 first_param_0
)
.maxntid 64, 1, 1
{
.reg .b32 %r<4>;
mov.u32 %r0, %tid.x;
ld.param.u32 %r1, [first_param_0];
setp.lt.s32 %p0, %r1, %r0;
` + wait + `@%p0 bra $L__BB0_2;
add.s32 %r1, %r1, 1;
ld.global` + load + `.f32 %f0, [%rd1];
ret;
}
.visible .entry second(
)
.maxntid 64, 1, 1
{
` + wait + `bar.sync 0;
ret;
}
`
	}
	const wait = "griddepcontrol.wait;\ngriddepcontrol.launch_dependents;\n"
	for _, row := range [][4]string{{"7.8", "sm_70", "7.8", "sm_90"}, {"7.0", "sm_80", "7.8", "sm_90"}, {"8.0", "sm_90a", "8.0", "sm_90a"}} {
		if got, want := Dependent(text(row[0], row[1], ".nc", "")), text(row[2], row[3], "", wait); got != want {
			t.Errorf("%v becomes\n%s\nwant\n%s", row, got, want)
		}
	}
	for _, line := range []string{
		"ld.global.f32 %f0, [%rd1];", "ld.shared.f32 %f0, [%rd1];", "st.shared.u32 [%rd1], %r0;", "prefetch.global.L2 [%rd1];", "$L__BB0_1:", "bra $L;", "ret;",
		"{ .reg .pred p; ld.global.f32 %f0, [%rd1]; }", "@%p0 add.s32 %r0, %r0, 1;", "cp.async.commit_group;", "bar.sync 0;", "ldmatrix.sync %r0;", "atom.add %r0;",
	} {
		if startsEarly(line) {
			t.Errorf("%q may come before the wait", line)
		}
	}
}

// TestCommittedFilesAsDependent: each entry waits once, before its first memory access, and lets
// the next kernel begin right after that. No load treats memory as constant.
func TestCommittedFilesAsDependent(t *testing.T) {
	memory := regexp.MustCompile(`ld\.global|st\.global|ld\.shared|st\.shared|cp\.async|prefetch|atom|bar\.sync|mbarrier|wgmma|ldmatrix|bra`)
	for _, f := range mustFiles(t) {
		whole := Dependent(f.Text)
		changed, err := parse(f.Name, whole)
		if err != nil {
			t.Fatal(err)
		}
		if len(changed.Entries) != len(f.Entries) || changed.Capability < DependentCapability || changed.Version < dependentVersion || changed.Exact != f.Exact {
			t.Errorf("%s: %d entries for %d of PTX %d", f.Name, len(changed.Entries), changed.Capability, changed.Version)
		}
		if strings.Contains(whole, "ld.global.nc") {
			t.Errorf("%s: a load takes memory for constant", f.Name)
		}
		for i, e := range changed.Entries {
			before, after, found := strings.Cut(e.Body, "\ngriddepcontrol.wait;\ngriddepcontrol.launch_dependents;\n")
			if !found || strings.Contains(after, "griddepcontrol") || memory.MatchString(before) {
				t.Errorf("%s: %s does not wait once, before all else", f.Name, e.Name)
			}
			if apart := Dependent(f.Head + f.Entries[i].Body); apart != changed.Head+e.Body {
				t.Errorf("%s: %s generated on its own is another text", f.Name, e.Name)
			}
		}
	}
}
