package datasets

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/image/tiff"
)

func TestDecodeErrors(t *testing.T) {
	img := encoded(t, &image.Gray{Pix: randomBytes(1, 20*20), Stride: 20, Rect: image.Rect(0, 0, 20, 20)})
	for _, test := range []struct {
		content                 []byte
		channels, height, width int
		want                    string
	}{
		{nil, 3, 4, 4, "decode: offset 0: must be an image, got an empty file"},
		{[]byte("<!DOCTYPE html>"), 3, 4, 4, "netpbm), got a file of type text/html"},
		{img[:len(img)/2], 3, 4, 4, "PNG: the file is truncated: unexpected EOF"},
		{img, 2, 4, 4, "decode: image files have 1 (grey), 3 (red, green, blue) or 4 channels (and opacity), got 2: arrays may have others"},
		{img, 3, 0, 4, "decode: images must be 1x1 to 512x512, got 0x4"},
		{img, 3, 4, 513, "decode: images must be 1x1 to 512x512, got 4x513"},
		{pngHeader(t, 20000, 20000), 3, 4, 4, "decode: PNG must have 1 to 100000000 pixels, got 20000x20000"},
		{[]byte("P6 100000 100000 255\n"), 3, 4, 4, "decode: netpbm: must have at most 100000000 pixels, got 10000000000"},
	} {
		_, err := Decode(t.Context(), test.content, Options{Channels: test.channels, Height: test.height, Width: test.width})
		wantError(t, err, "datasets: decode: ", test.want)
	}
}

// pngHeader returns a PNG whose header has the given size, and whose data are of a smaller image.
func pngHeader(t *testing.T, width, height uint32) []byte {
	content := encoded(t, greyPicture(1, 1, 0))
	binary.BigEndian.PutUint32(content[16:], width)
	binary.BigEndian.PutUint32(content[20:], height)
	binary.BigEndian.PutUint32(content[29:], crc32.ChecksumIEEE(content[12:29]))
	return content
}

// Other formats are recognised by their content, whatever the file's name, and named.
func TestForeignFormatsAreNamed(t *testing.T) {
	for name, content := range map[string]string{
		"HEIC: convert it to PNG or JPEG":                  "\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic",
		"BigTIFF: convert it to PNG or JPEG":               "II+\x00\x08\x00\x00\x00",
		"a file of type text/html":                         "\n<!DOCTYPE HTML><html>",
		"a pointer to a file in Git LFS: run git lfs pull": "version https://git-lfs.github.com/spec/v1\n",
	} {
		const want = "offset 0: must begin like an image (PNG, JPEG, GIF, "
		name = "), got " + name
		_, err := Decode(t.Context(), []byte(content), Options{Channels: 3, Height: 4, Width: 4})
		wantError(t, err, "datasets: decode: "+want, name)
		_, err = Measure([]byte(content))
		wantError(t, err, "datasets: measure: "+want, name)
		file := filepath.Join(t.TempDir(), "a.jpg")
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err = ReadImages([]string{file}, Options{})
		wantError(t, err, file+": "+want, name)
	}
}

// The error of a decoder names the file; other files are read. A panic of a decoder is such an
// error, see package decode.
func TestErrorsNameTheFile(t *testing.T) {
	tiny := encoded(t, greyPicture(1, 1, 0))
	for content, want := range map[string]string{
		"HEADER": "offset 0: must begin like an image", string(pngHeader(t, 2, 2)): "PNG: the file is truncated", "P2 2 2 255 1 2 3": "netpbm: value 3 of 4",
	} {
		_, err := Decode(t.Context(), []byte(content), Options{Channels: 3, Height: 4, Width: 4})
		wantError(t, err, "datasets: decode: "+want)
		dir := t.TempDir()
		for _, class := range []string{"a", "b"} {
			if err := os.Mkdir(filepath.Join(dir, class), 0o755); err != nil {
				t.Fatal(err)
			}
			for name, bytes := range map[string][]byte{"1.png": tiny, "2.png": tiny, "3.png": tiny, "bad.png": []byte(content)} {
				if err := os.WriteFile(filepath.Join(dir, class, name), bytes, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, shape := range []Options{{}, {Channels: 3, Height: 4, Width: 4}} {
			shape.MaxSkipped, shape.NoCache = 1, true
			read, err := ReadImages([]string{dir}, shape)
			if err != nil || read.Len() != 6 || len(read.Skipped) != 2 || !strings.HasPrefix(read.Skipped[0], filepath.Join(dir, "a", "bad.png")+": "+want) {
				t.Errorf("ReadImages: %+v, %v", read, err)
			}
			splits, err := Open(dir, shape)
			if err != nil || len(splits.Train.Skipped) != 2 || !strings.HasPrefix(splits.Train.Skipped[0], "a/bad.png: "+want) {
				t.Errorf("Open: %+v, %v", splits, err)
			}
		}
	}
}

// The files' remarks on 16-bit images and on pages are kept if the images are cached.
func TestDecodingRemarks(t *testing.T) {
	dir, tiny := t.TempDir(), encoded(t, greyPicture(1, 1, 0))
	for i, class := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(dir, class), 0o755); err != nil {
			t.Fatal(err)
		}
		dim := image.NewGray16(image.Rect(0, 0, 5, 4))
		for p := range 20 {
			dim.Set(p%5, p/5, color.Gray16{Y: uint16(1000*i + 100*p)})
		}
		var file bytes.Buffer
		if err := tiff.Encode(&file, greyPicture(5, 4, 0), nil); err != nil {
			t.Fatal(err)
		}
		pages := file.Bytes()
		at := binary.LittleEndian.Uint32(pages[4:]) // the directory, which is followed by the offset of the next: itself
		copy(pages[at+2+12*uint32(binary.LittleEndian.Uint16(pages[at:])):], pages[4:8])
		for name, content := range map[string][]byte{"1.png": encoded(t, dim), "2.tif": pages, "3.png": tiny, "4.png": tiny} {
			if err := os.WriteFile(filepath.Join(dir, class, name), content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := []string{
		dir + ": images with 16 bits per channel (2) have values of 0 to 2900 only, of 0 to 65535, which become 12 of the 256 values of a byte: " +
			"state the number of significant bits, such as bits=12, to stretch them",
		dir + ": files with several pages, of which the first is read: 2, such as a/2.tif",
	}
	options := Options{Cache: t.TempDir()}
	for range 2 {
		var remarks []string
		options.Remark = func(text string) { remarks = append(remarks, text) }
		if _, err := Open(dir, options); err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !slices.Contains(remarks, w) {
				t.Errorf("remarks %q, want %q", remarks, w)
			}
		}
	}
}
