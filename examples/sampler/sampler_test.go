package main

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/tensor"
)

const (
	curvature = 1.5 // of the potential U = curvature/2 theta^2, the prior's included
	dataSize  = 10  // N, which a rule with N in a wrong place must not get away with
	stepSize  = 0.4 // large, so that the bias of a wrong rule is large
)

// load is a session of chains that sample n elements of U by the sampler.
func load(t *testing.T, device tensor.Device, dtype tensor.DType, s LeimkuhlerMatthews, n, chains int, temperature float64) *graph.Session {
	t.Helper()
	b := graph.New(dtype)
	w := b.Parameter("w", normals, n)
	// The prior N(0, 1) has the curvature 1, the likelihood the rest. The loss is a mean over the
	// data.
	loss := b.Apply(op.Scale{Factor: (curvature - 1) / 2 / dataSize}, b.Apply(op.Sum{}, b.Apply(op.Squared{}, w)))
	posterior := langevin.Posterior{DataSize: dataSize, Prior: langevin.Gaussian(1)}
	if err := langevin.Attach(b, s, posterior, loss, []float64{stepSize}, []float64{temperature}); err != nil {
		t.Fatal(err)
	}
	program, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	session, err := program.Load(device, graph.LoadOptions{Seed: 1, Chains: chains})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

func host(t *testing.T) tensor.Device {
	device := tensor.NewHost(2)
	t.Cleanup(func() { device.Close() })
	return device
}

func read(t *testing.T, s *graph.Session, name string, chain, n int) []float64 {
	t.Helper()
	values := make([]float64, n)
	if err := graph.Read(s, name, chain, 0, values); err != nil {
		t.Fatal(err)
	}
	return values
}

func advance(t *testing.T, s *graph.Session, steps int) {
	t.Helper()
	if err := s.Run(steps); err != nil {
		t.Fatal(err)
	}
}

// TestRule: three steps follow the formula, written here once more in float64. The noise is read
// back from the state; its distribution is the business of package random.
func TestRule(t *testing.T) {
	const n, temperature = 1000, 0.7
	s := LeimkuhlerMatthews{Carry: 0.3}
	session := load(t, host(t), tensor.Float64, s, n, 2, temperature)
	for step := range 3 {
		theta, before := read(t, session, "w", 1, n), read(t, session, "w.noise before", 1, n)
		advance(t, session, 1)
		got, xi := read(t, session, "w", 1, n), read(t, session, "w.noise before", 1, n)
		for i := range got {
			want := theta[i] - stepSize*curvature*theta[i] + math.Sqrt(2*stepSize*temperature)*(0.7*xi[i]+0.3*before[i])
			if !(math.Abs(got[i]-want) < 1e-12) {
				t.Fatalf("step %d: element %d is %v, want %v", step, i, got[i], want)
			}
		}
	}
}

// variance is the stationary variance of an element, as the sampler's comment states it.
func variance(carry, temperature float64) float64 {
	hk := stepSize * curvature
	return temperature / curvature * (1 - 2*hk*carry*(1-carry)) / (1 - hk/2)
}

// TestVariance: the chain has the variance of the theory. The tolerance is 5 standard errors of
// independent elements, which the variances of other values of Carry exceed.
func TestVariance(t *testing.T) {
	const n, chains, temperature = 2000, 4, 0.7
	for _, carry := range []float64{0, 0.2, 0.5} {
		session := load(t, host(t), tensor.Float64, LeimkuhlerMatthews{carry}, n, chains, temperature)
		advance(t, session, 50) // until the start is forgotten: (1 - hk)^50
		squares := 0.0
		for chain := range chains {
			for _, theta := range read(t, session, "w", chain, n) {
				squares += theta * theta / (n * chains)
			}
		}
		want := variance(carry, temperature)
		if off := math.Abs(squares/want - 1); !(off < 5*math.Sqrt(2./(n*chains))) {
			t.Errorf("Carry %v: variance %v, want %v", carry, squares, want)
		}
	}
}

// TestGPU: the kernel makes the host's steps, on the emulated GPU by leimkuhler.ptx. The sizes are
// odd, and above a tile.
func TestGPU(t *testing.T) {
	gpu := cudatest.GPU(t, cuda.Options{})
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
		for _, n := range []int{1, 31, 2051} {
			var got [2][]float32
			for i, device := range []tensor.Device{host(t), gpu} {
				session := load(t, device, dtype, LeimkuhlerMatthews{Carry: 0.3}, n, 2, 0.7)
				advance(t, session, 3)
				got[i] = make([]float32, n)
				if err := session.ReadFloats("w", 1, got[i]); err != nil {
					t.Fatal(err)
				}
			}
			for i, want := range got[0] {
				if math.Abs(float64(got[1][i]-want)) > 1e-6 {
					t.Fatalf("%v, %d elements: element %d is %v on the GPU, want %v", dtype, n, i, got[1][i], want)
				}
			}
		}
	}
}

// TestValidate: what is out of range is refused.
func TestValidate(t *testing.T) {
	for _, carry := range []float64{-0.1, 0.6, math.NaN()} {
		if err := (LeimkuhlerMatthews{carry}).Validate(); err == nil {
			t.Errorf("Carry %v: no error", carry)
		}
	}
}

// TestRun: the network learns.
func TestRun(t *testing.T) {
	all, err := datasets.Open("mnist", datasets.Options{})
	if err != nil {
		t.Fatal(err)
	}
	digits := &datasets.Splits{}
	if digits.Train, err = all.Train.First(500); err == nil {
		digits.Test, err = all.Test.First(200)
	}
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(t.Context(), &out, "cpu", 0, digits); err == nil || !strings.Contains(err.Error(), "at least 1") {
		t.Errorf("no epochs: %v, want an error", err)
	}
	if err := run(t.Context(), &out, "cpu", 10, digits); err != nil {
		t.Fatal(err)
	}
	accuracy := 0.0
	if _, err := fmt.Sscanf(out.String(), "accuracy %g,", &accuracy); err != nil || !(accuracy > 0.5) {
		t.Errorf("after ten epochs of 500 digits: %s %v", out.String(), err)
	}
}
