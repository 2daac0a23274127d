package evaluate

import (
	"math"

	"github.com/pkg/errors"
)

// FGSM moves each pixel by size, a share of the range from 0 to 255, in the direction of its
// gradient's sign: the fast gradient sign method (Goodfellow, Shlens and Szegedy 2015, "Explaining
// and harnessing adversarial examples", section 4). The gradient is that of the loss to be raised,
// [N C H W] like the pixels. Results are bytes: 255 size is rounded to a whole number, and values
// stay between 0 and 255. Pixels with zero gradient stay.
func FGSM(pixels []byte, gradient []float64, size float64) ([]byte, error) {
	if len(gradient) != len(pixels) {
		return nil, errors.Errorf("evaluate: FGSM: a gradient of %d elements for %d pixels", len(gradient), len(pixels))
	}
	if !(size >= 0 && size <= 1) {
		return nil, errors.Errorf("evaluate: FGSM: size %v, wants a share of the pixels' range, 0 to 1", size)
	}
	step := int(math.Round(255 * size))
	moved := make([]byte, len(pixels))
	for i, pixel := range pixels {
		switch g := gradient[i]; {
		case math.IsNaN(g):
			return nil, errors.Errorf("evaluate: FGSM: the gradient of pixel %d is NaN", i)
		case g > 0:
			moved[i] = byte(min(int(pixel)+step, 255))
		case g < 0:
			moved[i] = byte(max(int(pixel)-step, 0))
		default:
			moved[i] = pixel
		}
	}
	return moved, nil
}
