package optest

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pollen-ml/pollen/tensor"
)

// describing is a host that implements Describe.
type describing struct{ tensor.Device }

func (describing) Describe(s tensor.Workload) []string {
	return []string{fmt.Sprintf("%d chains of %s", s.Chains, s.Launches[0].Kernel)}
}

// TestDump writes the failure of a row whose op is wrong on purpose.
func TestDump(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there")
	t.Setenv(DumpVariable, dir)
	host := describing{tensor.NewHost(1)}
	defer host.Close()
	c := Case{
		Name: "wrong", Op: faulty{onlyFloat32Wrong, new(atomic.Int64)}, Inputs: []Input{Float(Normal, 3, 11)}, Terms: 1,
		Naive: func(in [][]float64) []float64 {
			y := make([]float64, len(in[0]))
			for i, v := range in[0] {
				y[i] = 2 * v
			}
			return y
		},
	}
	err := c.check(host)
	if err == nil {
		t.Fatal("the fault is not found")
	}
	t.Run("a/b c", func(t *testing.T) {
		for range 2 {
			Dump(t, err, host, func() []string { return c.about(err, host) })
		}
	})
	text := contents(t, dir, "TestDump_a_b_c.txt")
	for _, part := range []string{
		"test: TestDump/a/b_c\n", "device: " + host.Name(), "wrong: 1 of 33 elements (3.03 %)", "worst: index 0 at [0 0]", "shape: [3 11]", "first 0, last 0",
		"axis 1: wrong elements at 1 of 11 places, place:count 0:1", "op: faulty", "input 0: ", "1 chains of faulty_fwd_f32", "3 chains of faulty_fwd_f32",
		"file TestDump_a_b_c.got.npy: float32, elements 0 to 33 of 33\n",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("there is no %q in\n%s", part, text)
		}
	}
	got := contents(t, dir, "TestDump_a_b_c.got.npy")
	if len(got) != 128+4*33 || !strings.HasPrefix(got, "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (3, 11), }") {
		t.Errorf("got.npy has %d bytes: %q", len(got), got[:128])
	}
	contents(t, dir, "TestDump_a_b_c-2.want.npy")
	if lines := contents(t, dir, dumpList); strings.Count(lines, "\n") != 2 || !strings.Contains(lines, "; bias ") {
		t.Errorf("the failures are %q", lines)
	}
}

func contents(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestDumpsAreLimited dumps long arrays more often than there is room for: arrays are cut, and
// every failure has its line.
func TestDumpsAreLimited(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(DumpVariable, dir)
	defer func(before int) { dumped.count = before }(dumped.count)
	dumped.count = 0
	got, want := make([]float64, 1<<20), make([]float64, 1<<20)
	got[900_000] = 1
	err := Close(got, want, Tol{})
	for range maxDumps + 5 {
		Dump(t, err, nil, nil)
	}
	if bytes := dirBytes(dir); bytes > maxDumpBytes {
		t.Errorf("the files have %d bytes", bytes)
	}
	if n := strings.Count(contents(t, dir, dumpList), "\n"); n != maxDumps+5 {
		t.Errorf("%d of %d failures are listed", n, maxDumps+5)
	}
	if paths, err := filepath.Glob(filepath.Join(dir, "*.txt")); err != nil || len(paths) < 10 || len(paths) > maxDumps+1 {
		t.Errorf("%d texts, %v", len(paths), err)
	}
	array := contents(t, dir, "TestDumpsAreLimited.got.npy")
	if text := contents(t, dir, "TestDumpsAreLimited.txt"); len(array) != 128+maxArrayBytes || !strings.Contains(text, "of 1048576, CUT") ||
		!bytes.Contains([]byte(array), tensor.Bytes([]float32{1})) {
		t.Errorf("an array of %d bytes:\n%s", len(array), text)
	}
}

// TestStatistics: the statistics distinguish truncation from rounding, and show the pattern of a
// fault.
func TestStatistics(t *testing.T) {
	want, got := make([]float64, 64), make([]float64, 64)
	for i := range want {
		want[i] = 1 + float64(i)
		got[i] = want[i]
	}
	for i := 4; i < 64; i += 8 {
		got[i], got[i+1] = want[i+1], want[i]
	}
	for _, err := range []error{Close(got, want, Tol{}), Same(got, want)} {
		m, ok := err.(*mismatch)
		if !ok {
			t.Fatal(err)
		}
		m.shape = tensor.Shape{8, 8}
		text := strings.Join(m.describe(), "\n")
		for _, part := range []string{
			"wrong: 16 of 64", "first 4, last 61, 8 runs of neighbours, longest run 2, all distances are multiples of 1", "16 of the wrong values occur elsewhere",
			"axis 0: wrong elements at 8 of 8 places", "axis 1: wrong elements at 2 of 8 places, place:count 4:8 5:8", "max 1, mean 1, of 16",
		} {
			if !strings.Contains(text, part) {
				t.Errorf("there is no %q in\n%s", part, text)
			}
		}
	}
	for i := range want {
		got[i] = want[i] * (1 - 0x1p-10)
	}
	if bias, magnitude := biasOf(got, want); bias != -magnitude || magnitude != 0x1p-10 {
		t.Errorf("the bias is %v of %v", bias, magnitude)
	}
	got[3], got[9] = math.NaN(), math.Inf(-1)
	if err := Same(got, want); err == nil || !strings.Contains(err.Error(), "64 of 64 elements have other bits; the worst is element 3: got NaN") {
		t.Error(err)
	}
	if err := Same(want, want); err != nil {
		t.Error(err)
	}
	if err := Same(want[1:], want); err == nil {
		t.Error("slices of different lengths are the same")
	}
}
