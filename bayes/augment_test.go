package bayes

import (
	"math"
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/internal/onnxtest"
	"github.com/pollen-ml/pollen/tensor"
)

// Images change in units of the training images, however a network of an ONNX file reads them. The
// pixels of these images are one standard deviation above the mean.
func TestAugmentForONNX(t *testing.T) {
	network := onnxtest.Backbone{Channels: 1, Side: side, Filters: 4}.Write(t)
	for _, input := range []string{"imagenet", "none", "bytes"} {
		for _, c := range []struct {
			augment   Augment
			low, high float64
		}{{Augment{Brightness: 0.5}, 0.5, 1.5}, {Augment{Contrast: 1}, 0.5, 2}, {Augment{Shift: 2}, 0, 1}} {
			spec := Spec{Network: network, Input: input, Method: methodOf(t, "adam"), Freeze: "none", Epochs: 1, Augment: &c.augment}
			tr, err := newTraining(spec, squares(t, 100, 4, 1), "", environmentOf(nil))
			must(t, err)
			mean, std, readMean, readStd := tr.mean[0], tr.std[0], tr.data.Mean[0], tr.data.Std[0]
			y := make([]float32, 100*side*side)
			b := graph.New(tensor.Float32)
			b.Output("y", tr.augment(b, b.Data("x", tensor.Float32, 100, 1, side, side)))
			must(t, b.OnHost(graph.LoadOptions{Chains: 1}, func(s *graph.Session) error {
				must(t, graph.Write(s, "x", 0, 0, slices.Repeat([]float32{float32((mean + std - readMean) / readStd)}, len(y))))
				must(t, s.Run(1))
				return graph.Read(s, "y", 0, 0, y)
			}))
			value := func(y float32) float64 { return (float64(y)*readStd + readMean - mean) / std }
			low, high, room := value(slices.Min(y)), value(slices.Max(y)), 0.1*(c.high-c.low)
			if math.Abs(low-c.low) > room || math.Abs(high-c.high) > room {
				t.Errorf("%s, %v: values are %v to %v, want %v to %v", input, c.augment, low, high, c.low, c.high)
			}
		}
	}
}

func TestAugmentText(t *testing.T) {
	for text, want := range map[string]Augment{
		"none":                                   {},
		"flip":                                   {Flip: true},
		"flip=true":                              {Flip: true},
		" shift = 2 , flip ":                     {Flip: true, Shift: 2},
		"erase=0.25,rotation=7.5":                {Rotation: 7.5, Erase: 0.25},
		"flip,shift=2,rotation=10,erase=0.25":    {Flip: true, Shift: 2, Rotation: 10, Erase: 0.25},
		"brightness=0.5,contrast=1,zoom=0.2":     {Zoom: 0.2, Contrast: 1, Brightness: 0.5},
		"flip=1,shift=2.0,rotation=1e1,erase=.5": {Flip: true, Shift: 2, Rotation: 10, Erase: 0.5},
	} {
		got, err := parseAugment(text)
		if err != nil || got != want {
			t.Errorf("%q is %+v (%v), want %+v", text, got, err, want)
		}
		if again, err := parseAugment(got.String()); err != nil || again != want {
			t.Errorf("%q, which is %+v, is read as %+v (%v)", got.String(), want, again, err)
		}
	}
	for text, want := range map[string]string{
		"":                  `augment "": "" must be as in flip,shift=PIXELS,rotation=DEGREES,`,
		"none,flip":         `"none" must be as in flip,`,
		"wobble":            "zoom=FRACTION,contrast=FRACTION,brightness=DEVIATIONS,erase=FRACTION,copies=N",
		"flip,":             `"" must be as in flip,`,
		"flip,flip":         "flip is given twice",
		"shift=1,shift=2":   "shift is given twice",
		"shift":             "shift has no value, must be as in flip,shift=PIXELS",
		"shift=":            "shift has no value",
		"flip=":             "flip has no value",
		"shift=1.5":         "shift: 1.5 is not an integer",
		"rotation=ten":      `rotation: "ten" is not a number`,
		"flip=maybe":        `flip: must be true or false, got "maybe"`,
		"flip=false":        "flip=false changes nothing, leave it out",
		"shift=0":           "shift=0 changes nothing",
		"erase=0,shift=0.5": "erase=0 changes nothing",
	} {
		_, err := parseAugment(text)
		wantInvalid(t, text, err, want)
	}
	var s Spec
	wantInvalid(t, "setting", s.Set("augment", "wobble=3"), `augment "wobble=3": "wobble=3" must be as in flip`)
	must(t, s.Set("augment", "flip"))
	if got := s.Texts()["augment"]; got != "flip" {
		t.Errorf("as text it is %q, want flip", got)
	}
	must(t, s.Set("augment", "none"))
	if got := s.Texts()["augment"]; got != "none" {
		t.Errorf("as text it is %q, want none", got)
	}
	if _, given := (Spec{}).Texts()["augment"]; given {
		t.Error("a specification without it has it as text")
	}
}
