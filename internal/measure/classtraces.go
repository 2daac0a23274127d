package measure

import (
	"math"
	"slices"

	"github.com/pollen-ml/pollen/diagnostics"
)

// ClassTraces are the probabilities of one class of each image, by chain.
type ClassTraces struct {
	images  int
	chains  map[string][][]float64 // by directory and number, for each image
	names   []string               // of the chains, in the order in which they were added
	classes []int                  // of the images
}

// NewClassTraces returns empty traces for a number of images.
func NewClassTraces(images int) *ClassTraces {
	return &ClassTraces{images: images, chains: map[string][][]float64{}}
}

// Add adds the probabilities that a sample of a chain predicts.
func (t *ClassTraces) Add(chain string, probabilities []float32) {
	if t.chains[chain] == nil {
		t.names, t.chains[chain] = append(t.names, chain), make([][]float64, t.images)
	}
	k := len(probabilities) / t.images
	for i := range t.images {
		row := probabilities[i*k:][:k]
		// The traced quantity is the probability of the class that the very first sample
		// predicts: it must be the same class for all samples and chains.
		if len(t.classes) == i {
			t.classes = append(t.classes, slices.Index(row, slices.Max(row)))
		}
		t.chains[chain][i] = append(t.chains[chain][i], float64(row[t.classes[i]]))
	}
}

// Mixing summarizes the traces, cut to the length of the shortest; nil if there are too few.
func (t *ClassTraces) Mixing() *diagnostics.Mixing { return mixing(t.byImage()) }

// byImage returns the traces of each image by chain, cut to the length of the shortest.
func (t *ClassTraces) byImage() [][][]float64 {
	shortest := math.MaxInt
	for _, chain := range t.chains {
		shortest = min(shortest, len(chain[0]))
	}
	traces := make([][][]float64, t.images)
	for i := range traces {
		for _, name := range t.names {
			traces[i] = append(traces[i], t.chains[name][i][:shortest])
		}
	}
	return traces
}
