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

// Remark is a remark on decoded images.
type Remark struct {
	Text string
	// FewValues is whether the remark is about images of 16 bits that use few of their values.
	FewValues bool `json:",omitempty"`
}

// Remarks returns remarks on the images that were decoded, by their notes.
// bits is what Decoder.SetBits was given.
func Remarks(subject string, names []string, kept []int, notes []Notes, bits int) []Remark {
	var remarks []Remark
	remark := func(fewValues bool, format string, values ...any) {
		remarks = append(remarks, Remark{subject + ": " + fmt.Sprintf(format, values...), fewValues})
	}
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
		remark(false, "no image has 16 bits per channel, so that bits has no effect")
	case bits > 0 && deep.Beyond:
		remark(false, "images with 16 bits per channel (%d) have values above %d, the largest of %d bits, which are read as %[2]d",
			deep.Images, 1<<bits-1, bits)
	case bits == 0 && deep.Images > 0 && deep.Highest < fewValues:
		remark(true, "images with 16 bits per channel (%d) have values of %d to %d only, of 0 to 65535, which become %d of the 256 values of a byte: "+
			"state the number of significant bits, such as bits=%d, to stretch them",
			deep.Images, deep.Lowest, deep.Highest, (int(deep.Highest)+128)/257-(int(deep.Lowest)+128)/257+1, max(8, mathbits.Len16(deep.Highest)))
	}
	if n := len(pages); n > 0 {
		remark(false, "files with several pages, of which the first is read: %d, such as %s", n, pages[0])
	}
	if n := len(frames); n > 0 {
		remark(false, "animations, of which the first frame is read: %d, such as %s", n, frames[0])
	}
	return remarks
}
