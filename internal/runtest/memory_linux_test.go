package runtest

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/letters"
	"github.com/pollen-ml/pollen/internal/testenv"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/tensor"
)

// resident returns the memory of this process that is in use.
func resident(t *testing.T) float64 {
	t.Helper()
	debug.FreeOSMemory()
	content, err := os.ReadFile("/proc/self/statm")
	must(t, err)
	var size, pages float64
	_, err = fmt.Sscan(string(content), &size, &pages)
	must(t, err)
	return pages * float64(os.Getpagesize())
}

// near fails the test unless measured memory is near its estimate.
func near(t *testing.T, what string, measured float64, m *bayes.Memory) {
	t.Helper()
	ratio := measured / float64(m.Host)
	t.Logf("%s: measured %.1f MB, estimated %.1f MB: %.2f", what, measured/1e6, float64(m.Host)/1e6, ratio)
	if ratio < 0.7 || ratio > 1.3 {
		t.Errorf("%s: %.1f MB are %.2f of the estimate\n%v", what, measured/1e6, ratio, m)
	}
}

// TestMemoryOfPredictions compares the memory of predictions and predictors with the estimates.
func TestMemoryOfPredictions(t *testing.T) {
	testenv.NeedsAll(t, "writes samples of 150 MB")
	data := &datasets.Splits{Train: squares(t, 200, 4, 1)}
	spec := bayes.Spec{Network: "mlp-1000-1000", Batch: 20, Epochs: 2, BurnIn: new(int), Samples: 20, Method: langevin.SGLD{}}
	run := fit(t, spec, data, with(t, 2)).With(with(t, 2))

	const batch = 64
	m, err := run.PredictorMemory(batch)
	must(t, err)
	before := resident(t)
	p, err := run.Predictor(batch)
	must(t, err)
	_, err = p.Answer(context.Background(), data.Train.Images)
	must(t, err)
	near(t, "a predictor", resident(t)-before, m)
	must(t, p.Close())
	if left := resident(t) - before; left > 0.2*float64(m.Host) {
		t.Errorf("%.1f MB are left after Close", left/1e6)
	}

	many := squares(t, 250000, 4, 2)
	spec = bayes.Spec{Network: "mlp-16", Method: langevin.SGLD{}, Batch: 20, Epochs: 2, BurnIn: new(int), Samples: 2}
	run = fit(t, spec, data, with(t, 2)).With(with(t, 2))
	m, err = run.PredictMemory(many.Len())
	must(t, err)
	before = resident(t)
	resetPeak(t)
	_, err = run.Predictions(context.Background(), many, nil)
	must(t, err)
	near(t, "predictions", peak(t)-before, m)
}

// resetPeak sets the peak of the process to its present memory.
func resetPeak(t *testing.T) {
	t.Helper()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		t.Skipf("the peak of the process cannot be reset: %v", err)
	}
}

// peak returns the most memory that the process had since resetPeak.
func peak(t *testing.T) float64 {
	t.Helper()
	content, err := os.ReadFile("/proc/self/status")
	must(t, err)
	_, line, _ := strings.Cut(string(content), "VmHWM:")
	var kilobytes float64
	_, err = fmt.Sscan(line, &kilobytes)
	must(t, err)
	return 1024 * kilobytes
}

// A run that needs more memory than there is, is refused before anything is allocated or written.
func TestTooLittleMemory(t *testing.T) {
	data := &datasets.Splits{Train: squares(t, 200, 4, 1), Validation: squares(t, 40, 4, 2)}
	for name, c := range map[string]struct {
		spec   bayes.Spec
		advice string
	}{
		"many chains":     {bayes.Spec{Network: "mlp-2000-2000", Method: langevin.SGLD{}, Chains: 60000, Batch: 20}, "chains "},
		"a large network": {bayes.Spec{Network: "mlp-40000-40000", Method: langevin.SGLD{}, Chains: 1000, Batch: 20}, "a smaller model"},
		"HMC":             {bayes.Spec{Network: "mlp-2000-2000", Chains: 60000, Method: methodOf(t, "hmc")}, "chains "},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		before := resident(t)
		_, err := bayes.Fit(context.Background(), c.spec, data, dir)
		var e *bayes.MemoryError
		if !errors.As(err, &e) || e.Need <= e.Limit.Bytes || len(e.Advice) == 0 || !strings.HasPrefix(e.Advice[0], c.advice) {
			t.Errorf("%s: %v, want a MemoryError that advises %s", name, err, c.advice)
			continue
		}
		wantError(t, name, err, "pollen: fit: keeping the weights of ", " of memory, ", " are available (")
		if took := resident(t) - before; took > 100e6 {
			t.Errorf("%s: %.0f MB were allocated", name, took/1e6)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s: the run's directory was made (%v)", name, err)
		}
		_, err = bayes.Try(context.Background(), c.spec, data.Train, 2)
		if !errors.As(err, &e) {
			t.Errorf("%s: Try: %v, want a MemoryError", name, err)
		}
	}
}

// The peak is what is kept throughout and the largest phase; what needs more, has larger parts.
func TestEstimateMemory(t *testing.T) {
	data := &datasets.Splits{Train: squares(t, 200, 4, 1), Validation: squares(t, 40, 4, 2)}
	estimate := func(change func(s *bayes.Spec)) *bayes.Memory {
		t.Helper()
		s := bayes.Spec{Network: "mlp-50", Method: langevin.SGLD{}, Batch: 20}
		change(&s)
		m, err := bayes.EstimateMemory(s, data, with(t, 2))
		must(t, err)
		return m
	}
	one := estimate(func(*bayes.Spec) {})
	throughout, training, after := int64(0), int64(0), int64(0)
	for _, p := range one.Parts {
		switch p.Phase {
		case "":
			throughout += p.Host
		case "during training":
			training += p.Host
		default:
			after = max(after, p.Host)
		}
	}
	if one.Host != throughout+max(training, after) || one.Device != 0 || !one.Fits() || one.DeviceAvailable != math.MaxInt64 {
		t.Errorf("%+v: the peak is not %d + max(%d, %d)", one, throughout, training, after)
	}
	if bytes := int64(240 * (side*side + 4)); one.Loaded != bytes {
		t.Errorf("%d bytes are loaded, want the %d of 240 images and labels", one.Loaded, bytes)
	}
	for name, change := range map[string]func(s *bayes.Spec){
		"chains":   func(s *bayes.Spec) { s.Chains = 8 },
		"network":  func(s *bayes.Spec) { s.Network = "mlp-500" },
		"batch":    func(s *bayes.Spec) { s.Batch = 200; s.Epochs = 100 },
		"replicas": func(s *bayes.Spec) { s.Temperatures = []float64{1, 1.1, 1.2, 1.3} },
		"adam":     func(s *bayes.Spec) { s.Method = methodOf(t, "psgld") },
	} {
		if more := estimate(change); more.Host <= one.Host {
			t.Errorf("%s: %d bytes, want more than %d", name, more.Host, one.Host)
		}
	}
	// Samples may be given by their number or by their interval.
	interval := func(s *bayes.Spec) { s.Epochs, s.BurnIn, s.Thinning = 100, new(50), 50 }
	number := func(s *bayes.Spec) { s.Epochs, s.BurnIn, s.Samples = 100, new(50), 10 }
	if by, of := estimate(interval), estimate(number); !reflect.DeepEqual(by.Parts, of.Parts) {
		t.Errorf("with an interval of samples, the parts are %+v, and with their number %+v", by.Parts, of.Parts)
	}
	for _, method := range bayes.MethodNames() {
		estimate(func(s *bayes.Spec) {
			s.Method, s.Chains, s.Batch = methodOf(t, method), 2, 0
			if method == "distil" {
				s.Chains, s.Teacher = 1, "runs/teacher"
			}
		})
	}
	_, err := bayes.EstimateMemory(bayes.Spec{Chains: -1}, data)
	wantInvalid(t, "EstimateMemory", err, "chains")
	_, err = bayes.EstimateMemory(bayes.Spec{}, nil)
	wantInvalid(t, "EstimateMemory", err, "no data")
}

// gpu is a device with separate memory, and the given number of free bytes in it.
type gpu struct {
	*tensor.Host
	free int
}

func (g gpu) Size(w tensor.Workload) (tensor.Footprint, error) {
	size, err := g.Host.Size(w)
	return tensor.Footprint{Device: size.Host}, err
}

func (g gpu) Free() (int, error) { return g.free, nil }

// A GPU's memory is checked like the host's, for all phases of a run.
func TestTooLittleMemoryOfAGPU(t *testing.T) {
	host := tensor.NewHost(2)
	defer host.Close()
	data := &datasets.Splits{Train: squares(t, 200, 4, 1), Validation: squares(t, 40, 4, 2)}
	spec := bayes.Spec{Network: "mlp-400-400", Method: langevin.SGLD{}, Batch: 20, Epochs: 2, BurnIn: new(int), Samples: 2, Chains: 8}
	m, err := bayes.EstimateMemory(spec, data, bayes.WithDevice(gpu{host, math.MaxInt}))
	must(t, err)
	if m.Device < 1<<20 || m.Host-m.Loaded > 128<<20 || !strings.Contains(m.String(), "on the GPU") {
		t.Errorf("the estimate for a GPU is\n%v", m)
	}
	dir := filepath.Join(t.TempDir(), "run")
	_, err = bayes.Fit(context.Background(), spec, data, dir, bayes.WithDevice(gpu{host, int(m.Device) * 3 / 4}))
	var e *bayes.MemoryError
	if !errors.As(err, &e) || e.Need != m.Device || e.Limit.Bytes != m.Device*3/4 {
		t.Fatalf("%v, want a MemoryError of %d bytes", err, m.Device)
	}
	wantError(t, "less memory", err, "(the GPU's memory)", "less is needed with chains ")
	_, err = bayes.Fit(context.Background(), spec, data, dir, bayes.WithDevice(gpu{host, int(m.Device)}))
	must(t, err)
}

// TestAutoWithoutMemory: where there is time for all data at each step, but no memory, the remark
// on what is lost says so.
func TestAutoWithoutMemory(t *testing.T) {
	host := tensor.NewHost(2)
	defer host.Close()
	const examples = 3000 // the speed is measured with fewer
	data := trainOn(letters.Noisy(t, examples))
	spec := bayes.Spec{Network: "mlp-5", Method: methodOf(t, "mclmc"), Chains: 4}
	m, err := bayes.EstimateMemory(spec, data, bayes.WithDevice(gpu{host, math.MaxInt}))
	must(t, err)
	remarks, free := "", int(m.Parts[1].Device)-1
	spec.Method, spec.Budget = bayes.Auto{}, 24*time.Hour
	observer := bayes.WithObserver(func(e bayes.Event) { remarks += e.Remark + "\n" })
	_, err = bayes.Try(t.Context(), spec, data.Train, 2, bayes.WithDevice(gpu{host, free}), observer)
	must(t, err)
	const want = "; lost for want of memory: 1500 steps with 3000 of 3000 examples each. Minibatches heat"
	if !strings.Contains(remarks, want) || strings.Contains(remarks, "budget") {
		t.Errorf("remarks %q", remarks)
	}
}
