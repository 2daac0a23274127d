package sumexp

import "math"

// Of returns the largest of z and the sum of exp(z - largest): ln sum exp(z) is top + ln total. z
// must not be empty.
func Of[T float32 | float64](z []T) (top, total float64) {
	largest := z[0]
	for _, v := range z {
		largest = max(largest, v)
	}
	top = float64(largest)
	for _, v := range z {
		total += math.Exp(float64(v) - top)
	}
	return top, total
}
