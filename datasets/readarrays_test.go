package datasets

import (
	"bytes"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pkg/errors"
)

// unlabelledArrays writes images of 4x4 pixels without labels in each format: path to pixels.
func unlabelledArrays(t *testing.T) (root string, pixels []byte, paths []string) {
	t.Helper()
	root, pixels = t.TempDir(), randomBytes(5, 2*16)
	heading := "p1,p2,p3,p4,p5,p6,p7,p8,p9,p10,p11,p12,p13,p14,p15,p16\n"
	lines := csvLines([]int{0, 0}, pixels, true)
	lines = strings.ReplaceAll(lines, ",0\n", "\n")
	write(t, []byte(heading+lines), root, "test.csv")
	write(t, []byte("Id,"+heading+"0,"+strings.Replace(lines, "\n", "\n1,", 1)), root, "ids.csv")
	write(t, []byte(lines), root, "plain.csv")
	writeNPZ(t, filepath.Join(root, "images.npz"), map[string][]byte{"images": npyBytes("|u1", "(2, 4, 4)", pixels)})
	writeNPZ(t, filepath.Join(root, "other.npz"), map[string][]byte{"arr_0": npyBytes("|u1", "(2, 4, 4)", pixels)})
	write(t, npyBytes("|u1", "(2, 4, 4)", pixels), root, "several.npy")
	write(t, packed(t, idxBytes([]int{2, 4, 4}, pixels)), root, "t10k-images-idx3-ubyte.gz")
	write(t, idxBytes([]int{2, 4, 4}, pixels), root, "idx", "t10k-images-idx3-ubyte")
	write(t, []byte(heading+lines), root, "dir", "test.csv")
	return root, pixels, []string{"test.csv", "ids.csv", "plain.csv", "images.npz", "other.npz", "several.npy", "t10k-images-idx3-ubyte.gz", "idx"}
}

func TestReadImagesOfArrays(t *testing.T) {
	root, pixels, paths := unlabelledArrays(t)
	for _, name := range paths {
		path := filepath.Join(root, name)
		d, err := ReadImages([]string{path}, isolated(t))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		file := path
		if name == "idx" {
			file = filepath.Join(path, "t10k-images-idx3-ubyte")
		}
		if !bytes.Equal(d.Images, pixels) || d.Labels != nil || d.Classes != 0 || !slices.Equal(d.Files, []string{file + "[0]", file + "[1]"}) {
			t.Errorf("%s: %d bytes, labels %v, files %v", name, len(d.Images), d.Labels, d.Files)
		}
		if len(d.Remarks) != 0 {
			t.Errorf("%s: remarks %q", name, d.Remarks)
		}
		if ids := slices.Equal(d.IDs, []string{"0", "1"}) && d.IDName == "Id"; ids != (name == "ids.csv") {
			t.Errorf("%s: identifiers %q in column %q", name, d.IDs, d.IDName)
		}
	}
	// Arrays and images together keep their order, and have the first array's shape.
	write(t, encoded(t, greyPicture(4, 4, 9)), root, "images", "a.png")
	mixed := []string{filepath.Join(root, "test.csv"), filepath.Join(root, "images"), filepath.Join(root, "several.npy")}
	d, err := ReadImages(mixed, isolated(t))
	if err != nil {
		t.Fatal(err)
	}
	if want := slices.Concat(pixels, greyPicture(4, 4, 9).Pix, pixels); !bytes.Equal(d.Images, want) || filepath.Base(d.Files[2]) != "a.png" || d.Len() != 5 {
		t.Errorf("%d images, %v", d.Len(), d.Files)
	}
	// All splits are read, without their labels.
	pair := filepath.Join(root, "pair.npz")
	writeNPZ(t, pair, map[string][]byte{
		"train_images": npyBytes("|u1", "(1, 4, 4)", pixels[:16]), "train_labels": npyBytes("|u1", "(1,)", []byte{3}),
		"test_images": npyBytes("|u1", "(1, 4, 4)", pixels[16:]),
	})
	options := isolated(t)
	options.Channels, options.Height, options.Width = 3, 2, 2
	d, err = ReadImages([]string{pair}, options)
	files := []string{pair + ": train_images[0]", pair + ": test_images[0]"}
	if err != nil || d.Labels != nil || d.Channels != 3 || d.Height != 2 || !slices.Equal(d.Files, files) {
		t.Errorf("%+v, %v", d, err)
	}
}

// Content in memory is read like files, and is bounded whatever it promises.
func TestDecodeArrays(t *testing.T) {
	root, pixels, paths := unlabelledArrays(t)
	limits := ArrayLimits{Bytes: 1000, Images: 10}
	for _, name := range paths {
		if name == "idx" {
			continue
		}
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		d, err := DecodeArrays(name, content, limits, Options{})
		if err != nil || !bytes.Equal(d.Images, pixels) || d.Labels != nil || !slices.Equal(d.Files, []string{name + "[0]", name + "[1]"}) {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
		_, err = DecodeArrays(name, content, ArrayLimits{Bytes: 20, Images: 10}, Options{})
		wantError(t, err, name, "at most 20")
		_, err = DecodeArrays(name, content, ArrayLimits{Bytes: 1000, Images: 1}, Options{})
		wantError(t, err, "datasets: "+name+": must have at most 1 images, got 2")
	}
	lines := packed(t, bytes.Repeat([]byte("\n"), 1<<20))
	for name, content := range map[string][]byte{"a.png": encoded(t, greyPicture(2, 2, 0)), "a.csv.gz": lines, "a.csv": lines, "": nil} {
		if _, err := DecodeArrays(name, content, limits, Options{}); IsArrays(name, content) || err == nil {
			t.Errorf("%s counts as arrays, error %v", name, err)
		}
	}
}

// Files that cannot be read do not keep the others from being answered, if all may be skipped.
func TestReadArraysFailures(t *testing.T) {
	root, pixels, _ := unlabelledArrays(t)
	write(t, []byte("no image"), root, "bad.png")
	write(t, []byte("no archive"), root, "bad.npz")
	var paths []string
	for _, name := range []string{"bad.npz", "test.csv", "bad.png", "missing.png"} {
		paths = append(paths, filepath.Join(root, name))
	}
	options := isolated(t)
	options.MaxSkipped = 1
	d, err := ReadImages(paths, options)
	if err != nil || !bytes.Equal(d.Images, pixels) || len(d.Failed) != 3 || len(d.Skipped) != 3 || d.Failed[0].File != paths[0] {
		t.Errorf("%+v, %v", d, err)
	}
	_, err = ReadImages(paths[:1], options)
	wantError(t, err, "bad.npz: must be an archive of NumPy arrays")
	_, err = ReadImages(paths, isolated(t))
	wantError(t, err, "bad.npz: must be an archive of NumPy arrays")
	// One image is out-of-distribution data.
	write(t, encoded(t, greyPicture(4, 4, 9)), root, "one.png")
	options.Unlabelled = true
	if d, err = Load(filepath.Join(root, "one.png"), Test, options); err != nil || d.Len() != 1 || d.Labels != nil {
		t.Errorf("one image: %+v, %v", d, err)
	}
}

// Arrays after image files get the shape of these.
func TestReadArraysAfterFiles(t *testing.T) {
	dir := t.TempDir()
	png, npy := filepath.Join(dir, "a.png"), filepath.Join(dir, "b.npy")
	write(t, encoded(t, colourPicture(5, 4, color.RGBA{200, 10, 20, 255})), png)
	write(t, npyBytes("|u1", "(2, 8, 10)", make([]byte, 160)), npy)
	d, err := ReadImages([]string{png, npy}, isolated(t))
	if err != nil {
		t.Fatal(err)
	}
	if d.Len() != 3 || d.Channels != 3 || d.Height != 4 || d.Width != 5 {
		t.Errorf("%d images of %dx%dx%d", d.Len(), d.Channels, d.Height, d.Width)
	}
}

// A .npy file may have one image.
func TestReadOneNPY(t *testing.T) {
	path := filepath.Join(t.TempDir(), "one.npy")
	for _, test := range []struct {
		shape          string
		channels, want int // of the options, of the image
		count          int
		remark         string
	}{
		{"(9, 16)", 1, 1, 1, ""}, {"(6, 8, 3)", 3, 3, 1, "dimensions [6 8 3] are read as one image [H W C]"},
		{"(3, 6, 8)", 3, 3, 1, "dimensions [3 6 8] are read as one image [C H W]"}, {"(3, 6, 8)", 1, 1, 3, ""}, {"(3, 6, 8)", 0, 1, 3, ""},
		{"(1, 6, 8, 3)", 3, 3, 1, ""}, {"(1, 3, 6, 8)", 3, 3, 1, ""},
	} {
		write(t, npyBytes("|u1", test.shape, randomBytes(6, 144)), path)
		options := isolated(t)
		options.Channels = test.channels
		d, err := ReadImages([]string{path}, options)
		if err != nil || d.Channels != test.want || d.Len() != test.count || !strings.HasSuffix(strings.Join(d.Remarks, "\n"), test.remark) {
			t.Errorf("%s for %d channels: %+v, %v", test.shape, test.channels, d, err)
		}
	}
	write(t, npyBytes("<f4", "(4, 4)", make([]byte, 64)), path)
	_, err := ReadImages([]string{path}, isolated(t))
	wantError(t, err, "one.npy: header", "got float32: save (255 * images)")
}

// Images without labels cannot train or be scored, but are out-of-distribution data.
func TestUnlabelledArrays(t *testing.T) {
	root, pixels, paths := unlabelledArrays(t)
	for _, name := range append(paths, "dir") {
		path := filepath.Join(root, name)
		_, err := Open(path, isolated(t))
		if without := (*NoClassesError)(nil); name != "other.npz" && (!errors.As(err, &without) || without.Path != path) {
			t.Errorf("%s: %v, want a NoClassesError", name, err)
		}
		options := isolated(t)
		options.Unlabelled = true
		d, err := Load(path, Test, options)
		if err != nil || !bytes.Equal(d.Images, pixels) || d.Labels != nil || d.Name != strings.Split(name, ".")[0] {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
		options.Classes = []string{"0"}
		if _, err := Load(path, Test, options); err == nil {
			t.Errorf("%s: classes were selected without labels", name)
		}
	}
}

// Test images without labels do not keep the training images from being used: Kaggle's test.csv is
// one of them.
func TestUnlabelledTestImages(t *testing.T) {
	labels := []byte{0, 1, 0, 1, 0, 1, 0, 1, 0, 1}
	for i, path := range writeLabelled(t, labels, []byte{0, 1}) {
		var left string
		switch i {
		case 0:
			writeNPZ(t, path, map[string][]byte{
				"train_images": npyBytes("|u1", "(10, 2, 2)", randomBytes(1, 40)), "train_labels": npyBytes("|u1", "(10,)", labels),
				"test_images": npyBytes("|u1", "(2, 2, 2)", randomBytes(2, 8)),
			})
			left = "npz.npz: test_images"
		case 1:
			root, _, _ := unlabelledArrays(t)
			left = filepath.Join(path, "test.csv")
			remove(t, left)
			if err := os.Rename(filepath.Join(root, "test.csv"), left); err != nil {
				t.Fatal(err)
			}
			numbers := make([]int, len(labels))
			for i, label := range labels {
				numbers[i] = int(label)
			}
			write(t, []byte(csvLines(numbers, randomBytes(3, 16*len(labels)), false)), path, "train.csv")
		case 2:
			left = filepath.Join(path, "t10k-images-idx3-ubyte")
			remove(t, filepath.Join(path, "t10k-labels-idx1-ubyte"))
		}
		splits, err := Open(path, isolated(t))
		if err != nil || splits.Train.Len() != 6 || splits.Test.Len() != 2 || splits.Validation.Len() != 2 {
			t.Errorf("%s: %+v, %v", path, splits, err)
			continue
		}
		if want := filepath.Base(left) + ": left out, since it has no labels"; !slices.Contains(splits.Train.Remarks, want) {
			t.Errorf("remarks %q, want %q", splits.Train.Remarks, want)
		}
		options := isolated(t)
		options.Unlabelled = true
		d, err := Load(path, Test, options)
		if err != nil || d.Labels != nil || d.Len() != 2 || d.ImageSize() != splits.Train.ImageSize() {
			t.Errorf("%s: without labels: %+v, %v", path, d, err)
		}
	}
}

// The same for a directory of images next to directories of classes.
func TestUnlabelledTestDirectory(t *testing.T) {
	var names []string
	for i := range 10 {
		names = append(names, "train/a/"+string(rune('a'+i))+".png", "train/b/"+string(rune('a'+i))+".png")
	}
	root := dots(t, append(names, "test/1.png", "test/2.png", "val/more/3.png", "val/4.png")...)
	splits, err := Open(root, isolated(t))
	if err == nil {
		t.Errorf("a class that the training images lack: %+v", splits)
	}
	remove(t, filepath.Join(root, "val", "more"))
	if splits, err = Open(root, isolated(t)); err != nil {
		t.Fatal(err)
	}
	want := []string{
		filepath.Join("dots", "test") + ": left out, since it has no class directories and no table of classes",
		filepath.Join("dots", "val") + ": left out, since it has no class directories and no table of classes",
	}
	if splits.Train.Len() != 12 || splits.Test.Len() != 4 || splits.Validation.Len() != 4 || !slices.Equal(splits.Train.Remarks, want) {
		t.Errorf("%d, %d and %d images, remarks %q", splits.Train.Len(), splits.Test.Len(), splits.Validation.Len(), splits.Train.Remarks)
	}
	options := isolated(t)
	options.Unlabelled = true
	d, err := Load(root, Test, options)
	if err != nil || d.Labels != nil || d.Len() != 2 || d.Name != "dots" {
		t.Errorf("without labels: %+v, %v", d, err)
	}
	remove(t, filepath.Join(root, "test", "1.png"))
	remove(t, filepath.Join(root, "test", "2.png"))
	_, err = Open(root, isolated(t))
	wantError(t, err, filepath.Join(root, "test")+": must have a directory of images for each class")
}

// Without labels, images in a single directory are read, and those next to directories with them.
func TestUnlabelledDirectories(t *testing.T) {
	options := isolated(t)
	options.Unlabelled = true
	for _, names := range [][]string{
		{"a/1.png", "b/2.png", "3.png", "4.png"}, {"a/1.png", "a/2.png", "a/3.png", "a/more/4.png"},
		{"train/1.png", "train/2.png", "val/3.png", "test/4.png"},
	} {
		root := dots(t, names...)
		d, err := Load(root, Test, options)
		if err != nil || d.Labels != nil || d.Len() != 4 {
			t.Errorf("%v: %+v, %v", names, d, err)
		}
	}
	_, err := Open(dots(t, "a/1.png", "b/2.png", "3.png", "4.png"), isolated(t))
	wantError(t, err, "4.png: is in no class directory")
}

// Only test arrays, with labels, can be scored.
func TestOnlyTestArrays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.npz")
	writeNPZ(t, path, map[string][]byte{
		"test_images": npyBytes("|u1", "(2, 2, 2)", randomBytes(2, 8)), "test_labels": npyBytes("|u1", "(2,)", []byte{7, 3}),
	})
	d, err := Load(path, Test, isolated(t))
	if err != nil || !slices.Equal(d.ClassNames, []string{"3", "7"}) || !slices.Equal(d.Labels, []int32{1, 0}) || d.Remarks != nil {
		t.Errorf("%+v, %v", d, err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

// Arrays that cannot be read are named as other files are, and the rest is read.
func TestReadArraysWithFailures(t *testing.T) {
	root := t.TempDir()
	good, broken, html := filepath.Join(root, "good.csv"), filepath.Join(root, "broken.npy"), filepath.Join(root, "html.png")
	write(t, []byte("label,a,b,c,d\n0,1,2,3,4\n1,5,6,7,8\n"), good)
	write(t, []byte("junk"), broken)
	write(t, []byte("<html>"), html)
	missing := filepath.Join(root, "none.npz")
	for _, paths := range [][]string{{broken, html, good, missing}, {good, missing, broken, html}} {
		d, err := ReadImages(paths, Options{MaxSkipped: 1})
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Files) != 2 || d.Len() != 2 || len(d.Failed) != 3 || len(d.Skipped) != 3 {
			t.Errorf("%v: files %v, failed %v, want 2 images and 3 failures", paths, d.Files, d.Failed)
		}
		for _, f := range d.Failed {
			if !slices.Contains(paths, f.File) || f.File == good || strings.Contains(f.Err.Error(), root) {
				t.Errorf("failure of %s: %v", f.File, f.Err)
			}
		}
	}
	_, err := ReadImages([]string{broken}, Options{MaxSkipped: 1})
	wantError(t, err, broken+": must have a readable image")
	_, err = ReadImages([]string{good, broken}, Options{})
	wantError(t, err, "at most 5 % of the files may be skipped, got 1 of 3")
}
