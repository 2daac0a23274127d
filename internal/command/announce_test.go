package command

import (
	"testing"

	"github.com/pollen-ml/pollen/datasets"
)

// The numbers of held-out images have the number of groups, if there are groups.
func TestImagesOf(t *testing.T) {
	three := datasets.Dataset{Images: make([]byte, 3), Labels: make([]int32, 3), Channels: 1, Height: 1, Width: 1}
	grouped := three
	grouped.Groups = []string{"b", "a", "b"}
	for want, split := range map[string]*datasets.Dataset{"none": nil, "3 images": &three, "3 images of 2 groups": &grouped} {
		if got := imagesOf(split); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
