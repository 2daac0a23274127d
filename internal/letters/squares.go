package letters

import (
	"testing"

	"github.com/pollen-ml/pollen/datasets"
)

// Side is the height and width of the images of Squares, in pixels.
const Side = 12

// Squares returns n images of noise with a bright square whose place is the class, of at most 9
// classes, which a small network learns within a second. Different seeds give different noise.
func Squares(t testing.TB, n, classes int, seed uint32) *datasets.Dataset {
	t.Helper()
	var images []byte
	var labels []int32
	noise := seed
	for i := range n {
		class := i % classes
		labels = append(labels, int32(class))
		for y := range Side {
			for x := range Side {
				noise = noise*1664525 + 1013904223
				pixel := byte(noise >> 26)
				if y/4 == class/3 && x/4 == class%3 {
					pixel = 220
				}
				images = append(images, pixel)
			}
		}
	}
	data, err := datasets.New("squares", images, labels, 1, Side, Side, nil)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Noisy returns n Squares of 4 classes. Every third may have a wrong label, so that gradients stay
// noisy.
func Noisy(t testing.TB, n int) *datasets.Dataset {
	t.Helper()
	data := Squares(t, n, 4, 1)
	for i := 0; i < n; i += 3 {
		data.Labels[i] = int32(i / 3 * 7 % 4)
	}
	return data
}
