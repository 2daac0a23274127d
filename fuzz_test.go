package pollen

import (
	"encoding/json"
	"os"
	"testing"
)

func FuzzManifest(f *testing.F) {
	for _, path := range []string{"internal/runtest/testdata/plain/manifest.json", "internal/runtest/testdata/kept/manifest.json"} {
		content, err := os.ReadFile(path)
		must(f, err)
		f.Add(content)
		f.Add(content[:len(content)/2])
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		m, err := parseManifest(content)
		if err != nil {
			return
		}
		again, err := json.Marshal(m)
		must(t, err)
		if _, err := parseManifest(again); err != nil {
			t.Fatalf("what was read cannot be read again: %v: %s", err, again)
		}
	})
}
