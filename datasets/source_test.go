package datasets

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tiny is a source of three training and two test images with ten classes.
func tiny(t *testing.T) (source, [2][2][]byte) {
	t.Helper()
	s := source{
		name: "tiny", what: "noise", images: [2]int{3, 2}, classNames: letterNames,
		subfolders: []string{"Tiny/raw"}, advice: "Ask the author.",
	}
	var contents [2][2][]byte // by Split: unpacked images and labels
	for split, n := range s.images {
		images := idxBytes([]int{n, knownSide, knownSide}, randomBytes(uint64(split), n*knownSide*knownSide))
		labels := idxBytes([]int{n}, []byte{7, 0, 9}[:n])
		contents[split] = [2][]byte{images, labels}
		prefix := []string{"train", "t10k"}[split]
		s.files[split] = pair{
			images: published(t, prefix+"-images-idx3-ubyte", images),
			labels: published(t, prefix+"-labels-idx1-ubyte", labels),
		}
	}
	return s, contents
}

// published describes a file of the given content.
func published(t *testing.T, name string, content []byte) file {
	gz := packed(t, content)
	return file{name: name, content: sha256Hex(content), packed: sha256Hex(gz), size: int64(len(gz))}
}

// write writes a file and the folders above it.
func write(t *testing.T, content []byte, path ...string) {
	t.Helper()
	name := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// Files are found in every place, packed or not.
func TestLoadPlaces(t *testing.T) {
	s, contents := tiny(t)
	for _, test := range []struct {
		dir           string
		images        string
		labels        string
		packed        bool
		byEnvironment bool
	}{
		{dir: "tiny", images: "train-images-idx3-ubyte.gz", labels: "train-labels-idx1-ubyte.gz", packed: true},
		{dir: "Tiny/raw", images: "train-images-idx3-ubyte", labels: "train-labels-idx1-ubyte"},
		{dir: ".", images: "train-images.idx3-ubyte", labels: "train-labels.idx1-ubyte"},
		{dir: "tiny", images: "train-images-idx3-ubyte.gz", labels: "train-labels-idx1-ubyte.gz", byEnvironment: true},
	} {
		options := isolated(t)
		root := t.TempDir()
		images, labels := contents[Train][0], contents[Train][1]
		if test.packed {
			images, labels = packed(t, images), packed(t, labels)
		}
		write(t, images, root, test.dir, test.images)
		write(t, labels, root, test.dir, test.labels)
		if test.byEnvironment {
			t.Setenv(EnvironmentDir, root)
		} else {
			options.Dir = root
		}
		d, err := s.load(Train, options)
		if err != nil {
			t.Errorf("%+v: %v", test, err)
			continue
		}
		if !bytes.HasSuffix(contents[Train][0], d.Images) || !slices.Equal(d.Labels, []int32{7, 0, 9}) {
			t.Errorf("%+v: other images or labels", test)
		}
		if want := filepath.Join(root, test.dir); d.Place != want {
			t.Errorf("%+v: place is %q, want %q", test, d.Place, want)
		}
		if d.Hashes[test.images] != sha256Hex(images) || d.Hashes[test.labels] != sha256Hex(labels) {
			t.Errorf("%+v: hashes are %v", test, d.Hashes)
		}
		if got := s.whereabouts(Train, options); got != d.Place {
			t.Errorf("%+v: whereabouts are %q, want %q", test, got, d.Place)
		}
		if got := s.whereabouts(Test, options); got != "" {
			t.Errorf("%+v: whereabouts of the test images are %q, want none", test, got)
		}
	}
}

func TestLoadNotFound(t *testing.T) {
	s, _ := tiny(t)
	options := isolated(t)
	options.Dir = t.TempDir()
	t.Setenv(EnvironmentDir, filepath.Join(options.Dir, "none"))
	s.dirs = func() []string { return []string{filepath.Join(options.Dir, "package")} }
	s.mirrors = []string{"https://example.org/"}
	s.module = &goModule{path: "example.org/nothing", version: "v1.0.0"}
	_, err := s.load(Test, options)
	wantError(t, err, "tiny: must have test images, found none",
		"directory "+filepath.Join(options.Dir, "tiny")+": does not exist",
		"directory "+filepath.Join(options.Dir, "Tiny", "raw")+": does not exist",
		"directory "+options.Dir+": has no t10k-images-idx3-ubyte",
		"directory "+filepath.Join(options.Dir, "none", "tiny")+": does not exist",
		"directory "+filepath.Join(options.Dir, "package")+": does not exist",
		"directory "+filepath.Join(options.Cache, "tiny")+": does not exist",
		"go mod download example.org/nothing@v1.0.0: ",
		"tiny: must have test images, found none",
		"Ask the author.")
}

func TestLoadWrongFiles(t *testing.T) {
	s, contents := tiny(t)
	images, labels := contents[Test][0], contents[Test][1]
	altered := bytes.Clone(images)
	altered[100] ^= 1
	unchecked := s
	unchecked.images = [2]int{}
	for split := range unchecked.files {
		unchecked.files[split].images.content = ""
		unchecked.files[split].labels.content = ""
	}
	for _, test := range []struct {
		name           string
		source         source
		images, labels []byte
		want           []string
	}{
		{"no labels", s, images, nil, []string{"t10k-images-idx3-ubyte must have its labels, t10k-labels-idx1-ubyte, next to it"}},
		{"no images", s, nil, labels, []string{"t10k-labels-idx1-ubyte must have its images, t10k-images-idx3-ubyte, next to it"}},
		{"altered", s, altered, labels, []string{
			"t10k-images-idx3-ubyte: SHA-256 of the unpacked content must be " + sha256Hex(images) + ", got " + sha256Hex(altered),
		}},
		{"truncated", s, images[:1000], labels, []string{"t10k-images-idx3-ubyte: offset 1000: got 984 of 1568 values of [2 28 28]"}},
		{"other count", s, contents[Train][0], labels, []string{"t10k-images-idx3-ubyte: offset 4: dimensions must be [2 28 28], got [3 28 28]"}},
		{"other size", s, idxBytes([]int{2, 28, 27}, nil), labels, []string{"t10k-images-idx3-ubyte: offset 4: dimensions must be [2 28 28], got [2 28 27]"}},
		{"other rank", s, idxBytes([]int{2, 784}, nil), labels, []string{"t10k-images-idx3-ubyte: offset 4: dimensions must be [2 28 28], got [2 784]"}},
		{"any count, other size", unchecked, idxBytes([]int{2, 27, 28}, nil), labels, []string{"offset 4: dimensions must be [N 28 28], got [2 27 28]"}},
		{"more labels", unchecked, images, contents[Train][1], []string{"t10k-labels-idx1-ubyte: offset 4: 2 images: dimensions must be [2], got [3]"}},
		{"label out of range", unchecked, images, idxBytes([]int{2}, []byte{9, 10}), []string{
			"t10k-labels-idx1-ubyte: offset 9: label 1 must be below 10, got 10",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			options := isolated(t)
			options.Dir = t.TempDir()
			if test.images != nil {
				write(t, test.images, options.Dir, "t10k-images-idx3-ubyte")
			}
			if test.labels != nil {
				write(t, test.labels, options.Dir, "t10k-labels-idx1-ubyte")
			}
			_, err := test.source.load(Test, options)
			wantError(t, err, append(test.want, "datasets: ")...)
		})
	}
}

// All of MNIST's descendants name their files as MNIST does. A folder with another set's files is
// skipped, not taken for a damaged one, nor for a set that accepts any content.
func TestLoadOtherSetsFiles(t *testing.T) {
	module := gomnist()
	for _, name := range []string{"fashion-mnist", "notmnist"} {
		options := isolated(t)
		options.Dir = module.dirs()[0]
		_, err := Load(name, Test, options)
		if name == "fashion-mnist" && err == nil {
			continue // found where Debian puts it
		}
		wantError(t, err, "datasets: "+name+": must have test images, found none", "belongs to mnist")
		if places := List(options)[slices.Index(Names(), name)].Places; places[Test] == options.Dir {
			t.Errorf("%s's test images are said to be in %s", name, options.Dir)
		}
	}
	for _, s := range sources() {
		for _, files := range s.files {
			if f := files.images; f.packed != "" && ownerOf("", f.packed) != s.name {
				t.Errorf("%s packed is not known as of %s", f.name, s.name)
			}
		}
	}
}

func TestLoadArguments(t *testing.T) {
	_, err := Load("minst", Train, Options{})
	wantError(t, err, `no data set "minst"; did you mean mnist? There are `+strings.Join(Names(), ", ")+`, or the path of a directory or file`)
	_, err = Load("mnist", 3, Options{})
	wantError(t, err, "mnist: split must be Train, Validation or Test, got 3")
	_, err = Load("mnist", Validation, Options{})
	wantError(t, err, "mnist: must have a validation split, or a fraction of the images to draw for it")
}

// The package's comment lists the known data sets.
func TestNamesAreListed(t *testing.T) {
	document, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Names() {
		if !bytes.Contains(document, []byte("\n//	"+name+" ")) {
			t.Errorf("datasets/doc.go must list %s", name)
		}
	}
}

func TestList(t *testing.T) {
	options := isolated(t)
	list := List(options)
	names := Names()
	if len(list) != len(names) {
		t.Fatalf("%d descriptions of %d data sets", len(list), len(names))
	}
	for i, d := range list {
		if d.Name != names[i] || d.What == "" || d.Channels != 1 || d.Height != 28 || d.Width != 28 || len(d.ClassNames) != 10 {
			t.Errorf("description %d is %+v, want one of %s", i, d, names[i])
		}
		if d.Places[Train] != "built in" && d.Advice == "" {
			t.Errorf("%s: no advice how to get it", d.Name)
		}
	}
	if place := list[0].Places[Test]; !strings.HasSuffix(place, "data") {
		t.Errorf("mnist is at %q, want the folder data of a Go module", place)
	}
	options.Offline = false
	want := notMNIST().mirrors[0]
	if places := List(options)[2].Places; places != [2]string{"", want} {
		t.Errorf("notmnist is at %q, want the test images to be downloaded from %s", places, want)
	}
}

func TestSplitString(t *testing.T) {
	if Train.String() != "train" || Test.String() != "test" || Validation.String() != "validation" || Split(5).String() != "unknown" {
		t.Error(Train, Test, Validation, Split(5))
	}
}
