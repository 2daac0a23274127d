package datasets

import (
	"cmp"

	"github.com/pollen-ml/pollen/datasets/internal/decode"
)

// reshaped returns the data set with images of another shape; 0 keeps a value. Images are scaled as
// by Decode. A single channel is repeated for several channels, except for the fourth of four, the
// opacity, which becomes full. Three channels become one, their luminance.
func (d *Dataset) reshaped(channels, height, width int, crop bool) (*Dataset, error) {
	channels = cmp.Or(channels, d.Channels)
	if height == 0 {
		height, width = d.Height, d.Width
	}
	if channels == d.Channels && height == d.Height && width == d.Width {
		if d.Cropped == crop {
			return d, nil
		}
		same := *d
		same.Cropped = crop
		return &same, nil
	}
	if channels != d.Channels && d.Channels != 1 && !(channels == 1 && d.Channels == 3) {
		return nil, invalid("Channels", "%s: images of %d channels cannot become %d: only 1 can become any, and 3 become 1", d.Name, d.Channels, channels)
	}
	if err := checkMemory(d.Len(), shape{channels, height, width}); err != nil {
		return nil, err
	}
	changed := *d
	changed.Channels, changed.Height, changed.Width = channels, height, width
	changed.Images = make([]byte, d.Len()*changed.ImageSize())
	scaler := decode.Resizer{Crop: crop}
	changed.Cropped = crop
	plane, from := height*width, d.Height*d.Width
	for i := range d.Len() {
		to, image := changed.Image(i), d.Image(i)
		if channels < d.Channels {
			grey := make([]byte, from)
			for p := range grey {
				sum := 19595*uint32(image[p]) + 38470*uint32(image[from+p]) + 7471*uint32(image[2*from+p])
				grey[p] = byte((sum + 1<<15) >> 16)
			}
			image = grey
		}
		for c := range channels {
			if c == 3 && channels == 4 && d.Channels == 1 {
				for p := range plane {
					to[c*plane+p] = 255
				}
				continue
			}
			source := image[min(c*from, len(image)-from):][:from]
			scaler.Grey(to[c*plane:(c+1)*plane], height, width, d.Height, d.Width, func(y int) []byte { return source[y*d.Width:] })
		}
	}
	return &changed, nil
}
