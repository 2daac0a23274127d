package kernels

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// PtxasVariable names the environment variable with the path of NVIDIA's assembler; without it,
// PATH is searched.
const PtxasVariable = "POLLEN_PTXAS"

var (
	registersLine = regexp.MustCompile(`Used (\d+) registers`)
	spillsLine    = regexp.MustCompile(`(\d+) bytes spill stores`)
)

// assembler returns the path of NVIDIA's assembler, or skips the test if there is none.
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

// cubin is the output of NVIDIA's assembler for a file.
type cubin struct {
	code []byte
	said string // its report, or its complaint if err is set
	err  error
}

// cubins caches the cubins of this process by text and architecture: TestSlots reads those that
// TestAssemble has made.
var cubins sync.Map

// assembled returns the machine code of a file for an architecture.
func assembled(ptxas, architecture string, f File) cubin {
	type key struct{ text, architecture string }
	made, _ := cubins.LoadOrStore(key{f.Text, architecture}, sync.OnceValue(func() (c cubin) {
		var dir string
		if dir, c.err = os.MkdirTemp("", "ptxas"); c.err != nil {
			return c
		}
		defer os.RemoveAll(dir)
		source, to := filepath.Join(dir, f.Name), filepath.Join(dir, "out")
		if c.err = os.WriteFile(source, []byte(f.Text), 0o644); c.err != nil {
			return c
		}
		var said []byte
		said, c.err = exec.Command(ptxas, "-v", "-arch="+architecture, source, "-o", to).CombinedOutput()
		if c.said = string(said); c.err == nil {
			c.code, c.err = os.ReadFile(to)
		}
		return c
	}))
	return made.(func() cubin)()
}

// architecture returns the assembler's name for a compute capability.
func (f File) architecture(capability int) string {
	if f.Exact {
		return fmt.Sprintf("sm_%da", capability)
	}
	return fmt.Sprintf("sm_%d", capability)
}

// TestAssemble compiles all PTX with NVIDIA's assembler, if it is installed, for the GPUs that may
// run it. From compute capability 9.0 on, GPUs run PTX for programmatic dependent launch, which has
// all instructions of the plain PTX. With -v it reports each file's registers and spills.
func TestAssemble(t *testing.T) {
	ptxas := assembler(t)
	for _, f := range mustFiles(t) {
		for _, capability := range []int{70, 80, 90, 120} {
			if f.Exact && f.Capability != capability || f.Capability > capability {
				continue
			}
			architecture := f.architecture(capability)
			if capability < DependentCapability || f.Exact {
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
	c := assembled(ptxas, architecture, f)
	if strings.Contains(c.said, "is not defined for option 'gpu-name'") {
		t.Skipf("this assembler knows no %s", architecture) // CUDA 13's none before sm_75
	}
	if c.err != nil {
		t.Fatalf("%s for %s: %v\n%s", f.Name, architecture, c.err, c.said[:min(len(c.said), 2000)])
	}
	if strings.Contains(c.said, "serialized") {
		t.Errorf("%s for %s: wgmma waits for one product after the other:\n%s", f.Name, architecture, c.said[:min(len(c.said), 2000)])
	}
	most, spilling := 0, 0
	for _, line := range strings.Split(c.said, "\n") {
		if found := registersLine.FindStringSubmatch(line); found != nil {
			most = max(most, number(found[1]))
		}
		if found := spillsLine.FindStringSubmatch(line); found != nil && found[1] != "0" {
			spilling++
		}
	}
	t.Logf("%-24s %-7s at most %3d registers, %d of %d kernels spill", f.Name, architecture, most, spilling, len(f.Entries))
}
