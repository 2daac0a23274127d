package evaluate

import (
	"math"

	"github.com/pkg/errors"
)

// FGSM returns adversarial examples of the fast gradient sign method (Goodfellow, Shlens and
// Szegedy 2015, "Explaining and harnessing adversarial examples", section 4). It moves each pixel
// by size, a fraction of the range from 0 to 255, in the direction of the sign of its gradient.
// gradient is the gradient of the loss to be increased, [N C H W] like the pixels. 255 size is
// rounded to an integer, and values are clamped to 0 to 255. Pixels with zero gradient keep their
// value. It returns an error if the lengths differ, if size is not in [0, 1], and for a NaN.
func FGSM(pixels []byte, gradient []float64, size float64) ([]byte, error) {
	if len(gradient) != len(pixels) {
		return nil, errors.Errorf("evaluate: FGSM: gradient must have %[2]d elements like the pixels, got %[1]d", len(gradient), len(pixels))
	}
	if !(size >= 0 && size <= 1) {
		return nil, errors.Errorf("evaluate: FGSM: size must be a fraction of the pixels' range, 0 to 1, got %v", size)
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
