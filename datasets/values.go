package datasets

import "math"

// minRange is the smallest difference between the darkest and the brightest pixel of training
// images that is not remarked on.
const minRange = 16

// remarkValues remarks on training images with hardly any contrast. Among them are bytes made of
// values from 0 to 1. Files of 16-bit images with small values, whose upper 8 bits are nearly the
// same, already have a remark with better advice.
func remarkValues(train *Dataset, options Options) {
	low, high := byte(math.MaxUint8), byte(0)
	for _, value := range train.Images {
		low, high = min(low, value), max(high, value)
		if high-low >= minRange {
			return
		}
	}
	const advice = "multiply values from 0 to 1 by 255, and stretch 16-bit images that use few of their values, before they are saved"
	if low == high {
		options.remark("%s: all pixels of the training images are %d, and no network can tell them apart: %s", train.Name, low, advice)
		return
	}
	if options.remarks != nil && options.remarks.fewValues {
		return
	}
	options.remark("%s: pixels of the training images are only %d to %d, of 0 to 255: %s", train.Name, low, high, advice)
}
