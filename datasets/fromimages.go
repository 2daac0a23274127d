package datasets

import (
	"image"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets/internal/decode"
)

// Pixels converts an image of a Go program into bytes [Channels Height Width], scaled by these
// options and their Crop and Bits, as Decode does with an encoded image; see the package
// documentation. bayes.Predictor answers for such bytes.
//
// Pixels returns an error if the image is nil or empty or has more than MaxPixels, if Channels is
// not 1, 3 or 4, or if Height or Width is not in 1 ... MaxSide.
func Pixels(img image.Image, o Options) ([]byte, error) {
	s := shape{o.Channels, o.Height, o.Width}
	if err := s.check(); err != nil {
		return nil, errors.WithMessage(err, "datasets: pixels")
	}
	if _, err := decode.InfoOf(img); err != nil {
		return nil, errors.WithMessage(err, "datasets: pixels")
	}
	pixels := make([]byte, s.size())
	decode.Scale(pixels, img, s.channels, s.height, s.width, o.Crop, o.Bits)
	return pixels, nil
}

// FromImages makes a data set from images of a Go program, with the labels and classNames of New.
// The images are converted as by Pixels. If Channels, or Height and Width, are 0 in the options,
// they are chosen as for image files, see the package documentation. Images to predict must have
// the shape of those that the network was trained on, see bayes.Data. Other options have no
// effect.
//
// It returns an error if an option is invalid, an image is nil, empty or too large, the images
// need more memory than there is, or the result is not valid, see Validate.
func FromImages(name string, images []image.Image, labels []int32, classNames []string, o Options) (*Dataset, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	infos := make([]decode.Info, len(images))
	for i, img := range images {
		var err error
		if infos[i], err = decode.InfoOf(img); err != nil {
			return nil, errors.WithMessagef(err, "datasets: %s: image %d", name, i)
		}
	}
	s, err := chooseShape(infos, o)
	if err != nil {
		return nil, err
	}
	if err := checkMemory(len(images), s); err != nil {
		return nil, err
	}
	pixels := make([]byte, len(images)*s.size())
	for i, img := range images {
		decode.Scale(pixels[i*s.size():(i+1)*s.size()], img, s.channels, s.height, s.width, o.Crop, o.Bits)
	}
	d, err := New(name, pixels, labels, s.channels, s.height, s.width, classNames)
	if err != nil {
		return nil, err
	}
	d.Cropped, d.Bits = o.Crop, o.Bits
	return d, nil
}
