package decode

import (
	"image"
	"image/gif"

	"github.com/pkg/errors"
)

// lzwRatio is the largest ratio of the sizes of decompressed and compressed data in LZW: a code of
// 12 bits stands for at most 4096 bytes.
const lzwRatio = 4096 * 8 / 12

// decodeGIF returns the first frame of a GIF image. It may be smaller than the canvas; a browser
// shows the page around it.
func decodeGIF(source *stoppable) (image.Image, error) { return gif.Decode(source) }

// inspectGIF sets the memory for the first frame, which is at most as large as the canvas, and
// returns an error if the file has too few bytes for it.
func inspectGIF(content []byte, info *Info) error {
	frame := firstGIFFrame(content)
	pixels := min(frame.Dx()*frame.Dy(), info.Height*info.Width)
	if pixels/lzwRatio > len(content) {
		return errors.Errorf("must have enough data for %dx%d pixels, got %d bytes", frame.Dy(), frame.Dx(), len(content))
	}
	const decompressor = 32 << 10
	info.Memory = info.Height*info.Width + decompressor
	if first := nextGIFFrame(content, afterGIFHeader(content)); first > 0 {
		info.frames = nextGIFFrame(content, afterGIFFrame(content, first)) > 0
	}
	return nil
}

// firstGIFFrame returns the bounds of the first frame of a GIF image, or none if there is no frame.
func firstGIFFrame(content []byte) image.Rectangle {
	at := nextGIFFrame(content, afterGIFHeader(content))
	if at == 0 {
		return image.Rectangle{}
	}
	number := func(i int) int { return int(content[at+i]) | int(content[at+i+1])<<8 }
	return image.Rect(number(1), number(3), number(1)+number(5), number(3)+number(7))
}

// afterGIFHeader returns the offset after the header and the colours of all frames.
func afterGIFHeader(content []byte) int {
	const header = 13
	if len(content) < header {
		return len(content)
	}
	return header + gifColours(content[10])
}

// gifDescriptor is the number of bytes before the colours and pixels of a frame.
const gifDescriptor = 10

// nextGIFFrame returns the offset of the next frame, or 0 if there is none. It skips the extensions
// before it as image/gif does.
func nextGIFFrame(content []byte, at int) int {
	const extension, separator = 0x21, 0x2c
	for at+2 < len(content) && content[at] == extension {
		at = afterGIFExtension(content, at)
	}
	if at+gifDescriptor > len(content) || content[at] != separator {
		return 0
	}
	return at
}

// afterGIFFrame returns the offset after a frame: its colours, the size of its codes, and blocks of
// pixels.
func afterGIFFrame(content []byte, at int) int {
	return afterGIFBlocks(content, at+gifDescriptor+gifColours(content[at+gifDescriptor-1])+1)
}

// afterGIFExtension returns the offset after an extension.
func afterGIFExtension(content []byte, at int) int {
	const text, control, application = 0x01, 0xf9, 0xff
	switch content[at+1] {
	case text:
		at += 2 + 13
	case control:
		return at + 2 + 6
	case application:
		at += 3 + int(content[at+2])
	default:
		at += 2
	}
	return afterGIFBlocks(content, at)
}

// afterGIFBlocks returns the offset after blocks of bytes, the last of which is empty.
func afterGIFBlocks(content []byte, at int) int {
	for at < len(content) && content[at] != 0 {
		at += 1 + int(content[at])
	}
	return at + 1
}

// gifColours returns the number of bytes of a colour table by the flags that announce it.
func gifColours(flags byte) int {
	if flags&0x80 == 0 {
		return 0
	}
	return 3 << (1 + flags&7)
}
