package samples

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// Images are the inputs of a network: images as bytes, or vectors of numbers, such as the features
// that another network has computed of images.
type Images struct {
	// Pixels has the images [N C H W]. The network's input in channel c is
	// (byte/255 - Mean[c])/Std[c].
	Pixels                  []byte
	Channels, Height, Width int
	Mean, Std               []float64 // one per channel, or one for all

	// Features is the length of a vector if the inputs are vectors, and 0 if they are images. Rows
	// has the vectors [N Features], which the network reads as they are. The other fields are then
	// not used.
	Features int
	Rows     []float32
}

// Shape returns the shape of one input of the network: [C H W], or the length of a vector.
func (i Images) Shape() tensor.Shape {
	if i.Features > 0 {
		return tensor.Shape{i.Features}
	}
	return tensor.Shape{i.Channels, i.Height, i.Width}
}

// Len returns the number of images or vectors.
func (i Images) Len() int {
	if i.Features > 0 {
		return len(i.Rows) / i.Features
	}
	return len(i.Pixels) / (i.Channels * i.Height * i.Width)
}

// Bytes returns the bytes of n images or vectors.
func (i Images) Bytes(n int) int {
	if i.Features > 0 {
		return 4 * n * i.Features
	}
	return n * i.Channels * i.Height * i.Width
}

// Slice returns images from up to but not including to, which share their memory with i.
func (i Images) Slice(from, to int) Images {
	if i.Features > 0 {
		i.Rows = i.Rows[from*i.Features : to*i.Features]
	} else {
		size := i.Bytes(1)
		i.Pixels = i.Pixels[from*size : to*size]
	}
	return i
}

// Select returns a copy of the images with the given indices.
func (i Images) Select(indices []int) Images {
	selected := i
	selected.Pixels, selected.Rows = nil, nil
	for _, at := range indices {
		one := i.Slice(at, at+1)
		selected.Pixels, selected.Rows = append(selected.Pixels, one.Pixels...), append(selected.Rows, one.Rows...)
	}
	return selected
}

// Empty returns the shape and moments of the images, without any image.
func (i Images) Empty() Images {
	i.Pixels, i.Rows = nil, nil
	return i
}

// Input makes the input "images" of n images, and returns the node of each step's examples, which
// is what the network reads: normalised images [B C H W], or vectors [B Features].
func (i Images) Input(b *graph.Builder, batch op.Batch, n int) *graph.Node {
	if i.Features > 0 {
		// Data is of the type in which the network computes, as gathered rows must be.
		return b.Apply(op.GatherRows{Batch: batch}, b.Data(imagesInput, b.DType(), n, i.Features), b.Header())
	}
	pixels := b.Data(imagesInput, tensor.Uint8, n, i.Channels, i.Height, i.Width)
	return op.NormalizedImages(b, batch, pixels, i.Mean, i.Std)
}

const imagesInput = "images"

// Write writes the images into a session whose program has their Input.
func (i Images) Write(s *graph.Session) error {
	if i.Features > 0 {
		return s.WriteFloats(imagesInput, 0, i.Rows)
	}
	return graph.Write(s, imagesInput, 0, 0, i.Pixels)
}

// validate returns an error unless there is at least one image, and a valid shape.
func (i Images) validate() error {
	if err := i.validateShape(); err != nil {
		return err
	}
	if i.Features > 0 && (len(i.Rows) == 0 || len(i.Rows)%i.Features != 0) {
		return errors.Errorf("samples: predictor: Rows must be whole vectors of %d numbers, got %d numbers", i.Features, len(i.Rows))
	}
	if i.Features == 0 && (len(i.Pixels) == 0 || len(i.Pixels)%i.Bytes(1) != 0) {
		return errors.Errorf("samples: predictor: Pixels must be whole images of shape %v, got %d bytes", i.Shape(), len(i.Pixels))
	}
	return nil
}

func (i Images) validateShape() error {
	if i.Features < 0 {
		return errors.Errorf("samples: predictor: Features must be at least 0, got %d", i.Features)
	}
	if i.Features > 0 {
		return nil
	}
	if err := i.Shape().Validate(); err != nil {
		return errors.Wrap(err, "samples: predictor: images")
	}
	finite := len(i.Mean) == len(i.Std)
	for c := 0; finite && c < len(i.Mean); c++ {
		finite = i.Std[c] > 0 && i.Std[c] < math.Inf(1) && i.Mean[c]-i.Mean[c] == 0
	}
	if !finite {
		return errors.Errorf("samples: predictor: Mean and Std must have the same number of finite values, and Std positive ones, got %v and %v",
			i.Mean, i.Std)
	}
	return nil
}
