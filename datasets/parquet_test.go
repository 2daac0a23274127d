package datasets

import (
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/parquettest"
	"github.com/pollen-ml/pollen/internal/testenv"
)

// rowsOf returns the images in directories of classes below root/split, as columns of a Parquet
// file: their paths are relative to root.
func rowsOf(t *testing.T, root, split string) (images []parquettest.Image, labels []int64, classes []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, split, "*", "*"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d images, %v", len(paths), err)
	}
	for _, p := range paths {
		content, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(root, p)
		if err != nil {
			t.Fatal(err)
		}
		name = filepath.ToSlash(name)
		if class := path.Base(path.Dir(name)); !slices.Contains(classes, class) {
			classes = append(classes, class)
		}
		images = append(images, parquettest.Image{Bytes: content, Path: name})
		labels = append(labels, int64(len(classes)-1))
	}
	return images, labels, classes
}

// writeHub writes rows as the Hugging Face Hub does.
func writeHub(t *testing.T, images []parquettest.Image, labels []int64, classes []string, file ...string) {
	t.Helper()
	o := parquettest.Options{Codec: parquettest.Snappy, Dictionary: true, GroupRows: 5, Metadata: parquettest.ClassLabels(map[string][]string{"label": classes})}
	write(t, parquettest.Write(o, parquettest.Column{Name: "image", Values: images}, parquettest.Column{Name: "label", Values: labels}), file...)
}

// wantSame fails the test unless two data sets have the same splits, whatever their places.
func wantSame(t *testing.T, what string, got, want *Splits) {
	t.Helper()
	for i, d := range got.array() {
		split, other := Split(i), want.array()[i]
		if d == nil || other == nil {
			if d != other {
				t.Errorf("%s: %v is %v, want %v", what, split, d, other)
			}
			continue
		}
		a, b := *d, *other
		b.LabelColumn = "label" // the other has class directories
		a.Place, b.Place, a.Name, b.Name, a.Remarks, b.Remarks = "", "", "", "", nil, nil
		for name, hash := range a.Hashes {
			a.Hashes = map[string]string{"": hash}
			_ = name
		}
		for name, hash := range b.Hashes {
			b.Hashes = map[string]string{"": hash}
			_ = name
		}
		if diff := cmp.Diff(b, a); diff != "" {
			t.Errorf("%s: %v differs (-want +got):\n%s", what, split, diff)
		}
	}
}

// Each layout of a data set is the directory that its images are from.
func TestOpenParquetLayouts(t *testing.T) {
	root := flowers(t, 6, "train", "validation", "test")
	want, err := Open(root, isolated(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, layout := range []struct {
		train []string
		other string // of the other splits
	}{
		{[]string{"data/train-00000-of-00001.parquet"}, "data/%s-00000-of-00001.parquet"},
		{
			[]string{"data/train-00000-of-00003.parquet", "data/train-00001-of-00003.parquet", "data/train-00002-of-00003.parquet"},
			"data/%s-00000-of-00001-0123456789abcdef.parquet",
		},
		{[]string{"train.parquet"}, "%s.parquet"},
		{[]string{"plain_text/train-00000-of-00001.parquet"}, "plain_text/%s-00000-of-00001.parquet"},
		{[]string{"train/0000.parquet", "train/0001.parquet"}, "%s/0000.parquet"},
		{[]string{"default/train/0000.parquet"}, "default/%s/0000.parquet"},
		{[]string{"flowers_train_1.PARQUET", "flowers_train_2.parquet"}, "flowers_%s.parquet"},
	} {
		hub := filepath.Join(t.TempDir(), "hub")
		write(t, []byte("# Flowers\n"), hub, "README.md")
		for _, split := range []string{"train", "validation", "test"} {
			images, labels, classes := rowsOf(t, root, split)
			files := layout.train
			if split != "train" {
				files = []string{fmt.Sprintf(layout.other, split)}
			}
			for i, file := range files {
				from, to := i*len(images)/len(files), (i+1)*len(images)/len(files)
				writeHub(t, images[from:to], labels[from:to], classes, hub, filepath.FromSlash(file))
			}
		}
		options := isolated(t)
		for range 2 {
			splits, err := Open(hub, options)
			if err != nil {
				t.Fatalf("%v: %v", layout, err)
			}
			wantSame(t, layout.train[0], splits, want)
			if remarks := splits.Train.Remarks; remarks != nil {
				t.Errorf("%v: remarks %q", layout, remarks)
			}
			options.OnProgress = func(file string, _, _ int64) { t.Errorf("%s is decoded again", file) }
		}
	}
}

// One file is divided as a directory of the same images is.
func TestOpenParquetFile(t *testing.T) {
	root := flowers(t, 9, "")
	want, err := Open(root, isolated(t))
	if err != nil {
		t.Fatal(err)
	}
	images, labels, classes := rowsOf(t, root, "")
	file := filepath.Join(t.TempDir(), "train-00000-of-00001.parquet")
	writeHub(t, images, labels, classes, file)
	splits, err := Open(file, isolated(t))
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "one file", splits, want)
	if d := splits.Test; d.Name != "train-00000-of-00001" || d.Place != filepath.Dir(file) {
		t.Errorf("name %s, place %s", d.Name, d.Place)
	}
	// In another order, with other numbers of classes, and as text.
	for i := range images {
		j := i * 7 % len(images)
		images[i], images[j], labels[i], labels[j] = images[j], images[i], labels[j], labels[i]
	}
	names := make([]string, len(labels))
	plain := make([][]byte, len(labels))
	paths := make([]string, len(labels))
	for i, label := range labels {
		names[i], plain[i], paths[i] = " "+classes[label], images[i].Bytes, images[i].Path
	}
	write(t, parquettest.Write(parquettest.Options{Codec: parquettest.Zstd, Version2: true},
		parquettest.Column{Name: "Label", Values: names}, parquettest.Column{Name: "pixels", Values: plain}), file)
	splits, err = Open(file, isolated(t))
	if err != nil {
		t.Fatal(err)
	}
	if d := splits.Train; !slices.Equal(d.ClassNames, want.Train.ClassNames) || !strings.HasPrefix(d.Files[0], "train-00000-of-00001.parquet[") {
		t.Errorf("classes %q, files %q", d.ClassNames, d.Files)
	}
	for i, file := range splits.Train.Files {
		var row int
		class := splits.Train.ClassNames[splits.Train.Labels[i]]
		if _, err := fmt.Sscanf(file, "train-00000-of-00001.parquet[%d]", &row); err != nil || classes[labels[row]] != class {
			t.Errorf("%s has class %s, %v", file, class, err)
		}
	}
}

// parquetOf writes a file of n images, with other columns, and returns its path.
func parquetOf(t *testing.T, metadata map[string]string, images []parquettest.Image, columns ...parquettest.Column) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "set.parquet")
	columns = append([]parquettest.Column{{Name: "image", Values: images}}, columns...)
	write(t, parquettest.Write(parquettest.Options{Metadata: metadata}, columns...), file)
	return file
}

// inTurn returns n numbers from 0 to below classes in turn.
func inTurn(n, classes int) (labels []int64) {
	for i := range n {
		labels = append(labels, int64(i%classes))
	}
	return labels
}

func TestParquetColumns(t *testing.T) {
	images, _, _ := rowsOf(t, flowers(t, 8, ""), "")
	n := len(images)
	labels := inTurn(n, 2)
	fine := inTurn(n, 4)
	text := make([]string, n)
	for i := range text {
		text[i] = fmt.Sprint("text ", i)
	}
	cifar := parquettest.ClassLabels(map[string][]string{"coarse_label": {"x", "y"}, "fine_label": {"a", "b", "c", "d"}})
	disease := parquettest.ClassLabels(map[string][]string{"disease": {"rust", "spot", "none"}})
	column := func(name string, values any) parquettest.Column {
		return parquettest.Column{Name: name, Values: values}
	}
	for name, test := range map[string]struct {
		file    string
		others  []string
		classes []string
		remarks []string
	}{
		"numbers": {parquetOf(t, nil, images, column("labels", labels)), nil, []string{"0", "1"}, nil},
		"others": {
			parquetOf(t, nil, images, column("target", labels), column("caption", text), column("id", fine)),
			nil, []string{"0", "1"}, []string{"set: columns that are not read: caption, id"},
		},
		"named others": {parquetOf(t, nil, images, column("target", labels), column("caption", text)), []string{"Caption"}, []string{"0", "1"}, nil},
		"CIFAR-100": {
			parquetOf(t, cifar, images, column("fine_label", fine), column("coarse_label", labels)),
			nil, []string{"a", "b", "c", "d"}, []string{"set: columns that are not read: coarse_label"},
		},
		"coarse": {parquetOf(t, cifar, images, column("fine_label", fine), column("coarse_label", labels)), []string{"fine_label"}, []string{"x", "y"}, nil},
		"a label by metadata": {
			parquetOf(t, disease, images, column("label", fine), column("disease", labels)),
			nil, []string{"rust", "spot"}, []string{"set: columns that are not read: label", "set: no training image has the class none"},
		},
	} {
		options := isolated(t)
		options.OtherColumns = test.others
		splits, err := Open(test.file, options)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.Equal(splits.Train.ClassNames, test.classes) || !slices.Equal(splits.Train.Remarks, test.remarks) {
			t.Errorf("%s: classes %q, remarks %q", name, splits.Train.ClassNames, splits.Train.Remarks)
		}
	}
}

func TestParquetErrors(t *testing.T) {
	images, _, _ := rowsOf(t, flowers(t, 4, ""), "")
	n := len(images)
	labels := inTurn(n, 2)
	with := func(at int, label int64) parquettest.Column {
		changed := slices.Clone(labels)
		changed[at] = label
		return parquettest.Column{Name: "label", Values: changed}
	}
	names := func(column string, classes ...string) map[string]string {
		return parquettest.ClassLabels(map[string][]string{column: classes})
	}
	column := func(name string, values any) parquettest.Column {
		return parquettest.Column{Name: name, Values: values}
	}
	plain := func(columns ...parquettest.Column) string {
		file := filepath.Join(t.TempDir(), "set.parquet")
		write(t, parquettest.Write(parquettest.Options{}, columns...), file)
		return file
	}
	invalid := column("label", slices.Repeat([]string{"\xff"}, n))
	text, good := column("caption", make([]string, n)), column("label", labels)
	missing, long := column("label", slices.Repeat([]int64{-1}, n)), column("label", slices.Repeat([]string{strings.Repeat("x", 5000)}, n))
	onlyPaths := slices.Clone(images)
	for i := range onlyPaths {
		onlyPaths[i] = parquettest.Image{Path: "a/0.png"}
	}
	genres := parquettest.ClassLabels(map[string][]string{"artist": {"a", "b"}, "genre": {"a", "b"}})
	for _, test := range []struct{ file, want string }{
		{parquetOf(t, nil, images, text), "must have a column of labels (classid, class, label ...), got the columns image (struct), caption (text)"},
		{parquetOf(t, nil, images, missing), "set.parquet: must have a label for each image, got none or only -1"},
		{parquetOf(t, nil, images, with(3, -2)), "set.parquet: row 3: column label: a label must be 0 or more, or -1 for none, got -2"},
		{parquetOf(t, names("label", "a", "b"), images, with(5, 2)),
			"set.parquet: row 5: column label: a label must be below 2, the number of classes, got 2"},
		{parquetOf(t, names("label", "a", "a"), images, good),
			`column label: class names must be distinct and not empty, got "a" for the classes 0 and 1`},
		{parquetOf(t, map[string]string{"huggingface": "{"}, images, good), "set.parquet: the metadata huggingface must be JSON"},
		{parquetOf(t, genres, images, column("artist", labels), column("genre", labels)),
			"one column of labels, or one called classid, got artist, genre"},
		{parquetOf(t, nil, images, invalid), `column label: text must be UTF-8, got "\xff"`},
		{parquetOf(t, nil, images, long), "text must have at most 4096 bytes, got 5000"},
		{parquetOf(t, nil, onlyPaths, good), "set.parquet[0]: a/0.png: must have the bytes of an image, got none: a path is not followed"},
		{plain(good, text), "must have a column of images, as bytes or as a struct with bytes, got the columns label (integer), caption"},
		{plain(column("left", images), column("right", images), good), "must have one column of images, or one called image, got left, right"},
	} {
		_, err := Open(test.file, isolated(t))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("error %v, want %q", err, test.want)
		}
	}
	// Directories.
	for want, files := range map[string][]string{
		"hub: must have one directory with Parquet files, got mnist, svhn: open one of them": {"mnist/train.parquet", "svhn/train/0.parquet"},
		"hub: must have training images": {"test-00000-of-00001.parquet"},
	} {
		hub := filepath.Join(t.TempDir(), "hub")
		for _, file := range files {
			writeHub(t, images, labels, []string{"a", "b"}, hub, filepath.FromSlash(file))
		}
		if _, err := Open(hub, isolated(t)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	var none *NoClassesError
	if _, err := Open(parquetOf(t, nil, images, text), isolated(t)); !errors.As(err, &none) {
		t.Errorf("error %v, want a NoClassesError", err)
	}
}

// Images without a label are left out if others have one.
func TestParquetSomeLabels(t *testing.T) {
	images, labels, classes := rowsOf(t, flowers(t, 8, ""), "")
	labels[1], labels[3] = -1, -1
	hub := filepath.Join(t.TempDir(), "hub")
	writeHub(t, images, labels, classes, hub, "train-00000-of-00001.parquet")
	options := isolated(t)
	options.Test, options.Validation = -1, -1
	splits, err := Open(hub, options)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("hub: 2 of %d images of the train split have no label and are left out, such as train-00000-of-00001.parquet[1]", len(images))
	if d := splits.Train; d.Len() != len(images)-2 || !slices.Equal(d.ClassNames, classes) || !slices.Contains(d.Remarks, want) {
		t.Errorf("%d images, classes %q, remarks %q, want %q", d.Len(), d.ClassNames, d.Remarks, want)
	}
}

// Splits without labels are left out, or read if the options accept that; data may have a test
// split only.
func TestParquetSplits(t *testing.T) {
	images, labels, classes := rowsOf(t, flowers(t, 8, ""), "")
	none := slices.Repeat([]int64{-1}, len(labels))
	hub := filepath.Join(t.TempDir(), "hub")
	writeHub(t, images, labels, classes, hub, "train-00000-of-00001.parquet")
	writeHub(t, images, none, classes, hub, "test-00000-of-00001.parquet")
	writeHub(t, images, labels, classes, hub, "extra-00000-of-00001.parquet")
	write(t, images[0].Bytes, hub, "assets", "example.png")
	splits, err := Open(hub, isolated(t))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"hub: left out, since they are not named after splits: extra-00000-of-00001.parquet",
		"hub: image files next to the Parquet files are not read",
		filepath.Join("hub", "test-00000-of-00001.parquet") + ": left out, since it has no labels",
	}
	if got := splits.Train.Remarks; !slices.Equal(got, want) || splits.Train.Len()+splits.Test.Len()+splits.Validation.Len() != len(images) {
		t.Errorf("remarks %q", got)
	}
	options := isolated(t)
	options.Unlabelled = true
	unlabelled, err := LoadUnseen(hub, options)
	if err != nil || unlabelled.Labels != nil || unlabelled.Len() != len(images) || unlabelled.Name != "hub" {
		t.Errorf("unlabelled: %+v, %v", unlabelled, err)
	}
	only := filepath.Join(t.TempDir(), "only")
	writeHub(t, images, labels, classes, only, "data", "test-00000-of-00001.parquet")
	test, err := LoadUnseen(only, isolated(t))
	if err != nil || test.Len() != len(images) || !slices.Equal(test.ClassNames, classes) {
		t.Errorf("only a test split: %+v, %v", test, err)
	}
	// A class that only test images have is an error, as for directories.
	writeHub(t, images, inTurn(len(labels), 2), classes, hub, "train-00000-of-00001.parquet")
	writeHub(t, images, labels, classes, hub, "test-00000-of-00001.parquet")
	if _, err := Open(hub, isolated(t)); err == nil || !strings.Contains(err.Error(), "the classes of test images must be among those of the training images") {
		t.Errorf("error %v", err)
	}
}

// Images are named by file and row if paths do not tell them apart.
func TestParquetNames(t *testing.T) {
	images, labels, _ := rowsOf(t, flowers(t, 8, ""), "")
	for i := range images {
		images[i].Path = path.Base(images[i].Path)
	}
	splits, err := Open(parquetOf(t, nil, images, parquettest.Column{Name: "label", Values: labels}), isolated(t))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"set: images are named by file and row, since some have the same path, such as 0.png"}; !slices.Equal(splits.Train.Remarks, want) {
		t.Errorf("remarks %q", splits.Train.Remarks)
	}
	if file := splits.Train.Files[0]; !strings.HasPrefix(file, "set.parquet[") {
		t.Errorf("file %s", file)
	}
}

func TestParquetGroups(t *testing.T) {
	images, labels, _ := rowsOf(t, flowers(t, 20, ""), "")
	patients := make([]string, len(images))
	for i := range images {
		patients[i] = fmt.Sprint("patient ", i/4)
		images[i].Path = fmt.Sprintf("p%d/%d_%d.png", i/6, i/4, i)
	}
	columns := []parquettest.Column{{Name: "label", Values: labels}, {Name: "Patient", Values: patients}}
	file := parquetOf(t, nil, images, columns...)
	for _, group := range []string{"column=patient", `/(\d+)_`, "parent"} {
		options := isolated(t)
		options.Group = group
		for range 2 { // the second time from the cache
			splits, err := Open(file, options)
			if err != nil {
				t.Fatalf("%s: %v", group, err)
			}
			wantApart(t, splits, len(images))
		}
	}
	patients[7] = ""
	for want, file := range map[string]string{
		"row 7: Patient must not be empty, since it is the group of the image":                                                 parquetOf(t, nil, images, columns...),
		"set.parquet: must have the column patient with the groups of images, got the columns image (struct), label (integer)": parquetOf(t, nil, images, columns[0]),
	} {
		options := isolated(t)
		options.Group = "column=patient"
		if _, err := Open(file, options); err == nil || !strings.Contains(err.Error(), want) || !errors.As(err, new(*OptionError)) {
			t.Errorf("error %v, want an OptionError with %q", err, want)
		}
	}
}

// Predictions name images by file and row, keep identifiers, and name what cannot be read.
func TestReadParquet(t *testing.T) {
	root := flowers(t, 3, "")
	images, labels, _ := rowsOf(t, root, "")
	ids := make([]string, len(images))
	for i := range ids {
		ids[i] = fmt.Sprint("id", i)
	}
	file := parquetOf(t, nil, images, parquettest.Column{Name: "image_id", Values: ids}, parquettest.Column{Name: "label", Values: labels})
	d, err := ReadImages([]string{file}, isolated(t))
	if err != nil {
		t.Fatal(err)
	}
	want, err := ReadImages([]string{root}, isolated(t))
	if err != nil {
		t.Fatal(err)
	}
	if d.Labels != nil || d.IDName != "image_id" || !slices.Equal(d.IDs, ids) || !slices.Equal(d.Images, want.Images) ||
		d.Files[8] != file+"[8]" || d.Remarks != nil {
		t.Errorf("%d images, IDs %s %q, files %q, remarks %q", d.Len(), d.IDName, d.IDs, d.Files, d.Remarks)
	}
	write(t, images[0].Bytes, filepath.Dir(file), "example.png")
	if d, err := ReadImages([]string{filepath.Dir(file)}, isolated(t)); err != nil || d.Len() != len(images) ||
		len(d.Remarks) != 1 || !strings.HasSuffix(d.Remarks[0], ": image files next to the Parquet files are not read") {
		t.Errorf("a directory: %d images, remarks %q, %v", d.Len(), d.Remarks, err)
	}
	// Next to files and arrays; a row without bytes, one with other bytes, and a damaged file.
	images[2].Bytes, images[5].Bytes = nil, []byte("text")
	broken := parquetOf(t, nil, images)
	content, err := os.ReadFile(broken)
	if err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(t.TempDir(), "damaged.parquet")
	write(t, content[:len(content)-9], damaged)
	npy := filepath.Join(t.TempDir(), "a.npy")
	write(t, npyBytes("|u1", "(30, 20)", make([]byte, 600)), npy)
	options := isolated(t)
	options.MaxSkipped = 1
	for _, paths := range [][]string{{root, broken, damaged, file}, {broken, npy, damaged}} {
		d, err = ReadImages(paths, options)
		if err != nil {
			t.Fatal(err)
		}
		var failed []string
		for _, f := range d.Failed {
			failed = append(failed, f.Error())
		}
		slices.Sort(failed)
		wants := []string{
			damaged + ": must end with PAR1", broken + "[2]: " + images[2].Path + ": must have the bytes of an image",
			broken + "[5]: " + images[5].Path + ": offset 0: must begin like an image",
		}
		slices.Sort(wants)
		for i, want := range wants {
			if i >= len(failed) || !strings.HasPrefix(failed[i], want) {
				t.Errorf("failed %q, want %q", failed, want)
			}
		}
		if d.IDs != nil {
			t.Errorf("some images have the identifiers %q", d.IDs)
		}
	}
}

// A directory of images may have a Parquet file that is no data set.
func TestParquetNextToImages(t *testing.T) {
	root := flowers(t, 8, "")
	write(t, parquettest.Write(parquettest.Options{}, parquettest.Column{Name: "file_name", Values: []string{"x.png"}}), root, "metadata.parquet")
	splits, err := Open(root, isolated(t))
	if err != nil || len(splits.Train.ClassNames) != 3 {
		t.Errorf("%v", err)
	}
}

// Pages are read as they are needed: of a file that is far larger than a page, little is in memory.
func TestParquetInParts(t *testing.T) {
	const rows, size = 64, 1 << 20
	images := make([]parquettest.Image, rows)
	for i := range images {
		images[i].Bytes = randomBytes(uint64(i), size)
	}
	s := &shard{name: "a", content: parquettest.Write(parquettest.Options{GroupRows: 4, PageRows: 1}, parquettest.Column{Name: "image", Values: images})}
	used := testenv.Allocated(func() {
		r := s.rows()
		defer r.close()
		for row := range rows {
			if read, err := r.read(row); err != nil || len(read) != size {
				t.Fatalf("row %d: %d bytes, %v", row, len(read), err)
			}
		}
		if _, err := r.read(rows); err == nil || err == io.EOF {
			t.Errorf("after the last row: %v", err)
		}
	})
	if used > 8*size {
		t.Errorf("%d bytes were allocated", used)
	}
}

func FuzzParquet(f *testing.F) {
	images := []parquettest.Image{{Bytes: []byte("image"), Path: "a/1.png"}, {Bytes: nil, Path: "b/2.png"}, {Bytes: []byte("other")}}
	columns := []parquettest.Column{{Name: "image", Values: images}, {Name: "label", Values: []int64{0, 1, -1}}, {Name: "id", Values: []string{"x", "y", "z"}}}
	for _, o := range []parquettest.Options{{}, {Codec: parquettest.Snappy, Dictionary: true, GroupRows: 2}, {Codec: parquettest.Zstd, Version2: true}} {
		o.Metadata = parquettest.ClassLabels(map[string][]string{"label": {"a", "b"}})
		f.Add(parquettest.Write(o, columns...))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		s := &shard{name: "file", content: content}
		used := testenv.Allocated(func() {
			rows := s.rows()
			defer rows.close()
			_, _ = s.eachRow(func(row int, r shardRow) error { // an error is as good
				_, _ = rows.read(row)
				return nil
			})
		})
		if used > 2*maxAllocated(content) {
			t.Fatalf("%d bytes were allocated for %d", used, len(content))
		}
	})
}
