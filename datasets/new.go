package datasets

import "github.com/pkg/errors"

// New makes a data set from images in memory. pixels are [N C H W]; labels has one of 0 ... K-1 for
// each image; classNames has the K names, and nil means 0, 1, ... up to the largest label. Without
// labels and names, the images are for predictions, as ReadImages returns. Mean and Std are
// computed from the pixels. The slices are kept, not copied. It returns an error unless the result
// is valid, see Validate.
func New(name string, pixels []byte, labels []int32, channels, height, width int, classNames []string) (*Dataset, error) {
	d := &Dataset{
		Name: name, Images: pixels, Labels: labels, Place: "memory",
		Channels: channels, Height: height, Width: width,
	}
	if labels == nil && classNames != nil {
		return nil, errors.Errorf("datasets: %s: must have labels if it has class names", name)
	}
	if labels != nil && classNames == nil {
		largest := int32(0)
		for _, label := range labels {
			largest = max(largest, label)
		}
		if largest >= maxClasses {
			return nil, errors.Errorf("datasets: %s: labels must be below %[3]d, got %[2]d", name, largest, maxClasses)
		}
		classNames = numberNames(int(largest) + 1)
		d.Remarks = unusedLabels(name, labels, len(classNames))
	}
	d.Classes, d.ClassNames = len(classNames), classNames
	if err := d.checkSizes(); err != nil {
		return nil, err
	}
	// Placeholders that pass Validate, which checks that there are images to compute them from.
	d.Mean, d.Std = make([]float64, max(channels, 0)), make([]float64, max(channels, 0))
	for c := range d.Std {
		d.Std[c] = 1
	}
	if err := d.Validate(); err != nil {
		return nil, err
	}
	d.Mean, d.Std = moments(pixels, channels, height*width)
	d.Hashes = map[string]string{name: sha256Hex(pixels)}
	return d, d.Validate()
}
