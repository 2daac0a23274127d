package decode

import (
	"image/jpeg"
	"image/png"
	"io"
	"slices"
	"strings"

	"github.com/pkg/errors"
	"golang.org/x/image/bmp"
)

// errTruncated is the error of a file whose end is missing.
var errTruncated = errors.Wrap(io.ErrUnexpectedEOF, "the file is truncated")

// truncations are the errors of decoders for a file whose end is missing.
var truncations = []string{
	"unexpected EOF", "png: invalid format: not enough pixel data", "gif: not enough image data", "gif: reading image data: unexpected EOF",
}

// inFormat returns a decoder's error for the user. It begins with the name of the format, which
// some decoders write in front of their errors as well.
func inFormat(name string, err error) error {
	if err == nil {
		return nil
	}
	err = explained(noEOF(err))
	if text, found := strings.CutPrefix(err.Error(), strings.ToLower(name)); found && text != "" && strings.Contains(": ", text[:1]) {
		return errors.Errorf("%s: %s", name, strings.TrimLeft(text, ": "))
	}
	return errors.WithMessage(err, name)
}

// explained adds advice for the user to a decoder's error for a feature that it does not support.
func explained(err error) error {
	var inJPEG jpeg.UnsupportedError
	var inPNG png.UnsupportedError
	advice := ""
	switch {
	case err != nil && slices.Contains(truncations, err.Error()):
		return errTruncated
	case errors.As(err, &inJPEG) && inJPEG == "luma/chroma subsampling ratio":
		advice = "save the image with 4:2:0 or 4:4:4 subsampling, or as PNG"
	case errors.As(err, &inJPEG):
		advice = "save the image as baseline or progressive JPEG with 8 bits, or as PNG"
	case errors.As(err, &inPNG):
		advice = "save the image again as ordinary PNG"
	case errors.Is(err, bmp.ErrUnsupported):
		advice = "save the image without compression, with 8, 24 or 32 bits per pixel, or as PNG"
	default:
		return err
	}
	return errors.Errorf("%v: %s", err, advice)
}
