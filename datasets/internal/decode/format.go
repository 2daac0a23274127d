package decode

import (
	"bytes"
	"context"
	"image"
	"io"
)

// Limits of images, see package datasets.
const (
	MaxPixels = 100_000_000 // before scaling; half of it with 16 bits per channel
	maxScans  = 100         // of a JPEG image
)

// imageFormat is a row of the table of image formats.
type imageFormat struct {
	name       string
	extensions []string // of image files, in lower case
	magics     []string // beginnings of the content; ? is any byte
	config     func(io.Reader) (image.Config, error)
	// decode returns the image. Its bounds lie within the size in the config, the canvas.
	decode func(*stoppable) (image.Image, error)
	// orientation, if not nil, returns the EXIF orientation.
	orientation func(io.ReaderAt) int
	// inspect checks the whole content before it is decoded, and sets info.Memory.
	inspect func(content []byte, info *Info) error
}

// Info describes an image, upright, from its header.
type Info struct {
	Height, Width int
	Grey          bool // stored in grey
	Memory        int  // upper bound of the bytes that decoding allocates; set by Inspect

	orientation int  // of EXIF: 1 (upright) to 8, see upright
	pages       bool // there are more pages; set by Inspect
	frames      bool // there are more frames of an animation; set by Inspect
	format      imageFormat
}

// stoppable is an encoded image in memory as a file. Reading returns the error of a context that
// has ended. This is the only way to stop a decoder, so reads are short: a JPEG image can have
// three scans in 128 bytes, of tens of milliseconds each.
type stoppable struct {
	context context.Context
	content []byte
	at      int
}

const stoppableRead = 128

// with returns another content that stops with the same context.
func (s *stoppable) with(content []byte) *stoppable { return &stoppable{s.context, content, 0} }

// Read implements io.Reader.
func (s *stoppable) Read(to []byte) (int, error) {
	if err := s.context.Err(); err != nil {
		return 0, err
	}
	if s.at == len(s.content) && len(to) > 0 {
		return 0, io.EOF
	}
	n := copy(to[:min(len(to), stoppableRead)], s.content[s.at:])
	s.at += n
	return n, nil
}

// ReadAt implements io.ReaderAt.
func (s *stoppable) ReadAt(to []byte, at int64) (int, error) {
	if err := s.context.Err(); err != nil {
		return 0, err
	}
	return bytes.NewReader(s.content).ReadAt(to, at)
}

// noEOF turns io.EOF into io.ErrUnexpectedEOF.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
