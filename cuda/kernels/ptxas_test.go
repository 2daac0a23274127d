package kernels

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// PtxasVariable names the environment variable with the path of NVIDIA's assembler; without it,
// PATH is searched.
const PtxasVariable = "POLLEN_PTXAS"

var (
	registersLine = regexp.MustCompile(`Used (\d+) registers`)
	spillsLine    = regexp.MustCompile(`(\d+) bytes spill stores`)
)

// assembler returns the path of NVIDIA's assembler; if there is none, the test is skipped.
func assembler(t *testing.T) string {
	t.Helper()
	ptxas := os.Getenv(PtxasVariable)
	if ptxas == "" {
		var err error
		if ptxas, err = exec.LookPath("ptxas"); err != nil {
			t.Skipf("no ptxas in PATH, and %s is not set: the PTX is not assembled", PtxasVariable)
		}
	}
	return ptxas
}

// TestAssemble has NVIDIA's assembler, if it is installed, compile all PTX for the GPUs that may
// run it. With -v it reports each file's registers and spills.
func TestAssemble(t *testing.T) {
	ptxas := assembler(t)
	for _, f := range mustFiles(t) {
		for _, capability := range []int{70, 80, 90, 120} {
			if f.Exact && f.Capability != capability || f.Capability > capability {
				continue
			}
			architecture := fmt.Sprintf("sm_%d", capability)
			if f.Exact {
				architecture += "a"
			}
			if capability <= DependentCapability {
				t.Run(f.Name+"/"+architecture, func(t *testing.T) {
					t.Parallel()
					assemble(t, ptxas, architecture, f)
				})
			}
			if capability >= DependentCapability {
				early := f
				early.Text = Dependent(f.Text)
				t.Run(f.Name+"/"+architecture+" early", func(t *testing.T) {
					t.Parallel()
					assemble(t, ptxas, architecture, early)
				})
			}
		}
	}
}

// assemble reports the registers and spills of a file's kernels.
func assemble(t *testing.T, ptxas, architecture string, f File) {
	file := filepath.Join(t.TempDir(), f.Name)
	if err := os.WriteFile(file, []byte(f.Text), 0o644); err != nil {
		t.Fatal(err)
	}
	text, err := exec.Command(ptxas, "-v", "-arch="+architecture, file, "-o", filepath.Join(t.TempDir(), "out")).CombinedOutput()
	if strings.Contains(string(text), "is not defined for option 'gpu-name'") {
		t.Skipf("this assembler knows no %s", architecture) // CUDA 13's none before sm_75
	}
	if err != nil {
		t.Fatalf("%s for %s: %v\n%s", f.Name, architecture, err, text[:min(len(text), 2000)])
	}
	if strings.Contains(string(text), "serialized") {
		t.Errorf("%s for %s: wgmma waits for one product after the other:\n%s", f.Name, architecture, text[:min(len(text), 2000)])
	}
	most, spilling := 0, 0
	for _, line := range strings.Split(string(text), "\n") {
		if found := registersLine.FindStringSubmatch(line); found != nil {
			most = max(most, number(found[1]))
		}
		if found := spillsLine.FindStringSubmatch(line); found != nil && found[1] != "0" {
			spilling++
		}
	}
	t.Logf("%-24s %-7s at most %3d registers, %d of %d kernels spill", f.Name, architecture, most, spilling, len(f.Entries))
}
