package datasets

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/parquettest"
)

// Options.Label chooses among the columns of tables, CSV files and Parquet files.
func TestLabelColumn(t *testing.T) {
	lesions := tabled(t, "images/", "lesion,image_id,dx,age,label", func(i int) string {
		return fmt.Sprintf("L%d,%d,nevus%d,4%d,x%d", i, i, i%2, i, i%3)
	})
	pixels := "image_id,label,species" + strings.Repeat(",p1", 16) + "\n"
	for i := range 8 {
		pixels += fmt.Sprintf("%d,%d,%d%s\n", i, i%4, 5+i%2, strings.Repeat(",7", 16))
	}
	images, _, _ := rowsOf(t, flowers(t, 8, ""), "")
	shard := parquetOf(t, nil, images,
		parquettest.Column{Name: "label", Values: inTurn(len(images), 4)}, parquettest.Column{Name: "kind", Values: inTurn(len(images), 2)})
	table := filepath.Join(t.TempDir(), "birds.csv")
	write(t, []byte(pixels), table)
	plain := filepath.Join(t.TempDir(), "plain.csv")
	write(t, []byte("label"+strings.Repeat(",p1", 16)+strings.Repeat("\n1"+strings.Repeat(",7", 16), 4)), plain)
	for _, test := range []struct {
		path, label, found string
		classes, remarks   []string
	}{
		{lesions, "", "label", []string{"x0", "x1", "x2"}, nil},
		{lesions, "DX", "dx", []string{"nevus0", "nevus1"}, nil},
		{filepath.Join(lesions, "labels.csv"), "dx", "dx", []string{"nevus0", "nevus1"}, nil},
		{table, "Species", "species", []string{"5", "6"}, []string{"birds.csv: columns that are not read: label"}},
		{shard, "", "label", []string{"0", "1", "2", "3"}, []string{"set: columns that are not read: kind"}},
		{shard, "kind", "kind", []string{"0", "1"}, []string{"set: columns that are not read: label"}},
	} {
		options := ownSplits(t)
		options.Label, options.Test = test.label, -1
		splits, err := Open(test.path, options)
		if err != nil {
			t.Errorf("%s, label %q: %v", test.path, test.label, err)
			continue
		}
		d := splits.Train
		if d.LabelColumn != test.found || !slices.Equal(d.ClassNames, test.classes) {
			t.Errorf("%s, label %q: column %q, classes %q", test.path, test.label, d.LabelColumn, d.ClassNames)
		}
		for _, want := range test.remarks {
			if !slices.Contains(d.Remarks, want) {
				t.Errorf("%s, label %q: remarks %q, want %q", test.path, test.label, d.Remarks, want)
			}
		}
	}
	for path, found := range map[string]string{lesions: "label", plain: "label", shard: "label", flowers(t, 8, ""): "no column", "glyphs": "no column"} {
		options := ownSplits(t)
		options.Label, options.Test = "colour", -1
		_, err := Open(path, options)
		var invalid *OptionError
		if !errors.As(err, &invalid) || invalid.Option != "Label" {
			t.Errorf("%s: error %v", path, err)
			continue
		}
		wantError(t, err, `got "colour", but the labels of`, "are in "+found)
	}
	// A table without any column of labels is an error that names the option.
	unnamed := tabled(t, "", "image,a,b", func(i int) string { return fmt.Sprint(i, ".png,x,y") })
	for label, want := range map[string]string{"": "; state the column with the classes as label", "c": `; the label, "c", must be one of them`} {
		for _, path := range []string{unnamed, filepath.Join(unnamed, "labels.csv")} {
			options := isolated(t)
			options.Label = label
			_, err := Open(path, options)
			wantError(t, err, "the columns image, a, b"+want)
		}
	}
}

// A label table is opened by its path: it may be one of several in its directory.
func TestOpenTable(t *testing.T) {
	root := tabled(t, "images/", "file,label", func(i int) string { return fmt.Sprint(i, ".png,a", i%2) })
	write(t, []byte("file,label,split\n0.png,big,train\n1.png,small,train\n2.png,big,test\n3.png,small,test\n"), root, "sizes.csv")
	if _, err := Open(root, isolated(t)); err == nil {
		t.Error("two tables: no error")
	}
	options := ownSplits(t)
	options.Test = -1
	splits, err := Open(filepath.Join(root, "labels.csv"), options)
	if err != nil {
		t.Fatal(err)
	}
	if d := splits.Train; d.Len() != 6 || !slices.Equal(d.ClassNames, []string{"a0", "a1"}) || d.Name != filepath.Base(root) || d.Place != root {
		t.Errorf("%d images of %q in %s at %s", d.Len(), d.ClassNames, d.Name, d.Place)
	}
	if splits, err = Open(filepath.Join(root, "sizes.csv"), options); err != nil {
		t.Fatal(err)
	}
	if d := splits.Test; d == nil || !slices.Equal(d.Files, []string{"images/2.png", "images/3.png"}) || !slices.Equal(d.ClassNames, []string{"big", "small"}) {
		t.Errorf("test images %+v", d)
	}
	if want := "dots: 2 of 6 images are left out, since they are not in sizes.csv, such as images/4.png"; !slices.Contains(splits.Train.Remarks, want) {
		t.Errorf("remarks %q, want %q", splits.Train.Remarks, want)
	}
}

// The files that a table names are read in its order, without its labels.
func TestReadTable(t *testing.T) {
	root := dots(t, "images/0.png", "images/1.png", "images/2.png")
	table := filepath.Join(root, "test.csv")
	write(t, []byte("note,filename\nx,2\ny,0.png\nz,7.png\n"), table)
	options := isolated(t)
	options.MaxSkipped = 0.5
	images, err := ReadImages([]string{filepath.Join(root, "images", "1.png"), table}, options)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range images.Files {
		names = append(names, filepath.ToSlash(strings.TrimPrefix(file, root+string(filepath.Separator))))
	}
	if !slices.Equal(names, []string{"images/1.png", "images/2.png", "images/0.png"}) {
		t.Errorf("files %q", names)
	}
	if len(images.Skipped) != 1 || !strings.Contains(images.Skipped[0], "7.png: listed in test.csv but missing") {
		t.Errorf("skipped %q", images.Skipped)
	}
}
