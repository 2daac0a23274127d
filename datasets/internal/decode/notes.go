package decode

import (
	"fmt"
	mathbits "math/bits"
)

// Notes are what a user may want to know about a decoded image.
type Notes struct {
	deep   valueRange
	pages  bool // there are more pages, see inspectTIFF
	frames bool // there are more frames of an animation
}

// fewValues is the number of 16-bit values that cameras of 14 bits write. Images without higher
// values are reduced to at most 64 of the 256 values of a byte.
const fewValues = 1 << 14

// FewValues is part of the remark on images of 16 bits that use few of their values.
const FewValues = "of 0 to 65535, which become"

// Remarks returns remarks on the images that were decoded, by their notes.
// bits is what Decoder.SetBits was given.
func Remarks(subject string, names []string, kept []int, notes []Notes, bits int) []string {
	var remarks []string
	var deep valueRange
	var pages, frames []string
	for _, i := range kept {
		deep.add(notes[i].deep)
		if notes[i].pages {
			pages = append(pages, names[i])
		}
		if notes[i].frames {
			frames = append(frames, names[i])
		}
	}
	switch {
	case bits > 0 && deep.Images == 0 && len(kept) > 0:
		remarks = append(remarks, fmt.Sprintf("%s: no image has 16 bits per channel, so that bits has no effect", subject))
	case bits > 0 && deep.Beyond:
		remarks = append(remarks, fmt.Sprintf("%s: images with 16 bits per channel (%d) have values above %d, the largest of %d bits, which are read as %[3]d",
			subject, deep.Images, 1<<bits-1, bits))
	case bits == 0 && deep.Images > 0 && deep.Highest < fewValues:
		remarks = append(remarks, fmt.Sprintf("%s: images with 16 bits per channel (%d) have values of %d to %d only, "+
			FewValues+" %d of the 256 values of a byte: state the number of significant bits, such as bits=%d, to stretch them",
			subject, deep.Images, deep.Lowest, deep.Highest, (int(deep.Highest)+128)/257-(int(deep.Lowest)+128)/257+1, max(8, mathbits.Len16(deep.Highest))))
	}
	if n := len(pages); n > 0 {
		remarks = append(remarks, fmt.Sprintf("%s: files with several pages, of which the first is read: %d, such as %s", subject, n, pages[0]))
	}
	if n := len(frames); n > 0 {
		remarks = append(remarks, fmt.Sprintf("%s: animations, of which the first frame is read: %d, such as %s", subject, n, frames[0]))
	}
	return remarks
}
