package cuda_test

import (
	"fmt"
	"testing"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/optest"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// TestNoiseIsTheHosts compares a million numbers of each kind, in several chains and steps, with
// package random's, to the bit.
func TestNoiseIsTheHosts(t *testing.T) {
	device := cudatest.GPU(t, cuda.Options{})
	const elements, chains, steps = 166_667, 3, 2
	for kind, draw := range map[op.NoiseKind]func(dst []float32, first int, a random.Address){
		op.NormalNoise: random.Normals[float32], op.UniformNoise: random.Uniforms[float32],
	} {
		b := graph.New(tensor.Float32)
		stream := b.Stream()
		b.Output("y", b.Apply(op.Noise{Kind: kind, Stream: stream, As: op.ViewAs(elements)}, b.Header()))
		s := load(t, b, device, chains)
		got, want := make([]float32, elements), make([]float32, elements)
		for step := range steps {
			if err := s.Run(1); err != nil {
				t.Fatal(err)
			}
			for chain := range chains {
				if err := graph.Read(s, "y", chain, 0, got); err != nil {
					t.Fatal(err)
				}
				draw(want, 0, random.Address{Seed: 0x5eed_0123_4567_89ab, Chain: uint32(7 + chain), Step: uint64(step), Stream: stream})
				if err := optest.Close(widen(got), widen(want), optest.Tol{}); err != nil {
					dump(t, err)
					t.Fatalf("kind %d, chain %d, step %d: %v", kind, chain, step, err)
				}
			}
		}
	}
}

// TestOrderIsTheHosts gathers rows that contain their own indices, through epochs of various sizes.
func TestOrderIsTheHosts(t *testing.T) {
	device := cudatest.GPU(t, cuda.Options{})
	for _, size := range []int{1, 2, 255, 256, 257, 60_000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			batch := max(1, size/3+1)
			rows := make([]float32, size)
			for i := range rows {
				rows[i] = float32(i)
			}
			b := graph.New(tensor.Float32)
			o := op.GatherRows{Batch: op.Batch{Size: batch, Order: op.Shuffled}}
			b.Output("y", b.Apply(o, b.Data("rows", tensor.Float32, size), b.Header()))
			s := load(t, b, device, 2)
			if err := graph.Write(s, "rows", 0, 0, rows); err != nil {
				t.Fatal(err)
			}
			got := make([]float32, batch)
			for step := range 4 {
				if err := s.Run(1); err != nil {
					t.Fatal(err)
				}
				for chain := range 2 {
					if err := graph.Read(s, "y", chain, 0, got); err != nil {
						t.Fatal(err)
					}
					for i, v := range got {
						position := uint64(step*batch + i)
						epoch, at := position/uint64(size), position%uint64(size)
						want := random.Permute(at, uint64(size), 0x5eed_0123_4567_89ab, uint32(7+chain), epoch)
						if uint64(v) != want {
							t.Fatalf("chain %d, step %d, row %d: example %v, want %d", chain, step, i, v, want)
						}
					}
				}
			}
		})
	}
}
