package decode

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// foreignFormat is a format that is recognised, so that an error can name it, but not read.
type foreignFormat struct {
	name   string
	at     int      // offset of the magic
	magics []string // ? is any byte
}

// foreignFormats are in the order in which they are tried; ISO files are in isoFormat.
var foreignFormats = []foreignFormat{
	{"JPEG 2000", 0, []string{"\x00\x00\x00\x0cjP  \r\n\x87\n", "\xff\x4f\xff\x51"}},
	{"JPEG XL", 0, []string{"\x00\x00\x00\x0cJXL \r\n\x87\n", "\xff\x0a"}},
	{"JPEG XR", 0, []string{"II\xbc\x01", "II\xbc\x00"}},
	{"BigTIFF", 0, []string{"II+\x00", "MM\x00+"}},
	{"PBM", 0, []string{"P1", "P4"}},
	{"PAM", 0, []string{"P7\n"}},
	{"PFM", 0, []string{"PF\n", "Pf\n"}},
	{"Photoshop's PSD", 0, []string{"8BPS"}},
	{"OpenEXR", 0, []string{"\x76\x2f\x31\x01"}},
	{"Radiance HDR", 0, []string{"#?RADIANCE", "#?RGBE"}},
	{"DICOM", 128, []string{"DICM"}},
	{"FITS", 0, []string{"SIMPLE  ="}},
	{"QOI", 0, []string{"qoif"}},
	{"an icon (ICO)", 0, []string{"\x00\x00\x01\x00?\x00"}},
	{"TGA", 0, []string{"\x00\x00\x02\x00\x00\x00\x00\x00", "\x00\x00\x03\x00\x00\x00\x00\x00", "\x00\x00\x0a\x00\x00\x00\x00\x00"}},
	{"SVG", 0, []string{"<svg"}},
}

// isoBrands are the formats of ISO base media files (ISO/IEC 14496-12) by their brands.
var isoBrands = []struct {
	name   string
	brands []string
}{
	{"AVIF", []string{"avif", "avis"}},
	{"HEIC", []string{"heic", "heix", "heim", "heis", "hevc", "hevx", "hevm", "hevs", "mif1", "msf1"}},
	{"a camera's raw file (CR3)", []string{"crx "}},
}

const convert = ": convert it to PNG or JPEG"

// foreign returns the name of the unsupported format that begins with start, and advice for the
// user, or "" for others.
func foreign(start []byte) string {
	if len(start) >= 16 && string(start[4:8]) == "ftyp" {
		return isoFormat(start)
	}
	if name := nameOfMagic(start); name != "" {
		return name + convert
	}
	return notImage(start)
}

// nameOfMagic returns the name of an image format that is not read, or "".
func nameOfMagic(start []byte) string {
	for _, format := range foreignFormats {
		for _, magic := range format.magics {
			if len(start) > format.at && matches(magic, start[format.at:]) {
				return format.name
			}
		}
	}
	return ""
}

// notImage describes other content that is found under the names of images, such as the page that a
// server sent instead, or returns "" for unknown bytes.
func notImage(start []byte) string {
	if bytes.HasPrefix(start, []byte("version https://git-lfs")) {
		return "a pointer to a file in Git LFS: run git lfs pull"
	}
	kind, _, _ := strings.Cut(http.DetectContentType(start), ";")
	switch kind {
	case "application/octet-stream":
		return ""
	case "text/plain":
		return fmt.Sprintf("a text that begins with %q", start[:min(len(start), 20)])
	}
	return "a file of type " + kind
}

// isoFormat returns the name of an ISO base media file, as foreign does. The major brand mif1
// stands for HEIC and for AVIF; the compatible brands, after the version, distinguish them.
func isoFormat(start []byte) string {
	size := min(int(binary.BigEndian.Uint32(start)), len(start))
	var brands []string
	for at := 8; at+4 <= size; at += 4 {
		if at != 12 {
			brands = append(brands, string(start[at:at+4]))
		}
	}
	for _, format := range isoBrands {
		if slices.ContainsFunc(brands, func(brand string) bool { return slices.Contains(format.brands, brand) }) {
			return format.name + convert
		}
	}
	return "a video (MP4)"
}

// matches reports whether a content begins with a magic, in which ? is any byte.
func matches(magic string, start []byte) bool {
	if len(start) < len(magic) {
		return false
	}
	for i := range magic {
		if magic[i] != '?' && magic[i] != start[i] {
			return false
		}
	}
	return true
}
