package datasets

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pkg/errors"
)

// colourPicture returns a picture of one colour.
func colourPicture(width, height int, c color.Color) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			img.Set(x, y, c)
		}
	}
	return img
}

// flowers writes a folder with n pictures of each of three colours, of several
// sizes, into each of the given folders, and returns it.
func flowers(t *testing.T, n int, splits ...string) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "flowers")
	for s, split := range splits {
		for class, c := range map[string]color.Color{
			"rose": color.RGBA{200, 10, 20, 255}, "iris": color.RGBA{30, 40, 180, 255}, "moss": color.RGBA{20, 150, 10, 255},
		} {
			for i := range n {
				img := colourPicture(20+i, 30+s, c)
				img.Pix[2] += byte(i + 40*s) // a corner, so that no two are the same
				write(t, encoded(t, img), root, split, class, strconv.Itoa(i)+".png")
			}
		}
	}
	return root
}

// A directory with too few classes is refused before its images are decoded.
func TestFewClasses(t *testing.T) {
	root, options := flowers(t, 3, "train", "test"), isolated(t)
	options.OnProgress = func(file string, _, _ int64) { t.Errorf("%s is decoded", file) }
	options.MinClasses = 4
	var few *FewClassesError
	if _, err := Open(root, options); !errors.As(err, &few) || len(few.Classes) != 3 || few.Min != 4 {
		t.Errorf("error %v, want a FewClassesError of the 3 classes", err)
	}
	options.MinClasses, options.OnProgress = 3, nil
	if _, err := Open(root, options); err != nil {
		t.Error(err)
	}
}

func TestFolderWithSplits(t *testing.T) {
	root := flowers(t, 3, "Train", "valid", "TEST")
	splits, err := Open(root, isolated(t))
	if err != nil {
		t.Fatal(err)
	}
	for split, d := range map[string]*Dataset{"Train": splits.Train, "valid": splits.Validation, "TEST": splits.Test} {
		if d.Len() != 9 || d.Channels != 3 || d.Height != 32 || d.Width != 32 || d.Name != "flowers" || d.Place != root {
			t.Fatalf("%s: %s of %d images [%d %d %d] at %s", split, d.Name, d.Len(), d.Channels, d.Height, d.Width, d.Place)
		}
		if diff := cmp.Diff([]string{"iris", "moss", "rose"}, d.ClassNames); diff != "" {
			t.Error(diff)
		}
		if !slices.Equal(d.Labels, []int32{0, 0, 0, 1, 1, 1, 2, 2, 2}) || d.Files[3] != split+"/moss/0.png" {
			t.Errorf("%s: labels %v, files %v", split, d.Labels, d.Files)
		}
		if got, want := d.Image(8), bytes.Repeat([]byte{200}, 1024); !bytes.Equal(got[:1024], want) || got[1024] != 10 || got[3071] != 20 {
			t.Errorf("%s: the last rose has other colours", split)
		}
		if !slices.Equal(d.Mean, splits.Train.Mean) {
			t.Errorf("%s: mean %v, want that of the training images, %v", split, d.Mean, splits.Train.Mean)
		}
	}
	mean, std := moments(splits.Train.Images, 3, 1024)
	if !slices.Equal(mean, splits.Train.Mean) || !slices.Equal(std, splits.Train.Std) {
		t.Error("the moments are not those of the training images")
	}
}

// Without test images, half of the validation images are test images, unless a fraction is
// requested.
func TestFolderWithoutTest(t *testing.T) {
	root := flowers(t, 8, "train", "val")
	for fraction, want := range map[float64][3]int{0: {24, 12, 12}, 0.25: {18, 24, 6}, -1: {24, 24, 0}} {
		options, remarks := isolated(t), []string{}
		options.Remark, options.Test = func(text string) { remarks = append(remarks, text) }, fraction
		splits, err := Open(root, options)
		if err != nil {
			t.Fatal(err)
		}
		test := 0
		if splits.Test != nil {
			test = splits.Test.Len()
		}
		if got := [3]int{splits.Train.Len(), splits.Validation.Len(), test}; got != want {
			t.Errorf("Test = %v: %v images in the splits, want %v", fraction, got, want)
		}
		halved := "flowers has no test images: 12 of its 24 validation images are used for scores, the others for calibration"
		if got := len(remarks) > 0 && strings.HasPrefix(remarks[0], halved); got != (fraction == 0) {
			t.Errorf("Test = %v: remarks %q", fraction, remarks)
		}
		if fraction == 0 {
			only, err := Load(root, Test, options)
			if err != nil || !slices.Equal(only.Files, splits.Test.Files) {
				t.Errorf("the test split has other images when it is loaded without the others (%v)", err)
			}
			for _, file := range splits.Test.Files {
				if slices.Contains(splits.Validation.Files, file) {
					t.Errorf("%s is in both halves", file)
				}
			}
		}
	}
}

// Splits that the data have are not drawn again; asking for that is an error.
func TestSharesWithoutEffect(t *testing.T) {
	options, remarks := isolated(t), []string{}
	options.Remark = func(text string) { remarks = append(remarks, text) }
	options.Test, options.Validation = 0.5, 0.3
	splits, err := Open(flowers(t, 4, "train", "test"), options)
	if err != nil || splits.Test.Len() != 12 || splits.Validation.Len() != 3 {
		t.Fatal(splits, err)
	}
	if want := "flowers has its own test images: the requested fraction is ignored"; !slices.Equal(remarks, []string{want}) {
		t.Errorf("remarks %q, want %q", remarks, want)
	}
}

// Files and directories next to the directories of the splits are not read, which is reported.
func TestBesideSplits(t *testing.T) {
	options, remarks := ownSplits(t), []string{}
	options.Remark = func(text string) { remarks = append(remarks, text) }
	root := dots(t, "train/a/1.png", "test/a/1.png", "extra/1.png", "stray.png")
	write(t, nil, root, "notes.txt")
	for range 2 { // the second time from the cache
		remarks = nil
		splits, err := Open(root, options)
		if err != nil || splits.Train.Len() != 1 {
			t.Fatal(splits, err)
		}
		if want := "dots: ignored, next to the directories of the splits: extra, stray.png"; !slices.Equal(remarks, []string{want}) {
			t.Errorf("remarks %q, want %q", remarks, want)
		}
		if !slices.Equal(splits.Train.Remarks, remarks) || !slices.Equal(splits.Test.Remarks, remarks) {
			t.Errorf("Remarks of the splits are %q and %q, want %q", splits.Train.Remarks, splits.Test.Remarks, remarks)
		}
	}
}

// A directory of test or validation images only is read as all images, which is reported; other
// only directories are not.
func TestOnlyDirectory(t *testing.T) {
	for name, reported := range map[string]bool{"test": true, "Val": true, "flowers-test": true, "train": false, "images": false} {
		options, remarks := ownSplits(t), []string{}
		options.Remark, options.Test = func(text string) { remarks = append(remarks, text) }, -1
		splits, err := Open(dots(t, name+"/a/1.png", name+"/b/2.png"), options)
		if err != nil || splits.Train.Len() != 2 {
			t.Fatal(splits, err)
		}
		want := filepath.Join("dots", name) + ": the only directory, though it is named as a part: its images are taken as all images, to train on as well"
		if got := slices.Contains(remarks, want); got != reported {
			t.Errorf("%s: remarks %q, want %q: %v", name, remarks, want, reported)
		}
	}
}

func TestFolderWithoutSplits(t *testing.T) {
	root := flowers(t, 20, ".")
	options := isolated(t)
	splits, err := Open(root, options)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []struct {
		d    *Dataset
		want []int
	}{{splits.Train, []int{13, 13, 13}}, {splits.Validation, []int{3, 3, 3}}, {splits.Test, []int{4, 4, 4}}} {
		if diff := cmp.Diff(part.want, part.d.Counts()); diff != "" {
			t.Error(diff)
		}
	}
	all := slices.Concat(splits.Train.Files, splits.Validation.Files, splits.Test.Files)
	slices.Sort(all)
	if len(slices.Compact(all)) != 60 {
		t.Error("the splits are not disjoint")
	}
	again, err := Load(root, Test, options)
	if err != nil || !slices.Equal(again.Files, splits.Test.Files) {
		t.Error("another test split from the same seed, or ", err)
	}
	options.Seed = 1
	if again, err = Load(root, Test, options); err != nil || slices.Equal(again.Files, splits.Test.Files) {
		t.Error("the same test split from another seed, or ", err)
	}
	options.Test, options.Validation = -1, 0.5
	if splits, err = Open(root, options); err != nil || splits.Test != nil || splits.Validation.Len() != 30 {
		t.Error("without a test split: ", err)
	}
}

func TestFolderSkips(t *testing.T) {
	root := flowers(t, 30, ".")
	write(t, []byte("\x89PNG\r\n\x1a\nand nothing"), root, "moss", "broken.png")
	write(t, []byte("hidden"), root, "moss", ".hidden.png")
	write(t, []byte("a note"), root, "moss", "note.txt")
	options := isolated(t)
	options.Test, options.Validation = -1, -1
	for range 2 { // the second time from the cache
		d, err := Load(root, Train, options)
		if err != nil {
			t.Fatal(err)
		}
		if d.Len() != 90 || len(d.Skipped) != 1 || !strings.HasPrefix(d.Skipped[0], "moss/broken.png: PNG: ") {
			t.Errorf("%d images, skipped %q", d.Len(), d.Skipped)
		}
		if last := d.Remarks[len(d.Remarks)-1]; !strings.HasSuffix(last, ": skipped 1 file, "+d.Skipped[0]) {
			t.Errorf("remarks %q", d.Remarks)
		}
		options.MaxSkipped = 0.5
	}
	options.MaxSkipped = -1
	_, err := Open(root, options)
	wantError(t, err, "datasets: "+root+": at most 0 % of the files may be skipped, got 1 of 91", "moss/broken.png: PNG: ")
	if skipped := (*SkippedError)(nil); !errors.As(err, &skipped) || skipped.Kept != 90 || len(skipped.Skipped) != 1 {
		t.Errorf("%v is no SkippedError of 1 of 91 files", err)
	}
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "a.png"), []byte("junk"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = ReadImages([]string{broken}, options)
	wantError(t, err, "a.png: must have a readable image, got an unreadable file:", "a.png: ")
}

// The headers of images that cannot be decoded do not change the shape of the others.
func TestShapeOfReadableImages(t *testing.T) {
	root := t.TempDir()
	for i := range 40 {
		write(t, encoded(t, greyPicture(12, 10, byte(i))), root, strconv.Itoa(i%2), strconv.Itoa(i)+".png")
	}
	large := encoded(t, colourPicture(90, 70, color.White))
	write(t, large[:len(large)-20], root, "0", "cut.png")
	splits, err := Open(root, isolated(t))
	if err != nil {
		t.Fatal(err)
	}
	if d := splits.Train; d.Channels != 1 || d.Height != 10 || d.Width != 12 || len(d.Skipped) != 1 {
		t.Errorf("%dx%dx%d, skipped %q, want 1x10x12 and a skipped file", d.Channels, d.Height, d.Width, d.Skipped)
	}
	read, err := ReadImages([]string{root}, isolated(t))
	if err != nil || read.Channels != 1 || read.Height != 10 || read.Width != 12 {
		t.Errorf("%+v, %v", read, err)
	}
}

// The bytes do not depend on the number of threads, and the cache has them all.
func TestFolderIsTheSameEveryTime(t *testing.T) {
	root := flowers(t, 10, "train", "test")
	options := isolated(t)
	fresh := options
	fresh.NoCache = true
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	want, err := Open(root, fresh)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(options.Cache, "decoded")); err == nil {
		t.Error("NoCache kept something")
	}
	runtime.GOMAXPROCS(4)
	for range 2 {
		got, err := Open(root, options)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestDecodedCache(t *testing.T) {
	root := flowers(t, 4, "train", "test")
	options := isolated(t)
	decoded := 0
	options.OnProgress = func(_ string, done, total int64) {
		if decoded++; total != 24 || done < 1 || done > total {
			t.Errorf("%d of %d pictures are done", done, total)
		}
	}
	open := func(wantDecoded int, reason string) *Splits {
		t.Helper()
		decoded = 0
		splits, err := Open(root, options)
		if err != nil {
			t.Fatal(err)
		}
		if decoded != wantDecoded {
			t.Errorf("%s: decoded %d pictures, want %d", reason, decoded, wantDecoded)
		}
		return splits
	}
	open(24, "at first")
	before := open(0, "unchanged")

	path := filepath.Join(root, "train", "moss", "2.png")
	write(t, encoded(t, colourPicture(22, 30, color.White)), path)
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	after := open(24, "a changed file")
	if bytes.Equal(before.Train.Images, after.Train.Images) || cmp.Equal(before.Train.Hashes, after.Train.Hashes) {
		t.Error("the changed file changes nothing")
	}
	open(0, "unchanged")
	options.Height, options.Width = 8, 9
	open(24, "another size")
	options.Height, options.Width = 0, 0
	open(0, "the first size again")

	kept, err := filepath.Glob(filepath.Join(options.Cache, "decoded", "*"))
	if err != nil || len(kept) != 2 {
		t.Fatalf("the cache has %v, want a file for each size, %v", kept, err)
	}
	for _, damage := range []func(content []byte) []byte{
		func(c []byte) []byte { return c[:len(c)-1] },
		func(c []byte) []byte { c[len(c)/2] ^= 1; return c },
		func(c []byte) []byte { return c[:10] },
		func([]byte) []byte { return nil },
	} {
		for _, path := range kept {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			write(t, damage(content), path)
		}
		if got := open(24, "a damaged cache"); !cmp.Equal(got, after) {
			t.Error("a damaged cache gives other data")
		}
		options.Height, options.Width = 8, 9
		open(24, "a damaged cache of the other size")
		options.Height, options.Width = 0, 0
	}
}

// If the cache cannot be written, the user gets a remark, unless the program named the cache
// directory. No incomplete file is left.
func TestDecodedCacheUnwritable(t *testing.T) {
	root := flowers(t, 2, "train", "test")
	file := filepath.Join(t.TempDir(), "file")
	write(t, nil, file)
	remarks := []string{}
	options := Options{Offline: true, Validation: -1, Remark: func(text string) { remarks = append(remarks, text) }}
	for _, home := range []string{"", file} {
		for _, name := range []string{"HOME", "XDG_CACHE_HOME", "LocalAppData"} {
			t.Setenv(name, home)
		}
		remarks = nil
		splits, err := Open(root, options)
		if err != nil || splits.Train.Len() != 6 || len(remarks) != 1 {
			t.Fatalf("home %q: %+v, %v, remarks %q", home, splits, err, remarks)
		}
		for _, part := range []string{"decoded images cannot be cached, and the next start decodes them again: ", "XDG_CACHE_HOME"} {
			if !strings.Contains(remarks[0], part) {
				t.Errorf("home %q: remark %q, want it to have %q", home, remarks[0], part)
			}
		}
	}
	options.Cache = file
	_, err := Open(root, options)
	wantError(t, err, "decoded images cannot be cached: set Options.Cache to another directory, or NoCache: mkdir")
	options.Cache = t.TempDir()
	found, err := scan(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := newDecodedCache(found, options)
	if err != nil {
		t.Fatal(err)
	}
	write(t, nil, cache.path, "in the way")
	_, err = Open(root, options)
	wantError(t, err, "decoded images cannot be cached: set Options.Cache to another directory, or NoCache: rename")
	if left, err := os.ReadDir(filepath.Dir(cache.path)); err != nil || len(left) != 1 {
		t.Errorf("left %v, %v", left, err)
	}
}

// A cancelled run ends with the context's error and keeps nothing.
func TestFolderGivenUp(t *testing.T) {
	root, options := flowers(t, 10, "train", "test"), isolated(t)
	ctx, cancel := context.WithCancel(t.Context())
	options.Context = ctx
	options.OnProgress = func(_ string, done, _ int64) {
		if done == 5 {
			cancel()
		}
	}
	_, err := Open(root, options)
	wantError(t, err, "reading images: context canceled")
	if _, err := os.Stat(filepath.Join(options.Cache, "decoded")); err == nil {
		t.Error("something was kept")
	}
}

func TestOpenHere(t *testing.T) {
	t.Chdir(flowers(t, 2, "train", "test"))
	splits, err := Open(".", isolated(t))
	if err != nil || splits.Train.Name != "flowers" {
		t.Errorf("opened %+v, %v", splits, err)
	}
}

func TestReadImages(t *testing.T) {
	root := flowers(t, 3, "a")
	single := filepath.Join(root, "single.png")
	write(t, encoded(t, greyPicture(32, 32, 0)), single)
	d, err := ReadImages([]string{single, filepath.Join(root, "a")}, Options{Channels: 3, Height: 16, Width: 12})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Validate(); err != nil {
		t.Error(err)
	}
	if d.Len() != 10 || d.Labels != nil || d.Classes != 0 || d.Channels != 3 || d.Height != 16 || d.Width != 12 {
		t.Errorf("%d images [%d %d %d], labels %v", d.Len(), d.Channels, d.Height, d.Width, d.Labels)
	}
	if want := filepath.Join(root, "a", "iris", "0.png"); d.Files[0] != single || d.Files[1] != want {
		t.Errorf("files %v", d.Files)
	}
	_, err = ReadImages([]string{filepath.Join(root, "none.png")}, Options{})
	wantError(t, err, "none.png")
	_, err = ReadImages(nil, Options{})
	wantError(t, err, "must have the path of at least 1 image or directory of images, got none")
}

// Whatever cannot be read is named with its reason, and the other images are read.
func TestReadImagesWithFailures(t *testing.T) {
	root := t.TempDir()
	good, html := filepath.Join(root, "good.png"), filepath.Join(root, "a: b.png")
	write(t, encoded(t, greyPicture(8, 8, 0)), good)
	write(t, []byte("<html>"), html)
	missing, empty := filepath.Join(root, "none.png"), filepath.Join(root, "empty")
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	paths := []string{missing, html, good, empty}
	d, err := ReadImages(paths, Options{MaxSkipped: 1})
	if err != nil {
		t.Fatal(err)
	}
	wants := []struct{ file, reason string }{{missing, ""}, {empty, "must have images"}, {html, "must begin like an image"}}
	if len(d.Files) != 1 || d.Files[0] != good || len(d.Failed) != len(wants) || len(d.Skipped) != len(wants) {
		t.Fatalf("files %v, failed %v, skipped %v, want %d failures", d.Files, d.Failed, d.Skipped, len(wants))
	}
	for i, want := range wants {
		if f := d.Failed[i]; f.File != want.file || !strings.Contains(f.Err.Error(), want.reason) || d.Skipped[i] != f.Error() {
			t.Errorf("failure %d: %q (%v), skipped %q, want %q (%s)", i, f.File, f.Err, d.Skipped[i], want.file, want.reason)
		}
	}
	if !errors.Is(d.Failed[0], os.ErrNotExist) {
		t.Errorf("missing file: %v, want that it does not exist", d.Failed[0])
	}
	_, err = ReadImages(paths, Options{})
	wantError(t, err, "at most 5 % of the files may be skipped, got 3 of 4")
	_, err = ReadImages([]string{empty}, Options{MaxSkipped: 1})
	wantError(t, err, empty+": must have images")
}

// Validation images are drawn from the training images if the data have only test images, unless
// the data are published.
func TestValidationDrawn(t *testing.T) {
	names := []string{"test/a/1.png", "test/b/1.png"}
	for i := range 20 {
		names = append(names, fmt.Sprintf("train/a/%d.png", i), fmt.Sprintf("train/b/%d.png", i))
	}
	for _, test := range []struct {
		validation float64
		want       int
	}{{0, 8}, {0.1, 4}, {-1, 0}} {
		options := isolated(t)
		options.Validation = test.validation
		splits, err := Open(dots(t, names...), options)
		if err != nil {
			t.Fatal(err)
		}
		drawn := 0
		if splits.Validation != nil {
			drawn = splits.Validation.Len()
		}
		if drawn != test.want || splits.Train.Len() != 40-test.want || splits.Test.Len() != 2 || splits.Train.Remarks != nil {
			t.Errorf("fraction %v: %d validation, %d training and %d test images, want %d, %d and 2; remarks %q",
				test.validation, drawn, splits.Train.Len(), splits.Test.Len(), test.want, 40-test.want, splits.Train.Remarks)
		}
	}
	glyphs, err := Open("glyphs", isolated(t))
	if err != nil || glyphs.Validation != nil {
		t.Errorf("glyphs: validation images %v, %v", glyphs, err)
	}
	single, err := Open(dots(t, "train/a/1.png", "train/b/1.png", "test/a/1.png"), isolated(t))
	want := "no images are held out for calibration: datasets: dots: a class must have at least 2 images to draw one from, got at most 1"
	if err != nil || single.Validation != nil || !slices.Equal(single.Train.Remarks, []string{want}) {
		t.Errorf("one image of each class: %v, remarks %q, want %q", err, single.Train.Remarks, want)
	}
}

// Splits that leave less than half of the images for training are allowed, with a remark.
func TestFewLeftForTraining(t *testing.T) {
	var names []string
	for i := range 50 {
		names = append(names, fmt.Sprintf("a/%d.png", i), fmt.Sprintf("b/%d.png", i))
	}
	for _, test := range []struct{ test, validation, want float64 }{{0.5, -1, 0}, {0.5, 0.2, 40}, {0.8, 0.8, 4}} {
		options := isolated(t)
		options.Test, options.Validation = test.test, test.validation
		splits, err := Open(dots(t, names...), options)
		if err != nil {
			t.Fatal(err)
		}
		want := ""
		if test.want > 0 {
			want = fmt.Sprintf("only %v of 100 images are left for training", test.want)
		}
		if got := strings.Join(splits.Train.Remarks, "\n"); !strings.Contains(got, want) || want == "" && strings.Contains(got, "left for training") {
			t.Errorf("%v: remarks %q, want %q", test, got, want)
		}
	}
}

func TestValidationShare(t *testing.T) {
	for images, want := range map[int]float64{2: 0.2, 500: 0.2, 800: 0.125, 1000: 0.1, 60000: 0.1} {
		if got := validationShare(images); got != want {
			t.Errorf("of %d images %v, want %v", images, got, want)
		}
	}
}

// Of data on which nothing is trained, the test images are loaded, or else the validation images,
// or else all images. None of these is divided.
func TestLoadUnseen(t *testing.T) {
	for want, splits := range map[string][]string{"test": {"train", "val", "test"}, "val": {"train", "val"}, "": {""}} {
		options := isolated(t)
		options.Remark = func(text string) { t.Errorf("%v: remark %q", splits, text) }
		images, err := LoadUnseen(flowers(t, 5, splits...), options)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range images.Files {
			if !strings.Contains(filepath.ToSlash(file), want+"/") {
				t.Errorf("%v: %s is loaded, want images of %q", splits, file, want)
			}
		}
		if images.Len() != 15 {
			t.Errorf("%v: %d images, want 15", splits, images.Len())
		}
	}
}
