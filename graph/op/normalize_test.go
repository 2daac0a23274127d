package op

import (
	"math"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

func TestNetworkOpsRefuse(t *testing.T) {
	image, channels, header := tensor.Shape{2, 6, 5, 5}, tensor.Shape{6}, tensor.Shape{3}
	for _, epsilon := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		refuse(t, FilterResponseNorm{Epsilon: epsilon}, image, channels, channels)
		refuse(t, GroupNorm{Groups: 2, Epsilon: epsilon}, image, channels, channels)
	}
	norm := FilterResponseNorm{Epsilon: 1e-6}
	refuse(t, norm, image, channels)
	refuse(t, norm, tensor.Shape{2, 6}, channels, channels)
	refuse(t, norm, image, tensor.Shape{5}, channels)
	refuse(t, norm, image, channels, tensor.Shape{1})
	refuse(t, norm, image, channels, channels, channels)
	refuse(t, GroupNorm{Epsilon: 1}, image, channels, channels)
	refuse(t, GroupNorm{Groups: 4, Epsilon: 1}, image, channels, channels)
	refuse(t, GroupNorm{Groups: -1, Epsilon: 1}, image, channels, channels)
	refuse(t, normalizeBackward{norm.normalization()}, image, tensor.Shape{2, 6, 5, 4}, channels)
	refuse(t, normalizeBackwardScale{norm.normalization()}, image, tensor.Shape{2, 6, 5, 4})
	refuse(t, Threshold{}, image)
	refuse(t, Threshold{}, image, tensor.Shape{5})
	refuse(t, Threshold{}, tensor.Shape{6}, channels)
	refuse(t, thresholdBackward{}, image, image)
	refuse(t, thresholdBackward{}, image, tensor.Shape{2, 6, 5, 4}, channels)
	refuse(t, thresholdBackwardBound{}, image, tensor.Shape{2, 6, 5, 4})
	for _, rate := range []float64{-0.1, 1, math.NaN()} {
		refuse(t, Dropout{Rate: rate, Stream: 1}, image, header)
	}
	refuse(t, Dropout{Rate: 0.5}, image, header)
	refuse(t, Dropout{Rate: 0.5, Stream: random.OrderStream}, image, header)
	refuse(t, Dropout{Rate: 0.5, Stream: 1}, image)
	for _, loss := range []graph.Op{SquaredError{}, BernoulliLogits{}} {
		refuse(t, loss, image)
		refuse(t, loss, tensor.Shape{}, tensor.Shape{})
		refuse(t, loss, image, tensor.Shape{2, 6, 25})
	}
}

func TestBernoulliLogitsOfImpossibleTargets(t *testing.T) {
	loss := BernoulliLogits{}.likelihood().value
	for _, target := range []float64{-0.01, 1.01, math.NaN(), math.Inf(1)} {
		if v := loss(0.5, target); !math.IsNaN(v) {
			t.Errorf("loss of target %v is %v, want NaN", target, v)
		}
	}
}

// An image of zeros, and channels whose squares are below and above what float32 holds.
func TestFilterResponseNormOfExtremes(t *testing.T) {
	x := tensor.Shape{1, 2, 1, 3}
	trial{
		op: FilterResponseNorm{Epsilon: 0.25}, shapes: []tensor.Shape{x, {2}, {2}},
		draw: func(input int, z float64) float64 {
			if input == 0 {
				return 0
			}
			return z
		},
		want: func(in [][]float64) []float64 {
			y := make([]float64, 6)
			for i, v := range in[0] {
				square := 0.0
				for _, w := range in[0][i/3*3:][:3] {
					square += w * w / 3
				}
				y[i] = in[1][i/3]*v/math.Sqrt(square+0.25) + in[2][i/3]
			}
			return y
		},
	}.run(t)
	for _, size := range []float64{1e-25, 1e25} {
		x := []float32{float32(size), float32(-2 * size), float32(2 * size)}
		var mean, inverse [1]float64
		moments(x, normalization{epsilon: 1e-60}, mean[:], inverse[:])
		if want := 1 / (size * math.Sqrt(3)); mean[0] != 0 || math.Abs(inverse[0]-want) > 1e-6*want {
			t.Errorf("moments of %v are %v and %v, want 0 and %v", x, mean, inverse, want)
		}
	}
}
