package pollen

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// Mixing is how well chains have mixed in what they predict, in the sampling phase: statistics of
// the probability of one class for each of some images that were held out, always the same.
type Mixing struct {
	Images  int    `json:"images"`  // those whose probabilities change at all
	Values  int    `json:"values"`  // of each image and chain
	RHat    Number `json:"rHat"`    // split R-hat, below which 95 % of the images are
	BulkESS Number `json:"bulkESS"` // effective sample size of all chains together, median over the images
	TailESS Number `json:"tailESS"`
}

// probeImages is how many held-out images chains are watched on.
const probeImages = 50

// probe watches what chains predict for held-out images.
type probe struct {
	images        string // the SHA-256 of their pixels
	predictor     *samples.SamplePredictor
	probabilities []float32
	classes       []int      // of each image: the one that was most probable at first
	traces        [][]series // of each image and chain
	spacing       int        // steps between two looks at least
	last          int        // step
}

// probeValues bounds the values of each trace.
const probeValues = 500

// heldOut are the images to watch: evenly spaced ones of the validation data, or of the test data
// where there are none; nil without either, and for methods that do not sample.
func (t *training) heldOut(splits *datasets.Splits) *samples.Images {
	data := toWatch(splits)
	if data == nil || !t.kind.traits().tempered {
		return nil
	}
	d := t.data
	return &samples.Images{
		Pixels: spaced(data), Channels: d.Channels, Height: d.Height, Width: d.Width, Mean: d.Mean, Std: d.Std,
	}
}

// toWatch are the validation data, or the test data where there are none; nil without either.
func toWatch(splits *datasets.Splits) *datasets.Dataset {
	if splits == nil {
		return nil
	}
	for _, data := range []*datasets.Dataset{splits.Validation, splits.Test} {
		if data != nil && data.Len() > 0 {
			return data
		}
	}
	return nil
}

// spaced are the pixels of some images of a data set, evenly spaced.
func spaced(data *datasets.Dataset) (pixels []byte) {
	n := min(probeImages, data.Len())
	for i := range n {
		pixels = append(pixels, data.Image(i*data.Len()/n)...)
	}
	return pixels
}

// newProbe loads the images on a device; it is nil without images.
func (t *training) newProbe(device tensor.Device, images *samples.Images) (*probe, error) {
	if images == nil {
		return nil, nil
	}
	n := images.Len()
	network, err := t.spec.Build(t.data.Classes)
	if err != nil {
		return nil, err
	}
	p := &probe{images: fmt.Sprintf("%x", sha256.Sum256(images.Pixels)), traces: make([][]series, n), spacing: t.spacing(), last: -t.spacing()}
	if p.predictor, err = samples.NewSamplePredictor(device, tensor.Float32, *images, n, network.Apply); err != nil {
		return nil, err
	}
	p.probabilities = make([]float32, n*p.predictor.Classes())
	for i := range p.traces {
		for range t.spec.Chains {
			p.traces[i] = append(p.traces[i], newSeries(probeValues))
		}
	}
	return p, nil
}

// due reports whether the chains are to be watched after that many steps.
func (p *probe) due(t *training, step int) bool {
	return p != nil && step-p.last >= p.spacing && step > t.plan.BurnIn && t.temperatures[step-1] == t.spec.temperature()
}

// observe adds the chains' states after that many steps.
func (p *probe) observe(states []samples.Sample, step int) error {
	p.last = step
	for chain, state := range states {
		if err := p.predictor.Predict(state, p.probabilities); err != nil {
			return err
		}
		k := p.predictor.Classes()
		for i, trace := range p.traces {
			row := p.probabilities[i*k:][:k]
			if len(p.classes) == i {
				p.classes = append(p.classes, slices.Index(row, slices.Max(row)))
			}
			trace[chain].add(float64(row[p.classes[i]]))
		}
	}
	return nil
}

// mixing sums up what was seen; nil when that is too little.
func (p *probe) mixing() *Mixing {
	if p == nil {
		return nil
	}
	traces := make([][][]float64, len(p.traces))
	for i, trace := range p.traces {
		traces[i] = valuesOf(trace)
	}
	return mixingOf(traces)
}

// mixingOf sums up traces by image and chain.
func mixingOf(traces [][][]float64) *Mixing {
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
	return &Mixing{
		Images: n, Values: len(traces[0][0]),
		RHat: Number(rHats[(95*n+99)/100-1]), BulkESS: Number(bulks[n/2]), TailESS: Number(tails[n/2]),
	}
}

// constant reports whether all values are the same, as those are whose rounded probability is 1.
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

// state is the probe as numbers, which restore takes back; none where nothing is watched.
func (p *probe) state() []float64 {
	if p == nil {
		return nil
	}
	state := []float64{float64(p.last), float64(len(p.classes))}
	for _, class := range p.classes {
		state = append(state, float64(class))
	}
	for _, trace := range p.traces {
		for i := range trace {
			state = append(state, trace[i].state()...)
		}
	}
	return state
}

// restore takes back a state. Without one, as earlier versions left none, or as a run has that was
// begun without held-out images, the probe watches from here on.
func (p *probe) restore(state []float64) error {
	if p == nil || len(state) == 0 {
		return nil
	}
	traces := len(p.traces) * len(p.traces[0])
	classes := int(state[min(1, len(state)-1)])
	if len(state) < 2 || classes != 0 && classes != len(p.traces) || (len(state)-2-classes)%traces != 0 {
		return errors.Errorf("%d numbers of %d images and %d chains: these do not fit", len(state), len(p.traces), len(p.traces[0]))
	}
	p.last, p.classes = int(state[0]), nil
	for _, class := range state[2:][:classes] {
		p.classes = append(p.classes, int(class))
	}
	values := state[2+classes:]
	each := len(values) / traces
	for _, trace := range p.traces {
		for i := range trace {
			if err := trace[i].restore(values[:each]); err != nil {
				return err
			}
			values = values[each:]
		}
	}
	return nil
}

func (p *probe) close() error {
	if p == nil {
		return nil
	}
	return p.predictor.Close()
}

// Mixing is how well the chains have mixed, those of a gathered run together, in what their samples
// predict for some of the validation images, or of the test images where there are none. It is nil
// without either, for methods that do not sample, and where chains have too few samples for that.
// Chains are cut to the length of the shortest.
func (r *Run) Mixing(ctx context.Context, data *datasets.Splits) (*Mixing, error) {
	heldOut := toWatch(data)
	c, err := kindOf(r.manifest.Spec.Method)
	if err != nil || heldOut == nil || !c.traits().tempered {
		return nil, err
	}
	images, err := r.images(heldOut)
	if err != nil {
		return nil, err
	}
	images.Pixels = spaced(heldOut)
	n := images.Len()
	network, err := r.Network()
	if err != nil {
		return nil, err
	}
	chains := map[string][][]float64{} // by folder and number, of each image
	var names []string
	var classes []int
	err = r.on(func(device tensor.Device) error {
		predictor, err := samples.NewSamplePredictor(device, tensor.Float32, images, n, network.Apply)
		if err != nil {
			return err
		}
		defer predictor.Close()
		k := predictor.Classes()
		probabilities := make([]float32, n*k)
		return r.eachOf(ctx, "mixing", heldOut, func(chain string, sample samples.Sample) error {
			if err := predictor.Predict(sample, probabilities); err != nil {
				return err
			}
			if chains[chain] == nil {
				names, chains[chain] = append(names, chain), make([][]float64, n)
			}
			for i := range n {
				row := probabilities[i*k:][:k]
				if len(classes) == i {
					classes = append(classes, slices.Index(row, slices.Max(row)))
				}
				chains[chain][i] = append(chains[chain][i], float64(row[classes[i]]))
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	shortest := math.MaxInt
	for _, chain := range chains {
		shortest = min(shortest, len(chain[0]))
	}
	traces := make([][][]float64, n)
	for i := range traces {
		for _, name := range names {
			traces[i] = append(traces[i], chains[name][i][:shortest])
		}
	}
	return mixingOf(traces), nil
}

// series is a trace of bounded length: of what was added it keeps every value, or of a long trace
// every second, every fourth and so on, from the first one on.
type series struct {
	most   int // values kept
	every  int // of what was added, one in so many is kept
	added  int
	values []float64
}

func newSeries(most int) series { return series{most: most, every: 1} }

func (s *series) add(value float64) {
	if s.added%s.every == 0 {
		if len(s.values) == s.most {
			s.halve()
		}
		if s.added%s.every == 0 {
			s.values = append(s.values, value)
		}
	}
	s.added++
}

// halve drops every second value.
func (s *series) halve() {
	kept := s.values[:0]
	for i := 0; i < len(s.values); i += 2 {
		kept = append(kept, s.values[i])
	}
	s.values, s.every = kept, 2*s.every
}

// state is the series as numbers, which restore takes back.
func (s *series) state() []float64 {
	return append([]float64{float64(s.every), float64(s.added)}, s.values...)
}

func (s *series) restore(state []float64) error {
	if len(state) < 2 || len(state)-2 > s.most {
		return errors.Errorf("a trace of %d numbers, wants 2 to %d", len(state), s.most+2)
	}
	every, added := int(state[0]), int(state[1])
	if every < 1 || added < 0 || len(state)-2 != (added+every-1)/every {
		return errors.Errorf("a trace of %d values of %d, one in %d: these do not fit", len(state)-2, added, every)
	}
	s.every, s.added, s.values = every, added, append([]float64(nil), state[2:]...)
	return nil
}

// valuesOf are the values of several series.
func valuesOf(all []series) [][]float64 {
	values := make([][]float64, len(all))
	for i := range all {
		values[i] = all[i].values
	}
	return values
}
