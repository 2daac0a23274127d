package kernel

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestInstructionSetIsLowered runs this test's program again, with less.
func TestInstructionSetIsLowered(t *testing.T) {
	const asked = "POLLEN_TEST_INSTRUCTION_SET"
	if os.Getenv(asked) != "" {
		t.Log("uses " + InstructionSet())
		return
	}
	again := exec.Command(os.Args[0], "-test.run=^TestInstructionSetIsLowered$", "-test.v")
	again.Env = append(os.Environ(), asked+"=1", "GODEBUG=cpu.avx2=off")
	output, err := again.CombinedOutput()
	if err != nil || !strings.Contains(string(output), "uses portable Go") {
		t.Errorf("with AVX2 off: %v, %s", err, output)
	}
}
