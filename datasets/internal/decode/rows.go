package decode

import (
	"image"
	"image/draw"
)

// scale scales an image into to, [channels height width]. The image lies on a canvas, which is
// white, or transparent if there are four channels. Rows are converted one at a time, so that an
// image takes little more memory than its decoder gave it. deep gets the range of 16-bit values.
func scale(r *Resizer, deep *valueRange, to []byte, img image.Image, canvas image.Rectangle, channels, height, width int) {
	size, plane := canvas.Size(), height*width
	grey := false
	if planes, rows := deepRows(img, channels, r.bits, deep); rows != nil && img.Bounds() == canvas {
		grey = planes == 1
		stride := 4
		if grey {
			stride = 1
		}
		r.wide(to[:planes*plane], planes, height, width, size.Y, size.X, stride, rows)
	} else if rows := greyRows(img, canvas, channels); rows != nil {
		grey = true
		r.Grey(to[:plane], height, width, size.Y, size.X, rows)
	} else if rows := colourRows(img, canvas, channels); channels == 1 {
		values := make([]byte, size.X)
		r.Grey(to, height, width, size.Y, size.X, func(y int) []byte {
			luminance(values, rows(y))
			return values
		})
	} else {
		r.colour(to, channels, height, width, size.Y, size.X, rows)
	}
	switch {
	case grey:
		for c := 1; c < channels; c++ {
			copy(to[c*plane:(c+1)*plane], to[:plane])
		}
		if channels == 4 {
			fill(to[3*plane:], 255)
		}
	case channels == 4:
		separateOpacity(to, plane)
	}
}

// greyRows returns the rows of an image that is grey, or that stores its luminance if one channel
// is requested; otherwise nil.
func greyRows(img image.Image, canvas image.Rectangle, channels int) func(y int) []byte {
	if img.Bounds() != canvas {
		return nil
	}
	var pixels []byte
	var stride int
	switch img := img.(type) {
	case *image.Gray:
		pixels, stride = img.Pix[img.PixOffset(canvas.Min.X, canvas.Min.Y):], img.Stride
	case *image.YCbCr: // Y is the luminance
		pixels, stride = img.Y[img.YOffset(canvas.Min.X, canvas.Min.Y):], img.YStride
		if channels != 1 {
			return nil
		}
	default:
		return nil
	}
	return func(y int) []byte { return pixels[y*stride:][:canvas.Dx()] }
}

// colourRows returns the rows of an image, pixels [W 4] drawn over white, or with premultiplied
// opacity if four channels are requested.
func colourRows(img image.Image, canvas image.Rectangle, channels int) func(y int) []byte {
	covers := img.Bounds() == canvas
	opaque := false
	if o, ok := img.(interface{ Opaque() bool }); ok && covers && channels != 4 {
		opaque = o.Opaque()
	}
	if rgba, ok := img.(*image.RGBA); ok && covers && (channels == 4 || opaque) {
		return func(y int) []byte {
			return rgba.Pix[rgba.PixOffset(canvas.Min.X, canvas.Min.Y+y):][:4*canvas.Dx()]
		}
	}
	row := image.NewRGBA(image.Rect(0, 0, canvas.Dx(), 1))
	operation, background := draw.Src, byte(0)
	if channels != 4 && !opaque {
		operation, background = draw.Over, 255
	}
	return func(y int) []byte {
		if operation == draw.Over || !covers {
			fill(row.Pix, background)
		}
		draw.Draw(row, row.Rect, img, canvas.Min.Add(image.Pt(0, y)), operation)
		return row.Pix
	}
}

func fill(values []byte, value byte) {
	for i := range values {
		values[i] = value
	}
}

// luminance converts a row of pixels [W 4] to grey, with the weights .299, .587 and .114 (ITU-R
// BT.601).
func luminance(to, pixels []byte) {
	for x := range to {
		pixel := pixels[4*x : 4*x+3]
		sum := 19595*uint32(pixel[0]) + 38470*uint32(pixel[1]) + 7471*uint32(pixel[2])
		to[x] = byte((sum + 1<<15) >> 16)
	}
}

// separateOpacity divides the premultiplied colours of planes [4 H W] by their opacity.
func separateOpacity(planes []byte, plane int) {
	for i := range plane {
		opacity := int(planes[3*plane+i])
		for c := range 3 {
			value := &planes[c*plane+i]
			if opacity == 0 {
				*value = 0
				continue
			}
			*value = byte(min((int(*value)*255+opacity/2)/opacity, 255))
		}
	}
}
