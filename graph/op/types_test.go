package op

import (
	"math"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

func TestInputsOfOtherTypesAreErrors(t *testing.T) {
	for name, apply := range map[string]func(b *graph.Builder){
		"labels as bytes": func(b *graph.Builder) {
			b.Apply(CrossEntropy{}, b.Parameter("z", nil, 3, 2), b.Data("labels", tensor.Uint8, 3))
		},
		"images as floats": func(b *graph.Builder) {
			b.Apply(GatherImages{Batch{Size: 1}, ChannelsOf(0), ChannelsOf(1)}, b.Parameter("images", nil, 3, 1, 2, 2), b.Header())
		},
		"a header of floats": func(b *graph.Builder) {
			b.Apply(Dropout{Rate: 0.5, Stream: 1}, b.Parameter("x", nil, 3), b.Parameter("header of floats", nil, 3))
		},
		"noise of a step that is a float": func(b *graph.Builder) {
			b.Apply(Noise{Stream: 1}, b.Parameter("header of floats", nil, 3))
		},
	} {
		b := graph.New(tensor.Float32)
		apply(b)
		if err := b.Err(); err == nil || !strings.Contains(err.Error(), "must be of") {
			t.Errorf("%s: got %v, want an error with the type it must be of", name, err)
		}
	}
}

func TestMomentsOfImages(t *testing.T) {
	images, header := tensor.Shape{4, 2, 3, 3}, tensor.Shape{3}
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		refuse(t, GatherImages{Batch{Size: 1}, ChannelsOf(0, bad), ChannelsOf(1)}, images, header)
		refuse(t, GatherImages{Batch{Size: 1}, ChannelsOf(0), ChannelsOf(1, bad)}, images, header)
	}
	refuse(t, GatherImages{Batch{Size: 1}, ChannelsOf(0), ChannelsOf(0)}, images, header)
	refuse(t, GatherImages{Batch{Size: 1}, ChannelsOf(0, 0, 0), ChannelsOf(1)}, images, header)
}
