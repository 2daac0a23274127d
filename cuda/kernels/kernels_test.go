package kernels

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func mustFiles(t *testing.T) []File {
	t.Helper()
	all, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestFiles: every source has its PTX, all PTX has a source, and a symbol is in only one file for
// each capability.
func TestFiles(t *testing.T) {
	sources, err := filepath.Glob("*.cu")
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]File{}
	seen := map[string]string{}
	for _, f := range mustFiles(t) {
		have[f.Name] = f
		for _, e := range f.Entries {
			place := e.Name + " for " + f.Name[max(0, strings.LastIndex(f.Name, "_sm")+1):]
			if !strings.Contains(f.Name, "_sm") {
				place = e.Name
			}
			if other, ok := seen[place]; ok {
				t.Errorf("%s is in %s and in %s", e.Name, other, f.Name)
			}
			seen[place] = f.Name
		}
	}
	for _, source := range sources {
		name := strings.TrimSuffix(source, ".cu") + ".ptx"
		f, ok := have[name]
		if !ok {
			t.Errorf("%s has no PTX: run go generate", source)
		}
		delete(have, name)
		want := 70
		if strings.Contains(source, "_sm80") {
			want = 80
		} else if strings.Contains(source, "_sm90") {
			want = 90
		}
		if f.Capability != want || f.Exact != (want == 90) {
			t.Errorf("%s is for capability %d (exactly: %v), want %d", name, f.Capability, f.Exact, want)
		}
	}
	for name := range have {
		t.Errorf("%s has no source: delete it", name)
	}
}

func TestParseErrors(t *testing.T) {
	head := ".version 7.8\n.target sm_70\n"
	entry := "\n.visible .entry x_f32(\n.param .align 8 .b8 x_f32_param_0[16],\n.param .u32 x_f32_param_1\n)\n.maxntid 256, 1, 1\n{\n}\n"
	f, err := parse("x.ptx", head+entry)
	if err != nil || len(f.Entries) != 1 || f.Entries[0].Threads != 256 || len(f.Entries[0].Parameters) != 2 || f.Entries[0].Parameters[0] != Buffer {
		t.Fatalf("%+v %v", f, err)
	}
	for want, text := range map[string]string{
		"no .version":           entry,
		"no entries":            head,
		"an entry without":      head + strings.ReplaceAll(entry, "{", ""),
		"no .maxntid":           head + strings.ReplaceAll(entry, ".maxntid 256, 1, 1\n", ""),
		"was not expected":      head + strings.ReplaceAll(entry, "[16]", "[24]"),
		"arguments of type u64": head + strings.ReplaceAll(entry, ".u32", ".u64"),
	} {
		if _, err := parse("x.ptx", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
}

// TestLengths: the C++ sources have at most 400 lines of at most 160 columns.
func TestLengths(t *testing.T) {
	for _, pattern := range []string{"*.cu", "*.cuh", "../emulator/source/*.cpp", "../emulator/source/*.h", "../emulator/source/ptx/*.h"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatal(pattern, err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(string(text), "\n")
			if len(lines) > 400 {
				t.Errorf("%s has %d lines, at most 400", path, len(lines))
			}
			for i, line := range lines {
				if len(line) > 160 {
					t.Errorf("%s:%d has %d columns, at most 160", path, i+1, len(line))
				}
			}
		}
	}
}

// TestAddRefuses: Add refuses text that is not PTX, and kernels that already exist.
func TestAddRefuses(t *testing.T) {
	before := mustFiles(t)
	relu := before[slices.IndexFunc(before, func(f File) bool { return f.Name == "relu.ptx" })]
	for _, c := range [][2]string{
		{"nothing", "no .version or no .target"},
		{relu.Head, "no entries"},
		{relu.Text, "relu.ptx has a kernel relu_"},
		{strings.Replace(relu.Text, ".target sm_70", ".target sm_90a", 1), "relu.ptx has a kernel relu_"},
	} {
		if err := Add("own.ptx", c[0]); err == nil || !strings.Contains(err.Error(), c[1]) || !strings.Contains(err.Error(), "own.ptx") {
			t.Errorf("error %v, want %q", err, c[1])
		}
	}
	if after := mustFiles(t); len(after) != len(before) {
		t.Errorf("%d files, want %d", len(after), len(before))
	}
}

// TestOperandsAreAligned: a kernel that uses wgmma has only dynamic shared memory, which begins at
// a multiple of 128 bytes.
func TestOperandsAreAligned(t *testing.T) {
	array := regexp.MustCompile(`(\.\w+) \.shared \.align (\d+) \.b8 ([\w$]+)\[`)
	kernels := 0
	for _, f := range mustFiles(t) {
		for _, e := range f.Entries {
			if !strings.Contains(e.Body, "wgmma.mma_async") {
				continue
			}
			kernels++
			named := false
			for _, found := range array.FindAllStringSubmatch(f.Head, -1) {
				if !regexp.MustCompile(`\W` + regexp.QuoteMeta(found[3]) + `\b`).MatchString(e.Body) {
					continue
				}
				named = true
				if found[1] != ".extern" || found[2] != "128" {
					t.Errorf("%s has shared memory %s", e.Name, found[0])
				}
			}
			if !named {
				t.Errorf("%s has no shared memory", e.Name)
			}
		}
	}
	if kernels == 0 {
		t.Error("no kernel multiplies by wgmma")
	}
}

// TestSumsAreFenced: between a fence and the products that follow it, no other instruction writes
// to a floating-point register, which might be one of their accumulators.
func TestSumsAreFenced(t *testing.T) {
	writes := regexp.MustCompile(`^\w\S* (%f\d+|\{%f)`)
	for _, f := range mustFiles(t) {
		for _, e := range f.Entries {
			fenced := false
			for _, line := range strings.Split(e.Body, "\n") {
				switch {
				case strings.HasPrefix(line, "wgmma.fence"):
					fenced = true
				case strings.HasPrefix(line, "wgmma.commit_group"):
					fenced = false
				case fenced && writes.MatchString(line):
					t.Errorf("%s writes to a register after the fence: %s", e.Name, line)
				}
			}
		}
	}
}
