package decode

import (
	"encoding/binary"
	"image"
	"image/jpeg"
	"slices"

	"github.com/pkg/errors"
)

// Markers of JPEG (ITU-T T.81, table B.1).
const (
	jpegSOF0  = 0xc0 // sequential, 8 bits
	jpegSOF2  = 0xc2 // progressive
	jpegRST0  = 0xd0
	jpegRST7  = 0xd7
	jpegEOI   = 0xd9
	jpegSOS   = 0xda
	jpegAPP1  = 0xe1
	jpegAPP14 = 0xee
)

// jpegOutline has the properties of a JPEG image that its segments show without decoding it.
type jpegOutline struct {
	scans       int
	frame       []byte // contents of the frame header, SOF
	progressive bool
	memory      int             // see jpegMemory
	adobe       bool            // has Adobe's segment, which defines the colours of four components
	ended       bool            // has EOI
	sent        map[byte]uint64 // the coefficients that scans have completed, as bits, by component
}

// outlineJPEG walks the segments as image/jpeg does, so that it counts at least the scans that are
// decoded: data between segments are skipped up to the next marker, and the walk ends at EOI.
func outlineJPEG(content []byte) jpegOutline {
	o := jpegOutline{sent: map[byte]uint64{}}
	for at := 2; ; {
		marker, from := nextMarker(content, at)
		if from == 0 || marker == jpegEOI || from+2 > len(content) {
			o.ended = marker == jpegEOI
			return o
		}
		if marker >= jpegRST0 && marker <= jpegRST7 {
			at = from
			continue
		}
		to := from + int(binary.BigEndian.Uint16(content[from:]))
		if to < from+2 {
			return o // the decoder returns an error
		}
		segment := content[min(from+2, len(content)):min(to, len(content))]
		switch {
		case marker == jpegSOS:
			o.scans++
			o.scan(segment)
		case marker >= jpegSOF0 && marker <= jpegSOF2 && to <= len(content):
			o.frame, o.progressive = segment, marker == jpegSOF2
			o.memory = max(o.memory, jpegMemory(segment, o.progressive))
		case marker == jpegAPP14:
			o.adobe = o.adobe || len(segment) >= 12 && string(segment[:5]) == "Adobe"
		}
		at = to
	}
}

// scan notes the coefficients that a scan with this header completes.
func (o *jpegOutline) scan(header []byte) {
	if len(header) < 1 || len(header) != 4+2*int(header[0]) {
		return
	}
	n := int(header[0])
	first, last, bit := header[1+2*n], header[2+2*n], header[3+2*n]&15
	coefficients := ^uint64(0)
	if o.progressive {
		if bit != 0 || first > last || last > 63 {
			return // a later scan refines them
		}
		coefficients = ^uint64(0) >> (63 - last) &^ (1<<first - 1)
	}
	for i := range n {
		o.sent[header[1+2*i]] |= coefficients
	}
}

// complete reports whether scans have sent all coefficients of all components.
func (o *jpegOutline) complete() bool {
	for at := 6; at+3 <= len(o.frame); at += 3 {
		if o.sent[o.frame[at]] != ^uint64(0) {
			return false
		}
	}
	return len(o.frame) > 6
}

// decodeJPEG decodes a JPEG image. It adds two segments that image/jpeg requires and other
// decoders do not: the end of the image, if all scans are there, and Adobe's segment for four
// components. Without that segment they are taken as CMYK in Adobe's convention, as in Pillow.
func decodeJPEG(source *stoppable) (image.Image, error) {
	content := source.content
	outline := outlineJPEG(content)
	if !outline.adobe && len(outline.frame) > 5 && outline.frame[5] == 4 {
		adobe := "\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x00"
		content = slices.Concat(content[:2], []byte(adobe), content[2:])
	}
	if !outline.ended && outline.complete() {
		content = append(slices.Clip(content), 0xff, jpegEOI)
	}
	img, err := jpeg.Decode(source.with(content))
	if !outline.ended && errors.As(err, new(jpeg.FormatError)) {
		err = errTruncated // it read the end that was added
	}
	return img, err
}

// inspectJPEG bounds the number of scans of a JPEG image and estimates the memory for decoding it.
// A scan of a progressive image can have a few bytes and visit every block, so the time to decode
// grows with scans times pixels, not with the size of the file: 2000 scans of 25 million pixels fit
// into 133 KB and take half a minute. It returns an error for more than maxScans, and for an image
// that has too few bytes for its pixels: each block of 8x8 takes a bit at least.
func inspectJPEG(content []byte, info *Info) error {
	outline := outlineJPEG(content)
	if outline.scans > maxScans {
		return errors.Errorf("must have at most %d scans, got more", maxScans)
	}
	if blocks := (info.Height + 7) / 8 * ((info.Width + 7) / 8); blocks/8 > len(content) {
		return errors.Errorf("must have enough data for %dx%d pixels, got %d bytes", info.Height, info.Width, len(content))
	}
	info.Memory = outline.memory + len(content)
	return nil
}

// nextMarker returns the next marker and the offset after it, or an offset of 0 if there is none.
// Stuffed bytes (ff 00) and fill bytes (ff ff) are no markers.
func nextMarker(content []byte, at int) (marker byte, after int) {
	for ; at+1 < len(content); at++ {
		if content[at] == 0xff && content[at+1] != 0xff && content[at+1] != 0 {
			return content[at+1], at + 2
		}
	}
	return 0, 0
}

// jpegMemory returns the bytes that image/jpeg allocates for an image with this frame header: a
// plane per component, coefficients of 4 bytes if it is progressive, and pixels in RGBA for four
// components or for RGB. Sides are padded to whole units of up to 4x4 blocks: an image of 1x65535
// pixels may take the memory of one of 32x65535. Subsampling is neglected.
func jpegMemory(frame []byte, progressive bool) int {
	if len(frame) < 6 {
		return 0
	}
	height, width := int(binary.BigEndian.Uint16(frame[1:])), int(binary.BigEndian.Uint16(frame[3:]))
	components, across, down := int(frame[5]), 1, 1
	for i := 7; i < len(frame); i += 3 {
		across, down = max(across, int(frame[i]>>4)), max(down, int(frame[i]&15))
	}
	if components == 1 {
		across, down = 1, 1 // image/jpeg ignores the factors of one component
	}
	padded := func(side, unit int) int { return (side + unit - 1) / unit * unit }
	perPixel := components
	if progressive {
		perPixel += 4 * components
	}
	if components > 1 {
		perPixel += 4
	}
	return padded(height, 8*down) * padded(width, 8*across) * perPixel
}
