package datasets

import (
	"encoding/binary"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

// tabled writes six images 0.png ... 5.png into a directory of a new root, and a table at the root
// with a heading and a row for each of them, and returns the root.
func tabled(t *testing.T, dir, heading string, row func(i int) string) string {
	t.Helper()
	var names []string
	table := heading + "\n"
	for i := range 6 {
		names = append(names, dir+strconv.Itoa(i)+".png")
		table += row(i) + "\n"
	}
	root := dots(t, names...)
	write(t, []byte(table), root, "labels.csv")
	return root
}

// scanned returns the images of a tree as "split class file", and its remarks without its name.
func scanned(t *testing.T, root string) (images, remarks []string) {
	t.Helper()
	found, err := scan(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	for split, list := range found.splits {
		if list == nil {
			continue
		}
		for _, p := range list.images {
			images = append(images, fmt.Sprintf("%v %s %s", Split(split), p.class, p.name))
		}
	}
	for _, remark := range found.remarks {
		remarks = append(remarks, strings.TrimPrefix(remark, "dots"))
	}
	return images, remarks
}

// Names in tables find their images as people and programs write them.
func TestTableNames(t *testing.T) {
	for _, test := range []struct {
		name, dir, heading string
		row                func(i int) string
		remarks            []string
	}{
		{"ids under a known heading", "", "image,label", func(i int) string { return fmt.Sprint(i, ",a", i%2) },
			[]string{"/labels.csv: 6 of 6 files are found without regard to their extension, such as 0.png for 0"}},
		{"ids under other headings", "", "id_code,diagnosis", func(i int) string { return fmt.Sprint(i, ",a", i%2) },
			[]string{"/labels.csv: 6 of 6 files are found without regard to their extension, such as 0.png for 0"}},
		{"ids next to numbers of rows and of classes", "", ",id,level", func(i int) string { return fmt.Sprint(i, ",", 5-i, ",", i%2) },
			[]string{"/labels.csv: 6 of 6 files are found without regard to their extension, such as 5.png for 5"}},
		{"ids in the second column", "images/", "diagnosis;id", func(i int) string { return fmt.Sprint("a", i%2, ";", i) },
			[]string{"/labels.csv: 6 of 6 files are found without regard to their extension, such as images/0.png for 0"}},
		{"case of the extension", "", "filename,label", func(i int) string { return fmt.Sprint(i, ".PNG,a", i%2) },
			[]string{"/labels.csv: 6 of 6 files are found without regard to their extension, such as 0.png for 0.PNG"}},
		{"another extension", "", "filename,label", func(i int) string { return fmt.Sprint(i, ".jpg,a", i%2) },
			[]string{"/labels.csv: 6 of 6 files are found without regard to their extension, such as 0.png for 0.jpg"}},
		{"backslashes", "images/", "path,label", func(i int) string { return fmt.Sprint(`images\`, i, ".png,a", i%2) }, nil},
		{"paths of another machine", "images/", "path,label", func(i int) string { return fmt.Sprint("/data/x/", i, ".png,a", i%2) },
			[]string{"/labels.csv: files are found by the last part of their path, such as images/0.png for /data/x/0.png"}},
		{"a column for each class", "", "image,a0,a1,a2", func(i int) string { return fmt.Sprintf("%d.png,%.1f,%d.0,0", i, float64(1-i%2), i%2) }, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			images, remarks := scanned(t, tabled(t, test.dir, test.heading, test.row))
			var want []string
			for i := range 6 {
				if want = append(want, fmt.Sprintf("train a%d %s%d.png", i%2, test.dir, i)); strings.HasPrefix(test.heading, ",") {
					want[i] = fmt.Sprintf("train %d %d.png", i%2, 5-i)
				}
			}
			if !slices.Equal(images, want) || !slices.Equal(remarks, test.remarks) {
				t.Errorf("images %q, remarks %q, want %q, %q", images, remarks, want, test.remarks)
			}
		})
	}
}

// A table's names and the disk's may have other forms of Unicode.
func TestTableForms(t *testing.T) {
	root := dots(t, "e\u0301.png", "u\u0308.png")
	write(t, []byte("file,class\n\u00e9.png,Gr\u00f6\u00dfe\n\u00fc.png,Gro\u0308\u00dfe\n"), root, "labels.csv")
	images, remarks := scanned(t, root)
	if want := []string{"train Gr\u00f6\u00dfe e\u0301.png", "train Gr\u00f6\u00dfe u\u0308.png"}; !slices.Equal(images, want) || remarks != nil {
		t.Errorf("images %+q, remarks %q, want %+q", images, remarks, want)
	}
}

// A column of splits is used, and images that the table does not name are counted.
func TestTableSplits(t *testing.T) {
	root := tabled(t, "", "file,class,Split", func(i int) string { return fmt.Sprint(i, ".png,a,", []string{"train", "TEST", "val"}[i%3]) })
	write(t, encoded(t, colourPicture(1, 1, color.White)), root, "left", "7.png")
	write(t, encoded(t, colourPicture(1, 1, color.White)), root, "left", "8.png")
	images, remarks := scanned(t, root)
	want := []string{"train a 0.png", "train a 3.png", "test a 1.png", "test a 4.png", "validation a 2.png", "validation a 5.png"}
	if !slices.Equal(images, want) {
		t.Errorf("images %q, want %q", images, want)
	}
	if want := []string{": 2 of 8 images are left out, since they are not in labels.csv, such as left/7.png"}; !slices.Equal(remarks, want) {
		t.Errorf("remarks %q, want %q", remarks, want)
	}

	images, remarks = scanned(t, tabled(t, "", "file,class,fold", func(i int) string { return fmt.Sprint(i, ".png,a,", i%3) }))
	want = []string{"/labels.csv: the column fold is not used, since its values are not train, val or test: 0, 1, 2"}
	if len(images) != 6 || !slices.Equal(remarks, want) {
		t.Errorf("images %q, remarks %q, want %q", images, remarks, want)
	}
	for row, want := range map[string]string{
		"extra": `labels.csv: record 3: split must be train, val or test, got "extra"`,
		"test":  "labels.csv: must have rows whose split is train",
	} {
		root := tabled(t, "", "file,class,split", func(i int) string {
			if i == 0 {
				return "0.png,a,test"
			}
			return fmt.Sprint(i, ".png,a,", row)
		})
		_, err := scan(t.Context(), root)
		wantError(t, err, "datasets: "+root, want)
	}
	root = dots(t, "train/0.png", "test/b/1.png")
	write(t, []byte("file,class,split\n0.png,b,train\n"), root, "train", "a.csv")
	if images, _ := scanned(t, root); !slices.Equal(images, []string{"train b train/0.png", "test b test/b/1.png"}) {
		t.Errorf("images %q", images)
	}
	write(t, []byte("file,class,split\n0.png,b,train\n1.png,b,test\n"), root, "train", "a.csv")
	write(t, encoded(t, colourPicture(1, 1, color.White)), root, "train", "1.png")
	_, err := scan(t.Context(), root)
	wantError(t, err, "train: must be either directories for the splits or a column of splits in train/a.csv, got both")
}

// Of several tables, those named like splits are used.
func TestTablesOfSplits(t *testing.T) {
	root := dots(t, "images/0.png", "images/1.png", "images/2.png")
	write(t, []byte("path,label\nimages/0.png,a\n"), root, "train.csv")
	write(t, []byte("path,label\nimages/1.png,a\n"), root, "my_test.csv")
	write(t, []byte("path,label\nimages/2.png,a\n"), root, "meta.csv")
	images, remarks := scanned(t, root)
	if want := []string{"train a images/0.png", "test a images/1.png"}; !slices.Equal(images, want) {
		t.Errorf("images %q, want %q", images, want)
	}
	want := []string{
		"/meta.csv: not read, since train.csv is",
		": 1 of 3 images are left out, since they are not in my_test.csv and train.csv, such as images/2.png",
	}
	if !slices.Equal(remarks, want) {
		t.Errorf("remarks %q, want %q", remarks, want)
	}
	write(t, []byte("path,label\nimages/2.png,a\n"), root, "training.csv")
	_, err := scan(t.Context(), root)
	wantError(t, err, "dots: must have one table of the train split, got train.csv and training.csv")
}

// The classes of directories without class directories may be in a table next to them.
func TestTableNextToSplits(t *testing.T) {
	root := dots(t, "train/0.png", "train/1.png", "test/2.png")
	write(t, []byte("id,breed\n0,a\n1,b\n"), root, "labels.csv")
	images, remarks := scanned(t, root)
	want := []string{
		"/labels.csv: 2 of 2 files are found without regard to their extension, such as train/0.png for 0",
		": 1 of 3 images are left out, since they are not in labels.csv, such as test/2.png",
	}
	if !slices.Equal(images, []string{"train a train/0.png", "train b train/1.png"}) || !slices.Equal(remarks, want) {
		t.Errorf("images %q, remarks %q", images, remarks)
	}

	root = dots(t, "Train/a/0.png", "Test/1.png")
	write(t, []byte("Path,ClassId\nTrain/a/0.png,a\n"), root, "Train.csv")
	write(t, []byte("Path,ClassId\nTest/1.png,a\n"), root, "Test.csv")
	if images, remarks = scanned(t, root); !slices.Equal(images, []string{"train a Train/a/0.png", "test a Test/1.png"}) || remarks != nil {
		t.Errorf("images %q, remarks %q", images, remarks)
	}
}

// A mistake in a table is an error or a remark that names it.
func TestTableMistakes(t *testing.T) {
	_, remarks := scanned(t, tabled(t, "", "file,class", func(i int) string {
		return fmt.Sprint(i, ".png,", []string{"rose", "Rose ", " rose", "NaN", "tulip", "tulip|rose"}[i])
	}))
	want := []string{
		`/labels.csv: 1 of 6 records have the class "NaN": does it stand for a missing value? ` +
			"Records with an empty class are left out, as is a class by without-classes",
		`: the classes "Rose" and "rose" differ only in upper and lower case or in space: are they one?`,
		": classes that join others are classes of their own, since an image has one: tulip|rose",
	}
	if !slices.Equal(remarks, want) {
		t.Errorf("remarks %q, want %q", remarks, want)
	}
	for _, test := range []struct {
		heading string
		row     func(i int) string
		want    []string
	}{
		{"image,a,b", func(i int) string { return fmt.Sprint(i, ".png,1,", i/3) },
			[]string{"labels.csv: record 5: 3.png must have a 1 for a single class, got a, b"}},
		{"image,a,b", func(i int) string { return fmt.Sprint(i, ".png,0,0") },
			[]string{"labels.csv: must have records with a class, got none in 6"}},
		{"lesion,image_id,dx,age", func(i int) string { return fmt.Sprint("L,", i, ",a,4", i) },
			[]string{"dots: must have a directory of images for each class", "got labels.csv with the columns lesion, image_id, dx, age"}},
		{"id,number", func(i int) string { return fmt.Sprint(i, ",", 5-i) },
			[]string{"dots: must have a directory of images for each class", "got labels.csv with the columns id, number"}},
		{"a,b", func(i int) string { return "x,y" },
			[]string{"dots: must have a directory of images for each class", "got labels.csv with the columns a, b"}},
	} {
		root := tabled(t, "", test.heading, test.row)
		_, err := scan(t.Context(), root)
		wantError(t, err, append(test.want, "datasets: "+root)...)
	}
}

// A table may be in UTF-16 with a byte order mark. Errors of a table in another encoding tell how
// to convert it.
func TestTableEncodings(t *testing.T) {
	text := "file\tclass\n0.png\tÄpfel\n1.png\tkiwi\n"
	for _, order := range []interface {
		AppendUint16([]byte, uint16) []byte
	}{binary.LittleEndian, binary.BigEndian} {
		var content []byte
		for _, unit := range utf16.Encode([]rune("\ufeff" + text)) {
			content = order.AppendUint16(content, unit)
		}
		root := dots(t, "0.png", "1.png")
		write(t, content, root, "labels.csv")
		if images, _ := scanned(t, root); !slices.Equal(images, []string{"train Äpfel 0.png", "train kiwi 1.png"}) {
			t.Errorf("%v: images %q", order, images)
		}
	}
	for _, content := range []string{"file,class\n0.png,\xc4pfel\n1.png,kiwi\n", "file,class\n\xe4.png,a\n\xf6.png,b\n"} {
		root := dots(t, "0.png", "1.png")
		write(t, []byte(content), root, "labels.csv")
		_, err := scan(t.Context(), root)
		wantError(t, err, "not in UTF-8: save it again, or convert it, such as")
		if !utf8.ValidString(err.Error()) {
			t.Errorf("%q", err)
		}
	}
}

// A table that cannot be used next to class directories is named.
func TestTableNotRead(t *testing.T) {
	root := dots(t, "a/0.png", "b/1.png")
	write(t, []byte("file,photographer\n0.png,x\n"), root, "meta.csv")
	write(t, []byte("\"unfinished"), root, "odd.csv")
	images, remarks := scanned(t, root)
	want := []string{
		"/meta.csv: not read: must have a column of files, such as file, and one of classes, such as label, got the columns file, photographer",
		"/odd.csv: not read: must have a column of files, such as file, and one of classes, such as label, got the columns none",
	}
	if len(images) != 2 || !slices.Equal(remarks, want) {
		t.Errorf("images %q, remarks %q, want %q", images, remarks, want)
	}
	root = dots(t, "train/a/0.png", "test/a/0.png")
	write(t, []byte("file,class\ntrain/a/0.png,x\n"), root, "labels.csv")
	if _, remarks = scanned(t, root); !slices.Equal(remarks, []string{": ignored, next to the directories of the splits: labels.csv"}) {
		t.Errorf("remarks %q", remarks)
	}
	_, err := scan(t.Context(), filepath.Join(root, "none"))
	wantError(t, err, "none")
}

// Columns of a table that are not read are named, since one of them may have the groups.
func TestUnreadColumns(t *testing.T) {
	root := dots(t, "0.png", "1.png")
	write(t, []byte("file,label,patient,,note\n0.png,a,p,1,x\n1.png,b,q,2,y\n"), root, "labels.csv")
	if _, remarks := scanned(t, root); !slices.Equal(remarks, []string{"/labels.csv: columns that are not read: patient, note"}) {
		t.Errorf("remarks %q", remarks)
	}
	write(t, []byte("file,a,b\n0.png,1,0\n1.png,0,1\n"), root, "labels.csv")
	if _, remarks := scanned(t, root); len(remarks) > 0 {
		t.Errorf("remarks %q, want none", remarks)
	}
}

// A table without a header is an error, not one image less.
func TestNoHeader(t *testing.T) {
	root := dots(t, "0.png", "1.png", "2.png")
	write(t, []byte("0.png,a\n1.png,b\n2.png,a\n"), root, "labels.csv")
	_, err := scan(t.Context(), root)
	wantError(t, err, "record 1 must name the columns, such as file,label, got the image 0.png")
}

// Any content of a table is read or refused without a panic, and images are listed once.
func FuzzLabelTable(f *testing.F) {
	fuzzTable(f, "labels.csv",
		"file,class\n0.png,a\n1,b\n", "id;x\n0;a\n1;b\n", "image\ta\tb\n0\t1\t0\n1\t0\t1.0\n", "path,label,split\n/x/0.png,a,train\n/x/1.png,a,test\n",
		"\ufefffile,class,fold\n\"in\\2.png\",NaN,1\n", "file,class\n", "a\n0\n", "file,file,class\n0.png,,\n",
	)
}

func fuzzTable(f *testing.F, name string, contents ...string) {
	for _, content := range contents {
		f.Add([]byte(content))
	}
	root := f.TempDir()
	for _, name := range []string{"0.png", "1.png", "in/2.png"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			f.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(filepath.Join(root, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
		options := Options{Context: t.Context()}
		for _, list := range []func() (tree, error){
			func() (tree, error) { return options.scan(root) },
			func() (tree, error) { return options.scanTable(filepath.Join(root, name)) },
		} {
			found, err := list()
			if err != nil {
				continue
			}
			seen := map[string]bool{}
			for _, list := range present(found.splits) {
				for _, p := range list.images {
					if seen[p.name] || p.class == "" {
						t.Errorf("%q: %s is listed twice or has no class", content, p.name)
					}
					seen[p.name] = true
				}
			}
		}
	})
}

func TestClassNames(t *testing.T) {
	for _, test := range []struct {
		names  []string
		pairs  int
		joined []string
	}{
		{[]string{"a", "b", "ab"}, 0, nil},
		{[]string{"Rose", "rose", "ro se", "tulip"}, 2, nil},
		{[]string{"\u212b", "\u00e5"}, 1, nil}, // the sign of an Ångström and a letter
		{[]string{"a", "b", "a|b", "b, a", "a+c", "|", "7;007", "7"}, 0, []string{"a|b", "b, a", "7;007"}},
	} {
		_, _, pairs := twinClasses(test.names)
		if joined := joinedClasses(test.names); pairs != test.pairs || !slices.Equal(joined, test.joined) {
			t.Errorf("%q: %d pairs, joined %q, want %d, %q", test.names, pairs, joined, test.pairs, test.joined)
		}
	}
}

// Labels that are measurements are refused; numbers of few classes are not.
func TestMeasurements(t *testing.T) {
	for name, c := range map[string]struct {
		label func(i int) string
		want  string
	}{
		"ages":      {func(i int) string { return fmt.Sprintf("%.2f", 20+1.37*float64(i)) }, "must be classes, got 12 different numbers for 12 images, such as"},
		"integers":  {func(i int) string { return strconv.Itoa(i) }, ""},
		"two doses": {func(i int) string { return []string{"0.5", "1.5"}[i%2] }, ""},
		"words":     {func(i int) string { return fmt.Sprint("v1.", i) }, ""},
	} {
		var names []string
		table := "file,label\n"
		for i := range 12 {
			names = append(names, strconv.Itoa(i)+".png")
			table += fmt.Sprintf("%d.png,%s\n", i, c.label(i))
		}
		root := dots(t, names...)
		write(t, []byte(table), root, "labels.csv")
		_, err := Open(root, Options{Test: -1, Validation: -1, NoCache: true})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// Records without a class, or that repeat another, are left out; an image with two classes is an
// error, or left out with DropDuplicates.
func TestTableOfSomeLabels(t *testing.T) {
	root := dots(t, "0.png", "1.png", "2.png", "3.png", "4.png")
	write(t, []byte("file,class\n0.png,1\n1.png,3\n2.png,\n3.png,\n1.png,03\n4.png,-1\n"), root, "labels.csv")
	images, remarks := scanned(t, root)
	want := []string{
		"/labels.csv: 2 of 6 records have no class, and their images are left out, such as 2.png",
		`/labels.csv: 1 of 6 records have the class "-1": does it stand for a missing value? ` +
			"Records with an empty class are left out, as is a class by without-classes",
		"/labels.csv: 1 of 6 records repeat others, such as record 6, 1.png; each image is read once",
	}
	if !slices.Equal(images, []string{"train 1 0.png", "train 3 1.png", "train -1 4.png"}) || !slices.Equal(remarks, want) {
		t.Errorf("images %q, remarks %q", images, remarks)
	}
	write(t, []byte("file,class,split\n0.png,1,train\n1.png,3,train\n2.png,1,test\n2.png,1,train\n"), root, "labels.csv")
	_, err := scan(t.Context(), root)
	wantError(t, err, "labels.csv: record 5: 2.png is also in record 4, with another split or group: remove one of them")

	write(t, []byte("file,class\n0.png,1\n1.png,3\n1.png,1\n2.png,3\n3.png,1\n3.png,3\n"), root, "labels.csv")
	_, err = scan(t.Context(), root)
	wantError(t, err, "labels.csv: an image must have one class, got several for 2 of them; 1.png has the class 3 in record 3, and 1 in record 4: "+
		"remove the wrong records, or set duplicates to drop, which leaves such images out")
	options := isolated(t)
	options.Duplicates, options.Test, options.Validation = DropDuplicates, -1, -1
	splits, err := Open(root, options)
	if err != nil || !slices.Equal(splits.Train.Files, []string{"0.png", "2.png"}) {
		t.Fatalf("%v (%v)", splits, err)
	}
	if want := "since they have several classes: 2 of 4 images; 1.png has the class 3"; !strings.Contains(strings.Join(splits.Train.Remarks, "\n"), want) {
		t.Errorf("remarks %q, want %q", splits.Train.Remarks, want)
	}
}
