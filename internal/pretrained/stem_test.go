package pretrained

import (
	"strings"
	"testing"
)

// Weights that an exporter named cannot be found by the names of layers, which the error explains.
func TestFreezeMadeUpNames(t *testing.T) {
	for first, want := range map[string]bool{"onnx::Conv_971": true, "stem.weight": false} {
		_, err := frozenWeights("blocks", "a.onnx", []string{first, "head.weight"})
		if err == nil || strings.Contains(err.Error(), "dynamo=True") != want {
			t.Errorf("%s: error %v, must have advice: %v", first, err, want)
		}
	}
}
