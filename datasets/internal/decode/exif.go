package decode

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
)

// tagOrientation is the tag of the orientation in an EXIF block, which is structured as a TIFF
// file, and in a TIFF file itself.
const tagOrientation = 274

// maxEXIF is the largest size of an EXIF block, in bytes; JPEG has at most 64 KiB.
const maxEXIF = 1 << 20

// orientation returns the orientation in a TIFF structure, 1 (upright) to 8, or 1 if it has none.
func orientation(block io.ReaderAt) int {
	directory, err := readTIFFDirectory(block)
	if err != nil {
		return 1
	}
	if value := directory.value(tagOrientation, 1); value >= 1 && value <= 8 {
		return int(value)
	}
	return 1
}

// blockOrientation returns the orientation in an EXIF block, which may begin with "Exif" and two
// more bytes; nil has none.
func blockOrientation(block []byte) int {
	if bytes.HasPrefix(block, []byte("Exif\x00")) && len(block) > 6 {
		block = block[6:]
	}
	return orientation(bytes.NewReader(block))
}

// jpegOrientation returns the orientation in the first EXIF block of a JPEG image. It walks along
// the segments up to the first scan as image/jpeg does: bytes between segments, and fill bytes
// before a marker, are skipped.
func jpegOrientation(source io.ReaderAt) int {
	w := window{source: source}
	for at := int64(2); ; {
		b := w.at(at, 4)
		if b == nil {
			return 1
		}
		marker, length := b[1], int64(binary.BigEndian.Uint16(b[2:]))
		switch {
		case b[0] != 0xff || marker == 0xff || marker == 0:
			at++
			continue
		case marker >= jpegRST0 && marker <= jpegRST7:
			at += 2
			continue
		case marker == jpegSOS || marker == jpegEOI || length < 2:
			return 1
		case marker == jpegAPP1:
			if block := w.at(at+4, int(length-2)); len(block) > 6 && string(block[:5]) == "Exif\x00" {
				return blockOrientation(block)
			}
		}
		at += 2 + length
	}
}

// pngOrientation returns the orientation in the eXIf chunk of a PNG image. It ignores a chunk whose
// checksum is wrong.
func pngOrientation(source io.ReaderAt) int {
	w := window{source: source}
	for at := int64(len(pngMagic)); ; {
		b := w.at(at, 8)
		if b == nil || string(b[4:]) == "IEND" {
			return 1
		}
		length := int64(binary.BigEndian.Uint32(b))
		if string(b[4:]) == "eXIf" && length <= maxEXIF {
			if chunk := w.at(at+4, int(length)+8); chunk != nil {
				body, sum := chunk[:4+length], binary.BigEndian.Uint32(chunk[4+length:])
				if crc32.ChecksumIEEE(body) == sum {
					return blockOrientation(body[4:])
				}
			}
		}
		at += 12 + length
	}
}

// webpOrientation returns the orientation in the EXIF chunk of a WebP image.
func webpOrientation(source io.ReaderAt) int {
	w := window{source: source}
	for at := int64(12); ; {
		b := w.at(at, 8)
		if b == nil {
			return 1
		}
		length := int64(binary.LittleEndian.Uint32(b[4:]))
		if string(b[:4]) == "EXIF" && length <= maxEXIF {
			return blockOrientation(w.at(at+8, int(length)))
		}
		at += 8 + length + length%2
	}
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
