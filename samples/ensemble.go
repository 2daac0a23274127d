package samples

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// EnsemblePredictor computes class probabilities under many samples at once, for images that arrive
// a few at a time, as in a server. Each member is a sample, which is loaded once, as a chain of one
// session: the members share the images, and on the host each thread runs different members. A
// [SamplePredictor], in contrast, loads one sample at a time and has a fixed set of images.
//
// It takes memory for the members' parameters, for their probabilities, [capacity K] each, for
// capacity images, and for the activations of one batch per thread.
type EnsemblePredictor struct {
	session  *graph.Session
	images   Images // without pixels
	batch    int    // images per step
	capacity int    // maximum number of images per call, a multiple of batch
	classes  int
	members  []Sample // without parameters; the zero Sample until Load

	features featureStores // empty unless the predictor was made by NewFeatureEnsemble
}

// NewEnsemblePredictor loads the network on a device, with room for the given number of members,
// which [EnsemblePredictor.Load] loads. images gives the shape and moments of the images; its
// Pixels are ignored. Each call of Predict takes at most capacity images, rounded up to a multiple
// of batch, and computes one batch per step. On the host the bits equal those of a SamplePredictor
// with the same batch.
func NewEnsemblePredictor(device tensor.Device, images Images, batch, capacity, members int, network Network) (*EnsemblePredictor, error) {
	return newEnsemble(device, images, batch, capacity, members, network, nil)
}

// roundUp returns capacity rounded up to a multiple of batch, if that is positive.
func roundUp(capacity, batch int) int {
	return (capacity + max(batch, 1) - 1) / max(batch, 1) * max(batch, 1)
}

// newEnsemble makes an EnsemblePredictor. more may be nil.
func newEnsemble(device tensor.Device, images Images, batch, capacity, members int, network Network, more addition) (*EnsemblePredictor, error) {
	capacity = roundUp(capacity, batch)
	if batch < 1 || capacity < 1 || members < 1 {
		return nil, errors.Errorf("samples: ensemble: batch, capacity and members must be at least 1, got %d, %d and %d", batch, capacity, members)
	}
	images = images.Empty()
	if err := images.validateShape(); err != nil {
		return nil, err
	}
	program, classes, err := predictionProgram(tensor.Float32, images, capacity, batch, network, more)
	if err != nil {
		return nil, err
	}
	session, err := program.Load(device, graph.LoadOptions{Chains: members})
	if err != nil {
		return nil, err
	}
	return &EnsemblePredictor{
		session: session, images: images, batch: batch, capacity: capacity, classes: classes, members: make([]Sample, members),
	}, nil
}

// EnsembleSize returns the memory of an EnsemblePredictor.
func EnsembleSize(device tensor.Device, images Images, batch, capacity, members int, network Network) (Size, error) {
	return sizeOf(device, images, roundUp(capacity, batch), batch, members, network, nil)
}

// Load loads a sample as the given member, replacing the member's previous sample.
func (p *EnsemblePredictor) Load(member int, s Sample) error {
	if member < 0 || member >= len(p.members) {
		return errors.Errorf("samples: ensemble: member must be in [0, %d), got %d", len(p.members), member)
	}
	if err := s.Put(p.session, member); err != nil {
		return err
	}
	p.members[member] = Sample{Chain: s.Chain, Step: s.Step, Weight: s.Weight}
	return nil
}

// Predict computes the probabilities of n images of the ensemble's shape, with n at most Capacity.
// For each pass it calls use with the probabilities [n K] and the weight of each member, in the
// members' order. Passes differ only if the network draws random numbers (Monte Carlo
// dropout); otherwise one is enough. The same images and passes give the same bits. use must not
// keep the slice.
func (p *EnsemblePredictor) Predict(images Images, passes int, use func(probabilities []float32, weight float64) error) error {
	if err := images.validate(); err != nil {
		return err
	}
	n := images.Len()
	if !images.Shape().Equal(p.images.Shape()) || n > p.capacity || passes < 1 {
		return errors.Errorf("samples: ensemble: must have 1 to %d images of shape %v and at least 1 pass, got %d of shape %v and %d passes",
			p.capacity, p.images.Shape(), n, images.Shape(), passes)
	}
	if err := images.Write(p.session); err != nil {
		return err
	}
	probabilities := make([]float32, n*p.classes)
	for pass := range passes {
		// The step number selects the batch, modulo the batches of the capacity, and addresses the
		// random numbers: a multiple of their number starts at the first image with new noise.
		start := uint64(pass) * uint64(p.capacity/p.batch)
		for member := range p.members {
			if err := p.session.SetStep(member, start); err != nil {
				return err
			}
		}
		if err := p.session.Run((n + p.batch - 1) / p.batch); err != nil {
			return err
		}
		for member, s := range p.members {
			if err := graph.Read(p.session, probabilitiesStore, member, 0, probabilities); err != nil {
				return err
			}
			if err := checkFinite(probabilities, n, s, "probability"); err != nil {
				return err
			}
			if err := use(probabilities, s.Weight); err != nil {
				return errors.Wrapf(err, "member %d", member)
			}
		}
	}
	return nil
}

// Capacity returns the maximum number of images that Predict takes.
func (p *EnsemblePredictor) Capacity() int { return p.capacity }

// Classes returns the number of the network's classes.
func (p *EnsemblePredictor) Classes() int { return p.classes }

// Close releases the memory.
func (p *EnsemblePredictor) Close() error { return p.session.Close() }
