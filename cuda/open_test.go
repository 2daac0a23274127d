//go:build linux

package cuda

import (
	"os"
	"strings"
	"testing"
)

// TestOpeningSaysWhatIsMissing: for each way in which a machine may have no usable GPU, the error
// names what was found, what is required, and what to do.
func TestOpeningSaysWhatIsMissing(t *testing.T) {
	const library = "driver library fake"
	fails := func(call int, code result) func(*fakeDriver) {
		return func(d *fakeDriver) { d.failAt, d.failWith = call, code }
	}
	const version, init = 1, 2 // the first calls
	for name, c := range map[string]struct {
		spoil   func(*fakeDriver)
		options Options
		visible string // CUDA_VISIBLE_DEVICES
		wants   []string
	}{
		"old driver":    {spoil: func(d *fakeDriver) { d.version = 11040 }, wants: []string{library, "CUDA 11.4, but the kernels need 11.8", "update"}},
		"no version":    {spoil: fails(version, unknownError), wants: []string{"fake", "cuDriverGetVersion: CUDA_ERROR_999"}},
		"no GPU":        {spoil: fails(init, noDevice), wants: []string{library, "CUDA 12.4 finds no GPU", "nvidia-smi"}},
		"no GPU later":  {spoil: func(d *fakeDriver) { d.gpus = 0 }, wants: []string{library, "finds no GPU"}},
		"hidden":        {spoil: fails(init, noDevice), visible: "7", wants: []string{`CUDA_VISIBLE_DEVICES is "7"`}},
		"stub":          {spoil: fails(init, stubLibrary), wants: []string{library, "CUDA 12.4", "stub", "LD_LIBRARY_PATH", "cuInit: CUDA_ERROR_34"}},
		"device files":  {spoil: fails(init, operatingSystem), wants: []string{"/dev/nvidia*", "--gpus all", "CUDA_ERROR_304"}},
		"permissions":   {spoil: fails(init, notPermitted), wants: []string{"permissions", "CUDA_ERROR_800"}},
		"not ready":     {spoil: fails(init, systemNotReady), wants: []string{"nvidia-fabricmanager", "CUDA_ERROR_802"}},
		"versions":      {spoil: fails(init, driverMismatch), wants: []string{"have different versions", "restart", "CUDA_ERROR_803"}},
		"compatibility": {spoil: fails(init, compatNotSupported), wants: []string{"LD_LIBRARY_PATH", "CUDA_ERROR_804"}},
		"no module":     {spoil: fails(init, unknownError), wants: []string{"nvidia-smi", "CUDA_ERROR_999"}},
		"another error": {spoil: fails(init, invalidContext), wants: []string{library + " of CUDA 12.4: cuda: cuInit: CUDA_ERROR_201"}},
		"old GPU":       {spoil: func(d *fakeDriver) { d.major = 6 }, wants: []string{"GPU 0 (fake) has compute capability 6.0, but the kernels need 7.0", "CPU"}},
		"in use": {
			spoil: func(d *fakeDriver) { d.failCall, d.failWith = "cuDevicePrimaryCtxRetain", deviceUnavailable },
			wants: []string{"GPU 0 (fake)", "another process", "CUDA_ERROR_46"},
		},
		"precision": {
			spoil: func(d *fakeDriver) { d.major = 7 }, options: Options{Precision: BF16},
			wants: []string{"bf16 needs compute capability 8.0", "has 7.0", "fp32"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("CUDA_VISIBLE_DEVICES", c.visible)
			if c.visible == "" {
				os.Unsetenv("CUDA_VISIBLE_DEVICES")
			}
			d := newFakeDriver(t)
			c.spoil(d)
			_, err := openFake(d, c.options)
			if err == nil {
				t.Fatal("it opens")
			}
			for _, text := range c.wants {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("want %q, got %v", text, err)
				}
			}
			if left := d.left(); left != "" {
				t.Errorf("left behind: %s", left)
			}
		})
	}
}

// TestCompilerIsMissing: a container may have the driver without its compiler.
func TestCompilerIsMissing(t *testing.T) {
	d := newFakeDriver(t)
	d.failCall, d.failWith = "cuModuleLoadDataEx", noJITCompiler
	_, err := newToy(1).train(mustOpenFake(t, d, Options{}), 0, 1)
	if err == nil || !strings.Contains(err.Error(), "libnvidia-ptxjitcompiler") || !strings.Contains(err.Error(), "CUDA_ERROR_221") {
		t.Errorf("got %v", err)
	}
}

// TestListShowsWhatIsTooOld: an old GPU is listed with the capability that it would need.
func TestListShowsWhatIsTooOld(t *testing.T) {
	for major, want := range map[int]string{6: "capability 6.1 (needs 7.0), ", 7: "capability 7.1, "} {
		if got := (Info{Name: "old", Major: major, Minor: 1}).String(); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestVersionsOfPTX checks the first CUDA whose driver reads a version of PTX.
func TestVersionsOfPTX(t *testing.T) {
	for version, want := range map[int]int{70: 11000, 78: 11080, 80: 12000, 85: 12050, 86: 12070, 87: 12080, 88: 12090, 90: 13000, 91: 13010} {
		if got, err := minCUDAFor(version); got != want || err != nil {
			t.Errorf("PTX %d: got %d, %v, want %d", version, got, err, want)
		}
	}
	for _, version := range []int{65, 79, 89, 99} {
		if got, err := minCUDAFor(version); err == nil {
			t.Errorf("PTX %d: got %d, want an error", version, got)
		}
	}
}
