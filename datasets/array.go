package datasets

import (
	"math"
	"path/filepath"
	"slices"
	"strconv"
)

// arrayPart is one split of a data set that is stored as arrays.
type arrayPart struct {
	name                    string // of the images, for answers and remarks: "file.npz: test_images"
	images                  []byte // [N C H W]
	channels, height, width int
	labels                  []int32  // nil if there are none
	labelColumn             string   // heading of the column with the labels, if a column has them
	labelNames              []string // if the labels are text; nameLabels makes class numbers of them
	groups                  []string // nil if there are none
	ids                     []string // nil if they are not kept, or there are none
	idName                  string   // name of the column of the ids
}

// count returns the number of images.
func (p *arrayPart) count() int { return len(p.images) / (p.channels * p.height * p.width) }

// noLabel is the label of an image without one.
const noLabel = -1

// dropUnlabelled removes the images without a label, which is a remark. If no image has a label,
// all stay, and there are no labels.
func (p *arrayPart) dropUnlabelled(options Options) {
	first := slices.Index(p.labels, noLabel)
	if first < 0 {
		return
	}
	all, size, kept := p.count(), p.channels*p.height*p.width, 0
	if !slices.ContainsFunc(p.labels, func(label int32) bool { return label != noLabel }) {
		p.labels = nil
		return
	}
	for i, label := range p.labels {
		if label == noLabel {
			continue
		}
		copy(p.images[kept*size:], p.images[i*size:(i+1)*size])
		p.labels[kept] = label
		if p.groups != nil {
			p.groups[kept] = p.groups[i]
		}
		if p.ids != nil {
			p.ids[kept] = p.ids[i]
		}
		kept++
	}
	p.images, p.labels = p.images[:kept*size], p.labels[:kept]
	if p.groups != nil {
		p.groups = p.groups[:kept]
	}
	if p.ids != nil {
		p.ids = p.ids[:kept]
	}
	options.remark("%s: %d of %d images have no label and are left out, such as image %d", filepath.Base(p.name), all-kept, all, first)
}

// arraySet is a data set that is stored as arrays.
type arraySet struct {
	parts      [3]*arrayPart     // by Split
	classNames []string          // nil if the labels are the names of the classes
	hashes     map[string]string // of the files, see Dataset.Hashes
}

// dataset makes a data set of images without labels.
func (p *arrayPart) dataset(path string, hashes map[string]string, options Options) *Dataset {
	d := &Dataset{
		Images: p.images, Channels: p.channels, Height: p.height, Width: p.width, Bits: options.Bits, Groups: p.groups,
		Place: filepath.Dir(path), Hashes: hashes,
	}
	d.Mean, d.Std = moments(p.images, p.channels, p.height*p.width)
	return d
}

// squareOf returns the channels and the side of a square image, grey or in colour, that has the
// given number of values. fits is false if there is no such image.
func squareOf(values int) (channels, side int, fits bool) {
	if values%3 == 0 && isSquare(values/3) {
		return 3, int(math.Round(math.Sqrt(float64(values / 3)))), true
	}
	return 1, int(math.Round(math.Sqrt(float64(values)))), isSquare(values)
}

func isSquare(n int) bool {
	side := int(math.Round(math.Sqrt(float64(n))))
	return n > 0 && side*side == n
}

// ChannelsFirst turns images [N H W C] into [N C H W]. With one channel it returns images itself.
func ChannelsFirst(images []byte, channels, height, width int) []byte {
	if channels == 1 {
		return images
	}
	turned, plane := make([]byte, len(images)), height*width
	for image := 0; image < len(images); image += plane * channels {
		for i := range plane {
			for c := range channels {
				turned[image+c*plane+i] = images[image+i*channels+c]
			}
		}
	}
	return turned
}

// quoted lists names for an error.
func quoted(names []string) string {
	list := ""
	for i, name := range names {
		if i > 0 {
			list += ", "
		}
		list += strconv.Quote(name)
	}
	return list
}
