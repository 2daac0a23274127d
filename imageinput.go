package pollen

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// inputFormat is how images become the input of an ONNX network: (pixel/255 - mean)/std in each
// channel, with the channels red, green and blue, or reversed.
type inputFormat struct {
	mean, std [3]float64
	reversed  bool
}

// inputPresets are the formats with names. Sources: torchvision's and timm's documentation of
// weights, Keras's of preprocess_input.
var inputPresets = []struct {
	name string
	inputFormat
}{
	{"imagenet", inputFormat{mean: [3]float64{0.485, 0.456, 0.406}, std: [3]float64{0.229, 0.224, 0.225}}},
	{"inception", inputFormat{mean: [3]float64{0.5, 0.5, 0.5}, std: [3]float64{0.5, 0.5, 0.5}}},
	{"none", inputFormat{std: [3]float64{1, 1, 1}}},
	{"bytes", inputFormat{std: [3]float64{1. / 255, 1. / 255, 1. / 255}}},
	{"caffe", inputFormat{
		mean: [3]float64{123.68 / 255, 116.779 / 255, 103.939 / 255}, std: [3]float64{1. / 255, 1. / 255, 1. / 255}, reversed: true,
	}},
}

const inputForm = "mean=R/G/B,std=R/G/B,order=bgr"

// InputNames returns the names of the presets of Spec.Input.
func InputNames() []string {
	var names []string
	for _, p := range inputPresets {
		names = append(names, p.name)
	}
	return names
}

// parseInput reads a preset, or a text such as "mean=0.5/0.5/0.5,std=0.2,order=bgr".
func parseInput(text string) (f inputFormat, err error) {
	for _, p := range inputPresets {
		if p.name == text {
			return p.inputFormat, nil
		}
	}
	wrong := func() (inputFormat, error) {
		return f, invalid("input must be %s, or as in %s, with one number or three, and std positive, got %q", strings.Join(InputNames(), ", "), inputForm, text)
	}
	f.std = [3]float64{1, 1, 1}
	for _, item := range strings.Split(text, ",") {
		name, value, _ := strings.Cut(item, "=")
		switch strings.TrimSpace(name) {
		case "mean":
			if !parseChannels(value, &f.mean) {
				return wrong()
			}
		case "std":
			if !parseChannels(value, &f.std) || slices.Min(f.std[:]) <= 0 {
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

// parseChannels reads a number for all channels, or one for each.
func parseChannels(text string, to *[3]float64) bool {
	parts := strings.Split(text, "/")
	if len(parts) != 1 && len(parts) != len(to) {
		return false
	}
	for c := range to {
		v, err := strconv.ParseFloat(strings.TrimSpace(parts[min(c, len(parts)-1)]), 64)
		if err != nil || v-v != 0 {
			return false
		}
		to[c] = v
	}
	return true
}

// inputOf returns the format that a file's metadata describe, with the keys of ONNX's specification
// for images, and that of ImageNet's networks without them.
func inputOf(metadata map[string]string) string {
	ranges := map[string]string{"Normalized_0_1": "none", "Normalized_1_1": "inception", "NominalRange_0_255": "bytes"}
	scaling := map[string]string{"none": "std=1", "inception": "mean=0.5,std=0.5", "bytes": "std=" + strconv.FormatFloat(1./255, 'g', -1, 64)}
	preset := ranges[metadata["Image.NominalPixelRange"]]
	if strings.HasPrefix(metadata["Image.BitmapPixelFormat"], "Bgr") {
		return cmp.Or(scaling[preset], "mean=0.485/0.456/0.406,std=0.229/0.224/0.225") + ",order=bgr"
	}
	return cmp.Or(preset, "imagenet")
}

// moments returns the mean and standard deviation for a number of channels. Grey images have those
// of green.
func (f inputFormat) moments(channels int) (mean, std []float64) {
	if channels == 1 {
		return f.mean[1:2:2], f.std[1:2:2]
	}
	return f.mean[:], f.std[:]
}
