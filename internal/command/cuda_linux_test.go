package command

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/emulator"
	"github.com/pollen-ml/pollen/internal/letters"
	"github.com/pollen-ml/pollen/internal/testenv"
)

// onGPU returns the arguments of a short run on a GPU.
func onGPU(dir string, changed ...string) []string {
	arguments := strings.Fields("fit --device cuda --data notmnist --model lenet-small --method sghmc --schedule constant:0.002" +
		" --batch 6 --epochs 2 --burn-in 0 --samples 5 --chains 2")
	for i := 0; i < len(changed); i += 2 {
		arguments[slices.Index(arguments, changed[i])+1] = changed[i+1]
	}
	return append(arguments, "--folder", dir)
}

// TestRunsOnAGPU uses the emulated GPU: runs train, stop, resume and fail there as on the CPU.
func TestRunsOnAGPU(t *testing.T) {
	testenv.NeedsAll(t, "a dozen runs on the emulated GPU")
	t.Setenv(cuda.DriverVariable, emulator.Build(t))
	p := newProcesses(t)
	if err := letters.Write(p.path("data/notmnist"), 30, 10); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := p.end("pollen", []string{"devices"}, "", nil)
	if code != 0 || !strings.Contains(stdout, "\ncuda:0: Emulated GPU, compute capability 9.0") || !strings.Contains(stdout, "\ndriver library ") {
		t.Fatalf("devices says %q, %q", stdout, stderr)
	}
	p.want(0, "pollen", onGPU("whole"))
	code, _, stderr = p.end("pollen", onGPU("killed"), "killed/samples/chain00000-step000000004.safetensors", syscall.SIGKILL)
	p.check(code, -1, stderr, nil)
	p.want(0, "pollen", []string{"fit", "--resume", "killed"}, "resumed after ")
	if err := sameRuns(p.path("whole"), p.path("killed")); err != nil {
		t.Error(err)
	}
	p.want(0, "pollen", []string{"eval", "--device", "auto", "killed"}, "device: cuda:0 (Emulated GPU, ", ", the first GPU")

	small := []string{"--model", "mlp-8"}
	p.want(0, "pollen", onGPU("small", small...))
	for _, broken := range []string{
		"cuMemAlloc_v2:2", "cuModuleLoadDataEx:1", "cuGraphAddKernelNode:8", "cuGraphLaunch:5", "cuMemcpyDtoHAsync_v2:4", "cuStreamSynchronize:6",
	} {
		call, _, _ := strings.Cut(broken, ":")
		t.Setenv("POLLEN_EMULATOR_FAIL", broken+":719")
		p.want(exitFailure, "pollen", onGPU(call, small...), call+": CUDA_ERROR_LAUNCH_FAILED")
		t.Setenv("POLLEN_EMULATOR_FAIL", "")
		again := []string{"fit", "--resume", call}
		if _, err := os.Stat(p.path(call + "/manifest.json")); err != nil { // it failed before there was anything to resume
			again = onGPU(call, small...)
		}
		p.want(0, "pollen", again)
		if err := sameRuns(p.path("small"), p.path(call)); err != nil {
			t.Errorf("%s: %v", broken, err)
		}
	}

	t.Setenv("POLLEN_EMULATOR_MEMORY", "33554432")
	p.want(exitMemory, "pollen", onGPU("large", "--batch", "30", "--samples", "1", "--chains", "1000"),
		"keeping the weights of 1000 chains needs", "are available (the GPU's memory); less is needed with --chains ")
	t.Setenv("POLLEN_EMULATOR_MEMORY", "")
	t.Setenv("POLLEN_EMULATOR_DEVICES", "0")
	p.want(exitFailure, "pollen", onGPU("nowhere"), "finds no GPU")
	p.want(exitFailure, "pollen", onGPU("nowhere", "--device", "cuda:1"), "finds no GPU")
}
