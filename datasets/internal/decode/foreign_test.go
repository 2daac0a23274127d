package decode

import (
	"os"
	"strings"
	"testing"
)

// foreignContents begins like files of formats that are not read.
var foreignContents = map[string]string{
	"HEIC: convert it to PNG or JPEG":                      "\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic",
	"HEIC: convert it to PNG or JPEG\x00":                  "\x00\x00\x00\x18ftypmif1\x00\x00\x00\x00mif1heic",
	"AVIF: convert it to PNG or JPEG":                      "\x00\x00\x00\x1cftypmif1\x00\x00\x00\x00avifmif1miaf",
	"a camera's raw file (CR3): convert it to PNG or JPEG": "\x00\x00\x00\x18ftypcrx \x00\x00\x00\x01crx isom",
	"a video (MP4)":                                    "\x00\x00\x00\x18ftypisom\x00\x00\x00\x01isommp41",
	"JPEG 2000: convert it to PNG or JPEG":             "\x00\x00\x00\x0cjP  \r\n\x87\n\x00\x00\x00\x14ftypjp2 ",
	"JPEG XL: convert it to PNG or JPEG":               "\x00\x00\x00\x0cJXL \r\n\x87\n",
	"JPEG XL: convert it to PNG or JPEG\x00":           "\xff\x0a\xfa\x1f",
	"BigTIFF: convert it to PNG or JPEG":               "II+\x00\x08\x00\x00\x00",
	"PBM: convert it to PNG or JPEG":                   "P4 3 3\n\x00",
	"DICOM: convert it to PNG or JPEG":                 strings.Repeat("\x00", 128) + "DICM\x02\x00",
	"an icon (ICO): convert it to PNG or JPEG":         "\x00\x00\x01\x00\x01\x00\x10\x10",
	"TGA: convert it to PNG or JPEG":                   "\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00",
	"a file of type text/html":                         "\n<!DOCTYPE HTML><html>",
	"a file of type application/zip":                   "PK\x03\x04\x14\x00",
	"a text that begins with \"no image\"":             "no image",
	"a file of type application/pdf":                   "%PDF-1.7",
	"a pointer to a file in Git LFS: run git lfs pull": "version https://git-lfs.github.com/spec/v1\n",
}

// imageWanted begins the error for content that is no image: it names all formats.
var imageWanted = func() string {
	var names []string
	for _, f := range imageFormats {
		names = append(names, f.name)
	}
	return "offset 0: must begin like an image (" + strings.Join(names, ", ") + ")"
}()

// Other formats are recognised by their content, whatever the file's name, and named.
func TestForeignFormatsAreNamed(t *testing.T) {
	for name, content := range foreignContents {
		want := imageWanted + ", got " + strings.TrimRight(name, "\x00")
		_, err := Decode(t.Context(), []byte(content), 3, 4, 4, false)
		wantStart(t, err, want)
		_, err = Inspect([]byte(content))
		wantStart(t, err, want)
		for cut := range len(content) { // nothing panics
			_, _ = Decode(t.Context(), []byte(content[:cut]), 3, 4, 4, false)
		}
	}
}

// The lists of formats for users have those that are read, and foreignFormats only others.
func TestFormatsAreListed(t *testing.T) {
	for _, path := range []string{"../../doc.go", "../../../docs/tutorial.md"} {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range imageFormats {
			names := []string{f.name}
			if f.name == "netpbm" {
				names = []string{"PGM", "PPM"}
			}
			for _, name := range names {
				if !strings.Contains(string(content), name) {
					t.Errorf("%s must list %s", path, name)
				}
			}
		}
	}
	for _, f := range imageFormats {
		for _, magic := range f.magics {
			if name := nameOfMagic([]byte(magic)); name != "" {
				t.Errorf("%s is read: remove %s from foreignFormats", f.name, name)
			}
		}
	}
}
