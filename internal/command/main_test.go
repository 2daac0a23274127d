package command

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"image"
	"image/png"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pkg/errors"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/letters"
	"github.com/pollen-ml/pollen/internal/parquettest"
	"github.com/pollen-ml/pollen/internal/testenv"
)

// programs are the programs that tests run in separate processes.
var programs = map[string]func(){"pollen": func() { os.Exit(Main()) }, "pollen-without-room": mainWithoutRoom, "pollen-peak": mainWithPeak}

func TestMain(m *testing.M) {
	testenv.InMemory()
	testscript.Main(m, programs)
}

// TestScripts runs the program as users do. Besides testscript's own commands, scripts have
//
//	exits CODE PROGRAM ARGUMENT...   which must end with that exit code
//	letters FOLDER TRAIN TEST        which writes TRAIN and TEST images as notmnist
//	same RUN RUN                     which must have the same samples and metrics, byte for byte
//	images DIR CLASSES N             which writes N PNG files for each of the classes a, b, ...
//	parquet ROOT DIR FILE [LABEL]    which writes images as on the Hugging Face Hub
//	pack FILE                        which replaces FILE by FILE.gz
//	poke FILE OFFSET BYTE            which changes a byte
//	unpack FILE.gz FILE              which decompresses
//	shorten FILE SIZE                which cuts a file off
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv(datasets.EnvironmentDir, filepath.Join(e.WorkDir, "data"))
			e.Setenv(cuda.DriverVariable, filepath.Join(e.WorkDir, "none.so")) // scripts see the same devices on all machines
			return letters.Write(filepath.Join(e.WorkDir, "data", "notmnist"), 200, 60)
		},
		Condition: func(condition string) (bool, error) {
			if condition != "all" {
				return false, errors.Errorf("no condition %q", condition)
			}
			return testenv.All(t), nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
			"letters": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(letters.Write(ts.MkAbs(args[0]), number(ts, args[1]), number(ts, args[2])))
			},
			"images": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(writeImages(ts.MkAbs(args[0]), number(ts, args[1]), number(ts, args[2])))
			},
			"parquet": func(ts *testscript.TestScript, _ bool, args []string) {
				label := int64(0)
				if len(args) > 3 {
					label = int64(number(ts, args[3]))
				}
				ts.Check(writeParquet(ts.MkAbs(args[0]), args[1], ts.MkAbs(args[2]), label))
			},
			"same": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(sameRuns(ts.MkAbs(args[0]), ts.MkAbs(args[1])))
			},
			"pack": func(ts *testscript.TestScript, _ bool, args []string) {
				var packed bytes.Buffer
				w := gzip.NewWriter(&packed)
				_, err := w.Write([]byte(ts.ReadFile(args[0])))
				ts.Check(err)
				ts.Check(w.Close())
				ts.Check(os.Remove(ts.MkAbs(args[0])))
				ts.Check(os.WriteFile(ts.MkAbs(args[0]+".gz"), packed.Bytes(), 0o644))
			},
			"poke": func(ts *testscript.TestScript, _ bool, args []string) {
				content := []byte(ts.ReadFile(args[0]))
				content[number(ts, args[1])] = byte(number(ts, args[2]))
				ts.Check(os.WriteFile(ts.MkAbs(args[0]), content, 0o644))
			},
			"unpack": func(ts *testscript.TestScript, _ bool, args []string) {
				z, err := gzip.NewReader(strings.NewReader(ts.ReadFile(args[0])))
				ts.Check(err)
				content, err := io.ReadAll(z)
				ts.Check(err)
				ts.Check(os.WriteFile(ts.MkAbs(args[1]), content, 0o644))
			},
			"shorten": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(os.Truncate(ts.MkAbs(args[0]), int64(number(ts, args[1]))))
			},
		},
	})
}

func number(ts *testscript.TestScript, text string) int {
	n, err := strconv.Atoi(text)
	ts.Check(err)
	return n
}

func exits(ts *testscript.TestScript, _ bool, args []string) {
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var failed *exec.ExitError
		if !errors.As(err, &failed) {
			ts.Fatalf("%v", err)
		}
		code = failed.ExitCode()
	}
	if code != number(ts, args[0]) {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// writeImages writes colour images of 20x20, whose class is the position of a bright square.
func writeImages(dir string, classes, each int) error {
	noise := uint32(classes)
	for class := range classes {
		place := filepath.Join(dir, string(rune('a'+class)))
		if err := os.MkdirAll(place, 0o755); err != nil {
			return err
		}
		for i := range each {
			img := image.NewRGBA(image.Rect(0, 0, 20, 20))
			for at := range img.Pix {
				noise = noise*1664525 + 1013904223
				img.Pix[at] = byte(noise >> 26)
				if x, y := at/4%20, at/80; at%4 == 3 || x/7 == class%3 && y/7 == class/3 {
					img.Pix[at] = 255
				}
			}
			var content bytes.Buffer
			if err := png.Encode(&content, img); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(place, fmt.Sprintf("%02d.png", i)), content.Bytes(), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeParquet writes the images in a directory of class directories below root to a Parquet file.
// A label other than 0 is the label of all images.
func writeParquet(root, dir, file string, label int64) error {
	entries, err := os.ReadDir(filepath.Join(root, dir))
	if err != nil {
		return err
	}
	var classes []string
	var images []parquettest.Image
	var labels []int64
	for class, entry := range entries {
		classes = append(classes, entry.Name())
		paths, err := filepath.Glob(filepath.Join(root, dir, entry.Name(), "*"))
		if err != nil {
			return err
		}
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			images = append(images, parquettest.Image{Bytes: content, Path: filepath.ToSlash(name)})
			labels = append(labels, cmp.Or(label, int64(class)))
		}
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	o := parquettest.Options{Codec: parquettest.Snappy, Dictionary: true, GroupRows: 10, Metadata: parquettest.ClassLabels(map[string][]string{"label": classes})}
	content := parquettest.Write(o, parquettest.Column{Name: "image", Values: images}, parquettest.Column{Name: "label", Values: labels})
	return os.WriteFile(file, content, 0o644)
}

// sameRuns describes how the samples and metrics of two runs differ.
func sameRuns(a, b string) error {
	files, err := filepath.Glob(filepath.Join(a, "samples", "*"))
	if err != nil || len(files) == 0 {
		return errors.Errorf("%s has no samples (%v)", a, err)
	}
	others, err := filepath.Glob(filepath.Join(b, "samples", "*"))
	if err != nil || len(others) != len(files) {
		return errors.Errorf("%d samples in %s, %d in %s (%v)", len(files), a, len(others), b, err)
	}
	for _, file := range append(files, filepath.Join(a, "metrics.jsonl")) {
		name, err := filepath.Rel(a, file)
		if err != nil {
			return err
		}
		x, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		y, err := os.ReadFile(filepath.Join(b, name))
		if err != nil {
			return err
		}
		if !bytes.Equal(x, y) {
			return errors.Errorf("%s differs between %s and %s", name, a, b)
		}
	}
	return nil
}
