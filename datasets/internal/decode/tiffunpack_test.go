package decode

import (
	"bytes"
	"image"
	"image/color"
	"testing"
)

// layout is a TIFF image to be written.
type layout struct {
	name                       string
	photometric, bits, colours int
	extra                      int // of opacity, or 0
	planar, tiled, bigEndian   bool
	compression, predictor     int
}

const layoutWidth, layoutHeight, layoutTile = 21, 19, 16

// sample returns a sample of the picture, of the layout's bits.
func (l layout) sample(x, y, s int) int { return (x*37 + y*101 + s*59 + x*y) & (1<<l.bits - 1) }

func (l layout) samples() int {
	if l.extra > 0 {
		return l.colours + 1
	}
	return l.colours
}

// block returns the samples of a strip or tile, packed.
func (l layout) block(left, top, width, height, plane int) []byte {
	first, last := 0, l.samples()
	if l.planar {
		first, last = plane, plane+1
	}
	var b []byte
	for y := top; y < top+height; y++ {
		var row []int
		for x := left; x < left+width; x++ {
			for s := first; s < last; s++ {
				row = append(row, l.sample(x, y, s))
			}
		}
		for i := len(row) - 1; i >= last-first && l.predictor == 2; i-- {
			row[i] = (row[i] - row[i-(last-first)]) & (1<<l.bits - 1)
		}
		b = append(b, l.pack(row)...)
	}
	switch l.compression {
	case 8:
		return deflated(b)
	case 32773:
		var packed []byte
		for len(b) > 0 {
			n := min(len(b), 100)
			packed, b = append(append(packed, byte(n-1)), b[:n]...), b[n:]
		}
		return packed
	}
	return b
}

func (l layout) pack(row []int) []byte {
	var b []byte
	bits, n := 0, 0
	for _, value := range row {
		if l.bits == 16 && !l.bigEndian {
			value = value>>8 | value&255<<8
		}
		bits, n = bits<<l.bits|value, n+l.bits
		for n >= 8 {
			n -= 8
			b, bits = append(b, byte(bits>>n)), bits&(1<<n-1)
		}
	}
	if n > 0 {
		b = append(b, byte(bits<<(8-n)))
	}
	return b
}

// content returns the file.
func (l layout) content() []byte {
	width, height, offsets, sizes := layoutWidth, 7, uint16(tiffStrips), uint16(tiffStripBytes)
	if l.tiled {
		width, height, offsets, sizes = layoutTile, layoutTile, tiffTiles, tiffTileBytes
	}
	planes := 1
	if l.planar {
		planes = l.samples()
	}
	tags := map[uint16][]uint32{tiffWidth: {layoutWidth}, tiffHeight: {layoutHeight}, tiffCompression: {uint32(l.compression)},
		tiffPhotometric: {uint32(l.photometric)}, tiffSamples: {uint32(l.samples())}, tiffPredictor: {uint32(max(l.predictor, 1))}}
	for range l.samples() {
		tags[tiffBits] = append(tags[tiffBits], uint32(l.bits))
	}
	if l.tiled {
		tags[tiffTileWidth], tags[tiffTileHeight] = []uint32{uint32(width)}, []uint32{uint32(height)}
	} else {
		tags[tiffRowsPerStrip] = []uint32{uint32(height)}
	}
	if l.planar {
		tags[tiffPlanar] = []uint32{2}
	}
	if l.extra > 0 {
		tags[tiffExtra] = []uint32{uint32(l.extra)}
	}
	if l.photometric == tiffPalette {
		for i := range 3 << l.bits {
			tags[tiffColours] = append(tags[tiffColours], uint32(i*1000))
		}
	}
	var data []byte
	for plane := range planes {
		for y := 0; y < layoutHeight; y += height {
			for x := 0; x < layoutWidth; x += width {
				rows := height
				if !l.tiled {
					rows = min(rows, layoutHeight-y)
				}
				block := l.block(x, y, width, rows, plane)
				tags[offsets], tags[sizes] = append(tags[offsets], uint32(8+len(data))), append(tags[sizes], uint32(len(block)))
				data = append(data, block...)
			}
		}
	}
	return tiffTags(data, tags)
}

// want returns the picture, by color's conversions over white.
func (l layout) want() *image.RGBA64 {
	img := image.NewRGBA64(image.Rect(0, 0, layoutWidth, layoutHeight))
	full := 1<<l.bits - 1
	for y := range layoutHeight {
		for x := range layoutWidth {
			value := func(s int) uint16 { return uint16(l.sample(x, y, s) * 65535 / full) }
			opacity := uint16(65535)
			if l.extra > 0 {
				opacity = value(l.colours)
			}
			c := color.NRGBA64{value(0), value(0), value(0), opacity}
			switch l.photometric {
			case tiffWhiteIsZero:
				c.R, c.G, c.B = ^c.R, ^c.G, ^c.B
			case tiffRGB:
				c.G, c.B = value(1), value(2)
			case tiffCMYK:
				r, g, b := color.CMYKToRGB(byte(value(0)>>8), byte(value(1)>>8), byte(value(2)>>8), byte(value(3)>>8))
				c.R, c.G, c.B = uint16(r)*257, uint16(g)*257, uint16(b)*257
			case tiffPalette:
				i := l.sample(x, y, 0)
				c.R, c.G, c.B = uint16(i*1000), uint16((i+full+1)*1000), uint16((i+2*full+2)*1000)
			}
			r, g, b, a := c.RGBA()
			if l.extra == 1 {
				r, g, b = min(uint32(c.R), a), min(uint32(c.G), a), min(uint32(c.B), a)
			}
			over := func(v uint32) uint16 { return uint16(min(v+65535-a, 65535)) }
			img.SetRGBA64(x, y, color.RGBA64{over(r), over(g), over(b), 65535})
		}
	}
	return img
}

// layouts are TIFF images that golang.org/x/image/tiff reads, and those that it does not.
func layouts() []layout {
	return []layout{
		{name: "grey", photometric: 1, bits: 8, colours: 1},
		{name: "grey of 16 bits in tiles", photometric: 1, bits: 16, colours: 1, tiled: true},
		{name: "RGB of 16 bits in tiles", photometric: 2, bits: 16, colours: 3, tiled: true, compression: 8, predictor: 2},
		{name: "grey and opacity", photometric: 1, bits: 8, colours: 1, extra: 2},
		{name: "grey and opacity, predicted", photometric: 1, bits: 8, colours: 1, extra: 2, compression: 8, predictor: 2},
		{name: "grey times opacity", photometric: 1, bits: 8, colours: 1, extra: 1},
		{name: "grey and opacity of 16 bits", photometric: 1, bits: 16, colours: 1, extra: 2, compression: 8, predictor: 2, tiled: true},
		{name: "inverse grey and opacity", photometric: 0, bits: 8, colours: 1, extra: 2, compression: 32773},
		{name: "CMYK", photometric: 5, bits: 8, colours: 4, compression: 8, predictor: 2},
		{name: "CMYK in tiles", photometric: 5, bits: 8, colours: 4, tiled: true},
		{name: "CMYK of 16 bits in planes", photometric: 5, bits: 16, colours: 4, planar: true},
		{name: "planes", photometric: 2, bits: 8, colours: 3, planar: true},
		{name: "planes of 16 bits in tiles", photometric: 2, bits: 16, colours: 3, planar: true, tiled: true, compression: 8, predictor: 2},
		{name: "planes and opacity", photometric: 2, bits: 8, colours: 3, extra: 2, planar: true, compression: 32773},
		{name: "planes of 16 bits and opacity", photometric: 2, bits: 16, colours: 3, extra: 2, planar: true},
		{name: "2 bits", photometric: 1, bits: 2, colours: 1},
		{name: "4 bits", photometric: 1, bits: 4, colours: 1, compression: 32773},
		{name: "inverse, 4 bits in tiles", photometric: 0, bits: 4, colours: 1, tiled: true},
		{name: "RGB of 4 bits", photometric: 2, bits: 4, colours: 3},
		{name: "palette of 4 bits", photometric: 3, bits: 4, colours: 1},
		{name: "palette of 2 bits", photometric: 3, bits: 2, colours: 1, compression: 8},
	}
}

func TestTIFFLayouts(t *testing.T) {
	for _, l := range layouts() {
		l.compression = max(l.compression, 1)
		content, want := l.content(), l.want()
		got, err := Decode(t.Context(), content, 3, layoutHeight, layoutWidth, false)
		if err != nil {
			t.Errorf("%s: %v", l.name, err)
			continue
		}
		for i, value := range planes(want) {
			if d := int(got[i]) - int(value); d < -1 || d > 1 { // Go's own conversions truncate
				t.Errorf("%s: byte %d is %d, want %d", l.name, i, got[i], value)
				break
			}
		}
		grey := l.photometric < 2
		if info, err := NewDecoder().Probe(bytes.NewReader(content)); err != nil || info.Grey != grey || info.Width != layoutWidth || info.Height != layoutHeight {
			t.Errorf("%s: %+v, %v, want grey %t", l.name, info, err, grey)
		}
		for cut := range content { // the last bytes are no part of the picture
			if again, err := Decode(t.Context(), content[:cut], 3, layoutHeight, layoutWidth, false); err == nil && !bytes.Equal(again, got) {
				t.Fatalf("%s: cut at %d of %d: another picture", l.name, cut, len(content))
			}
		}
	}
}

func TestTIFFRefused(t *testing.T) {
	img := quarter(4, 4)
	for _, c := range []struct {
		tag    uint16
		values []uint32
		want   string
	}{
		{tiffCompression, []uint32{7}, "compression must be none, LZW, Deflate, PackBits or CCITT, got JPEG: save the image as PNG"},
		{tiffCompression, []uint32{50000}, "got ZSTD"},
		{tiffCompression, []uint32{77}, "got number 77"},
		{tiffPhotometric, []uint32{6}, "colours must be grey, RGB, CMYK or a palette, got YCbCr: save the image in RGB"},
		{tiffPhotometric, []uint32{32803}, "got a colour filter array (camera raw)"},
		{tiffFormat, []uint32{2}, "samples must be whole and unsigned, got signed: scale the values to 8 or 16 bits"},
		{tiffFormat, []uint32{3}, "got floating-point"},
		{tiffBits, []uint32{32}, "samples must have 1, 2, 4, 8 or 16 bits, got 32: scale the values"},
		{tiffBits, []uint32{8, 16}, "samples must have the same bits, got [8 16]"},
		{tiffSamples, []uint32{13}, "pixels must have 1 samples, and may have one for opacity, got 13"},
		{tiffStripBytes, []uint32{17}, "strips or tiles must have at most"},
		{tiffStripBytes, []uint32{3}, "strips or tiles must have enough data for 4x4 pixels, got 3 bytes"},
		{tiffTileWidth, []uint32{16}, "tiles must have at least 1 row, got 0"},
	} {
		content := greyTIFF(img, map[uint16][]uint32{c.tag: c.values})
		if c.tag == tiffStripBytes && c.values[0] == 17 {
			content = greyTIFF(img, map[uint16][]uint32{c.tag: {1000}})
		}
		_, err := Decode(t.Context(), content, 3, 4, 4, false)
		wantError(t, err, "TIFF: ", c.want)
	}
	_, err := Decode(t.Context(), greyTIFF(quarter(8, 4), map[uint16][]uint32{tiffBits: {4}, tiffPredictor: {2}}), 3, 4, 4, false)
	wantError(t, err, "predictor of 4-bit samples must be none")
	_, err = Decode(t.Context(), greyTIFF(quarter(8, 4), map[uint16][]uint32{tiffBits: {4}, tiffPhotometric: {3}}), 3, 4, 4, false)
	wantError(t, err, "a palette must have 48 values for 4 bits, got 0")
}
