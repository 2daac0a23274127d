package decode

import (
	"bytes"
	"context"
	"encoding/binary"
	"image"
	"image/color"
	"image/gif"
	"slices"
	"testing"
)

// Remarks name animations, because only their first frame is read, but no image of one frame.
func TestRemarksOnAnimations(t *testing.T) {
	gifOf := func(frames int) []byte {
		animation := &gif.GIF{}
		for i := range frames {
			img := image.NewPaletted(image.Rect(0, 0, 4, 4), color.Palette{color.Black, color.White, color.Gray{Y: byte(i)}})
			animation.Image, animation.Delay = append(animation.Image, img), append(animation.Delay, 10)
		}
		var file bytes.Buffer
		if err := gif.EncodeAll(&file, animation); err != nil {
			t.Fatal(err)
		}
		return file.Bytes()
	}
	pngOf := func(frames uint32) []byte {
		return insertPNG(encoded(t, quarter(4, 4)), "IDAT", pngChunk("acTL", append(binary.BigEndian.AppendUint32(nil, frames), 0, 0, 0, 0)))
	}
	one := animatedWebP(4, 4, 0, 0, quarter(4, 4))
	one = one[:bytes.LastIndex(one, []byte("ANMF"))]
	binary.LittleEndian.PutUint32(one[4:], uint32(len(one)-8))
	contents := [][]byte{gifOf(1), gifOf(2), pngOf(1), pngOf(3), one, animatedWebP(4, 4, 0, 0, quarter(4, 4)), gifOf(2)[:40]}
	names := []string{"1.gif", "2.gif", "1.png", "3.png", "1.webp", "2.webp", "cut.gif"}
	d, notes, kept := NewDecoder(), make([]Notes, len(contents)), []int(nil)
	for i, content := range contents {
		if err := d.Decode(context.Background(), make([]byte, 16), content, 1, 4, 4); (err != nil) != (names[i] == "cut.gif") {
			t.Errorf("%s: %v", names[i], err)
		} else if err == nil {
			kept = append(kept, i)
		}
		notes[i] = d.Notes()
	}
	want := []Remark{{Text: "photos: animations, of which the first frame is read: 3, such as 2.gif"}}
	if got := Remarks("photos", names, kept, notes, 0); !slices.Equal(got, want) {
		t.Errorf("remarks %+v, want %+v", got, want)
	}
	for _, i := range kept {
		if multiple := names[i][0] != '1'; notes[i].frames != multiple {
			t.Errorf("%s: several frames: %v, want %v", names[i], notes[i].frames, multiple)
		}
	}
}
