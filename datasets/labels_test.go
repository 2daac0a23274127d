package datasets

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// writeLabelled writes three training images of 2x2 pixels with given labels as an NPZ archive, a
// CSV file and a directory of IDX files, and returns their paths. Test labels may be nil.
func writeLabelled(t *testing.T, labels, test []byte) []string {
	t.Helper()
	root := t.TempDir()
	arrays, lines := map[string][]byte{}, filepath.Join(root, "csv")
	idx := filepath.Join(root, "idx")
	for split, given := range map[string][]byte{"train": labels, "test": test} {
		if given == nil {
			continue
		}
		n := len(given)
		pixels := randomBytes(uint64(n), 4*n)
		arrays[split+"_images"] = npyBytes("|u1", fmt.Sprintf("(%d, 2, 2)", n), pixels)
		arrays[split+"_labels"] = npyBytes("|u1", fmt.Sprintf("(%d,)", n), given)
		numbers := make([]int, n)
		for i, label := range given {
			numbers[i] = int(label)
		}
		write(t, []byte("label,a1,a2,a3,a4\n"+csvLines(numbers, pixels, false)), lines, split+".csv")
		name := map[string]string{"train": "train", "test": "t10k"}[split]
		write(t, idxBytes([]int{n, 2, 2}, pixels), idx, name+"-images-idx3-ubyte")
		write(t, idxBytes([]int{n}, given), idx, name+"-labels-idx1-ubyte")
	}
	writeNPZ(t, filepath.Join(root, "npz.npz"), arrays)
	return []string{filepath.Join(root, "npz.npz"), lines, idx}
}

// The classes are the labels that training images have, in every format of arrays.
func TestLabelsWithoutImages(t *testing.T) {
	for _, test := range []struct {
		labels []byte
		names  []string
		want   []int32
		remark string
	}{
		{[]byte{1, 0, 2, 1}, []string{"0", "1", "2"}, []int32{1, 0, 2, 1}, ""},
		{[]byte{1, 2, 3, 1}, []string{"1", "2", "3"}, []int32{0, 1, 2, 0}, "no training image has the label 0: the classes are the labels 1 to 3"},
		{[]byte{200, 0, 2}, []string{"0", "2", "200"}, []int32{2, 0, 1}, "no training image has the labels 1, 3 to 199: the classes are the labels 0, 2, 200"},
		{[]byte{0, 255, 1}, []string{"0", "1", "255"}, []int32{0, 2, 1}, "the classes are the labels 0, 1, 255; 255 may be -1 as an unsigned byte: " +
			"leave this class out if it marks images without a label"},
		{[]byte{2, 2, 2}, []string{"2"}, []int32{0, 0, 0}, "no training image has the labels 0, 1: the classes are the labels 2"},
	} {
		for _, path := range writeLabelled(t, test.labels, test.labels[:2]) {
			splits, err := Open(path, ownSplits(t))
			if err != nil {
				t.Errorf("%v, %s: %v", test.labels, path, err)
				continue
			}
			d := splits.Train
			if !cmp.Equal(d.ClassNames, test.names) || !slices.Equal(d.Labels, test.want) || !slices.Equal(splits.Test.Labels, test.want[:2]) {
				t.Errorf("%s: labels %v are %v and %v of %v", path, test.labels, d.Labels, splits.Test.Labels, d.ClassNames)
			}
			if got := strings.Join(d.Remarks, "\n"); (got == "") != (test.remark == "") || !strings.HasSuffix(got, test.remark) {
				t.Errorf("%s: labels %v: remarks %q, want %q", path, test.labels, got, test.remark)
			}
		}
	}
}

// A test label that no training image has is an error, as a class directory is.
func TestUnseenTestLabels(t *testing.T) {
	for _, path := range writeLabelled(t, []byte{0, 1, 2}, []byte{1, 2, 3}) {
		_, err := Open(path, isolated(t))
		wantError(t, err, "datasets: "+path+": the labels of test images must be among those of the training images, 0 to 2, got 3 for image 2")
	}
}

// The largest label does not determine the number of classes, nor the memory of what is computed
// for each class.
func TestLargeLabels(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large.npz")
	writeNPZ(t, path, map[string][]byte{
		"images": npyBytes("|u1", "(6, 1, 1)", []byte{0, 50, 100, 150, 200, 250}), "labels": npyBytes("<i8", "(6,)", int64s(0, 2, 65535, 0, 2, 65535)),
	})
	options := isolated(t)
	options.Test = 0.5
	options.Validation = -1
	splits, err := Open(path, options)
	if err != nil || !cmp.Equal(splits.Train.ClassNames, []string{"0", "2", "65535"}) {
		t.Errorf("classes %v, error %v", splits.Train.ClassNames, err)
	}
}

// CIFAR's names count, but a class without a training image is remarked on.
func TestClassesWithoutImages(t *testing.T) {
	root, data := t.TempDir(), randomBytes(4, 2*cifarImage)
	for name, content := range cifarFiles(data)["cifar-10-batches-bin"] {
		if name == "batches.meta.txt" {
			content = []byte("plane\ncar\nbird\ncat\n")
		}
		write(t, content, root, name)
	}
	splits, err := Open(root, isolated(t))
	if err != nil || splits.Train.Classes != 4 {
		t.Fatalf("%+v, %v", splits, err)
	}
	if want := []string{filepath.Base(root) + ": no training image has the class bird, cat"}; !cmp.Equal(splits.Train.Remarks[:1], want) {
		t.Errorf("remarks %q, want %q", splits.Train.Remarks, want)
	}
}

func TestNewWithUnusedLabels(t *testing.T) {
	d, err := New("some", []byte{1, 2, 3}, []int32{1, 2, 4}, 1, 1, 1, nil)
	if want := []string{"some: no image has the labels 0, 3"}; err != nil || d.Classes != 5 || !cmp.Equal(d.Remarks, want) {
		t.Errorf("%+v, %v, want the remarks %q", d, err, want)
	}
	if d, err = New("some", []byte{1, 2, 3}, []int32{1, 2, 0}, 1, 1, 1, nil); err != nil || d.Remarks != nil {
		t.Errorf("%+v, %v, want no remark", d, err)
	}
}

func TestRanges(t *testing.T) {
	for want, numbers := range map[string][]int{
		"": nil, "7": {7}, "0, 1": {0, 1}, "0 to 2": {0, 1, 2}, "1, 3 to 5, 9": {1, 3, 4, 5, 9},
		"0, 2, 4, 6, 8, 10, 12, 14, ...": {0, 2, 4, 6, 8, 10, 12, 14, 16},
	} {
		if got := ranges(numbers); got != want {
			t.Errorf("ranges(%v) = %q, want %q", numbers, got, want)
		}
	}
}

// Images without a label are left out of data in which others have one, in every format.
func TestSomeLabels(t *testing.T) {
	root := t.TempDir()
	names := func(texts ...string) []byte {
		values := []byte{}
		for _, text := range texts {
			values = append(values, (text + "\x00\x00\x00")[:3]...)
		}
		return npyBytes("|S3", fmt.Sprintf("(%d,)", len(texts)), values)
	}
	pixels := []byte{10, 11, 12, 13, 20, 21, 22, 23, 30, 31, 32, 33, 40, 41, 42, 43}
	writeNPZ(t, filepath.Join(root, "text.npz"), map[string][]byte{"x": npyBytes("|u1", "(4, 2, 2)", pixels), "y": names("dog", "", "cat", "dog")})
	rows := "10,11,12,13\n%s,20,21,22,23\n%s,30,31,32,33\n%s,40,41,42,43\n"
	write(t, fmt.Appendf(nil, "label,a,b,c,d\ndog,"+rows, "", "cat", "dog"), root, "text.csv")
	write(t, fmt.Appendf(nil, "label,a,b,c,d\n1,"+rows, "", "0", "1"), root, "numbers.csv")
	write(t, []byte("label,a,b,c,d\n,0,1,2,0\n,0,1,2,0\n"), root, "none.csv")
	writeNPZ(t, filepath.Join(root, "none.npz"), map[string][]byte{"x": npyBytes("|u1", "(4, 2, 2)", pixels), "y": names("", "", "", "")})
	for _, file := range []string{"none.csv", "none.npz"} {
		_, err := Open(filepath.Join(root, file), isolated(t))
		wantError(t, err, file+": must have a label for each image")
	}
	for file, classes := range map[string][]string{"text.npz": {"cat", "dog"}, "text.csv": {"cat", "dog"}, "numbers.csv": {"0", "1"}} {
		options := isolated(t)
		options.Test, options.Validation = -1, -1
		splits, err := Open(filepath.Join(root, file), options)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		d := splits.Train
		kept := append(slices.Clone(pixels[:4]), pixels[8:]...)
		if !slices.Equal(d.ClassNames, classes) || !slices.Equal(d.Labels, []int32{1, 0, 1}) || !slices.Equal(d.Images, kept) {
			t.Errorf("%s: classes %q, labels %v, images %v", file, d.ClassNames, d.Labels, d.Images)
		}
		if remarks := strings.Join(d.Remarks, "\n"); !strings.Contains(remarks, "1 of 4 images have no label and are left out, such as image 1") {
			t.Errorf("%s: remarks %q", file, remarks)
		}
		if all, err := ReadImages([]string{filepath.Join(root, file)}, isolated(t)); err != nil || all.Len() != 4 {
			t.Errorf("%s: read as images without labels: %v (%v)", file, all, err)
		}
	}
}
