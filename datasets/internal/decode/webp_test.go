package decode

import (
	"encoding/base64"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/internal/testenv"
)

// webpOf is the beginning of a WebP picture: a canvas, unless it is 0 wide, and a frame, lossless
// or not, of meaningless content.
func webpOf(canvas, width, height int, lossless bool, between string) []byte {
	var chunks []byte
	chunk := func(kind string, content []byte) {
		chunks = append(chunks, kind...)
		chunks = binary.LittleEndian.AppendUint32(chunks, uint32(len(content)))
		chunks = append(chunks, content...)
	}
	if canvas > 0 {
		side := uint32(canvas - 1)
		chunk("VP8X", []byte{0, 0, 0, 0, byte(side), byte(side >> 8), byte(side >> 16), byte(side), byte(side >> 8), byte(side >> 16)})
	}
	if between != "" {
		chunk("ICCP", []byte(between))
	}
	nonsense := make([]byte, 400)
	if lossless {
		size := binary.LittleEndian.AppendUint32([]byte{0x2f}, uint32(width-1)|uint32(height-1)<<14)
		chunk("VP8L", append(append(size, 0), nonsense...))
	} else {
		size := []byte{0x90, 2, 0, 0x9d, 1, 0x2a, byte(width), byte(width >> 8), byte(height), byte(height >> 8)}
		chunk("VP8 ", append(size, nonsense...))
	}
	head := binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(chunks)+4))
	return append(append(head, "WEBP"...), chunks...)
}

func TestWebPMeasure(t *testing.T) {
	for _, lossless := range []bool{true, false} {
		for _, canvas := range []int{0, 300} {
			for _, between := range []string{"", "profil"} {
				m, err := Inspect(webpOf(canvas, 300, 300, lossless, between))
				if err != nil || m.Height != 300 || m.Width != 300 {
					t.Errorf("lossless %t, canvas %d: %+v, %v", lossless, canvas, m, err)
				}
			}
		}
		m, err := Inspect(webpOf(0, 31, 257, lossless, ""))
		if err != nil || m.Height != 257 || m.Width != 31 {
			t.Errorf("lossless %t: %+v, %v", lossless, m, err)
		}
		bomb := webpOf(1, 16383, 16383, lossless, "")
		used := testenv.Allocated(func() { _, err = Decode(t.Context(), bomb, 1, 8, 8, false) })
		if err == nil || !strings.Contains(err.Error(), "got 1x1 and 16383x16383 pixels") {
			t.Errorf("a bomb, lossless %t: %v", lossless, err)
		}
		if used > 1<<20 {
			t.Errorf("a bomb took %d bytes", used)
		}
		whole := webpOf(300, 300, 300, lossless, "profil")
		for n := range len(whole) - 390 {
			if _, err := Decode(t.Context(), whole[:n], 1, 8, 8, false); err == nil {
				t.Errorf("%d bytes of a picture: no error", n)
			}
		}
	}
}

// Lossy pictures of Pillow's encoder, in quality 100: of 16x16 pixels, black on the left and white
// on the right; of 16x32, red on the left and blue on the right, the lower half clear.
const (
	greyLossyWebP  = "UklGRioAAABXRUJQVlA4IB4AAABQAQCdASoQABAAAAAAJaQABHQAAP7Yn///3zisAAA="
	clearLossyWebP = "UklGRoYAAABXRUJQVlA4WAoAAAAQAAAAHwAADwAAQUxQSBMAAAABDzD/ERFCLJjkL909g4j+5xwDAFZQOCBMAAAAsAMAnQEqIAAQAAAAACWgAnTKEcDe" +
		"AfgB+oH8A5ALsB+qv8AAmPwA/v9vVv/8r6/8aSi//8TzLkY1KPFf/g3Jbp0/DDY+d6voHGXoAA=="
)

// Lossy pictures have the whole range of colours.
func TestDecodeLossyWebP(t *testing.T) {
	for _, c := range []struct {
		content                 string
		channels, height, width int
		at                      [2]int // pixels of the left and the right
		want                    [2][]byte
	}{
		{greyLossyWebP, 1, 16, 16, [2]int{4, 11}, [2][]byte{{0}, {255}}},
		{greyLossyWebP, 3, 16, 16, [2]int{4, 11}, [2][]byte{{0, 0, 0}, {255, 255, 255}}},
		{clearLossyWebP, 1, 16, 32, [2]int{4, 27}, [2][]byte{{76}, {29}}}, // .299 and .114 of 255
		{clearLossyWebP, 3, 16, 32, [2]int{4, 27}, [2][]byte{{255, 0, 0}, {0, 0, 255}}},
		{clearLossyWebP, 4, 16, 32, [2]int{4, 27}, [2][]byte{{255, 0, 0, 255}, {0, 0, 255, 255}}},
		{clearLossyWebP, 4, 16, 32, [2]int{12*32 + 4, 12*32 + 27}, [2][]byte{{0, 0, 0, 0}, {0, 0, 0, 0}}},
	} {
		content, err := base64.StdEncoding.DecodeString(c.content)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(t.Context(), content, c.channels, c.height, c.width, false)
		if err != nil {
			t.Fatal(err)
		}
		for side, want := range c.want {
			for channel := range want {
				value := got[channel*c.height*c.width+c.at[side]]
				if difference := int(value) - int(want[channel]); difference < -2 || difference > 2 {
					t.Errorf("%d channels of %d columns: pixel %d has %d in channel %d, want %d",
						c.channels, c.width, c.at[side], value, channel, want[channel])
				}
			}
		}
	}
}
