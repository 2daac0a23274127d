package bayes

import (
	"context"

	"github.com/pollen-ml/pollen/internal/pretrained"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// parts are the two stages of a network's predictions: a frozen stem, which maps images to
// features, computed once for each image, and the network that is sampled.
type parts struct {
	frozen  *pretrained.Frozen // nil unless everything before the head is frozen; network then reads images
	network layers.Sequential
	images  samples.Images // shape and moments of the images
}

// inputs returns the shape of what the sampled network reads, without values.
func (p parts) inputs() samples.Images {
	if p.frozen == nil {
		return p.images
	}
	return p.frozen.Features()
}

// read returns the inputs of the sampled network for the pixels of images of the data set called
// name.
func (e environment) read(ctx context.Context, device tensor.Device, p parts, name string, pixels []byte) (samples.Images, error) {
	if p.frozen == nil {
		images := p.images
		images.Pixels = pixels
		return images, nil
	}
	x := e.extractor(device, p.frozen, func(done, total, images int) {
		e.observe(Event{Task: "features", On: name, Of: len(pixels) / p.images.Bytes(1), Done: done, Total: total, Images: images})
	})
	defer x.Close()
	return x.Extract(ctx, pixels)
}

// extractor returns an extractor that keeps features where the environment says.
func (e environment) extractor(device tensor.Device, frozen *pretrained.Frozen, observe func(done, total, images int)) *pretrained.Extractor {
	x := frozen.Extractor(device, observe)
	x.KeepIn(e.featureDir, e.now, e.remark)
	return x
}
