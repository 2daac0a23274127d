package op

import (
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// The elements are powers of two, so the sum of the kept ones says which they are: each chain drops
// different elements, at each step and in each stream, and the same ones when the seed is the same.
func TestDropoutMasksDiffer(t *testing.T) {
	const elements, chains, steps = 20, 4, 3
	masks := func(seed uint64) map[float64]int {
		host := tensor.NewHost(1)
		defer host.Close()
		b := graph.New(tensor.Float32)
		x := b.Parameter("x", nil, elements)
		for _, name := range []string{"one stream", "another"} {
			b.Record(name, b.Apply(Sum{}, b.Apply(Dropout{Rate: 0.5, Stream: b.Stream()}, x, b.Header())))
		}
		program, err := b.Compile()
		if err != nil {
			t.Fatal(err)
		}
		session, err := program.Load(host, graph.LoadOptions{Seed: seed, Chains: chains})
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		powers := make([]float32, elements)
		for i := range powers {
			powers[i] = float32(int(1) << i)
		}
		for chain := range chains {
			if err := session.WriteFloats("x", chain, powers); err != nil {
				t.Fatal(err)
			}
		}
		if err := session.Run(steps); err != nil {
			t.Fatal(err)
		}
		seen := map[float64]int{}
		for chain := range chains {
			for step := range uint64(steps) {
				for _, name := range []string{"one stream", "another"} {
					seen[session.Metric(chain, name, step)]++
				}
			}
		}
		return seen
	}
	first, again, other := masks(1), masks(1), masks(2)
	if len(first) != chains*steps*2 {
		t.Errorf("%d masks of %d chains, %d steps and 2 streams differ, want all", len(first), chains, steps)
	}
	for mask := range first {
		if again[mask] != 1 {
			t.Errorf("the mask %v is not drawn again with the same seed", mask)
		}
		if other[mask] != 0 {
			t.Errorf("the mask %v is drawn with another seed too", mask)
		}
	}
}
