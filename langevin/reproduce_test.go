package langevin_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
)

// reproducePlan yields a sample of each chain after step 6.
var reproducePlan = langevin.Plan{Steps: 7, BurnIn: 1, Thinning: 5}

const manyChains = 8

// sampleInto runs the plan on a session whose first chain has that number, and puts the samples into a bank.
func sampleInto(t *testing.T, bank *langevin.Bank, s *graph.Session, firstChain, most int, plan langevin.Plan) {
	t.Helper()
	err := plan.Run(context.Background(), s, most, func(p langevin.Progress) error {
		if !p.Sample {
			return nil
		}
		for chain := range s.Chains() {
			sample, err := langevin.Take(s, chain, firstChain+chain, 1/float64(p.To))
			if err != nil {
				return err
			}
			if err := bank.Add(sample); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func newBank(t *testing.T) (bank *langevin.Bank, folder string) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "samples")
	bank = langevin.NewBank(folder)
	if err := bank.Make(); err != nil {
		t.Fatal(err)
	}
	return bank, folder
}

// contents are a folder's files by name.
func contents(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, entry := range entries {
		if files[entry.Name()], err = os.ReadFile(filepath.Join(folder, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// TestSameBits: however the chains are run, the bank's files are the same, byte for byte.
func TestSameBits(t *testing.T) {
	for _, row := range rows() {
		t.Run(row.name, func(t *testing.T) {
			bank, folder := newBank(t)
			sampleInto(t, bank, classifier(t, row, graph.LoadOptions{Seed: 3, Chains: manyChains}, 2), 0, 100, reproducePlan)
			want := contents(t, folder)
			if len(want) != manyChains*reproducePlan.Samples() {
				t.Fatalf("%d files, want %d", len(want), manyChains*reproducePlan.Samples())
			}
			checkDifferent(t, want)
			for name, run := range sameRuns {
				bank, folder := newBank(t)
				run(t, row, bank)
				got := contents(t, folder)
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

// checkDifferent makes sure that the files can tell runs apart: each is another.
func checkDifferent(t *testing.T, files map[string][]byte) {
	t.Helper()
	seen := map[string]string{}
	for name, content := range files {
		// The end of the file holds values, not metadata.
		end := string(content[len(content)-64:])
		if other, ok := seen[end]; ok {
			t.Errorf("%s and %s hold the same values", name, other)
		}
		seen[end] = name
	}
}

var sameRuns = map[string]func(t *testing.T, row row, bank *langevin.Bank){
	"chain 5 alone": func(t *testing.T, row row, bank *langevin.Bank) {
		sampleInto(t, bank, classifier(t, row, graph.LoadOptions{Seed: 3, FirstChain: 5, Chains: 1}, 1), 5, 100, reproducePlan)
	},
	"chain 5 alone on two threads": func(t *testing.T, row row, bank *langevin.Bank) {
		sampleInto(t, bank, classifier(t, row, graph.LoadOptions{Seed: 3, FirstChain: 5, Chains: 1}, 2), 5, 100, reproducePlan)
	},
	"chains 3 to 5": func(t *testing.T, row row, bank *langevin.Bank) {
		sampleInto(t, bank, classifier(t, row, graph.LoadOptions{Seed: 3, FirstChain: 3, Chains: 3}, 2), 3, 100, reproducePlan)
	},
	"one thread": func(t *testing.T, row row, bank *langevin.Bank) {
		sampleInto(t, bank, classifier(t, row, graph.LoadOptions{Seed: 3, Chains: manyChains}, 1), 0, 100, reproducePlan)
	},
	"three threads, which do not divide the chains": func(t *testing.T, row row, bank *langevin.Bank) {
		sampleInto(t, bank, classifier(t, row, graph.LoadOptions{Seed: 3, Chains: manyChains}, 3), 0, 100, reproducePlan)
	},
	"GOMAXPROCS 1": func(t *testing.T, row row, bank *langevin.Bank) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		sampleInto(t, bank, classifier(t, row, graph.LoadOptions{Seed: 3, Chains: manyChains}, 2), 0, 100, reproducePlan)
	},
	"GOMAXPROCS 2, one step at a time": func(t *testing.T, row row, bank *langevin.Bank) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
		sampleInto(t, bank, classifier(t, row, graph.LoadOptions{Seed: 3, Chains: manyChains}, 0), 0, 1, reproducePlan)
	},
	"interrupted and resumed": func(t *testing.T, row row, bank *langevin.Bank) {
		first := classifier(t, row, graph.LoadOptions{Seed: 3, Chains: manyChains}, 2)
		advance(t, first, 4)
		// The second session has another seed and other chains, all of which Restore replaces.
		second := classifier(t, row, graph.LoadOptions{Seed: 4, FirstChain: 50, Chains: manyChains}, 1)
		for chain := range manyChains {
			state := make([]byte, first.ChainBytes())
			if err := first.Save(chain, state); err != nil {
				t.Fatal(err)
			}
			if err := second.Restore(chain, state, 4); err != nil {
				t.Fatal(err)
			}
		}
		sampleInto(t, bank, second, 0, 2, reproducePlan)
	},
}

// TestOtherSeedOtherBits: the seed matters, and so does the chain's number.
func TestOtherSeedOtherBits(t *testing.T) {
	row := rows()[0]
	plan := langevin.Plan{Steps: 2, Thinning: 2}
	all := map[string][]byte{}
	for seed := range uint64(3) {
		bank, folder := newBank(t)
		sampleInto(t, bank, classifier(t, row, graph.LoadOptions{Seed: seed, Chains: 2}, 1), 0, 100, plan)
		for name, content := range contents(t, folder) {
			all[name+string(rune('a'+seed))] = content
		}
	}
	if len(all) != 6 {
		t.Fatalf("%d samples, want 6", len(all))
	}
	checkDifferent(t, all)
}
