package datasets

import (
	"encoding/binary"

	"github.com/pkg/errors"
)

// Markers of JPEG (ITU-T T.81, table B.1).
const (
	jpegSOF0 = 0xc0 // sequential, 8 bits
	jpegSOF2 = 0xc2 // progressive
	jpegRST0 = 0xd0
	jpegRST7 = 0xd7
	jpegEOI  = 0xd9
	jpegSOS  = 0xda
)

// inspectJPEG counts the scans of a JPEG image and estimates the memory for decoding it. A scan of
// a progressive image can have a few bytes and visit every block, so the time to decode grows with
// scans times pixels, not with the size of the file: 2000 scans of 25 million pixels fit into 133
// KB and take half a minute. It returns an error for more than MaxScans.
//
// It walks the segments as image/jpeg does, so that it counts at least the scans that are decoded:
// data between segments are skipped up to the next marker, and the walk ends at EOI.
func inspectJPEG(content []byte, info *imageInfo) error {
	scans := 0
	for at := 2; ; {
		marker, from := nextMarker(content, at)
		if from == 0 || marker == jpegEOI || from+2 > len(content) {
			return nil
		}
		if marker >= jpegRST0 && marker <= jpegRST7 {
			at = from
			continue
		}
		to := from + int(binary.BigEndian.Uint16(content[from:]))
		if to < from+2 {
			return nil // the decoder returns an error
		}
		switch {
		case marker == jpegSOS:
			if scans++; scans > MaxScans {
				return errors.Errorf("must have at most %d scans, got more", MaxScans)
			}
		case marker >= jpegSOF0 && marker <= jpegSOF2 && to <= len(content):
			info.memory = max(info.memory, jpegMemory(content[from+2:to], marker == jpegSOF2))
		}
		at = to
	}
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
