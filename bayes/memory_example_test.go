package bayes_test

import (
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"os"
	"path/filepath"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
)

// Images that never are files: a custom network trains on values of image.Image, and a Predictor
// answers for another one. The validation images calibrate the prediction sets and the decisions
// whether an image is in distribution.
func ExamplePredictor_Answer() {
	if err := answerInMemory(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// upright: true, in {upright}: true, in distribution: true
	// nothing: in distribution: false
}

func answerInMemory() error {
	var images []image.Image
	var labels []int32
	for i := range 400 {
		labels = append(labels, int32(i%2))
		images = append(images, bar(i%2 == 0, 2+i%11, byte(200+i%50)))
	}
	shape := datasets.Options{Channels: 1, Height: 16, Width: 16}
	all, err := datasets.FromImages("bars", images, labels, []string{"upright", "flat"}, shape)
	if err != nil {
		return err
	}
	train, validation, err := all.Stratified(0.5, 1)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "memory")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	network := layers.Sequential{
		layers.Conv2D{Filters: 4, Kernel: 3, Padding: 1}, layers.ReLU{}, layers.MaxPool{Window: 4},
		layers.Flatten{}, layers.Linear{Outputs: 2},
	}
	spec := bayes.Spec{Layers: network, Method: langevin.SGHMC{Friction: 0.1}, Epochs: 60, Chains: 2}
	run, err := bayes.Fit(context.Background(), spec, &datasets.Splits{Train: train, Validation: validation}, filepath.Join(dir, "run"))
	if err != nil {
		return err
	}
	predictor, err := run.Predictor(2)
	if err != nil {
		return err
	}
	defer predictor.Close()

	var pixels []byte // of two images
	for _, img := range []image.Image{bar(true, 7, 220), image.NewGray(image.Rect(0, 0, 16, 16))} {
		one, err := datasets.Pixels(img, shape)
		if err != nil {
			return err
		}
		pixels = append(pixels, one...)
	}
	answers, err := predictor.Answer(context.Background(), pixels)
	if err != nil {
		return err
	}
	a := answers[0] // InDistribution is nil in runs that were not calibrated
	fmt.Printf("upright: %v, in {upright}: %v, in distribution: %v\n",
		a.Class == "upright" && a.Confidence > 0.9, len(a.PredictionSet) == 1 && a.PredictionSet[0] == "upright", *a.InDistribution)
	fmt.Printf("nothing: in distribution: %v\n", *answers[1].InDistribution)
	return nil
}

// bar draws an upright or flat bar on a black image.
func bar(upright bool, at int, brightness byte) image.Image {
	img, area := image.NewGray(image.Rect(0, 0, 16, 16)), image.Rect(at, 0, at+2, 16)
	if !upright {
		area = image.Rect(0, at, 16, at+2)
	}
	draw.Draw(img, area, image.NewUniform(color.Gray{Y: brightness}), image.Point{}, draw.Src)
	return img
}
