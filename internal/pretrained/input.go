package pretrained

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"
)

// Input describes how images are converted to the input of an ONNX network: (pixel/255 -
// mean)/std in each channel, with the channels red, green and blue, or reversed. mean and std have
// a number for each channel, or one for all.
type Input struct {
	mean, std []float64
	reversed  bool
}

// inputPresets are the inputs with names. Sources: torchvision's and timm's documentation of
// weights, Keras's of preprocess_input.
var inputPresets = []struct {
	name string
	Input
}{
	{"imagenet", Input{mean: []float64{0.485, 0.456, 0.406}, std: []float64{0.229, 0.224, 0.225}}},
	{"inception", Input{mean: []float64{0.5}, std: []float64{0.5}}},
	{"none", Input{mean: []float64{0}, std: []float64{1}}},
	{"bytes", Input{mean: []float64{0}, std: []float64{1. / 255}}},
	{"caffe", Input{
		mean: []float64{123.68 / 255, 116.779 / 255, 103.939 / 255}, std: []float64{1. / 255}, reversed: true,
	}},
}

// InputForm describes the texts of inputs without a name.
const InputForm = "mean=R/G/B,std=R/G/B,order=bgr"

// ParseInput reads a preset, or a text such as "mean=0.5/0.5/0.5,std=0.2,order=bgr".
func ParseInput(text string) (f Input, err error) {
	var names []string
	for _, p := range inputPresets {
		if p.name == text {
			return p.Input, nil
		}
		names = append(names, p.name)
	}
	wrong := func() (Input, error) {
		return f, errors.Errorf("pollen: input must be %s, or as in %s, with one number or one for each channel, and std positive, got %q",
			strings.Join(names, ", "), InputForm, text)
	}
	f.mean, f.std = []float64{0}, []float64{1}
	for _, item := range strings.Split(text, ",") {
		name, value, _ := strings.Cut(item, "=")
		switch strings.TrimSpace(name) {
		case "mean":
			if f.mean = parseChannels(value); f.mean == nil {
				return wrong()
			}
		case "std":
			if f.std = parseChannels(value); f.std == nil || slices.Min(f.std) <= 0 {
				return wrong()
			}
		case "order":
			if value != "rgb" && value != "bgr" {
				return wrong()
			}
			f.reversed = value == "bgr"
		default:
			return wrong()
		}
	}
	return f, nil
}

// parseChannels reads a number for all channels, or one for each; nil if these are not finite.
func parseChannels(text string) (values []float64) {
	for _, part := range strings.Split(text, "/") {
		v, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || v-v != 0 {
			return nil
		}
		values = append(values, v)
	}
	return values
}

// Moments returns the mean and standard deviation for a number of channels. Grey images get the
// green channel's.
func (f Input) Moments(channels int) (mean, std []float64, err error) {
	for _, m := range []struct{ from, to *[]float64 }{{&f.mean, &mean}, {&f.std, &std}} {
		switch n := len(*m.from); {
		case n == 1:
			*m.to = slices.Repeat(*m.from, channels)
		case n == 3 && channels == 1:
			*m.to = (*m.from)[1:2:2]
		case n == channels:
			*m.to = *m.from
		default:
			return nil, nil, errors.Errorf("pollen: input must have one number, or one for each of %d channels, as in %s, got %d numbers", channels,
				"mean="+strings.Repeat("0.5/", channels-1)+"0.5", n)
		}
	}
	if f.reversed && channels != 1 && channels != 3 {
		return nil, nil, errors.Errorf("pollen: input must not have order=bgr for images of %d channels", channels)
	}
	return mean, std, nil
}
