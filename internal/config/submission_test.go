package config

import (
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/internal/cluster"
)

// TestNetworkFilesForKubernetes: the manifest has the network files of all tasks, of models and of
// heads.
func TestNetworkFilesForKubernetes(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, content := range map[string]string{
		"one.yaml": "model: net.yaml\nmethod: sgld\n",
		"all.yaml": "model: absent.yaml\nhead: head.yml\ngrid:\n  model: [net.yaml, cnn, net2.yaml]\n",
		"net.yaml": "- flatten\n- linear: 3\n", "net2.yaml": "- flatten\n- linear: 3\n", "head.yml": "- linear: 3\n",
	} {
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for config, want := range map[string][]string{
		"one.yaml": {"net.yaml", "one.yaml"}, "all.yaml": {"all.yaml", "head.yml", "net.yaml", "net2.yaml"},
	} {
		s := Submission{
			Config: config, Dir: "/runs/all",
			Job: cluster.Job{
				Name: "all", Tasks: 3, CPUs: 1, Grace: 1, Pods: cluster.PodOptions{Image: "pollen:1", Claim: "runs", Mount: "/runs", User: "1000:1000"},
			},
		}
		if _, _, err := s.ForKubernetes(); err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(maps.Keys(s.Pods.Files)); !slices.Equal(got, want) {
			t.Errorf("%s: the manifest has %q, want %q", config, got, want)
		}
	}
}
