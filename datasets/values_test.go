package datasets

import (
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Training images with hardly any contrast are remarked on, in every format.
func TestRemarkValues(t *testing.T) {
	constant := "all pixels of the training images are 7, and no network can tell them apart: multiply values"
	for _, test := range []struct {
		pixels [2]byte // that alternate
		want   string
	}{
		{[2]byte{7, 7}, constant},
		{[2]byte{0, 1}, "pixels of the training images are only 0 to 1, of 0 to 255: multiply values from 0 to 1 by 255, and stretch 16-bit"},
		{[2]byte{20, 35}, "only 20 to 35, of 0 to 255"}, {[2]byte{20, 36}, ""}, {[2]byte{0, 255}, ""},
	} {
		path := filepath.Join(t.TempDir(), "some.npz")
		pixels := append(slices.Repeat(test.pixels[:], 3), test.pixels[1], test.pixels[0])
		writeNPZ(t, path, map[string][]byte{
			"train_images": npyBytes("|u1", "(2, 2, 2)", pixels), "train_labels": npyBytes("|u1", "(2,)", []byte{0, 1}),
			"test_images": npyBytes("|u1", "(1, 2, 2)", []byte{0, 100, 200, 255}), "test_labels": npyBytes("|u1", "(1,)", []byte{0}),
		})
		splits, err := Open(path, isolated(t))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(splits.Train.Remarks, "\n"); strings.Contains(got, "pixels") != (test.want != "") || !strings.Contains(got, test.want) {
			t.Errorf("pixels %v: remarks %q, want %q", test.pixels, got, test.want)
		}
	}
}

// 16-bit images whose values all have the same upper byte are images of one colour.
func TestRemarkDepth(t *testing.T) {
	root := t.TempDir()
	for i, class := range []string{"a", "a", "b", "b"} {
		deep := image.NewGray16(image.Rect(0, 0, 2, 2))
		for p := range 4 {
			deep.SetGray16(p%2, p/2, color.Gray16{Y: uint16(8*i + p)})
		}
		write(t, encoded(t, deep), root, "deep", class, fmt.Sprintf("%d.png", i))
	}
	options := isolated(t)
	options.Test, options.Validation = 0.5, -1
	splits, err := Open(filepath.Join(root, "deep"), options)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(splits.Train.Remarks, "\n"); !strings.Contains(got, "deep: all pixels of the training images are 0,") {
		t.Errorf("remarks %q", got)
	}
}

// Types that are not read are named, with NumPy's line that converts them; booleans are black and
// white.
func TestNPZTypes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "some.npz")
	labels := npyBytes("|u1", "(2,)", []byte{0, 1})
	for kind, want := range map[string]string{
		"<u2": "got uint16: state the number of their significant bits, 8 to 16, as bits: 12 if values go up to 4095",
		"|i1": "got int8: save images.view(numpy.uint8)", "<i2": "got int16: save images.astype(numpy.uint8), with values from 0 to 255",
		"<i4": "got int32: save images.astype(numpy.uint8)", ">u4": "got uint32: save", "<u8": "got uint64: save", "<i8": "got int64: save",
		"<f2": "got float16: save (255 * images).round().astype(numpy.uint8) if values are from 0 to 1", "<f4": "got float32: save", "<f8": "got float64: save",
		"|O": "got object: save numpy.stack(list(images)).astype(numpy.uint8)", "<U5": "got str: save", "<M8[ns]": "got NumPy's M8: save",
	} {
		writeNPZ(t, path, map[string][]byte{"images": npyBytes(kind, "(2, 2, 2)", make([]byte, 64)), "labels": labels})
		_, err := Open(path, isolated(t))
		wantError(t, err, "some.npz: images.npy: header", "images must be unsigned bytes (uint8) or bool, "+want)
	}
	images := npyBytes("|b1", "(2, 2, 2)", []byte{0, 1, 1, 0, 1, 0, 0, 1})
	for kind, want := range map[string]string{
		"<f4": "got float32: save labels.astype(numpy.int64)", "<f8": "got float64: save labels.astype(numpy.int64)",
		"|O": "got object: save labels.astype(str)",
	} {
		writeNPZ(t, path, map[string][]byte{"images": images, "labels": npyBytes(kind, "(2,)", make([]byte, 64))})
		_, err := Open(path, isolated(t))
		wantError(t, err, "some.npz: labels.npy: header", "labels must be integers or text, "+want)
	}
	wide := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, 0), 1)
	writeNPZ(t, path, map[string][]byte{"images": images, "labels": npyBytes("<u8", "(2,)", wide)})
	options := isolated(t)
	options.Test, options.Validation = -1, -1
	splits, err := Open(path, options)
	if err != nil || !slices.Equal(splits.Train.Images, []byte{0, 255, 255, 0, 255, 0, 0, 255}) || splits.Train.Remarks != nil {
		t.Errorf("booleans are %+v, %v", splits, err)
	}
}

// Labels that are text are the names of classes, in any of NumPy's encodings.
func TestNPZTextLabels(t *testing.T) {
	path, options := filepath.Join(t.TempDir(), "some.npz"), ownSplits(t)
	text := func(kind string, texts ...string) []byte {
		var values []byte
		for _, text := range texts {
			var one []byte
			for _, r := range text {
				switch kind[:2] {
				case "|S":
					one = append(one, byte(r))
				case "<U":
					one = binary.LittleEndian.AppendUint32(one, uint32(r))
				default:
					one = binary.BigEndian.AppendUint32(one, uint32(r))
				}
			}
			size := 5
			if kind[:2] != "|S" {
				size *= 4
			}
			values = append(values, append(one, make([]byte, size-len(one))...)...)
		}
		return npyBytes(kind, fmt.Sprintf("(%d,)", len(texts)), values)
	}
	images := npyBytes("|u1", "(3, 2, 2)", make([]byte, 12))
	for _, kind := range []string{"|S5", "<U5", ">U5"} {
		arrays := map[string][]byte{
			"x_train": images, "y_train": text(kind, "rose", "ash", " rose"), "x_test": images, "y_test": text(kind, "ash", "ash", "rose"),
		}
		writeNPZ(t, path, arrays)
		splits, err := Open(path, options)
		if err != nil || !slices.Equal(splits.Train.ClassNames, []string{"ash", "rose"}) || !slices.Equal(splits.Train.Labels, []int32{1, 0, 1}) ||
			!slices.Equal(splits.Test.Labels, []int32{0, 0, 1}) {
			t.Errorf("%s: %+v, %v", kind, splits, err)
		}
		for want, labels := range map[string][]byte{
			`the labels of test images must be among those of the training images, ash, rose, got "oak"`: text(kind, "ash", "oak", "rose"),
			"the labels of all splits must be text, or all of them integers":                             npyBytes("|u1", "(3,)", make([]byte, 3)),
		} {
			arrays["y_test"] = labels
			writeNPZ(t, path, arrays)
			_, err := Open(path, options)
			wantError(t, err, want)
		}
	}
	writeNPZ(t, path, map[string][]byte{"x": images, "y": npyBytes("<U0", "(3,)", nil)})
	_, err := Open(path, options)
	wantError(t, err, "text must have 1 to 4096 characters, got U0")
}

// Labels that are no valid names of classes are errors, since a run's files would have other names.
// More labels than a data set can have classes are an error, too.
func TestNPZInvalidText(t *testing.T) {
	path, options := filepath.Join(t.TempDir(), "some.npz"), isolated(t)
	options.Test, options.Validation = -1, -1
	images := npyBytes("|u1", "(2, 1, 1)", []byte{1, 2})
	for _, c := range []struct{ kind, labels, want string }{
		{"|S4", "caf\xe9caf\xe8", `some.npz: y.npy: value 0: text must be UTF-8, got "caf\xe9": save numpy.char.decode(labels, 'latin-1')`},
		{"<U2", "a\x00\x00\x00\x00\xd8\x00\x00b\x00\x00\x00\x00\x00\x00\x00", `value 0: text must be valid Unicode, got the character 0xd800 after "a"`},
		{">U1", "\x00\x00\x00a\x00\x11\x00\x00", `value 1: text must be valid Unicode, got the character 0x110000 after ""`},
		{">U1", "\x00\x00\x00a\xff\x00\x00\x00", `value 1: text must be valid Unicode, got the character 0xff000000 after ""`},
	} {
		writeNPZ(t, path, map[string][]byte{"x": images, "y": npyBytes(c.kind, "(2,)", []byte(c.labels))})
		_, err := Open(path, options)
		wantError(t, err, "datasets: ", c.want)
	}
	const many = maxClasses + 1000
	var labels []byte
	for i := range many {
		labels = binary.LittleEndian.AppendUint32(labels, uint32(0x10000+i))
	}
	writeNPZ(t, path, map[string][]byte{
		"x": npyBytes("|u1", fmt.Sprintf("(%d, 1, 1)", many), make([]byte, many)), "y": npyBytes("<U1", fmt.Sprintf("(%d,)", many), labels),
	})
	_, err := Open(path, options)
	wantError(t, err, "datasets: ", "y.npy: must have at most 65536 classes, got more in values 0 to 65536")
}

// Archives without splits have one array of images and one of labels, of several names.
func TestNPZNames(t *testing.T) {
	path, options := filepath.Join(t.TempDir(), "some.npz"), isolated(t)
	options.Test, options.Validation = -1, -1
	images, labels := npyBytes("|u1", "(2, 2, 2)", make([]byte, 8)), npyBytes("|u1", "(2,)", []byte{0, 1})
	for _, c := range []struct {
		images, labels []string
		want           string
	}{
		{[]string{"X"}, []string{"y"}, ""},
		{[]string{"x"}, []string{"Y"}, ""},
		{[]string{"data"}, []string{"targets"}, ""},
		{[]string{"data"}, []string{"target"}, ""},
		{[]string{"arr_0"}, []string{"arr_1"}, ""},
		{[]string{"images", "x"}, []string{"labels", "y"}, ""},
		{[]string{"X", "data"}, []string{"y"}, "must have one array of images, got X and data: call it images"},
		{[]string{"X"}, []string{"y", "targets"}, "must have one array of labels, got "},
		{[]string{"arr_0", "arr_2"}, []string{"arr_1", "arr_3"}, "must have names for more than two arrays"},
		{[]string{"X"}, nil, "must have a label for each image"},
		{nil, []string{"y"}, "must have the array images for the labels y"},
		{[]string{"a"}, []string{"b"}, `or images and labels, got "a", "b"`},
	} {
		arrays := map[string][]byte{}
		for _, name := range c.images {
			arrays[name] = images
		}
		for _, name := range c.labels {
			arrays[name] = labels
		}
		writeNPZ(t, path, arrays)
		splits, err := Open(path, options)
		if c.want != "" {
			wantError(t, err, "some.npz", c.want)
			continue
		}
		if err != nil || splits.Train.Len() != 2 {
			t.Errorf("%v and %v: %v, %v", c.images, c.labels, splits, err)
		}
		if read, err := ReadImages([]string{path}, Options{}); err != nil || read.Len() != 2 {
			t.Errorf("%v and %v: images %v, %v", c.images, c.labels, read, err)
		}
	}
}

// Shapes that are not read have NumPy's line that reshapes them.
func TestNPZShapes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "some.npz")
	labels := npyBytes("|u1", "(2,)", []byte{0, 1})
	for shape, want := range map[string]string{
		"(2, 784)":       "must be [N H W] or [N H W C], got dimensions [2 784]: save images.reshape(-1, 28, 28)",
		"(2, 783)":       "must be [N H W], [N H W C] or [N C H W], got dimensions [2 783]",
		"(28, 28, 3, 2)": "must be [N H W C] or [N C H W], got dimensions [28 28 3 2]: save numpy.moveaxis(images, -1, 0)",
		"(2,)":           "must be [N H W], [N H W C] or [N C H W], got dimensions [2]",
	} {
		size := 1
		for _, n := range parsedShape(shape) {
			size *= n
		}
		writeNPZ(t, path, map[string][]byte{"images": npyBytes("|u1", shape, make([]byte, size)), "labels": labels})
		_, err := Open(path, isolated(t))
		wantError(t, err, "some.npz: images.npy: "+want)
	}
	writeNPZ(t, path, map[string][]byte{"images": npyBytes("|u1", "(2, 2, 2)", make([]byte, 8)), "labels": npyBytes("<f4", "(2, 3)", make([]byte, 24))})
	_, err := Open(path, isolated(t))
	wantError(t, err, "got float32: save labels.astype(numpy.int64), or labels.argmax(1) if they are one-hot")
	hot := npyBytes("|u1", "(2, 3)", make([]byte, 6))
	writeNPZ(t, path, map[string][]byte{"images": npyBytes("|u1", "(2, 2, 2)", make([]byte, 8)), "labels": hot})
	_, err = Open(path, isolated(t))
	wantError(t, err, "one label for each image, got [2 3]: save labels.argmax(1) if they are one-hot")
	writeNPZ(t, path, map[string][]byte{"images": npyBytes("|u1", "(2, 3, 8, 4)", randomBytes(1, 192)), "labels": labels})
	options := isolated(t)
	options.Test, options.Validation = -1, -1
	splits, err := Open(path, options)
	if want := []string{"some.npz: images.npy: dimensions [2 3 8 4] are read as [N H W C], 4 channels"}; err != nil || !slices.Equal(splits.Train.Remarks, want) {
		t.Errorf("%+v, %v, want the remark %q", splits, err, want)
	}
}

func parsedShape(text string) (shape []int) {
	for field := range strings.SplitSeq(strings.Trim(text, "()"), ",") {
		n := 0
		if _, err := fmt.Sscan(field, &n); err == nil {
			shape = append(shape, n)
		}
	}
	return shape
}

// 16-bit images that use few of their values have one remark, which names the bits.
func TestRemarkDepthOnce(t *testing.T) {
	root := t.TempDir()
	for i, class := range []string{"a", "a", "b", "b"} {
		deep := image.NewGray16(image.Rect(0, 0, 2, 2))
		for p := range 4 {
			deep.SetGray16(p%2, p/2, color.Gray16{Y: uint16(100*i + 1000*p)})
		}
		write(t, encoded(t, deep), root, "deep", class, fmt.Sprintf("%d.png", i))
	}
	options := isolated(t)
	options.Test, options.Validation = 0.5, -1
	for _, from := range []string{"files", "the cache"} {
		splits, err := Open(filepath.Join(root, "deep"), options)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(splits.Train.Remarks, "\n")
		if !strings.Contains(got, "of 0 to 65535, which become 14 of the 256 values of a byte") || strings.Contains(got, "pixels of the training images") {
			t.Errorf("from %s: remarks %q", from, got)
		}
	}
}

// Integers of 16 bits are read only if their significant bits are stated, and must not have more.
func TestArraysOf16Bits(t *testing.T) {
	root := t.TempDir()
	values := []byte{0, 0, 0xff, 0x0f, 0x00, 0x08, 0x10, 0x00} // 0, 4095, 2048, 16
	write(t, npyBytes("<u2", "(1, 2, 2)", values), root, "deep.npy")
	writeNPZ(t, filepath.Join(root, "deep.npz"), map[string][]byte{"images": npyBytes("<u2", "(1, 2, 2)", values)})
	for _, c := range []struct {
		name  string
		bits  int
		want  []byte
		words string
	}{
		{"deep.npy", 12, []byte{0, 255, 128, 1}, ""},
		{"deep.npz", 12, []byte{0, 255, 128, 1}, ""},
		{"deep.npy", 16, []byte{0, 16, 8, 0}, ""},
		{"deep.npy", 11, nil, "value [0 0 1]: must be from 0 to 2047, got 4095"},
		{"deep.npy", 0, nil, "got uint16: state the number of their significant bits, 8 to 16, as bits: 12 if values go up to 4095"},
	} {
		options := isolated(t)
		options.Bits = c.bits
		d, err := ReadImages([]string{filepath.Join(root, c.name)}, options)
		if c.words != "" {
			wantError(t, err, c.words)
		} else if err != nil || !slices.Equal(d.Images, c.want) || d.Bits != c.bits {
			t.Errorf("%s, %d bits: %v (%v), want %v", c.name, c.bits, d, err, c.want)
		}
	}
	write(t, npyBytes("<f4", "(3, 1, 2)", floatBytes(0, 1, float32(math.NaN()), 0, 0, float32(math.Inf(1)))), root, "holes.npy")
	options := isolated(t)
	options.FloatMax = 1
	_, err := ReadImages([]string{filepath.Join(root, "holes.npy")}, options)
	wantError(t, err, "value [1 0 0]: must be from 0 to 1, got NaN; NaN or infinite values are in 2 of 3 images")
}

// Arrays may have any number of channels, such as spectral bands, in either layout.
func TestManyChannels(t *testing.T) {
	root := t.TempDir()
	pixels := randomBytes(1, 2*5*6*7)
	last := make([]byte, len(pixels)) // [2 6 7 5]
	for i := range last {
		image, place, channel := i/210, i%210/5, i%5
		last[i] = pixels[image*210+channel*42+place]
	}
	for _, c := range []struct {
		shape    string
		channels int
		values   []byte
		words    string // of the error or the remark
	}{
		{"(2, 5, 6, 7)", 0, pixels, "dimensions [2 5 6 7] are read as [N C H W], 5 channels"},
		{"(2, 6, 7, 5)", 0, last, "dimensions [2 6 7 5] are read as [N H W C], 5 channels"},
		{"(2, 5, 7, 6)", 0, pixels, "dimensions [2 5 7 6] are read as [N C H W], 5 channels"},
		{"(2, 7, 6, 5)", 7, pixels, "dimensions [2 7 6 5] are read as [N C H W], 7 channels"},
		{"(2, 5, 6, 7)", 7, pixels, "dimensions [2 5 6 7] are read as [N H W C], 7 channels"},
		{"(5, 6, 7)", 5, pixels[:210], "dimensions [5 6 7] are read as one image [C H W]"},
		{"(6, 7, 5)", 5, last[:210], "dimensions [6 7 5] are read as one image [H W C]"},
	} {
		path := filepath.Join(t.TempDir(), "x.npy")
		write(t, npyBytes("|u1", c.shape, c.values), path)
		options := isolated(t)
		options.Channels = c.channels
		d, err := ReadImages([]string{path}, options)
		if err != nil || !slices.Equal(d.Remarks, []string{"x.npy: " + c.words}) || d.Channels != 5 && d.Channels != 7 {
			t.Errorf("%s: %v (%v), want the remark %q", c.shape, d, err, c.words)
			continue
		}
		if d.Channels == 5 && d.Height == 6 && !slices.Equal(d.Images, pixels[:len(c.values)]) {
			t.Errorf("%s: channels are mixed up", c.shape)
		}
	}
	write(t, npyBytes("|u1", "(2, 9, 5, 9)", make([]byte, 810)), root, "none.npy")
	_, err := ReadImages([]string{filepath.Join(root, "none.npy")}, isolated(t))
	wantError(t, err, "none.npy: must be [N H W C] or [N C H W], got dimensions [2 9 5 9]", "state the number of channels as channels")
}
