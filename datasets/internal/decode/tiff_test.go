package decode

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/internal/testenv"
)

// tiffOf is a grey picture whose one strip or tile is compressed by deflate. rows or tile is left
// out if 0.
func tiffOf(order binary.AppendByteOrder, width, height, rows, tile uint32, pixels []byte) []byte {
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	w.Write(pixels)
	w.Close()
	mark := "II*\x00"
	if order == binary.AppendByteOrder(binary.BigEndian) {
		mark = "MM\x00*"
	}
	b := order.AppendUint32([]byte(mark), uint32(8+packed.Len()))
	b = append(b, packed.Bytes()...)
	var entries []byte
	count := uint16(0)
	entry := func(tag uint16, value uint32) {
		entries = order.AppendUint16(entries, tag)
		entries = order.AppendUint16(entries, 4)
		entries = order.AppendUint32(entries, 1)
		entries = order.AppendUint32(entries, value)
		count++
	}
	entry(256, width)
	entry(257, height)
	entry(258, 8)
	entry(259, 8)
	entry(262, 1)
	if tile == 0 {
		entry(273, 8)
		if rows > 0 {
			entry(278, rows)
		}
		entry(279, uint32(packed.Len()))
	} else {
		entry(322, tile)
		entry(323, tile)
		entry(324, 8)
		entry(325, uint32(packed.Len()))
	}
	return append(order.AppendUint16(b, count), append(entries, 0, 0, 0, 0)...)
}

func TestTIFF(t *testing.T) {
	pixels := make([]byte, 16*16)
	for i := range pixels {
		pixels[i] = byte(i)
	}
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		for _, c := range [][2]uint32{{0, 0}, {16, 0}, {17, 0}, {1<<32 - 1, 0}, {0, 16}} {
			got, err := Decode(t.Context(), tiffOf(order, 16, 16, c[0], c[1], pixels), 1, 16, 16, false)
			if err != nil || !bytes.Equal(got, pixels) {
				t.Errorf("%v, rows and tile of %d: %v, %v", order, c, err, got)
			}
		}
	}
	whole := tiffOf(binary.LittleEndian, 16, 16, 17, 0, pixels)
	for n := range len(whole) - 4 {
		if _, err := Decode(t.Context(), whole[:n], 1, 16, 16, false); err == nil {
			t.Errorf("%d bytes of %d: no error", n, len(whole))
		}
	}
}

// TestTIFFBomb: a strip or tile that is larger than the picture takes no memory.
func TestTIFFBomb(t *testing.T) {
	zeros := make([]byte, 16<<20)
	for name, content := range map[string][]byte{
		"strip":      tiffOf(binary.LittleEndian, 16, 16, 1<<32-1, 0, zeros),
		"tile":       tiffOf(binary.LittleEndian, 16, 16, 0, 1<<15, zeros),
		"large tile": tiffOf(binary.BigEndian, 16, 16, 0, 1<<32-1, zeros),
	} {
		var err error
		used := testenv.Allocated(func() { _, err = Decode(t.Context(), content, 1, 16, 16, false) })
		if used > 4<<20 {
			t.Errorf("%s: %d bytes took %d", name, len(content), used)
		}
		if name != "strip" && (err == nil || !strings.Contains(err.Error(), "in an image of 16x16 pixels")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
