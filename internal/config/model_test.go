package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/tensor"
)

// TestNetworkFiles: a file never becomes the name of a network, whatever its content, even if
// that is one long line.
func TestNetworkFiles(t *testing.T) {
	line := "[" + strings.Repeat("relu, ", 20_000) + "flatten, {linear: {outputs: classes}}]"
	for _, c := range []struct{ content, refused string }{
		{"", "the network file is empty, must be a list of layers"},
		{" \n\t\n", "the network file is empty, must be a list of layers"},
		{"lenet", "there must be a list of layers"},
		{"mlp-8\n", "there must be a list of layers"},
		{"# nothing else", "must be one document"},
		{"\x00\x00", "must be a list of layers"},
		{"- relu", "output must have shape"}, // read, and wrong for the images
		{"- flatten\n- linear: {outputs: classes}\n", ""},
		{line, ""},
		{strings.Repeat("x", 1<<18), "a network file must have at most 131072 bytes, got 262144"},
		{"# " + strings.Repeat("x", 1<<17-2), "at most 131072 bytes, got 131073"}, // a line break is added
	} {
		path := filepath.Join(t.TempDir(), "network.yaml")
		if err := os.WriteFile(path, []byte(c.content), 0o644); err != nil {
			t.Fatal(err)
		}
		err := networkError(t, path)
		switch {
		case err == nil && c.refused != "", err != nil && (c.refused == "" || !strings.Contains(err.Error(), c.refused)):
			t.Errorf("%.20q: %v, want %q", c.content, err, c.refused)
		case err != nil && len(err.Error()) > 2000:
			t.Errorf("%.20q: an error of %d bytes", c.content, len(err.Error()))
		}
	}
}

// networkError returns the error of a network file, as fit finds it.
func networkError(t *testing.T, path string) error {
	given := pflag.NewFlagSet("", pflag.ContinueOnError)
	var s Settings
	s.Bind(given)
	if err := given.Set("model", path); err != nil {
		t.Fatal(err)
	}
	settings, err := Layered(given, "")
	if err != nil {
		return err
	}
	spec, err := settings.Spec()
	if err != nil {
		return err
	}
	network, err := spec.Build(10)
	if err != nil {
		return err
	}
	return layers.Check(network, tensor.Shape{1, 28, 28}, 10)
}
