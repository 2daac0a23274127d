package approximate_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/pollen-ml/pollen/approximate"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/tensor"
)

// TestVariationalBits: a chain run separately, with other numbers of threads, or resumed is the
// same to the bit; other chains and seeds differ.
func TestVariationalBits(t *testing.T) {
	const chains, steps = 5, 6
	for name, v := range variants() {
		t.Run(name, func(t *testing.T) {
			session := func(o graph.LoadOptions, threads int) (*graph.Session, *approximate.MeanField) {
				f := newFit(t, &v, tensor.Float32)
				f.train(t)
				return f.load(t, o, threads), f.q
			}
			state := func(s *graph.Session, q *approximate.MeanField, chain int) []byte {
				store, dir := trial.NewStore(t)
				for draw := range 2 {
					sample, err := q.Draw(s, chain, draw)
					if err == nil {
						err = store.Add(sample)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				all := make([]byte, s.ChainBytes())
				if err := s.Save(chain, all); err != nil {
					t.Fatal(err)
				}
				files := trial.Contents(t, dir)
				for _, file := range []int{0, 1} {
					all = append(all, files[fmt.Sprintf("chain%05d-step%09d.safetensors", 2+chain, steps+file)]...)
				}
				if len(files) != 2 {
					t.Fatalf("%d files, want 2", len(files))
				}
				return all
			}
			together, q := session(graph.LoadOptions{Seed: 4, FirstChain: 2, Chains: chains}, 2)
			trial.Advance(t, together, steps)
			others := map[string]bool{}
			for chain := range chains {
				others[string(state(together, q, chain))] = true
			}
			if len(others) != chains {
				t.Errorf("%d different chains, want %d", len(others), chains)
			}
			want := state(together, q, 0)
			alone, q := session(graph.LoadOptions{Seed: 4, FirstChain: 2}, 1)
			trial.Advance(t, alone, 2)
			saved := make([]byte, alone.ChainBytes())
			if err := alone.Save(0, saved); err != nil {
				t.Fatal(err)
			}
			trial.Advance(t, alone, steps-2)
			if !bytes.Equal(state(alone, q, 0), want) {
				t.Error("chain 2 of a run of one chain differs from chain 2 of several")
			}
			resumed, q := session(graph.LoadOptions{Seed: 77, FirstChain: 60}, 3)
			if err := resumed.Restore(0, saved, 2); err != nil {
				t.Fatal(err)
			}
			trial.Advance(t, resumed, steps-2)
			if !bytes.Equal(state(resumed, q, 0), want) {
				t.Error("the resumed chain differs")
			}
			seeded, q := session(graph.LoadOptions{Seed: 3, FirstChain: 2}, 1)
			trial.Advance(t, seeded, steps)
			if bytes.Equal(state(seeded, q, 0), want) {
				t.Error("another seed gives the same")
			}
		})
	}
}
