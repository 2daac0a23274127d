package trial

import (
	"testing"

	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// The name of the parameter of an experiment, and the seed of its run.
const (
	ParameterName = "w.weight"
	RunSeed       = 7
)

// NormalDraws returns n standard normals that depend only on the stream.
func NormalDraws(n int, stream uint16) []float64 {
	z := make([]float64, n)
	random.Normals(z, 0, random.Address{Seed: 99, Stream: stream})
	return z
}

// Load compiles a graph and loads it on the device of the tests.
func Load(t testing.TB, b *graph.Builder, o graph.LoadOptions, threads int) *graph.Session {
	t.Helper()
	program, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	session, err := program.Load(cudatest.Device(t, threads), o)
	cudatest.SkipWithoutKernel(t, err)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// Advance runs the given number of steps.
func Advance(t testing.TB, s *graph.Session, steps int) {
	t.Helper()
	for steps > 0 {
		n := min(steps, graph.MetricRows)
		if err := s.Run(n); err != nil {
			t.Fatal(err)
		}
		steps -= n
	}
}

// Values reads a parameter or state of one chain, in the program's precision.
func Values(t testing.TB, s *graph.Session, name string, chain, n int) []float64 {
	t.Helper()
	if s.Program().DType() == tensor.Float32 {
		v := make([]float32, n)
		if err := graph.Read(s, name, chain, 0, v); err != nil {
			t.Fatal(err)
		}
		return tensor.Convert[float64](v)
	}
	v := make([]float64, n)
	if err := graph.Read(s, name, chain, 0, v); err != nil {
		t.Fatal(err)
	}
	return v
}

// StartAt initialises every element to the same value.
func StartAt(value float64) graph.Initializer {
	return func(_ uint64, _ uint32, _ uint16, _ tensor.Shape, values []float64) {
		for i := range values {
			values[i] = value
		}
	}
}

// Normal initialises elements to independent normals times scale(i).
func Normal(scale func(i int) float64) graph.Initializer {
	return func(seed uint64, chain uint32, stream uint16, _ tensor.Shape, values []float64) {
		random.Normals(values, 0, random.Address{Seed: seed, Chain: chain, Step: 1 << 40, Stream: stream})
		for i := range values {
			values[i] *= scale(i)
		}
	}
}
