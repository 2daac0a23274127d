package datasets

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pickled writes a dictionary with an array [n 3072] and a list of labels as
// Python 2 wrote the files of CIFAR (protocol 2).
func pickled(labelKey string, labels []byte, data []byte) []byte {
	short := func(s string) string { return "U" + string(rune(len(s))) + s }
	content := "\x80\x02}q\x01(" + short("batch_label") + "q\x02" + short("training batch 1 of 5") + "q\x03" +
		short(labelKey) + "q\x04]q\x05("
	for _, label := range labels {
		content += "K" + string([]byte{label})
	}
	content += "e" + short("data") + "q\x06cnumpy.core.multiarray\n_reconstruct\nq\x07cnumpy\nndarray\nq\x08K\x00\x85U\x01b\x87Rq\x09" +
		"(K\x01" + "M" + string([]byte{byte(len(labels)), byte(len(labels) >> 8)}) + "M\x00\x0c\x86" +
		"cnumpy\ndtype\nq\x0aU\x02u1K\x00K\x01\x87Rq\x0b(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T"
	content += string(binary.LittleEndian.AppendUint32(nil, uint32(len(data)))) + string(data)
	return []byte(content + "tb" + short("filenames") + "](" + short("a.png") + short("b.png") + "eu.")
}

// pickledNames writes the file with the class names.
func pickledNames(key string, names ...string) []byte {
	content := fmt.Sprintf("\x80\x02}q\x01(U\x13num_cases_per_batchq\x02M\x10'U%c%sq\x03]q\x04(", len(key), key)
	for _, name := range names {
		content += fmt.Sprintf("U%c%s", len(name), name)
	}
	return []byte(content + "eU\x07num_visM\x00\x0cu.")
}

// cifarFiles writes the files of the four forms, of two images each.
func cifarFiles(data []byte) map[string]map[string][]byte {
	binary := func(before ...byte) []byte {
		half := len(before) / 2
		return slices.Concat(before[:half], data[:cifarImage], before[half:], data[cifarImage:])
	}
	forms := map[string]map[string][]byte{"cifar-10-batches-bin": {}, "cifar-10-batches-py": {}}
	for i := range 5 {
		forms["cifar-10-batches-bin"][fmt.Sprintf("data_batch_%d.bin", i+1)] = binary(1, 0)
		forms["cifar-10-batches-py"][fmt.Sprintf("data_batch_%d", i+1)] = pickled("labels", []byte{1, 0}, data)
	}
	forms["cifar-10-batches-bin"]["test_batch.bin"] = binary(0, 1)
	forms["cifar-10-batches-bin"]["batches.meta.txt"] = []byte("plane\ncar\n\n")
	forms["cifar-10-batches-py"]["test_batch"] = pickled("labels", []byte{0, 1}, data)
	forms["cifar-10-batches-py"]["batches.meta"] = pickledNames("label_names", "plane", "car")
	forms["cifar-100-binary"] = map[string][]byte{
		"train.bin": binary(9, 1, 9, 0), "test.bin": binary(9, 0, 9, 1), "fine_label_names.txt": []byte("plane\ncar\n"),
		"coarse_label_names.txt": []byte("thing\n"),
	}
	forms["cifar-100-python"] = map[string][]byte{
		"train": pickled("fine_labels", []byte{1, 0}, data), "test": pickled("fine_labels", []byte{0, 1}, data),
		"meta": pickledNames("fine_label_names", "plane", "car"),
	}
	return forms
}

func TestCIFAR(t *testing.T) {
	data := randomBytes(4, 2*cifarImage)
	for form, files := range cifarFiles(data) {
		root := t.TempDir()
		var archived bytes.Buffer
		archive := tar.NewWriter(&archived)
		for name, content := range files {
			write(t, content, root, form, name)
			header := tar.Header{Name: form + "/" + name, Typeflag: tar.TypeReg, Size: int64(len(content)), Mode: 0o644}
			if err := archive.WriteHeader(&header); err != nil {
				t.Fatal(err)
			}
			if _, err := archive.Write(content); err != nil {
				t.Fatal(err)
			}
		}
		if err := archive.Close(); err != nil {
			t.Fatal(err)
		}
		archivePath := filepath.Join(t.TempDir(), form+".tar.gz")
		write(t, packed(t, archived.Bytes()), archivePath)
		for _, path := range []string{root, filepath.Join(root, form), archivePath} {
			splits, err := Open(path, ownSplits(t))
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			d, times := splits.Train, 1
			if strings.Contains(form, "-10-") {
				times = 5
			}
			if !bytes.Equal(d.Images, bytes.Repeat(data, times)) || !slices.Equal(d.Labels[:2], []int32{1, 0}) || d.Len() != 2*times ||
				!slices.Equal(splits.Test.Labels, []int32{0, 1}) || splits.Validation != nil {
				t.Errorf("%s: other images or labels", path)
			}
			if !cmp.Equal(d.ClassNames, []string{"plane", "car"}) || d.Channels != 3 || d.Height != 32 {
				t.Errorf("%s: %v, [%d %d]", path, d.ClassNames, d.Channels, d.Height)
			}
		}
	}
}

func TestCIFARErrors(t *testing.T) {
	data := randomBytes(4, 2*cifarImage)
	for _, test := range []struct {
		form, name string
		content    []byte // nil: the file is missing
		want       string
	}{
		{"cifar-10-batches-bin", "data_batch_3.bin", nil, "must have the file data_batch_3.bin next to data_batch_1.bin"},
		{"cifar-10-batches-bin", "batches.meta.txt", nil, "must have the file batches.meta.txt next to data_batch_1.bin"},
		{"cifar-100-python", "meta", nil, "must have the file meta next to train"},
		{"cifar-10-batches-bin", "data_batch_2.bin", make([]byte, 3072), "size must be a multiple of 3073 bytes (1 of labels, 3072 of image), got 3072"},
		{"cifar-100-binary", "test.bin", append([]byte{0, 7}, data[:cifarImage]...), "test.bin: offset 1: label must be below 2, got 7"},
		{"cifar-100-python", "test", []byte("\x80\x02cos\nsystem\nU\x02ls\x85R."), `2: pickle: callables must be those of NumPy arrays, got "os.system"`},
		{"cifar-100-python", "test", pickled("labels", []byte{0, 1}, data), "test: fine_labels must be a list of 2 labels, got <nil>"},
		{"cifar-100-python", "test", pickled("fine_labels", []byte{0, 2}, data), "test: fine_labels: label 1 must be an integer from 0 to below 2, got 2 (int64)"},
		{"cifar-100-python", "test", pickled("fine_labels", []byte{0, 2}, data[1:]), "6353: pickle: dimension must fit an array of 6143 bytes, got int64"},
		{"cifar-100-python", "test", []byte("]."), "test: pickle: must be a dictionary, got *datasets.pickleList"},
		{"cifar-100-python", "test", []byte("(]q\x01h\x01a"), "test: offset 7: pickle: must have 1 more bytes, got 0"},
		{"cifar-100-python", "meta", []byte("}."), "meta: must have a list fine_label_names"},
	} {
		root := t.TempDir()
		for name, content := range cifarFiles(data)[test.form] {
			write(t, content, root, name)
		}
		path := filepath.Join(root, test.name)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if test.content != nil {
			write(t, test.content, path)
		}
		_, err := Open(root, isolated(t))
		wantError(t, err, "datasets: "+root+": ", test.want)
	}
}

func FuzzUnpickle(f *testing.F) {
	f.Add(pickled("labels", []byte{1, 0}, randomBytes(1, 2*cifarImage)))
	f.Add(pickled("labels", nil, nil))
	f.Add(pickledNames("label_names", "plane", "car"))
	f.Add([]byte("\x80\x02]q\x01h\x01a."))
	f.Add([]byte("\x80\x02(I1\nL2L\n\x8a\x01\xffG\x00\x00\x00\x00\x00\x00\x00\x00N\x88t."))
	f.Add([]byte("}(U\x01aNu."))
	f.Fuzz(func(t *testing.T, content []byte) {
		value, err := unpickle(content)
		if err != nil && (value != nil || !strings.Contains(err.Error(), "pickle: ")) {
			t.Errorf("value %T with error %q", value, err)
		}
		part := &arrayPart{}
		if err := cifarForms[2].append(part, content, 10); err == nil && len(part.images) != len(part.labels)*cifarImage {
			t.Errorf("%d bytes of images for %d labels", len(part.images), len(part.labels))
		}
		_, _ = cifarForms[2].classNames(content)
	})
}
