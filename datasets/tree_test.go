package datasets

import (
	"context"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets/internal/decode"
)

// dots writes a picture of one pixel to each of the named files below a new
// folder, which it returns.
func dots(t *testing.T, names ...string) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "dots")
	for i, name := range names {
		write(t, encoded(t, colourPicture(1, 1, color.RGBA{byte(i), 0, 255, 255})), root, filepath.FromSlash(name))
	}
	return root
}

// scan lists the files of a directory without options.
func scan(ctx context.Context, root string) (tree, error) { return Options{Context: ctx}.scan(root) }

// Which folders are splits and which are classes.
func TestScan(t *testing.T) {
	for _, test := range []struct {
		name  string
		files []string
		want  [3][]string // by Split: "class file"
	}{
		{"classes", []string{"b/2.png", "b/10.png", "a/x.JPG", "a/.y.png", "a/notes.txt", ".git/z.png", "__MACOSX/a/z.png"},
			[3][]string{{"a a/x.JPG", "b b/10.png", "b b/2.png"}}},
		{"numbers are in their order, then names", []string{"010/a.png", "9/a.png", "x/a.png"},
			[3][]string{{"9 9/a.png", "10 010/a.png", "x x/a.png"}}},
		{"splits", []string{"Training/a/1.png", "Training/b/1.png", "test/a/1.png", "val/b/1.png", "other/c/1.png"},
			[3][]string{{"a Training/a/1.png", "b Training/b/1.png"}, {"a test/a/1.png"}, {"b val/b/1.png"}}},
		{"splits with a beginning", []string{"Final_Train/a/1.png", "Final_Test/a/1.png", "Other_Test/a/1.png"},
			[3][]string{{"a Final_Train/a/1.png"}, {"a Final_Test/a/1.png"}}},
		{"without a beginning first", []string{"train/a/1.png", "test/a/1.png", "my-train/a/1.png", "my-test/a/1.png"},
			[3][]string{{"a train/a/1.png"}, {"a test/a/1.png"}}},
		{"a class called train", []string{"train/1.png", "car/1.png"}, [3][]string{{"car car/1.png", "train train/1.png"}}},
		{"folders with nothing but a folder", []string{"x/y/train/images/a/1.png", "x/y/train/images/b/1.png", "x/y/test/images/a/1.png"},
			[3][]string{{"a x/y/train/images/a/1.png", "b x/y/train/images/b/1.png"}, {"a x/y/test/images/a/1.png"}}},
		{"other names of splits", []string{"train/a/1.png", "Validate/a/1.png"}, [3][]string{Train: {"a train/a/1.png"}, Validation: {"a Validate/a/1.png"}}},
		{"splits of images", []string{"train_images/a/1.png", "dev-images/a/1.png", "test_images/a/1.png"},
			[3][]string{Train: {"a train_images/a/1.png"}, Test: {"a test_images/a/1.png"}, Validation: {"a dev-images/a/1.png"}}},
		{"what systems add", []string{"a/1.png", "b/1.png", "@eaDir/1.png/THUMB.png", "a/@eaDir/1.png/THUMB.png", "#recycle/1.png", "lost+found/1.png",
			"$RECYCLE.BIN/1.png", "System Volume Information/1.png", "__pycache__/1.png", "a/.ipynb_checkpoints/1.png", ".hidden/1.png"},
			[3][]string{{"a a/1.png", "b b/1.png"}}},
		{"one class", []string{"a/1.png"}, [3][]string{{"a a/1.png"}}},
		{"an empty folder", []string{"a/1.png", "b/2.png", "c/.DS_Store"}, [3][]string{{"a a/1.png", "b b/2.png"}}},
		{"deeper folders", []string{"a/m/1.png", "a/2.png", "b/n/o/3.png"}, [3][]string{{"a a/2.png", "a a/m/1.png", "b b/n/o/3.png"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			found, err := scan(t.Context(), dots(t, test.files...))
			if err != nil {
				t.Fatal(err)
			}
			var got [3][]string
			for split, list := range found.splits {
				if list == nil {
					continue
				}
				for _, p := range list.images {
					got[split] = append(got[split], p.class+" "+p.name)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Empty directories, such as those that a download left, are named.
func TestScanEmptyDirectory(t *testing.T) {
	_, remarks := scanned(t, dots(t, "a/1.png", "b/2.png", "c/.DS_Store", "d/e/.1.png"))
	if want := []string{": empty directories, which are no classes: c, d"}; !slices.Equal(remarks, want) {
		t.Errorf("remarks %q, want %q", remarks, want)
	}
}

func TestScanErrors(t *testing.T) {
	for _, test := range []struct {
		files []string
		want  string
	}{
		{[]string{"1.png", "2.png"}, "dots: must have a directory of images for each class, or a CSV or JSON file with columns of files and classes, " +
			"got 1.png, 2.png; if the classes are in the names of the files, give a pattern as label, such as file=([^/]+)_ for Bengal_1.jpg"},
		{[]string{".1.png"}, "dots: must have a directory of images for each class, or a CSV or JSON file with columns of files and classes, got nothing"},
		{[]string{"a/1.png", "b/1.txt"},
			"an image (" + strings.Join(decode.Extensions(), " ") + "), since each directory is a class, got 1 .txt: convert these files, or move"},
		{[]string{"a/.1.png", "b/.2.png"}, "of images for each class, or a CSV or JSON file with columns of files and classes, got a, b"},
		{[]string{"7/1.png", "07/1.png"}, "dots: class 7 must have one directory, got 07 and 7"},
		{[]string{"train/a/1.png", "training/a/1.png", "test/a/1.png"}, "dots: must have one train directory, got train and training: move one of them elsewhere"},
		{[]string{"x_train/a/1.png", "x_test/a/1.png", "y_train/a/1.png", "y_test/a/1.png"}, "and test directories, got x_... and y_...: open one of them"},
		{[]string{"train/a/1.png", "test/b/1.png"},
			`dots/test: the classes of test images must be among those of the training images in train: a, got "b": move it elsewhere, or train on images of it`},
	} {
		root := dots(t, test.files...)
		_, err := scan(t.Context(), root)
		wantError(t, err, "datasets: "+root, test.want)
	}
	options := isolated(t)
	_, err := Open(dots(t, "1.png"), options)
	if flat := (*NoClassesError)(nil); !errors.As(err, &flat) || filepath.Base(flat.Path) != "dots" {
		t.Errorf("%v is no NoClasses of the folder", err)
	}
	archive := filepath.Join(t.TempDir(), "dots.ZIP")
	write(t, []byte("PK\x03\x04"), archive)
	_, err = Open(archive, options)
	wantError(t, err, "dots.ZIP: archives are not read: unpack it and give the directory")
	_, err = Open("no-such-folder", options)
	wantError(t, err, `no data set "no-such-folder"; there are mnist`, "or the path of a directory or file")
	_, err = Open(dots(t, "a/1.png", "b/1.png"), options)
	wantError(t, err, "options: Test: dots: a class must have at least 2 images to draw one from, got at most 1")
	_, err = Open(dots(t, "a/1.png", "a/2.png", "b/1.png", "b/2.png"), options)
	wantError(t, err, "options: Validation: dots: a class must have at least 2 images to draw one from, got at most 1 (the test split was drawn before)")
	file := filepath.Join(t.TempDir(), "notes.txt")
	write(t, []byte("x"), file)
	_, err = Open(file, options)
	wantError(t, err, file+": must be one of", "(.npz)", "notes.txt: must be one of")
}

// Classes of directories and tables must have names that a run's files can have.
func TestScanInvalidClasses(t *testing.T) {
	const bytesError = `class names must be UTF-8, got "caf\xe9"`
	if runtime.GOOS == "linux" { // where names of files are any bytes
		root := dots(t, "b/1.png", "caf\xe9/2.png")
		_, err := scan(t.Context(), root)
		wantError(t, err, "datasets: "+root+": "+bytesError)
	}
	for table, want := range map[string]string{
		"file,class\n1.png,b\n2.png,caf\xe9\n":           "record 3: 2.png " + bytesError,
		"file,class\n1.png,a\x1b[2\n2.png,b\n":           "",
		"file,class\n1.png,\"a\nb\"\n2.png,b\n":          "",
		"file,caf\xe9,b\n1.png,1,0\n2.png,0,1\n":         "record 2: 1.png " + bytesError,
		"file,class\n1.png,b\n2.png,\" caf\u00e9 \"\n":   "",
		"file,class\n1.png,b\n2.png,\u732b \U0001F408\n": "",
	} {
		root := dots(t, "1.png", "2.png")
		write(t, []byte(table), root, "labels.csv")
		_, err := scan(t.Context(), root)
		if want != "" {
			wantError(t, err, "datasets: "+root, want)
		} else if err != nil {
			t.Errorf("%q: %v", table, err)
		}
	}
}

// Remarks report the contents of a directory that a user may not expect.
func TestScanRemarks(t *testing.T) {
	for _, test := range []struct {
		name        string
		files, want []string
	}{
		{"files without an image's extension", []string{"a/1.png", "a/2.jp2", "a/3.JP2", "b/1.png", "b/c/no-extension", "readme.txt", "b/Thumbs.db", "b/.DS_Store"},
			[]string{": left out, since they do not have the extension of an image: 2 .jp2, 1 .txt, 1 without an extension"}},
		{"a class called train", []string{"train/1.png", "holdout/1.png"},
			[]string{": the directory train is a class: splits need a training directory and a test or validation directory"}},
		{"upper and lower case", []string{"rose/1.png", "Rose/1.png"},
			[]string{`: the classes "Rose" and "rose" differ only in upper and lower case or in space: are they one?`}},
		{"forms of Unicode", []string{"Gro\u0308\u00dfe/1.png", "Gr\u00f6\u00dfe/1.png"},
			[]string{`: the directories "Gro\u0308\u00dfe" and "Gr\u00f6\u00dfe" are one class`}},
		{"space", []string{"rose/1.png", "rose /1.png"},
			[]string{`: the directories "rose" and "rose " are one class`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := dots(t, test.files...)
			if entries, err := os.ReadDir(root); err != nil || len(entries) < 2 {
				t.Skip("this file system does not tell such names apart: ", err)
			}
			if _, remarks := scanned(t, root); !slices.Equal(remarks, test.want) {
				t.Errorf("remarks %q, want %q", remarks, test.want)
			}
		})
	}
	root := dots(t, "train/Gro\u0308\u00dfe/1.png", "train/Maus/1.png", "test/Gr\u00f6\u00dfe/1.png")
	if images, _ := scanned(t, root); len(images) != 3 {
		t.Errorf("images %q", images)
	}
	options := isolated(t)
	options.Classes = []string{"Gro\u0308\u00dfe"}
	if splits, err := Open(root, options); err != nil || !slices.Equal(splits.Test.ClassNames, []string{"Gr\u00f6\u00dfe"}) {
		t.Errorf("a selected class: %+v, %v", splits, err)
	}
	read, err := ReadImages([]string{dots(t, "1.png", "2.heic", "a/3.heic")}, Options{})
	if err != nil || len(read.Remarks) != 1 || !strings.HasSuffix(read.Remarks[0], "dots: left out, since they do not have the extension of an image: 2 .heic") {
		t.Errorf("remarks %q, %v", read.Remarks, err)
	}
}

// A directory of splits whose test images have no classes is trained on; images for the tests are
// drawn.
func TestOpenWithoutTestClasses(t *testing.T) {
	var names []string
	for i := range 5 {
		names = append(names, fmt.Sprintf("train/a/%d.png", i), fmt.Sprintf("train/b/%d.png", i), fmt.Sprintf("test/%d.png", i))
	}
	splits, err := Open(dots(t, names...), isolated(t))
	if err != nil || splits.Train.Len()+splits.Validation.Len()+splits.Test.Len() != 10 {
		t.Errorf("%+v, %v", splits, err)
	}
}

// Scanning ends with the context.
func TestScanStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	root := dots(t, "a/1.png", "b/1.png")
	_, err := scan(ctx, root)
	wantError(t, err, "datasets: "+root+": context canceled")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v is not context.Canceled", err)
	}
}

func TestScanLinks(t *testing.T) {
	root := dots(t, "a/1.png", "b/1.png")
	if err := os.Symlink(filepath.Join(root, "a", "1.png"), filepath.Join(root, "b", "2.png")); err != nil {
		t.Skip("no links here: ", err)
	}
	found, err := scan(t.Context(), root)
	if err != nil || len(found.splits[Train].images) != 3 {
		t.Errorf("a linked picture: %v", err)
	}
	if err := os.Symlink(root, filepath.Join(root, "b", "up")); err != nil {
		t.Fatal(err)
	}
	_, err = scan(t.Context(), root)
	wantError(t, err, "/up/b/up/b/up/b/up/b/up/b/up/b/up/b/up/b/up/b/up/b/up/b/up/b/up/b/up: directories must be at most 32 deep (does a link lead back up?)")
}

// A dangling link with an image's name counts as an unreadable file, and one with another
// extension is ignored. One with the name of a table, or without an extension, is an error: it
// may have been a class directory.
func TestScanDanglingLinks(t *testing.T) {
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("train/a/%02d.png", i), fmt.Sprintf("train/b/%02d.png", i))
	}
	root := dots(t, append(names, "test/a/1.png", "test/b/1.png")...)
	link := func(name string) string {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.Symlink(filepath.Join(root, "nothing"), path); err != nil {
			t.Skip("no links here: ", err)
		}
		return path
	}
	for _, name := range []string{"train/a/gone.png", "train/a/notes.txt", "train/notes.txt", "notes.txt"} {
		link(name)
	}
	splits, err := Open(root, ownSplits(t))
	if err != nil {
		t.Fatal(err)
	}
	if d := splits.Train; d.Len() != 40 || len(d.Skipped) != 1 || !strings.HasPrefix(d.Skipped[0], "train/a/gone.png: stat ") {
		t.Errorf("%d images, skipped %q, want 40 and the linked picture", d.Len(), d.Skipped)
	}
	options := isolated(t)
	options.MaxSkipped = -1
	_, err = Open(root, options)
	wantError(t, err, "dots/train: at most 0 % of the files may be skipped, got 1 of 41", "train/a/gone.png: stat ")
	read, err := ReadImages([]string{filepath.Join(root, "train")}, ownSplits(t))
	if err != nil || read.Len() != 40 || len(read.Skipped) != 1 {
		t.Errorf("reading images: %v", err)
	}
	for _, name := range []string{"train/labels.csv", "train/c", "validation"} {
		path := link(name)
		_, err := Open(root, ownSplits(t))
		wantError(t, err, path+": no such file")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// A hidden directory is read if it is the one to open, and hidden ones in it are not.
func TestOpenHidden(t *testing.T) {
	root := dots(t, ".in/.here/a/1.png", ".in/.here/b/1.png", ".in/.here/.c/1.png", ".in/.here/a/._1.png")
	found, err := scan(t.Context(), filepath.Join(root, ".in", ".here"))
	if err != nil || len(found.splits[Train].images) != 2 || found.remarks != nil {
		t.Errorf("%+v, %v", found, err)
	}
}

// Paths are also looked up in the options' data folder.
func TestOpenInDataDir(t *testing.T) {
	root, options := dots(t, "train/a/1.png", "train/b/1.png", "test/a/1.png"), isolated(t)
	options.Dir = filepath.Dir(root)
	splits, err := Open("dots", options)
	if err != nil || splits.Train.Place != root {
		t.Error(err)
	}
	options.Dir = ""
	t.Setenv(EnvironmentDir, filepath.Dir(root))
	if splits, err = Open("dots", options); err != nil || splits.Train.Place != root {
		t.Error(err)
	}
}

func TestLabelTable(t *testing.T) {
	for _, test := range []struct {
		name, table string
		want        []string
		skipped     int
	}{
		{"as GTSRB's", "Filename;Width;ClassId\r\n00001.png;3;16\r\n00000.png;4;2\r\n", []string{"16 test/in/00001.png", "2 test/in/00000.png"}, 0},
		{"with commas and folders", "path,label\nin/00000.png,16\n./in/00001.png,\"2\"\n", []string{"16 test/in/00000.png", "2 test/in/00001.png"}, 0},
		{"with tabs and a mark", "\ufeffLabel\tImage\n00016\tin/00001.png\n", []string{"16 test/in/00001.png"}, 0},
		{"with a picture that is not there", "file,class\n00000.png,2\n7.png,2\n", []string{"2 test/in/00000.png"}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := dots(t, "train/00002/a.png", "train/00016/a.png", "test/in/00000.png", "test/in/00001.png")
			write(t, []byte(test.table), root, "test", "labels.csv")
			write(t, []byte("Filename;Width\n00000.png;3\n"), root, "test", "in", "no-classes.csv")
			found, err := scan(t.Context(), root)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range found.splits[Test].images {
				got = append(got, p.class+" "+p.name)
			}
			if !slices.Equal(got, test.want) || len(found.splits[Test].skipped) != test.skipped {
				t.Errorf("got %v, skipped %v, want %v", got, found.splits[Test].skipped, test.want)
			}
		})
	}
	for table, want := range map[string]string{
		"file,class\n0.png,a\n0.png,b\n":    "labels.csv: an image must have one class, got several for 1 of them; 0.png has the class a in record 2, and b in",
		"file,class\n0.png,\n":              "dots/labels.csv: must have records with a class, got none in 1",
		"file,class\nx.png,a\n":             "dots/labels.csv: must list existing images, got 1 missing ones; the first is x.png: listed in labels.csv but missing",
		"file,class\n1.png,a\n":             "dots/labels.csv: record 2: 1.png must be one file, got 2: use its path",
		"file,class\n0.png\n":               "labels.csv: record on line 2: wrong number of fields",
		"file,class\n\"0.png,a\n1.png,b\n ": "labels.csv: ",
	} {
		root := dots(t, "0.png", "x/1.png", "y/1.png")
		write(t, []byte(table), root, "labels.csv")
		_, err := scan(t.Context(), root)
		wantError(t, err, "datasets: "+root, want)
	}
	root := dots(t, "0.png")
	write(t, []byte("file,class\n0.png,a\n"), root, "a.csv")
	write(t, []byte("file,class\n0.png,a\n"), root, "b.csv")
	_, err := scan(t.Context(), root)
	wantError(t, err, "dots: must have one table of classes, or one called train.csv, got a.csv and b.csv")
}

func TestSuggestShape(t *testing.T) {
	for _, test := range []struct {
		infos []decode.Info
		want  shape
	}{
		{[]decode.Info{{Height: 20, Width: 30, Grey: true}, {Height: 20, Width: 30, Grey: true}}, shape{1, 20, 30}},
		{[]decode.Info{{Height: 20, Width: 30, Grey: true}, {Height: 20, Width: 30}}, shape{3, 20, 30}},
		{[]decode.Info{{Height: 256, Width: 256}, {}}, shape{3, 256, 256}},
		{[]decode.Info{{Height: 257, Width: 30}}, shape{3, 32, 32}},
		{[]decode.Info{{Height: 300, Width: 64}, {Height: 64, Width: 300}}, shape{3, 64, 64}},
		{[]decode.Info{{Height: 63, Width: 200}, {Height: 10, Width: 10}, {Height: 100, Width: 100}}, shape{3, 32, 32}},
		{[]decode.Info{{}}, shape{3, 64, 64}},
	} {
		var got shape
		suggestShape(&got, test.infos)
		if got != test.want {
			t.Errorf("%v: %v, want %v", test.infos, got, test.want)
		}
	}
	wanted := shape{channels: 1, height: 7, width: 8}
	if suggestShape(&wanted, []decode.Info{{Height: 5, Width: 5}}); wanted != (shape{1, 7, 8}) {
		t.Errorf("what was asked for became %v", wanted)
	}
	wantError(t, checkMemory(1<<40, shape{4, 256, 256}), "datasets: reading 1099511627776 images of 4x256x256 needs 256 PiB", "a smaller height and width")
}

// Directories of classes in a directory for each site are noticed, numbered parts and splits are
// not.
func TestSameInside(t *testing.T) {
	for _, c := range []struct {
		names  []string
		remark bool
	}{
		{[]string{"a/cat/0.png", "a/dog/1.png", "b/cat/2.png", "b/dog/3.png"}, true},
		{[]string{"x/a/cat/0.png", "x/a/dog/1.png", "x/b/cat/2.png", "x/b/dog/3.png"}, true},
		{[]string{"a/cat/0.png", "a/dog/1.png", "b/cat/2.png"}, false},
		{[]string{"a/cat/0.png", "a/dog/1.png", "b/cat/2.png", "b/dog/3.png", "b/4.png"}, false},
		{[]string{"a/video1/0.png", "a/video2/1.png", "b/video1/2.png", "b/video2/3.png"}, false},
		{[]string{"a/train/0.png", "a/test/1.png", "b/train/2.png", "b/test/3.png"}, false},
		{[]string{"a/images/0.png", "b/images/1.png"}, false},
	} {
		_, remarks := scanned(t, dots(t, c.names...))
		const want = "the classes are a, b, and each of these directories has the directories cat, dog: if those are the classes, " +
			"list the files and their classes in a CSV file with the columns file and label"
		if got := len(remarks) == 1 && strings.HasSuffix(remarks[0], want); got != c.remark || !c.remark && len(remarks) > 0 {
			t.Errorf("%v: remarks %q", c.names, remarks)
		}
	}
}
