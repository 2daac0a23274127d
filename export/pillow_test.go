package export

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/pollen-ml/pollen/datasets"
)

// The code in docs/export.md reads images as Pollen does, also transparent and 16-bit ones.
func TestONNXImagesReadWithPillow(t *testing.T) {
	needsPython(t)
	const side = 224 // as in docs/export.md, so that nothing is scaled
	bounds := image.Rect(0, 0, side, side)
	images := map[string]interface {
		image.Image
		Set(x, y int, c color.Color)
	}{
		"colour.png": image.NewRGBA(bounds), "opacity.png": image.NewNRGBA(bounds), "deep-opacity.png": image.NewNRGBA64(bounds),
		"grey.png": image.NewGray(bounds), "deep-grey.png": image.NewGray16(bounds),
	}
	dir := t.TempDir()
	arguments := []string{filepath.Join("..", "docs", "export.md"), filepath.Join(dir, "pixels.raw")}
	var pixels []byte
	for name, img := range images {
		for y := range side {
			for x := range side {
				opacity := uint16(65535)
				if name != "colour.png" {
					opacity = uint16(20000 + 200*y)
				}
				img.Set(x, y, color.NRGBA64{uint16(290 * x), uint16(290 * y), uint16(145 * (x + y)), opacity})
			}
		}
		var file bytes.Buffer
		if err := png.Encode(&file, img); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		decoded, err := datasets.Decode(context.Background(), file.Bytes(), datasets.Options{Channels: 3, Height: side, Width: side, Crop: true})
		if err != nil {
			t.Fatal(err)
		}
		arguments, pixels = append(arguments, path), append(pixels, decoded...)
	}
	if err := os.WriteFile(arguments[1], pixels, 0o600); err != nil {
		t.Fatal(err)
	}
	python(t, "pillow.py", arguments...)
}
