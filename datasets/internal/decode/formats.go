package decode

import (
	"image/gif"
	"image/jpeg"
	"image/png"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"
	"golang.org/x/image/bmp"
)

// imageFormats is the table of image formats. An image's format is determined by its content; the
// extension only marks a file as an image.
var imageFormats = []imageFormat{
	{"PNG", []string{".png"}, []string{pngMagic}, png.DecodeConfig, decodePNG, pngOrientation, inspectPNG},
	{"JPEG", []string{".jpg", ".jpeg", ".jpe", ".jfif"}, []string{"\xff\xd8"}, jpeg.DecodeConfig, decodeJPEG, jpegOrientation, inspectJPEG},
	{"GIF", []string{".gif"}, []string{"GIF8"}, gif.DecodeConfig, decodeGIF, nil, inspectGIF},
	{"BMP", []string{".bmp"}, []string{"BM"}, bmp.DecodeConfig, decodeBMP, nil, inspectBMP},
	{"WebP", []string{".webp"}, []string{"RIFF????WEBP"}, webpConfig, decodeWebP, webpOrientation, inspectWebP},
	{"TIFF", []string{".tif", ".tiff"}, []string{"II*\x00", "MM\x00*"}, tiffConfig, decodeTIFF, orientation, inspectTIFF},
	{"netpbm", []string{".ppm", ".pgm", ".pnm"}, []string{"P2", "P3", "P5", "P6"}, netpbmConfig, decodeNetpbm, nil, inspectNetpbm},
}

// IsImage reports whether a file name has an extension of images.
func IsImage(name string) bool {
	extension := strings.ToLower(filepath.Ext(name))
	return slices.ContainsFunc(imageFormats, func(f imageFormat) bool {
		return slices.Contains(f.extensions, extension)
	})
}

// Extensions returns the extensions of image files, in lower case.
func Extensions() []string {
	var all []string
	for _, format := range imageFormats {
		all = append(all, format.extensions...)
	}
	return all
}

// formatOf returns the format of a content by its first bytes.
func formatOf(start []byte) (imageFormat, error) {
	var names []string
	for _, format := range imageFormats {
		for _, magic := range format.magics {
			if matches(magic, start) {
				return format, nil
			}
		}
		names = append(names, format.name)
	}
	if name := foreign(start); name != "" {
		return imageFormat{}, errors.Errorf("offset 0: must begin like an image (%[2]s), got %[1]s", name, strings.Join(names, ", "))
	}
	return imageFormat{}, errors.Errorf("offset 0: must begin like an image (%[2]s), got % [1]x",
		start[:min(len(start), 8)], strings.Join(names, ", "))
}
