package langevin_test

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/samples"
)

// reproducePlan yields a sample of each chain after step 6.
var reproducePlan = langevin.Plan{Steps: 7, BurnIn: 1, Thinning: 5}

const manyChains = 8

// TestSameBits: however the chains are run, the store's files are the same, byte for byte.
func TestSameBits(t *testing.T) {
	for _, row := range rows() {
		t.Run(row.name, func(t *testing.T) {
			store, dir := trial.NewStore(t)
			trial.SampleInto(t, store, trial.Classifier(t, row.sampler, graph.LoadOptions{Seed: 3, Chains: manyChains}, 2), 100, reproducePlan)
			want := trial.Contents(t, dir)
			if len(want) != manyChains*reproducePlan.Samples() {
				t.Fatalf("%d files, want %d", len(want), manyChains*reproducePlan.Samples())
			}
			trial.CheckDifferent(t, want)
			for name, run := range sameRuns {
				store, dir := trial.NewStore(t)
				run(t, row, store)
				got := trial.Contents(t, dir)
				if len(got) == 0 {
					t.Errorf("%s: no samples", name)
				}
				for file := range got {
					if !bytes.Equal(got[file], want[file]) {
						t.Errorf("%s: %s differs", name, file)
					}
				}
			}
		})
	}
}

var sameRuns = map[string]func(t *testing.T, row row, store *samples.Store){
	"only chain 5": func(t *testing.T, row row, store *samples.Store) {
		trial.SampleInto(t, store, trial.Classifier(t, row.sampler, graph.LoadOptions{Seed: 3, FirstChain: 5, Chains: 1}, 1), 100, reproducePlan)
	},
	"only chain 5, on two threads": func(t *testing.T, row row, store *samples.Store) {
		trial.SampleInto(t, store, trial.Classifier(t, row.sampler, graph.LoadOptions{Seed: 3, FirstChain: 5, Chains: 1}, 2), 100, reproducePlan)
	},
	"chains 3 to 5": func(t *testing.T, row row, store *samples.Store) {
		trial.SampleInto(t, store, trial.Classifier(t, row.sampler, graph.LoadOptions{Seed: 3, FirstChain: 3, Chains: 3}, 2), 100, reproducePlan)
	},
	"one thread": func(t *testing.T, row row, store *samples.Store) {
		trial.SampleInto(t, store, trial.Classifier(t, row.sampler, graph.LoadOptions{Seed: 3, Chains: manyChains}, 1), 100, reproducePlan)
	},
	"three threads, which do not divide the chains": func(t *testing.T, row row, store *samples.Store) {
		trial.SampleInto(t, store, trial.Classifier(t, row.sampler, graph.LoadOptions{Seed: 3, Chains: manyChains}, 3), 100, reproducePlan)
	},
	"GOMAXPROCS 1": func(t *testing.T, row row, store *samples.Store) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		trial.SampleInto(t, store, trial.Classifier(t, row.sampler, graph.LoadOptions{Seed: 3, Chains: manyChains}, 2), 100, reproducePlan)
	},
	"GOMAXPROCS 2, one step at a time": func(t *testing.T, row row, store *samples.Store) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
		trial.SampleInto(t, store, trial.Classifier(t, row.sampler, graph.LoadOptions{Seed: 3, Chains: manyChains}, 0), 1, reproducePlan)
	},
	"interrupted and resumed": func(t *testing.T, row row, store *samples.Store) {
		first := trial.Classifier(t, row.sampler, graph.LoadOptions{Seed: 3, Chains: manyChains}, 2)
		trial.Advance(t, first, 4)
		// The second session has another seed and other chains, all of which Restore replaces.
		second := trial.Classifier(t, row.sampler, graph.LoadOptions{Seed: 4, FirstChain: 50, Chains: manyChains}, 1)
		for chain := range manyChains {
			state := make([]byte, first.ChainBytes())
			if err := first.Save(chain, state); err != nil {
				t.Fatal(err)
			}
			if err := second.Restore(chain, state, 4); err != nil {
				t.Fatal(err)
			}
		}
		trial.SampleInto(t, store, second, 2, reproducePlan)
	},
}

// TestOtherSeedOtherBits: the seed and the chain's number matter.
func TestOtherSeedOtherBits(t *testing.T) {
	row := rows()[0]
	plan := langevin.Plan{Steps: 2, Thinning: 2}
	all := map[string][]byte{}
	for seed := range uint64(3) {
		store, dir := trial.NewStore(t)
		trial.SampleInto(t, store, trial.Classifier(t, row.sampler, graph.LoadOptions{Seed: seed, Chains: 2}, 1), 100, plan)
		for name, content := range trial.Contents(t, dir) {
			all[name+string(rune('a'+seed))] = content
		}
	}
	if len(all) != 6 {
		t.Fatalf("%d samples, want 6", len(all))
	}
	trial.CheckDifferent(t, all)
}
