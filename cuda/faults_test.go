//go:build linux

package cuda

import (
	"cmp"
	"strings"
	"testing"
	"unsafe"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor"
)

// session opens a device, trains, and closes the device.
func session(d *fakeDriver, o Options, chains int) (states [][]byte, err error) {
	device, err := openFake(d, o)
	if err != nil {
		return nil, err
	}
	states, err = newToy(chains).train(device, 0, 18)
	return states, cmp.Or(err, device.Close())
}

// TestEveryCallMayFail makes each call of a short training fail in turn. The error must name the
// call, and nothing may be left behind.
func TestEveryCallMayFail(t *testing.T) {
	for _, o := range []Options{{}, {GPUs: []int{0, 1}}, {Synchronous: true}} {
		whole := newFakeDriver(t)
		if _, err := session(whole, o, 2); err != nil {
			t.Fatal(err)
		}
		if whole.calls < 100 {
			t.Fatalf("%d calls make no training", whole.calls)
		}
		for _, code := range []result{invalidValue, outOfMemory, illegalAddress} {
			for n := 1; n <= whole.calls; n++ {
				d := newFakeDriver(t)
				d.failAt, d.failWith = n, code
				_, err := session(d, o, 2)
				if d.failed == "" {
					if err != nil { // GPUs work side by side: which call is the last one varies
						t.Errorf("no call failed, and yet: %v", err)
					}
					continue
				}
				var memory *OutOfMemory
				if err == nil {
					t.Errorf("%+v: call %d, %s, fails with %d: no error", o, n, d.failed, code)
				} else if !strings.Contains(err.Error(), d.failed) && !errors.As(err, &memory) {
					t.Errorf("%+v: call %d, %s, fails with %d: the error is %v", o, n, d.failed, code, err)
				}
				if left := d.left(); left != "" && !strings.HasPrefix(d.failed, "cuMemFree") && !strings.HasSuffix(d.failed, "Destroy") &&
					d.failed != "cuStreamDestroy_v2" && d.failed != "cuModuleUnload" && d.failed != "cuCtxSetCurrent" {
					t.Errorf("%+v: call %d, %s, fails with %d: left behind %s", o, n, d.failed, code, left)
				}
			}
		}
	}
}

func TestALostGPUSaysSo(t *testing.T) {
	d := newFakeDriver(t)
	device := mustOpenFake(t, d, Options{})
	s := newToy(1)
	r, err := device.Load(s.Workload)
	if err != nil {
		t.Fatal(err)
	}
	d.failAt, d.failWith = d.calls+2, launchFailed
	if err := r.Run(1); err == nil || !strings.Contains(err.Error(), "CUDA_ERROR_719") || !strings.Contains(err.Error(), "GPU 0 (fake)") {
		t.Fatalf("the first error is %v", err)
	}
	for _, err := range []error{r.Run(1), s.fill(r, 0), func() error { _, err := device.Load(s.Workload); return err }()} {
		if err == nil || !strings.Contains(err.Error(), "is lost since") || !strings.Contains(err.Error(), "CUDA_ERROR_719") {
			t.Errorf("a lost GPU answers %v", err)
		}
	}
	if err := cmp.Or(r.Close(), device.Close()); err != nil {
		t.Errorf("close of a lost GPU: %v", err)
	}
	if left := d.left(); left != "" {
		t.Errorf("left behind: %s", left)
	}
}

func TestSynchronousErrorsNameTheLaunch(t *testing.T) {
	noSwitches(t)
	for _, synchronous := range []bool{true, false} {
		d := newFakeDriver(t)
		broken := d.kernels["toy_add_f32"]
		broken.run = func([]unsafe.Pointer, int) { d.lost[0] = illegalAddress }
		d.kernels["toy_add_f32"] = broken
		device := mustOpenFake(t, d, Options{Synchronous: synchronous})
		s := newToy(1)
		r, err := device.Load(s.Workload)
		if err != nil {
			t.Fatal(err)
		}
		err = r.Run(1)
		if err == nil || strings.Contains(err.Error(), "toy_add_f32 (add)") != synchronous {
			t.Errorf("synchronous %v: %v", synchronous, err)
		}
		if err := cmp.Or(r.Close(), device.Close()); err != nil {
			t.Error(err)
		}
	}
}

func TestOutOfMemoryTellsHowManyChainsFit(t *testing.T) {
	for _, gpus := range [][]int{{0}, {0, 1}} {
		d := newFakeDriver(t)
		d.total = 64 << 20
		device := mustOpenFake(t, d, Options{GPUs: gpus})
		s := newToy(len(gpus) << 15)
		_, err := device.Load(s.Workload)
		var memory *OutOfMemory
		if !errors.As(err, &memory) {
			t.Fatalf("%d chains: %v", s.Chains, err)
		}
		if memory.Chains != s.Chains || memory.PerChain < 2000 || memory.Fit < 1000 || !strings.Contains(err.Error(), "at most") {
			t.Errorf("%v", err)
		}
		for _, c := range []struct {
			chains int
			fits   bool
		}{{memory.Fit, true}, {memory.Fit * 6 / 5, false}} {
			r, err := device.Load(newToy(c.chains).Workload)
			if (err == nil) != c.fits {
				t.Errorf("%d chains, where %d should fit: %v", c.chains, memory.Fit, err)
			}
			if err == nil {
				err = r.Close()
			}
			if c.fits && err != nil {
				t.Error(err)
			}
		}
		if err := device.Close(); err != nil {
			t.Error(err)
		}
		if left := d.left(); left != "" {
			t.Errorf("left behind: %s", left)
		}
	}
	huge := &toy{Workload: tensor.Workload{Chains: 1, Bytes: [arenas]int{1 << 31, 0, 0}}}
	device := mustOpenFake(t, newFakeDriver(t), Options{})
	defer device.Close()
	if _, err := device.Load(huge.Workload); err == nil || !strings.Contains(err.Error(), "at most 0") {
		t.Errorf("data that do not fit: %v", err)
	}
}
