//go:build linux

package cuda

import (
	"bytes"
	"cmp"
	"strings"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor"
)

func onHost(t *testing.T, chains, first, steps int) [][]byte {
	t.Helper()
	host := tensor.NewHost(1)
	defer host.Close()
	want, err := newToy(chains).train(host, first, steps)
	if err != nil {
		t.Fatal(err)
	}
	return want
}

func TestChainsAndGPUs(t *testing.T) {
	for _, gpus := range [][]int{nil, {1}, {0, 2}, {2, 1, 0}} {
		for _, chains := range []int{1, 2, 3, 8} {
			for _, steps := range []int{0, 1, 15, 16, 35} {
				d := newFakeDriver(t)
				device := mustOpenFake(t, d, Options{GPUs: gpus})
				got, err := newToy(chains).train(device, 5, steps)
				if err != nil {
					t.Fatalf("GPUs %v, %d chains, %d steps: %v", gpus, chains, steps, err)
				}
				if !same(got, onHost(t, chains, 5, steps)) {
					t.Errorf("GPUs %v, %d chains, %d steps: not what the host computes", gpus, chains, steps)
				}
				separate, err := newToy(1).train(device, 5+chains-1, steps)
				if err != nil || !bytes.Equal(separate[0], got[chains-1]) {
					t.Errorf("GPUs %v, %d chains, %d steps: a run of the last chain only differs (%v)", gpus, chains, steps, err)
				}
				if err := device.Close(); err != nil {
					t.Error(err)
				}
				if left := d.left(); left != "" {
					t.Errorf("left behind: %s", left)
				}
				for _, g := range device.gpus {
					if g.staging != nil {
						t.Errorf("%v keeps the address of memory that it gave back", g)
					}
				}
			}
		}
	}
}

func TestStepIsRun(t *testing.T) {
	for _, o := range []Options{{}, {GPUs: []int{0, 1}}, {Synchronous: true}, {sequential: true}} {
		device := mustOpenFake(t, newFakeDriver(t), o)
		s := newToy(3)
		r, err := device.Load(s.Workload)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.fill(r, 0); err != nil {
			t.Fatal(err)
		}
		for range 4 {
			for chain := range 3 {
				var seen []int
				err := r.Step(chain, func(i int) error {
					seen = append(seen, i)
					y := make([]float32, toyElements)
					if err := r.Read(s.y, chain, 0, tensor.Bytes(y)); err != nil {
						return err
					}
					if y[1] == 0 {
						t.Errorf("chain %d, launch %d: scratch memory reads as 0", chain, i)
					}
					return nil
				})
				if err != nil || len(seen) != 3 {
					t.Fatalf("chain %d visited %v: %v", chain, seen, err)
				}
			}
		}
		got, err := s.state(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Run(4); err != nil {
			t.Fatal(err)
		}
		after, _ := s.state(r)
		if want := onHost(t, 3, 0, 2); !same(got, want) {
			t.Errorf("%+v: steps are not what a run makes", o)
		}
		if want := onHost(t, 3, 0, 4); !same(after, want) {
			t.Errorf("%+v: a run after steps goes elsewhere", o)
		}
		stop := errors.New("stop")
		if err := r.Step(0, func(int) error { return stop }); err != stop {
			t.Errorf("visit's error is %v", err)
		}
		if err := cmp.Or(r.Close(), device.Close()); err != nil {
			t.Error(err)
		}
	}
}

func TestTwoSchedulesShareAGPU(t *testing.T) {
	d := newFakeDriver(t)
	device := mustOpenFake(t, d, Options{})
	a, b := newToy(2), newToy(3)
	first, err := device.Load(a.Workload)
	if err != nil {
		t.Fatal(err)
	}
	second, err := device.Load(b.Workload)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.fill(first, 0); err != nil {
		t.Fatal(err)
	}
	if err := b.fill(second, 40); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 2)
	for _, r := range []tensor.Runner{first, second} {
		go func() { done <- r.Run(20) }()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if err := device.Close(); err == nil || !strings.Contains(err.Error(), "while 2 workloads are loaded") {
		t.Errorf("close while workloads are loaded: %v", err)
	}
	got, _ := a.state(first)
	if !same(got, onHost(t, 2, 0, 10)) {
		t.Error("the first schedule is not what the host computes")
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	got, _ = b.state(second)
	if !same(got, onHost(t, 3, 40, 10)) {
		t.Error("the second schedule is not what the host computes")
	}
	for range 2 {
		if err := second.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := first.Run(1); err == nil {
		t.Error("run after close")
	}
	if err := a.fill(first, 0); err == nil {
		t.Error("write after close")
	}
	for range 2 {
		if err := device.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := device.Load(a.Workload); err == nil || !strings.Contains(err.Error(), "after Close") {
		t.Errorf("load after close: %v", err)
	}
	if left := d.left(); left != "" {
		t.Errorf("left behind: %s", left)
	}
}

// A workload can be closed while another goroutine uses it, which then gets an error.
func TestCloseWhileUsed(t *testing.T) {
	d := newFakeDriver(t)
	device := mustOpenFake(t, d, Options{})
	for range 20 {
		s := newToy(2)
		r, err := device.Load(s.Workload)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.fill(r, 0); err != nil {
			t.Fatal(err)
		}
		uses := []func() error{
			func() error { return r.Run(1) },
			func() error { return r.Write(s.x, 1, 0, make([]byte, 4)) },
			func() error { return r.Read(s.x, 1, 0, make([]byte, 4)) },
		}
		ended := make(chan error, len(uses))
		for _, use := range uses {
			go func() {
				var err error
				for err == nil {
					err = use()
				}
				ended <- err
			}()
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		for range uses {
			if err := <-ended; !strings.Contains(err.Error(), "after Close") {
				t.Error(err)
			}
		}
	}
	if err := device.Close(); err != nil {
		t.Error(err)
	}
	if left := d.left(); left != "" {
		t.Errorf("left behind: %s", left)
	}
}

func TestTransfersAreChecked(t *testing.T) {
	device := mustOpenFake(t, newFakeDriver(t), Options{})
	s := newToy(2)
	r, err := device.Load(s.Workload)
	if err != nil {
		t.Fatal(err)
	}
	outside := tensor.NewBuffer("outside", tensor.Chain, tensor.Float32, 1<<20)
	outside.Offset = 0
	for name, err := range map[string]error{
		"chain 2":  r.Read(s.x, 2, 0, make([]byte, 4)),
		"chain -1": r.Write(s.x, -1, 0, make([]byte, 4)),
		"behind":   r.Read(s.x, 0, toyElements, make([]byte, 4)),
		"before":   r.Read(s.x, 0, -1, make([]byte, 4)),
		"no place": r.Read(tensor.NewBuffer("b", tensor.Chain, tensor.Float32, 1), 0, 0, make([]byte, 4)),
		"outside":  r.Read(outside, 0, 0, make([]byte, 4)),
		"step":     r.Step(2, func(int) error { return nil }),
		"run":      r.Run(-1),
		"keep": func() error {
			s := newToy(1)
			s.Keeps = false
			r, err := device.Load(s.Workload)
			if err != nil {
				return nil
			}
			return cmp.Or(r.Keep(), r.Close())
		}(),
		"no chains":   func() error { _, err := device.Load(tensor.Workload{}); return err }(),
		"unplaced":    func() error { s := newToy(1); s.x.Offset = -1; _, err := device.Load(s.Workload); return err }(),
		"wrong place": func() error { s := newToy(1); s.x.Offset = 1 << 20; _, err := device.Load(s.Workload); return err }(),
	} {
		if err == nil || !strings.Contains(err.Error(), "cuda: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	var got [1]float32
	if err := r.Write(s.x, 1, 3, tensor.Bytes([]float32{42})); err != nil {
		t.Fatal(err)
	}
	if err := r.Read(s.x, 1, 3, tensor.Bytes(got[:])); err != nil || got[0] != 42 {
		t.Errorf("wrote 42, read %v (%v)", got[0], err)
	}
	if err := r.Read(s.x, 1, toyElements, nil); err != nil {
		t.Error(err)
	}
	if err := cmp.Or(r.Close(), device.Close()); err != nil {
		t.Error(err)
	}
}

func TestOptionsAndDrivers(t *testing.T) {
	noSwitches(t)
	for want, o := range map[string]Options{
		"bf16, got \"fp8\"": {Precision: "fp8"},
		"no GPU 3":          {GPUs: []int{3}},
		"no GPU -1":         {GPUs: []int{0, -1}},
		"got 1 twice":       {GPUs: []int{1, 0, 1}},
	} {
		d := newFakeDriver(t)
		if _, err := openFake(d, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
		if left := d.left(); left != "" {
			t.Errorf("%s: left behind: %s", want, left)
		}
	}
	device := mustOpenFake(t, newFakeDriver(t), Options{GPUs: []int{2, 0}, Precision: TF32})
	defer device.Close()
	if got, want := device.Name(), "cuda:2,0 (fake, compute capability 9.0, CUDA 12.4, tf32)"; got != want {
		t.Errorf("name %q, want %q", got, want)
	}
}

func TestSourcesAreChosenByCapability(t *testing.T) {
	for _, c := range []struct {
		capability, cuda int
		want             string
	}{{70, 12040, "old"}, {80, 12040, "old"}, {90, 12040, "new"}, {90, 11080, "old"}, {100, 13000, "old"}} {
		if got := selectKernels(toySources, c.capability, c.cuda)["toy_scale_f32"].head; got != c.want {
			t.Errorf("capability %d with CUDA %d takes the %s source, want the %s one", c.capability, c.cuda, got, c.want)
		}
	}
}

func TestCompilerLogIsInTheError(t *testing.T) {
	l, _ := newLibrary(newFakeDriver(t), "fake")
	from := []ptxFile{{name: "toy.ptx", capability: 70, symbols: []string{"toy_scale_f32"}, head: "broken"}}
	device, err := open(l, from, 512, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	_, err = device.Load(newToy(1).Workload)
	if err == nil || !strings.Contains(err.Error(), "no such instruction") || !strings.Contains(err.Error(), "toy.ptx") {
		t.Errorf("a broken kernel: %v", err)
	}
	from[0].symbols = nil
	if _, err := device.Load(newToy(1).Workload); err == nil {
		t.Error("a missing kernel is no error")
	}
}

// TestUndescribedLaunches: a launch must describe its calls for a GPU.
func TestUndescribedLaunches(t *testing.T) {
	device := mustOpenFake(t, newFakeDriver(t), Options{})
	defer device.Close()
	for want, calls := range map[string][]tensor.Call{
		"launch toy_scale_f32 (scale): has no calls for a GPU":    nil,
		"launch toy_scale_f32 (scale): toy_scale_f32 has no grid": {{Kernel: "toy_scale_f32"}},
	} {
		s := newToy(1)
		s.Launches[0].Calls = calls
		if _, err := device.Load(s.Workload); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}
