package trial

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/samples"
)

// SampleInto runs the plan on a session and adds the samples to the store.
func SampleInto(t *testing.T, store *samples.Store, s *graph.Session, maxSteps int, plan langevin.Plan) {
	t.Helper()
	err := plan.Run(context.Background(), s, maxSteps, func(p langevin.Window) error {
		if !p.Sample {
			return nil
		}
		for chain := range s.Chains() {
			sample, err := samples.FromSession(s, chain, 1/float64(p.To))
			if err != nil {
				return err
			}
			if err := store.Add(sample); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// NewStore returns an empty store in a new temporary directory.
func NewStore(t *testing.T) (store *samples.Store, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "samples")
	store = samples.NewStore(dir)
	if err := store.Create(); err != nil {
		t.Fatal(err)
	}
	return store, dir
}

// Contents returns the contents of a directory's files, by name.
func Contents(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, entry := range entries {
		if files[entry.Name()], err = os.ReadFile(filepath.Join(dir, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// CheckDifferent fails the test if two of the files are equal: they could then not tell runs apart.
func CheckDifferent(t *testing.T, files map[string][]byte) {
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

// CurrentSample returns a chain's present state as a sample of weight 0.5.
func CurrentSample(t *testing.T, s *graph.Session, chain int) samples.Sample {
	t.Helper()
	sample, err := samples.FromSession(s, chain, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	return sample
}
