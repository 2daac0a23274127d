package datasets

import (
	"encoding/binary"
)

// exifOrientation returns the EXIF orientation of a JPEG, 1 (upright) to 8: the value of tag 0x0112
// in the first directory of its EXIF block, or 1 without a readable block. The content may be
// truncated after the block.
func exifOrientation(jpeg []byte) int {
	for at := 2; at+4 <= len(jpeg) && jpeg[at] == 0xff; {
		marker, length := jpeg[at+1], int(binary.BigEndian.Uint16(jpeg[at+2:]))
		switch {
		case marker == 0xe1:
			block := jpeg[at+4 : min(max(at+2+length, at+4), len(jpeg))]
			if len(block) > 6 && string(block[:6]) == "Exif\x00\x00" {
				return tiffOrientation(block[6:])
			}
		case marker < 0xe0 && marker != 0xdb || marker == 0xff:
			return 1 // the image data begins: there is no block before it
		}
		at += 2 + length
	}
	return 1
}

// tiffOrientation returns the orientation in an EXIF block, which is structured as a TIFF file.
func tiffOrientation(block []byte) int {
	if at, order := tiffTag(block, 0x0112); at > 0 {
		if value := int(order.Uint16(block[at+8:])); value >= 1 && value <= 8 {
			return value
		}
	}
	return 1
}

// tiffTag returns the offset of the 12-byte entry with a tag in the first directory of a TIFF file,
// or 0 if there is none, and the byte order.
func tiffTag(block []byte, tag uint16) (int64, binary.ByteOrder) {
	if len(block) < 8 {
		return 0, nil
	}
	var order binary.ByteOrder = binary.LittleEndian
	if block[0] == 'M' {
		order = binary.BigEndian
	}
	directory := int64(order.Uint32(block[4:]))
	if directory+2 > int64(len(block)) {
		return 0, nil
	}
	for i := range int64(order.Uint16(block[directory:])) {
		at := directory + 2 + 12*i
		if at+12 > int64(len(block)) {
			return 0, nil
		}
		if order.Uint16(block[at:]) == tag {
			return at, order
		}
	}
	return 0, nil
}

// upright copies planes [height width], stored with an EXIF orientation, from from to to, and makes
// them upright. to is [width height] for orientations above 4: quarter turns (6 and 8) and
// reflections at a diagonal (5 and 7). 2 and 4 are reflections, 3 is a half turn.
func upright(to, from []byte, orientation, height, width int) {
	plane := height * width
	for start := 0; start < len(from); start += plane {
		for y := range height {
			for x := range width {
				toY, toX, stride := y, x, width
				if orientation > 4 {
					toY, toX, stride = x, y, height
				}
				// Where the stored pixel (y, x) goes.
				switch orientation {
				case 2:
					toX = width - 1 - x
				case 3:
					toY, toX = height-1-y, width-1-x
				case 4:
					toY = height - 1 - y
				case 6:
					toX = height - 1 - y
				case 7:
					toY, toX = width-1-x, height-1-y
				case 8:
					toY = width - 1 - x
				}
				to[start+toY*stride+toX] = from[start+y*width+x]
			}
		}
	}
}
