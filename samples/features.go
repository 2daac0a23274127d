package samples

import (
	"slices"
	"strconv"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// featureStores are the states that a prediction program stores logits and features in.
type featureStores struct {
	widths []int // number of values per image in each store of features
}

// featureStore returns the name of a store.
func featureStore(i int) string { return "features" + strconv.Itoa(i) }

// count returns the number of features of an image.
func (f featureStores) count() int {
	total := 0
	for _, w := range f.widths {
		total += w
	}
	return total
}

// add is an addition that stores the logits and features of the images, see
// [SamplePredictor.Features]. A layer that reads an image flattened counts as reading [C H W].
func (f *featureStores) add(b *graph.Builder, n int, order op.Batch, _, logits *graph.Node) {
	feature := func(rows *graph.Node) {
		storeRows(b, featureStore(len(f.widths)), n, order, rows)
		if b.Err() == nil {
			f.widths = append(f.widths, graph.ShapeOf(rows)[1])
		}
	}
	storeRows(b, logitsStore, n, order, logits)
	if b.Err() != nil {
		return
	}
	for _, x := range LayerInputs(b) {
		if len(graph.ShapeOf(x)) == 2 {
			feature(x)
			continue
		}
		feature(b.Apply(op.Moments{}, x))
	}
}

// LayerInputs returns the nodes [B C H W] and [B D] that convolutions and linear layers read, in
// order, each once. Inputs are taken before dropout, so that fewer of them are random.
func LayerInputs(b *graph.Builder) []*graph.Node {
	var inputs []*graph.Node
	before := map[*graph.Node]*graph.Node{}
	for _, a := range b.Applications() {
		switch a.Op.(type) {
		case op.View, op.Dropout:
			before[a.Output] = a.Inputs[0]
		case op.Conv2D, op.MatMul:
			x := a.Inputs[0]
			for before[x] != nil {
				x = before[x]
			}
			if axes := len(graph.ShapeOf(x)); (axes == 2 || axes == 4) && !slices.Contains(inputs, x) {
				inputs = append(inputs, x)
			}
		}
	}
	return inputs
}

// read reads the features of the images from first on into to, rows of count() numbers.
func (f featureStores) read(s *graph.Session, chain, first int, to []float32) error {
	count := f.count()
	if count == 0 || len(to)%count != 0 {
		return errors.Errorf("samples: features must be rows of %d numbers, got %d", count, len(to))
	}
	at := 0
	for i, width := range f.widths {
		rows := make([]float32, len(to)/count*width)
		if err := graph.Read(s, featureStore(i), chain, first*width, rows); err != nil {
			return err
		}
		for row := 0; row*count < len(to); row++ {
			copy(to[row*count+at:], rows[row*width:(row+1)*width])
		}
		at += width
	}
	return nil
}

// NewFeaturePredictor is [NewSamplePredictor] of float32, whose predictions also store logits and
// features.
func NewFeaturePredictor(device tensor.Device, images Images, batch int, network Network) (*SamplePredictor, error) {
	var stores featureStores
	p, err := loadPredictor(device, tensor.Float32, images, batch, network, stores.add)
	if err != nil {
		return nil, err
	}
	p.features = stores
	return p, nil
}

// FeaturePredictionSize returns the memory of a predictor made by NewFeaturePredictor for n images.
// images gives their shape only.
func FeaturePredictionSize(device tensor.Device, images Images, n, batch int, network Network) (Size, error) {
	return sizeOf(device, images, n, batch, 1, network, new(featureStores).add)
}

// Features writes the features of the last call of Predict, from image first on, into to: rows of
// FeatureCount numbers. They are the activations that each convolution and linear layer reads.
// Activations [C H W] are reduced to C means over the positions and C means of their squares.
// Features returns an error unless the predictor was made by NewFeaturePredictor.
func (p *SamplePredictor) Features(first int, to []float32) error {
	return p.features.read(p.session, 0, first, to)
}

// FeatureCount returns the number of features of an image; 0 unless the predictor was made by
// NewFeaturePredictor.
func (p *SamplePredictor) FeatureCount() int { return p.features.count() }

// NewFeatureEnsemble is [NewEnsemblePredictor], whose predictions also store features.
func NewFeatureEnsemble(device tensor.Device, images Images, batch, capacity, members int, network Network) (*EnsemblePredictor, error) {
	var stores featureStores
	p, err := newEnsemble(device, images, batch, capacity, members, network, stores.add)
	if err != nil {
		return nil, err
	}
	p.features = stores
	return p, nil
}

// Features writes the features of a member and the latest pass of Predict into to, as
// [SamplePredictor.Features] does. Predict's argument use may call it.
func (p *EnsemblePredictor) Features(member, first int, to []float32) error {
	return p.features.read(p.session, member, first, to)
}

// FeatureCount returns the number of features of an image; 0 unless the ensemble was made by
// NewFeatureEnsemble.
func (p *EnsemblePredictor) FeatureCount() int { return p.features.count() }
