package datasets

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pkg/errors"
)

// npyBytes writes an array as numpy.save does.
func npyBytes(descr, shape string, values []byte) []byte {
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape)
	header += strings.Repeat(" ", 63-(10+len(header))%64) + "\n"
	content := append([]byte("\x93NUMPY\x01\x00"), 0, 0)
	binary.LittleEndian.PutUint16(content[8:], uint16(len(header)))
	return append(append(content, header...), values...)
}

// writeNPZ writes an archive of arrays.
func writeNPZ(t *testing.T, path string, arrays map[string][]byte) {
	t.Helper()
	var buffer bytes.Buffer
	archive := zip.NewWriter(&buffer)
	for name, content := range arrays {
		member, err := archive.Create(name + ".npy")
		if err == nil {
			_, err = member.Write(content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, buffer.Bytes(), path)
}

// int64s writes numbers of 8 bytes.
func int64s(values ...int64) []byte {
	var content []byte
	for _, value := range values {
		content = binary.LittleEndian.AppendUint64(content, uint64(value))
	}
	return content
}

func TestNPZ(t *testing.T) {
	path := filepath.Join(t.TempDir(), "some.npz")
	colours := randomBytes(1, 2*4*5*3)
	for _, test := range []struct {
		name   string
		arrays map[string][]byte
		shape  [3]int
		want   []int // images by Train, Validation, Test
		labels []int32
	}{
		{"MedMNIST", map[string][]byte{
			"train_images": npyBytes("|u1", "(2, 4, 5, 3)", colours), "train_labels": npyBytes("|u1", "(2, 1)", []byte{1, 0}),
			"val_images": npyBytes("|u1", "(1, 4, 5, 3)", colours[:60]), "val_labels": npyBytes("|u1", "(1, 1)", []byte{1}),
			"test_images": npyBytes("|u1", "(1, 4, 5, 3)", colours[60:]), "test_labels": npyBytes("<i8", "(1,)", int64s(0)),
		}, [3]int{3, 4, 5}, []int{2, 1, 1}, []int32{1, 0}},
		{"Keras", map[string][]byte{
			"x_train": npyBytes("|u1", "(4, 3, 5)", colours[:60]), "y_train": npyBytes("<i4", "(4,)", []byte{0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0}),
			"x_test": npyBytes("|u1", "(1, 3, 5)", colours[:15]), "y_test": npyBytes(">u2", "(1,)", []byte{0, 2}),
		}, [3]int{1, 3, 5}, []int{4, 0, 1}, []int32{0, 1, 2, 1}},
		{"plain, channels first", map[string][]byte{
			"images": npyBytes("|u1", "(2L, 3L, 4L, 5L)", colours), "labels": npyBytes("|i1", "(2,)", []byte{1, 0}),
		}, [3]int{3, 4, 5}, []int{2, 0, 0}, []int32{1, 0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			writeNPZ(t, path, test.arrays)
			options := isolated(t)
			options.Test, options.Validation = -1, -1
			splits, err := Open(path, options)
			if err != nil {
				t.Fatal(err)
			}
			d := splits.Train
			if got := [3]int{d.Channels, d.Height, d.Width}; got != test.shape || d.Name != "some" {
				t.Errorf("%s of %v, want %v", d.Name, got, test.shape)
			}
			for i, part := range []*Dataset{splits.Train, splits.Validation, splits.Test} {
				if part == nil && test.want[i] > 0 || part != nil && part.Len() != test.want[i] {
					t.Errorf("split %d: %v, want %d images", i, part, test.want[i])
				}
			}
			if !slices.Equal(d.Labels, test.labels) {
				t.Errorf("labels %v, want %v", d.Labels, test.labels)
			}
			if test.name == "MedMNIST" && (d.Classes != 2 || d.Image(1)[1] != colours[63] || d.Image(1)[20] != colours[61]) {
				t.Error("channels are not moved to the front, or classes are missing")
			}
			if test.name != "MedMNIST" && !bytes.Equal(d.Images, colours[:len(d.Images)]) {
				t.Error("other images")
			}
		})
	}
}

func TestNPZErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "some.npz")
	images, labels := npyBytes("|u1", "(2, 4, 5)", make([]byte, 40)), npyBytes("|u1", "(2,)", []byte{0, 1})
	for _, test := range []struct {
		arrays map[string][]byte
		want   string
	}{
		{map[string][]byte{"pictures": images}, `(and val_, test_), x_train and y_train (and x_val, x_test), or images and labels, got "pictures"`},
		{map[string][]byte{"images": images}, "some.npz: must have a label for each image of images"},
		{map[string][]byte{"labels": labels}, "some.npz: must have the array images for the labels labels"},
		{map[string][]byte{"images": images, "labels": npyBytes("|u1", "(1,)", []byte{0})}, "must be [2] or [2 1], one label for each image, got [1]"},
		{map[string][]byte{"images": images, "labels": npyBytes("|u1", "(2, 14)", make([]byte, 28))}, "[2] or [2 1], one label for each image, got [2 14]"},
		{map[string][]byte{"images": images, "labels": npyBytes("<i8", "(2,)", int64s(1, -1))},
			"label 1 must be 0 or more and below 65536, got -1: save labels.astype(str)"},
		{map[string][]byte{"images": npyBytes("<f4", "(2, 4, 5)", make([]byte, 160)), "labels": labels}, "(uint8) or bool, got float32: save (255 * images).round()"},
		{map[string][]byte{"images": npyBytes("<i8", "(2, 1, 1)", int64s(1, 2)), "labels": labels}, "got int64: save images.astype(numpy.uint8)"},
		{map[string][]byte{"images": images[:100], "labels": labels}, "bytes of the header"},
		{map[string][]byte{"images": images[:140], "labels": labels}, "images.npy: offset 140: got 12 of 40 bytes of values of [2 4 5]"},
		{map[string][]byte{"images": append(bytes.Clone(images), 0), "labels": labels}, "more data"},
		{map[string][]byte{"images": bytes.Replace(images, []byte("False"), []byte("True "), 1), "labels": labels}, `save numpy.ascontiguousarray(x)`},
		{map[string][]byte{"images": npyBytes("|u1", "(99999999, 99999999, 3)", nil), "labels": labels}, `99999999, 3), }": values must have at most `},
		{map[string][]byte{"images": npyBytes("|u1", "(2, 4, 0)", nil), "labels": labels}, `'shape': (2, 4, 0), }": dimension must be positive, got "0"`},
		{map[string][]byte{"images": npyBytes("|u1", "(2, 9, 5, 9)", make([]byte, 810)), "labels": labels}, "got dimensions [2 9 5 9], of which neither"},
		{map[string][]byte{"images": npyBytes("|u1", "(2, 300, 301, 301)", make([]byte, 2*300*301*301)), "labels": labels},
			"must have at most 256 channels, got 300 of dimensions [2 300 301 301], read as [N C H W]"},
		{map[string][]byte{"images": npyBytes("|u1", "(2, 1, 513)", make([]byte, 1026)), "labels": labels}, "got 1x513: use a smaller height and width"},
	} {
		writeNPZ(t, path, test.arrays)
		options := isolated(t)
		options.Test, options.Validation = -1, -1
		_, err := Open(path, options)
		wantError(t, err, "datasets: ", test.want)
	}
	writeNPZ(t, path, map[string][]byte{"images": images, "labels": labels})
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for content, want := range map[string]string{
		"no archive":                 `: a text that begins with "no archive": zip: not a valid zip file`,
		"":                           ", got an empty file",
		string(whole[:len(whole)/2]): ", got the beginning of one: copy it again, or download it",
	} {
		write(t, []byte(content), path)
		_, err := Open(path, isolated(t))
		wantError(t, err, path, "some.npz: must be an archive of NumPy arrays (.npz)"+want)
	}
}

// An array may promise a lot; memory is allocated as data arrive.
func TestNPYHostileHeader(t *testing.T) {
	content := npyBytes("|u1", "(1000000, 1000, 30)", []byte{1})
	allocated := testing.AllocsPerRun(1, func() {
		_, err := readNPY("file", bytes.NewReader(content), npyMaxSize, npyUse{})
		wantError(t, err, "got 1 of 30000000000 bytes")
	})
	if allocated > 200 {
		t.Errorf("%v allocations", allocated)
	}
}

func FuzzReadNPY(f *testing.F) {
	f.Add(append([]byte{0}, npyBytes("|u1", "(2, 3)", []byte{1, 2, 3, 4, 5, 6})...))
	f.Add(append([]byte{1}, npyBytes("<i8", "(1,)", int64s(-5))...))
	f.Add(append([]byte{1}, npyBytes(">i4", "(1, 1)", []byte{0, 0, 0, 7})...))
	f.Add(append([]byte{0}, npyBytes("|u1", "()", nil)...))
	f.Add(append([]byte{0}, []byte("\x93NUMPY\x02\x00\x10\x00\x00\x00")...))
	f.Add(append([]byte{2}, npyBytes("<u2", "(1, 2)", []byte{0, 1, 2, 3})...))
	f.Add(append([]byte{2}, npyBytes("<f4", "(1, 2)", floatBytes(1, float32(math.NaN())))...))
	uses := []npyUse{{}, npyLabels, {floatMax: 1, bits: 12}}
	f.Fuzz(func(t *testing.T, content []byte) {
		const limit = 1 << 16
		if len(content) == 0 {
			return
		}
		array, err := readNPY("file", bytes.NewReader(content[1:]), limit, uses[int(content[0])%len(uses)])
		if err != nil {
			if !strings.HasPrefix(err.Error(), "datasets: file: ") {
				t.Errorf("error %q does not name the file", err)
			}
			return
		}
		count := 1
		for _, n := range array.shape {
			count *= n
		}
		if count != max(len(array.bytes), len(array.wide)) || count > limit {
			t.Errorf("%d bytes and %d numbers of %v", len(array.bytes), len(array.wide), array.shape)
		}
	})
}

func TestIDXDir(t *testing.T) {
	root := filepath.Join(t.TempDir(), "own")
	dir := filepath.Join(root, "raw")
	images := randomBytes(3, 6*3*5*7)
	write(t, idxBytes([]int{6, 3, 5, 7}, images), dir, "train-images-idx4-ubyte")
	write(t, packed(t, idxBytes([]int{6}, []byte{0, 1, 2, 3, 4, 11})), dir, "train-labels-idx1-ubyte.gz")
	write(t, idxBytes([]int{2, 3, 5, 7}, images[:210]), dir, "t10k-images-idx3-ubyte")
	write(t, idxBytes([]int{2}, []byte{0, 1}), dir, "t10k-labels-idx1-ubyte")
	splits, err := Open(root, isolated(t))
	if err != nil {
		t.Fatal(err)
	}
	d := splits.Train
	if d.Len() != 6 || d.Channels != 3 || d.Height != 5 || d.Width != 7 || d.Classes != 6 || d.ClassNames[5] != "11" ||
		!bytes.Equal(d.Images, images) || splits.Test.Len() != 2 || splits.Validation != nil || len(d.Hashes) != 4 {
		t.Errorf("opened %+v", d)
	}
}

// EMNIST's names have a prefix and another word for the test images.
func TestIDXNames(t *testing.T) {
	dir, images := t.TempDir(), randomBytes(3, 2*5*7)
	for _, part := range []string{"train", "test"} {
		write(t, packed(t, idxBytes([]int{2, 5, 7}, images)), dir, "emnist-letters-"+part+"-images-idx3-ubyte.gz")
		write(t, packed(t, idxBytes([]int{2}, []byte{1, 2})), dir, "emnist-letters-"+part+"-labels-idx1-ubyte.gz")
	}
	splits, err := Open(dir, isolated(t))
	if err != nil || splits.Test.Len() != 2 || !slices.Equal(splits.Train.ClassNames, []string{"1", "2"}) {
		t.Fatalf("%+v, %v", splits, err)
	}
	if got := splits.Train.Remarks; len(got) < 2 || got[0] != filepath.Base(dir)+": EMNIST stores images transposed, and they are used so" {
		t.Errorf("remarks %q", got)
	}
	write(t, idxBytes([]int{2, 5, 7}, images), dir, "emnist-digits-test-images-idx3-ubyte")
	_, err = Open(dir, isolated(t))
	wantError(t, err, dir+": must have the IDX files of one data set, got those of emnist-digits, emnist-letters: use a directory for each")
	write(t, idxBytes([]int{2}, []byte{1, 2}), dir, "train-labels-idx1-ubyte")
	_, err = Open(dir, isolated(t))
	wantError(t, err, "train-labels-idx1-ubyte: must have a file of images for the labels, such as train-images-idx3-ubyte")
}

// A folder may have test images only, which Load reads, with moments of their own.
func TestIDXFolderOfTestImages(t *testing.T) {
	dir, images := t.TempDir(), randomBytes(3, 4*5*7)
	write(t, idxBytes([]int{4, 5, 7}, images), dir, "t10k-images-idx3-ubyte")
	write(t, idxBytes([]int{4}, []byte{0, 1, 2, 1}), dir, "t10k-labels-idx1-ubyte")
	options := isolated(t)
	options.Validation, options.Test = 0.5, 0.5
	d, err := Load(dir, Test, options)
	if err != nil {
		t.Fatal(err)
	}
	if mean, _ := moments(images, 1, 5*7); d.Len() != 4 || d.Classes != 3 || d.Mean[0] != mean[0] {
		t.Errorf("read %+v", d)
	}
	_, err = Load(dir, Train, options)
	wantError(t, err, dir+": must have a train split")
	_, err = Open(dir, options)
	wantError(t, err, "datasets: "+dir+": must have training images")
}

// letterArrays writes 40 training and 20 test images of ten classes as an
// archive, and returns its path.
func letterArrays(t *testing.T) string {
	t.Helper()
	labels := make([]byte, 40)
	for i := range labels {
		labels[i] = byte(i % 10)
	}
	path := filepath.Join(t.TempDir(), "letters.npz")
	writeNPZ(t, path, map[string][]byte{
		"train_images": npyBytes("|u1", "(40, 28, 28)", randomBytes(1, 40*28*28)), "train_labels": npyBytes("|u1", "(40, 1)", labels),
		"test_images": npyBytes("|u1", "(20, 28, 28)", randomBytes(2, 20*28*28)), "test_labels": npyBytes("|u1", "(20, 1)", labels[:20]),
	})
	return path
}

// Arrays get the requested shape and classes.
func TestOptionsOfArrays(t *testing.T) {
	path, options := letterArrays(t), isolated(t)
	options.Channels, options.Height, options.Width = 3, 14, 16
	options.Classes = []string{"9", "1"}
	splits, err := Open(path, options)
	if err != nil {
		t.Fatal(err)
	}
	d := splits.Test
	if d.Len() != 4 || d.Channels != 3 || d.Height != 14 || d.Width != 16 || !cmp.Equal(d.ClassNames, []string{"1", "9"}) {
		t.Errorf("%d images [%d %d %d] of %v", d.Len(), d.Channels, d.Height, d.Width, d.ClassNames)
	}
	wantMean, _ := moments(splits.Train.Images, 3, 14*16)
	if !slices.Equal(d.Labels, []int32{0, 1, 0, 1}) || !slices.Equal(d.Mean, wantMean) {
		t.Errorf("labels %v, mean %v, want that of the training images, %v", d.Labels, d.Mean, wantMean)
	}
	one, err := Load(path, Test, options)
	if err != nil || !cmp.Equal(one, d) {
		t.Error("Load gives another split than Open, or ", err)
	}
	options.Channels = 4 // as a grey picture in four: the opacity is full
	four, err := Load(path, Test, options)
	if err != nil {
		t.Fatal(err)
	}
	for i := range four.Len() {
		if image, grey := four.Image(i), d.Image(i)[:14*16]; !bytes.Equal(image[:3*14*16], bytes.Repeat(grey, 3)) ||
			!bytes.Equal(image[3*14*16:], bytes.Repeat([]byte{255}, 14*16)) {
			t.Fatalf("image %d in four channels: % d", i, image)
		}
	}
	options = isolated(t)
	options.Validation = 0.25
	if splits, err = Open(path, options); err != nil || splits.Validation.Len() != 10 || splits.Train.Len() != 30 {
		t.Error("a validation split: ", err)
	}
}

// A known name keeps its figures, even when images are held out, but not when it becomes another
// set.
func TestOptionsOfKnownNames(t *testing.T) {
	options := isolated(t)
	options.Validation = 0.25
	splits, err := Open("mnist", options)
	if err != nil {
		t.Fatal(err)
	}
	if splits.Train.Len() != 44998 || splits.Validation.Len() != 15002 || splits.Test.Len() != 10000 {
		t.Error("splits of", splits.Train.Len(), splits.Validation.Len(), splits.Test.Len())
	}
	if splits.Train.Mean[0] != mnist().mean || splits.Test.Std[0] != mnist().std {
		t.Errorf("mean %v, deviation %v", splits.Train.Mean, splits.Test.Std)
	}
	options = isolated(t)
	options.Height, options.Width, options.Classes = 14, 14, []string{"3"}
	test, err := Load("mnist", Test, options)
	if err != nil {
		t.Fatal(err)
	}
	if test.Len() != 1010 || test.Height != 14 || test.Mean[0] == mnist().mean || math.Abs(test.Mean[0]-mnist().mean) > 0.02 {
		t.Errorf("%d images of %d rows, mean %v", test.Len(), test.Height, test.Mean)
	}
}

func TestOptionsErrors(t *testing.T) {
	path := letterArrays(t)
	for _, test := range []struct {
		options Options
		option  string
		want    string
	}{
		{Options{Test: 1}, "Test", "options: Test: must be a fraction below 1 (0: the default, negative: none), got 1"},
		{Options{MaxSkipped: 1.5}, "MaxSkipped", "options: MaxSkipped: must be a fraction of at most 1, got 1.5"},
		{Options{Height: 3}, "Height", "options: Height: must be set with Width, got 3x0"},
		{Options{Height: 513, Width: 3}, "Height", "options: Height: images must be at most 512x512, got 513x3"},
		{Options{Channels: 257}, "Channels", "options: Channels: must be at most 256, got 257"},
		{Options{Channels: 3, Classes: []string{"K"}}, "Classes", `letters: classes must be some of 0, 1, 2, 3, 4, 5, 6, 7, ... (10 in all), got "K"`},
		{Options{WithoutClasses: numberNames(10)}, "WithoutClasses", "options: WithoutClasses: letters: must have an image of the classes"},
		{Options{Classes: []string{"0", "1"}, WithoutClasses: []string{"02"}}, "WithoutClasses", `must be among the selected classes, 0, 1, got "2"`},
		{Options{Classes: []string{"0", "1"}, WithoutClasses: []string{"x"}}, "WithoutClasses", `letters: classes must be some of 0, 1, got "x"`},
	} {
		_, err := Open(path, test.options)
		wantError(t, err, "datasets: options: "+test.option+": ", test.want)
		var invalid *OptionError
		if !errors.As(err, &invalid) || invalid.Option != test.option || strings.Contains(invalid.Problem, "datasets: ") {
			t.Errorf("%+v: %#v", test.options, invalid)
		}
	}
}
