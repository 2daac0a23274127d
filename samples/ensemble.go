package samples

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// EnsemblePredictor computes a network's class probabilities under many samples at once, for images
// that come a few at a time. Each member is a sample, which is loaded once, as a chain of one
// session: the members share the images, and on the host each thread has a member of its own. A
// Predictor, in contrast, loads one sample at a time and has a fixed set of images.
//
// It takes memory for the members' parameters and probabilities, [room K] each, for room images,
// and for a batch's activations in each thread.
type EnsemblePredictor struct {
	session  *graph.Session
	images   Images // without pixels
	size     int    // bytes of an image
	batch    int    // images of a step
	capacity int    // images of a call, a multiple of batch
	classes  int
	weights  []float64 // of the members; 0 until Seat
}

// NewEnsemblePredictor loads the network, which maps a batch of images to logits, on a device for
// that many members, which Seat loads. images gives the shape and moments of the images; its Pixels
// are ignored. At most room images are predicted at a time, one batch a step: on the host, the bits
// are those of a Predictor with that batch.
func NewEnsemblePredictor(device tensor.Device, images Images, batch, capacity, members int,
	network func(b *graph.Builder, x *graph.Node) *graph.Node,
) (*EnsemblePredictor, error) {
	if batch < 1 || capacity < 1 || members < 1 {
		return nil, errors.Errorf("samples: committee: batches of %d, room for %d images, %d members, wants at least 1 of each", batch, capacity, members)
	}
	size := images.Channels * images.Height * images.Width
	images.Pixels = make([]byte, max(size, 1)) // an image, for what validate says of the shape
	if err := images.validate(); err != nil {
		return nil, err
	}
	images.Pixels = nil
	capacity = (capacity + batch - 1) / batch * batch
	program, classes, err := predictionProgram(tensor.Float32, images, capacity, op.Batch{Size: batch}, network, nil)
	if err != nil {
		return nil, err
	}
	session, err := program.Load(device, graph.LoadOptions{Chains: members})
	if err != nil {
		return nil, err
	}
	return &EnsemblePredictor{
		session: session, images: images, size: size, batch: batch, capacity: capacity, classes: classes, weights: make([]float64, members),
	}, nil
}

// Load makes a sample the given member, replacing what was there.
func (c *EnsemblePredictor) Load(member int, s Sample) error {
	if member < 0 || member >= len(c.weights) {
		return errors.Errorf("samples: committee: member %d of %d", member, len(c.weights))
	}
	if err := s.Put(c.session, member); err != nil {
		return err
	}
	c.weights[member] = s.Weight
	return nil
}

// Predict computes the probabilities of images, bytes [n C H W] with n at most Room, and calls use
// with those of each member, [n K], and the sample's weight, in the members' order, once for each
// pass. Passes differ where the network draws random numbers; otherwise one is enough. The same
// pixels and passes give the same bits. use must not keep the slice.
func (c *EnsemblePredictor) Predict(pixels []byte, passes int, use func(probabilities []float32, weight float64) error) error {
	n := len(pixels) / c.size
	if len(pixels) == 0 || len(pixels)%c.size != 0 || n > c.capacity || passes < 1 {
		return errors.Errorf("samples: committee: %d bytes and %d passes, wants 1 to %d images of %d bytes and at least 1 pass",
			len(pixels), passes, c.capacity, c.size)
	}
	if err := graph.Write(c.session, "images", 0, 0, pixels); err != nil {
		return err
	}
	probabilities := make([]float32, n*c.classes)
	for pass := range passes {
		// The room begins anew: the first image is the step's first, and random numbers have the
		// pass's address.
		start := uint64(pass) * uint64(c.capacity/c.batch)
		for member := range c.weights {
			if err := c.session.SetStep(member, start); err != nil {
				return err
			}
		}
		if err := c.session.Run((n + c.batch - 1) / c.batch); err != nil {
			return err
		}
		for member, weight := range c.weights {
			if err := graph.Read(c.session, "probabilities", member, 0, probabilities); err != nil {
				return err
			}
			if err := use(probabilities, weight); err != nil {
				return errors.Wrapf(err, "member %d", member)
			}
		}
	}
	return nil
}

// Capacity is the largest number of images that Predict takes.
func (c *EnsemblePredictor) Capacity() int { return c.capacity }

// Classes is the number of the network's classes.
func (c *EnsemblePredictor) Classes() int { return c.classes }

// Close releases the memory.
func (c *EnsemblePredictor) Close() error { return c.session.Close() }
