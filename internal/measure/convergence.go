package measure

import (
	"crypto/sha256"
	"fmt"
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// HeldOut traces the chains' predictions for held-out images: for each image, the probability of
// the class that was most probable at the first observation. The methods of a nil HeldOut do
// nothing.
type HeldOut struct {
	images        string // the SHA-256 of the images' pixels
	predictor     *samples.SamplePredictor
	probabilities []float32
	classes       []int            // of each image
	traces        [][]thinnedTrace // of each image and chain
	spacing       int              // minimum number of steps between two observations
	last          int              // step of the last observation
}

// heldOutValues bounds the values of each trace.
const heldOutValues = 500

// NewHeldOut loads images on a device, to observe chains at most once in spacing steps.
func NewHeldOut(device tensor.Device, images samples.Images, network layers.Sequential, chains, spacing int) (*HeldOut, error) {
	n := images.Len()
	hash := sha256.Sum256(append(tensor.Bytes(images.Rows), images.Pixels...))
	h := &HeldOut{images: fmt.Sprintf("%x", hash), traces: make([][]thinnedTrace, n), spacing: spacing, last: -spacing}
	var err error
	if h.predictor, err = samples.NewSamplePredictor(device, tensor.Float32, images, n, network.Apply); err != nil {
		return nil, err
	}
	h.probabilities = make([]float32, n*h.predictor.Classes())
	for i := range h.traces {
		for range chains {
			h.traces[i] = append(h.traces[i], newTrace(heldOutValues))
		}
	}
	return h, nil
}

// Images returns the SHA-256 of the pixels of the images; "" without any.
func (h *HeldOut) Images() string {
	if h == nil {
		return ""
	}
	return h.images
}

// Due reports whether the chains, if they are sampling, are to be observed after step steps.
func (h *HeldOut) Due(step int) bool { return h != nil && step-h.last >= h.spacing }

// Observe adds the states of the chains after step steps.
func (h *HeldOut) Observe(states []samples.Sample, step int) error {
	h.last = step
	for chain, state := range states {
		if err := h.predictor.Predict(state, h.probabilities); err != nil {
			return err
		}
		k := h.predictor.Classes()
		for i, trace := range h.traces {
			row := h.probabilities[i*k:][:k]
			if len(h.classes) == i {
				h.classes = append(h.classes, slices.Index(row, slices.Max(row)))
			}
			trace[chain].add(float64(row[h.classes[i]]))
		}
	}
	return nil
}

// Mixing summarizes the observations; nil if there are too few.
func (h *HeldOut) Mixing() *diagnostics.Mixing {
	if h == nil {
		return nil
	}
	traces := make([][][]float64, len(h.traces))
	for i, trace := range h.traces {
		traces[i] = valuesOf(trace)
	}
	return mixing(traces)
}

// mixing summarizes traces, which are by image and chain; nil if they are too short or constant.
func mixing(traces [][][]float64) *diagnostics.Mixing {
	var rHats, bulks, tails []float64
	for _, chains := range traces {
		if constant(chains) {
			continue
		}
		rHat, err := diagnostics.SplitRHat(chains)
		if err != nil {
			return nil
		}
		bulk, tail, err := diagnostics.EffectiveSampleSize(chains)
		if err != nil { // traces that are long enough for R-hat may be too short for this
			bulk, tail = math.NaN(), math.NaN()
		}
		rHats, bulks, tails = append(rHats, rHat), append(bulks, bulk), append(tails, tail)
	}
	if len(rHats) == 0 {
		return nil
	}
	for _, values := range [][]float64{rHats, bulks, tails} {
		slices.Sort(values)
	}
	n := len(rHats)
	return &diagnostics.Mixing{
		Images: n, Chains: len(traces[0]), Values: len(traces[0][0]), RHat: diagnostics.Number(rHats[(95*n+99)/100-1]),
		BulkESS: diagnostics.Number(bulks[n/2]), TailESS: diagnostics.Number(tails[n/2]),
	}
}

// constant reports whether all values are the same, as for probabilities that are rounded to 1.
func constant(chains [][]float64) bool {
	for _, chain := range chains {
		for _, v := range chain {
			if v != chains[0][0] {
				return false
			}
		}
	}
	return true
}

// state returns the observations as numbers, which restore reads.
func (h *HeldOut) state() []float64 {
	if h == nil {
		return nil
	}
	state := []float64{float64(h.last), float64(len(h.classes))}
	for _, class := range h.classes {
		state = append(state, float64(class))
	}
	for _, trace := range h.traces {
		for i := range trace {
			state = append(state, trace[i].state()...)
		}
	}
	return state
}

// restore reads a state. If it is empty, as for a run that was begun without held-out images, the
// observations begin at the present step.
func (h *HeldOut) restore(state []float64) error {
	if h == nil || len(state) == 0 {
		return nil
	}
	traces := len(h.traces) * len(h.traces[0])
	classes := int(state[min(1, len(state)-1)])
	if len(state) < 2 || classes != 0 && classes != len(h.traces) || (len(state)-2-classes)%traces != 0 {
		return errors.Errorf("%d numbers of %d images and %d chains: these do not fit", len(state), len(h.traces), len(h.traces[0]))
	}
	h.last, h.classes = int(state[0]), nil
	for _, class := range state[2:][:classes] {
		if !(class >= 0 && class < float64(h.predictor.Classes())) {
			return errors.Errorf("class must be 0 to %d, got %v", h.predictor.Classes()-1, class)
		}
		h.classes = append(h.classes, int(class))
	}
	values := state[2+classes:]
	each := len(values) / traces
	for _, trace := range h.traces {
		for i := range trace {
			if err := trace[i].restore(values[:each]); err != nil {
				return err
			}
			values = values[each:]
		}
	}
	return nil
}

// Close frees the images.
func (h *HeldOut) Close() error {
	if h == nil {
		return nil
	}
	return h.predictor.Close()
}

// RHat returns the split R-hat of chains, cut to the length of the shortest; NaN if that is too
// short.
func RHat(chains [][]float64) diagnostics.Number {
	shortest := math.MaxInt
	for _, chain := range chains {
		shortest = min(shortest, len(chain))
	}
	if len(chains) == 0 {
		return diagnostics.Number(math.NaN())
	}
	var cut [][]float64
	for _, chain := range chains {
		cut = append(cut, chain[:shortest])
	}
	v, err := diagnostics.SplitRHat(cut)
	if err != nil {
		return diagnostics.Number(math.NaN())
	}
	return diagnostics.Number(v)
}
