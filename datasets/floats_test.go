package datasets

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// floatBytes encodes values as float32.
func floatBytes(values ...float32) (content []byte) {
	for _, v := range values {
		content = binary.LittleEndian.AppendUint32(content, math.Float32bits(v))
	}
	return content
}

// Floats are read only if their largest value is stated, and must not exceed it.
func TestFloatMax(t *testing.T) {
	root := t.TempDir()
	unit := []float32{0, 1, 0.5, 0.25, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.003}
	fields := "0,1,0.5,0.25,1,0,0,0,0,0,0,0,0,0,0,0.003\n"
	wide := []byte{}
	for _, v := range unit {
		wide = binary.BigEndian.AppendUint64(wide, math.Float64bits(float64(v)))
	}
	heading := "Id"
	for range unit {
		heading += ",p1"
	}
	write(t, npyBytes("<f4", "(1, 4, 4)", floatBytes(unit...)), root, "unit.npy")
	write(t, npyBytes(">f8", "(1, 4, 4)", wide), root, "wide.npy")
	writeNPZ(t, filepath.Join(root, "unit.npz"), map[string][]byte{"images": npyBytes("<f4", "(1, 4, 4)", floatBytes(unit...))})
	write(t, npyBytes("<f2", "(1, 4, 4)", []byte("\x00\x00\x00\x3c\x00\x38\x00\x34\x00\x3c"+strings.Repeat("\x00", 20)+"\x25\x1a")), root, "half.npy")
	write(t, npyBytes("<f4", "(1, 4, 4)", floatBytes(append(slices.Clone(unit[:15]), -0.5)...)), root, "below.npy")
	write(t, []byte(fields), root, "plain.csv")
	write(t, []byte(heading+"\n17,"+fields), root, "unit.csv")
	write(t, npyBytes("|u1", "(1, 4, 4)", make([]byte, 16)), root, "bytes.npy")
	write(t, npyBytes("<f4", "(1, 4, 4)", floatBytes(append(slices.Clone(unit[:15]), float32(math.NaN()))...)), root, "nan.npy")
	want := []byte{0, 255, 128, 64, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}
	small := make([]byte, 16) // the same values as floats from 0 to 255
	copy(small, []byte{0, 1, 1, 0, 1})
	for _, c := range []struct {
		name   string
		most   float64
		pixels []byte
		words  string
	}{
		{"unit.npy", 1, want, ""}, {"wide.npy", 1, want, ""}, {"unit.npz", 1, want, ""}, {"half.npy", 1, want, ""},
		{"unit.csv", 1, want, ""}, {"plain.csv", 1, want, ""},
		{"unit.npy", 255, small, ""}, {"unit.csv", 255, small, ""},
		{"bytes.npy", 1, make([]byte, 16), ""}, // bytes are bytes
		{"unit.npy", 0, nil, "images must be unsigned bytes (uint8) or bool, got float32"},
		{"unit.npz", 0, nil, "or state the largest value, 1 or 255, as float-max"},
		{"unit.csv", 0, nil, `line 2: column 4: must be an integer from 0 to 255, got "0.5": multiply pixels from 0 to 1 by 255`},
		{"unit.npy", 2, nil, "FloatMax: must be 1 or 255, got 2"},
		{"nan.npy", 1, nil, "value [0 3 3]: must be from 0 to 1, got NaN; NaN or infinite values are in 1 of 1 images: save images[ok]"},
		{"below.npy", 1, nil, "value [0 3 3]: must be from 0 to 1, got -0.5: save (images + 1) / 2 if values are from -1 to 1"},
	} {
		options := isolated(t)
		options.FloatMax = c.most
		d, err := ReadImages([]string{filepath.Join(root, c.name)}, options)
		if c.words != "" {
			if err == nil || !strings.Contains(err.Error(), c.words) {
				t.Errorf("%s, %v: error %v, want %q", c.name, c.most, err, c.words)
			}
			continue
		}
		if err != nil || !slices.Equal(d.Images, c.pixels) {
			t.Errorf("%s, %v: %v (%v), want %v", c.name, c.most, d, err, c.pixels)
		}
		if c.name == "unit.csv" && (!slices.Equal(d.IDs, []string{"17"}) || d.IDName != "Id") {
			t.Errorf("%s: identifiers %q in column %q", c.name, d.IDs, d.IDName)
		}
	}
	write(t, []byte("0,1.5,0,0,0,0,0,0,0,0,0,0,0,0,0,0\n"), root, "large.csv")
	options := isolated(t)
	options.FloatMax = 1
	_, err := ReadImages([]string{filepath.Join(root, "large.csv")}, options)
	wantError(t, err, "line 1: column 2: must be from 0 to 1, got 1.5")
}

// Every float16 has its value.
func TestHalfValue(t *testing.T) {
	for bits, want := range map[uint16]float64{
		0: 0, 1: 0x1p-24, 0x03ff: 1023 * 0x1p-24, 0x0400: 0x1p-14, 0x3555: 0.333251953125, 0x3c00: 1, 0x7bff: 65504, 0x7c00: math.Inf(1), 0xc000: -2,
	} {
		if got := halfValue(bits); got != want {
			t.Errorf("%#x: %v, want %v", bits, got, want)
		}
	}
	if got := halfValue(0x7e00); !math.IsNaN(got) {
		t.Errorf("NaN: %v", got)
	}
}

// A table may have images that are not square if their shape is requested; a wrong number of
// columns is an error that names the shape, and another shape is scaled, which is a remark.
func TestTableShapes(t *testing.T) {
	root := t.TempDir()
	row := func(values int) []byte { return []byte(strings.TrimSuffix(strings.Repeat("7,", values), ",") + "\n") }
	for values, name := range map[int]string{4 * 6 * 3: "colour.csv", 4 * 6: "grey.csv", 23: "short.csv", 36: "square.csv"} {
		write(t, row(values), root, name)
	}
	read := func(name string, channels int) (*Dataset, error) {
		options := isolated(t)
		options.Channels, options.Height, options.Width = channels, 4, 6
		return ReadImages([]string{filepath.Join(root, name)}, options)
	}
	for name, channels := range map[string]int{"colour.csv": 3, "grey.csv": 1} {
		d, err := read(name, channels)
		if err != nil || d.Len() != 1 || d.Channels != channels || d.Height != 4 || d.Width != 6 || len(d.Remarks) != 0 {
			t.Errorf("%s: %+v (%v)", name, d, err)
		}
	}
	_, err := read("short.csv", 1)
	wantError(t, err, "must have the 24 pixels of an image of 4x6x1, or those of a square one, got 22 columns")
	d, err := read("square.csv", 1)
	if err != nil || strings.Join(d.Remarks, "") != "square.csv: images of 6x6x1 become 4x6x1" {
		t.Errorf("a square image: %+v (%v)", d, err)
	}
}
