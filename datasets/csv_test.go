package datasets

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/internal/memory"
	"github.com/pollen-ml/pollen/internal/testenv"
)

// csvLines are lines with a label and pixels, in either order of columns.
func csvLines(labels []int, pixels []byte, labelLast bool) string {
	var text strings.Builder
	size := len(pixels) / len(labels)
	for i, label := range labels {
		var fields []string
		for _, p := range pixels[i*size : (i+1)*size] {
			fields = append(fields, fmt.Sprint(p))
		}
		if labelLast {
			fields = append(fields, fmt.Sprint(label))
		} else {
			fields = slices.Insert(fields, 0, fmt.Sprint(label))
		}
		text.WriteString(strings.Join(fields, ",") + "\n")
	}
	return text.String()
}

func TestCSV(t *testing.T) {
	grey, colours := randomBytes(11, 3*4), randomBytes(12, 3*2*2*3)
	labels := []int{2, 0, 1}
	kaggle := "label,pixel0,pixel1,pixel2,pixel3\n" + csvLines(labels, grey, false)
	quoted := `"label","1x1","1x2","2x1","2x2"` + "\n"
	for name, test := range map[string]struct {
		text     string
		channels int
		pixels   []byte
	}{
		"Kaggle's MNIST":     {kaggle, 1, grey},
		"no headings":        {csvLines(labels, grey, false), 1, grey},
		"quotes, no end":     {strings.TrimSpace(strings.ReplaceAll(quoted+csvLines(labels, grey, false), ",", " , ")), 1, grey},
		"Windows":            {"\ufeff" + strings.ReplaceAll(strings.ReplaceAll(kaggle, ",", ";"), "\n", "\r\n\r\n"), 1, grey},
		"Macintosh":          {strings.ReplaceAll(kaggle, "\n", "\r"), 1, grey},
		"whole numbers":      {strings.ReplaceAll(strings.ReplaceAll(kaggle, "\n", ".0\n"), ".0\n2,", ".0\n2.0,"), 1, grey},
		"tabs":               {strings.ReplaceAll(kaggle, ",", "\t"), 1, grey},
		"label last, colour": {"a,b,c,d,e,f,g,h,i,j,k,l,Label\n" + csvLines(labels, colours, true), 3, colours},
		"colour":             {csvLines(labels, colours, false), 3, colours},
	} {
		for form, content := range map[string][]byte{"some.csv": []byte(test.text), "some.CSV.gz": packed(t, []byte(test.text))} {
			path := filepath.Join(t.TempDir(), form)
			write(t, content, path)
			options := isolated(t)
			options.Test, options.Validation = -1, -1
			remark := ""
			options.Remark = func(text string) { remark += text }
			splits, err := Open(path, options)
			if err != nil {
				t.Errorf("%s, %s: %v", name, form, err)
				continue
			}
			want := filepath.Base(path) + " has no header: its first column is read as the label, with values from 0 to 2"
			if headed := strings.Contains(strings.ToLower(test.text), "label"); headed && remark != "" || !headed && remark != want {
				t.Errorf("%s, %s: remark %q", name, form, remark)
			}
			d := splits.Train
			if d.Name != "some" || d.Channels != test.channels || d.Height != 2 || d.Width != 2 || d.Classes != 3 || d.Hashes[form] != sha256Hex(content) {
				t.Errorf("%s, %s: got %s with %d classes of %dx%dx%d, %v", name, form, d.Name, d.Classes, d.Channels, d.Height, d.Width, d.Hashes)
			}
			if !slices.Equal(d.Labels, []int32{2, 0, 1}) || len(d.Images) != len(test.pixels) {
				t.Fatalf("%s, %s: labels %v, %d bytes", name, form, d.Labels, len(d.Images))
			}
			for i, p := range test.pixels { // [N H W C] there, [N C H W] here
				image, pixel, c := i/(4*test.channels), i/test.channels%4, i%test.channels
				if got := d.Image(image)[4*c+pixel]; got != p {
					t.Fatalf("%s, %s: image %d, pixel %d, channel %d is %d, want %d", name, form, image, pixel, c, got, p)
				}
			}
		}
	}
}

// A folder has a file for each split; other files and pictures are ignored.
func TestCSVDir(t *testing.T) {
	root := filepath.Join(t.TempDir(), "digits")
	pixels := randomBytes(13, 3*9)
	write(t, []byte("Id,Label\n1,0\n"), root, "inside", "sample_submission.csv")
	write(t, []byte(csvLines([]int{1, 0, 4}, pixels, false)), root, "inside", "sign-mnist_train.csv")
	write(t, packed(t, []byte(csvLines([]int{4}, pixels[9:18], false))), root, "inside", "sign-mnist_test.csv.gz")
	splits, err := Open(root, isolated(t))
	if err != nil {
		t.Fatal(err)
	}
	if splits.Validation != nil || splits.Test.Len() != 1 || splits.Train.Len() != 3 || splits.Test.Classes != 3 || len(splits.Train.Hashes) != 2 {
		t.Errorf("got %+v", splits)
	}
	if d := splits.Test; d.Name != "digits" || d.Labels[0] != 2 || !bytes.Equal(d.Images, pixels[9:18]) {
		t.Errorf("the test split is %+v", d)
	}
	write(t, []byte(csvLines([]int{4}, pixels[:4], false)), root, "inside", "val.csv")
	_, err = Open(root, isolated(t))
	wantError(t, err, "digits: all splits must have images of the same shape, got validation of 1x2x2 and train of 1x3x3")
	write(t, []byte("pixel0,pixel1\n1,2\n"), root, "inside", "val.csv")
	_, err = Open(root, isolated(t))
	wantError(t, err, "digits/inside/val.csv: line 1: column 1 must be an integer, or a column be called classid, class,", `target, got "pixel0"`)
	write(t, nil, root, "inside", "train.csv")
	_, err = Open(root, isolated(t))
	wantError(t, err, "digits/inside: must have one file of the train split, got sign-mnist_train.csv and train.csv")

	for _, table := range []string{"Width,Height,Roi.X1,Roi.Y1,ClassId,Path\n3,3,0,0,1,a/1.png\n", "image_id,label\n1,2\n", "", "a,b,c,d,e,f\n"} {
		images := dots(t, "a/1.png", "a/2.png", "b/1.png", "b/2.png")
		write(t, []byte(table), images, "Train.csv")
		if isCSVDir(images) {
			t.Errorf("images next to %q count as images in CSV", table)
		}
	}
}

// Labels may be names of classes, among them numbers, in any of the files.
func TestCSVClassNames(t *testing.T) {
	dir := t.TempDir()
	write(t, []byte("label,a,b,c,d\n7,0,1,2,0\ncat,1,1,2,0\n\"dog\",2,1,2,0\ncat,3,1,2,0\n07,4,1,2,0\n"), dir, "train.csv")
	write(t, []byte("label,a,b,c,d\n7,9,1,2,0\n"), dir, "test.csv")
	options := isolated(t)
	options.Validation = -1
	splits, err := Open(dir, options)
	if err != nil {
		t.Fatal(err)
	}
	if d := splits.Train; !slices.Equal(d.ClassNames, []string{"7", "cat", "dog"}) || !slices.Equal(d.Labels, []int32{0, 1, 2, 1, 0}) {
		t.Errorf("classes %q, labels %v", d.ClassNames, d.Labels)
	}
	if d := splits.Test; !slices.Equal(d.ClassNames, splits.Train.ClassNames) || !slices.Equal(d.Labels, []int32{0}) {
		t.Errorf("test classes %q, labels %v", d.ClassNames, d.Labels)
	}
	write(t, []byte("label,a,b,c,d\nmouse,9,1,2,0\n"), dir, "test.csv")
	_, err = Open(dir, options)
	wantError(t, err, `the labels of test images must be among those of the training images, 7, cat, dog, got "mouse"`)
}

func TestCSVErrors(t *testing.T) {
	gz := packed(t, []byte("1,2,3,4,5\n"))
	for _, test := range []struct{ name, content, want string }{
		{"empty", "", "some.csv: line 1: must have a label and pixels, got the end"},
		{"blank", "\n\n", "some.csv: line 3: must have a label and pixels, got the end"},
		{"headings only", "label,a,b,c,d\n", "some.csv: line 2: must have at least one image, got the end"},
		{"no label", "a,b,c,d,e\n", `1: column 1 must be an integer, or a column be called ` + strings.Join(classHeadings, ", ") + `, got "a"`},
		{"a word", "1,2,3,4,x\n", `1: column 5 must be an integer, or a column be called ` + strings.Join(classHeadings, ", ") + `, got "x"`},
		{"files", "file,label\na.png,1\n", "some.csv: line 1: must have a label and pixels, got the header of a table of files: give the files, or their directory"},
		{"not a square", "1,2,3,4,5,6\n", "some.csv: line 1: must have the pixels of a square image next to the label, N x N or N x N x 3, got 5 columns"},
		{"no pixels", "1\n", "some.csv: line 1: must have the pixels of a square image next to the label, N x N or N x N x 3, got 0 columns"},
		{"large pixel", "1,0,0,0,0\n\n1,0,0,256,0\n", `some.csv: line 3: column 4: must be an integer from 0 to 255, got "256"`},
		{"an HTML page", "<html>403 Forbidden</html>\n", `some.csv: line 1: column 1 must be an integer, or a column be called`},
		{"unnamed columns", "label,,a1,a2,a3,a4,\n", `next to the label, N x N or N x N x 3, got 6 columns, with "", "" among them`},
		{"odd columns", "label,a1,a2,a3,a4,split\n", `next to the label, N x N or N x N x 3, got 5 columns, with "split" among them`},
		{"negative label", "label,a,b,c,d\n-1,0,1,2,0\n",
			`some.csv: line 2: column 1: label must be the name of a class or an integer from 0 to below 65536, got "-1": leave the field empty`},
		{"missing label", "label,a,b,c,d\ncat,0,1,2,0\nnan,0,1,2,0\n", `got "nan": leave the field empty if an image has no label`},
		{"negative", "label,a,b,c,d\n1,0,-1,2,0\n", `some.csv: line 2: column 3: must be an integer from 0 to 255, got "-1"`},
		{"fraction", "label,a,b,c,d\n1,0.5,1,2,0\n", `some.csv: line 2: column 2: must be an integer from 0 to 255, got "0.5": multiply pixels from 0 to 1 by 255`},
		{"empty field", "1,0,0,0,0\n1,,0,0,0\n", `some.csv: line 2: column 2: must be an integer from 0 to 255, got ""`},
		{"long number", "1,0,0,0,0\n1,0,0,0," + strings.Repeat("9", 50) + "\n", `2: column 5: must be an integer from 0 to 255, got "99999999999999999999"`},
		{"label", "1,0,0,0,0\n65536,0,0,0,0\n", `some.csv: line 2: column 1: label must be the name of a class or an integer from 0 to below 65536, got "65536"`},
		{"another alphabet", "label,a,b,c,d\n\xff,0,0,0,0\n", `some.csv: line 2: column 1: the name of a class must be UTF-8, got "\xff"`},
		{"short", "1,0,0,0,0\n1,0,0,0\n", "some.csv: line 2: must have 5 columns like the first line, got 4"},
		{"long", "1,0,0,0,0\n1,0,0,0,0,0\n", "some.csv: line 2: must have 5 columns like the first line, got more"},
		{"many values", "1,0,0,0,0\n1,0,0,0,0\n1,0,0,0,0\n", "some.csv: line 3: must have at most 8 values in total"},
		{"truncated header of gzip", string(gz[:5]), "offset 0: gzip header: unexpected EOF"},
		{"truncated gzip", string(gz[:len(gz)-1]), "line 2: unexpected EOF"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := readCSV("some.csv", strings.NewReader(test.content), Options{limits: ArrayLimits{Bytes: 8}})
			wantError(t, err, "datasets: some.csv: ", test.want)
		})
	}
}

// A file that does not fit into the memory is a MemoryError, with settings that need less.
func TestCSVMemory(t *testing.T) {
	r := &csvReader{path: "some.csv", number: 8}
	if err := r.checkRoom(500, 1000, memory.Limit{Bytes: 1000, Reason: "a test"}); err != nil {
		t.Error(err)
	}
	err := r.checkRoom(501, 1000, memory.Limit{Bytes: 1000, Reason: "a test"})
	if !isMemory(err) {
		t.Errorf("error %v is no MemoryError", err)
	}
	wantError(t, err, "datasets: some.csv: reading the images of more than 7 lines needs 1002 B of memory, 1000 B are available (a test); "+
		"less is needed with fewer lines, or the same images as an NPZ file")
	err = r.checkRoom(1001, 1000, memory.Limit{Bytes: 10, Reason: "a test"})
	wantError(t, err, "some.csv: line 8: must have at most 1000 values in total, got more: divide it into several files")
}

// A column that numbers the images is no pixel, and is named in a remark.
func TestCSVIndex(t *testing.T) {
	pixels := randomBytes(13, 2*4)
	for heading, name := range map[string]string{",label,p1,p2,p3,p4": `""`, "id,label,p1,p2,p3,p4": `"id"`, "Unnamed: 0,label,p1,p2,p3,p4": `"unnamed: 0"`} {
		path := filepath.Join(t.TempDir(), "some.csv")
		lines := strings.SplitAfter(csvLines([]int{0, 1}, pixels, false), "\n")
		write(t, []byte(heading+"\n0,"+lines[0]+"777,"+lines[1]), path)
		options := isolated(t)
		options.Test, options.Validation = -1, -1
		splits, err := Open(path, options)
		want := []string{"some.csv: column 1, " + name + ", is not read, since it numbers the images"}
		if err != nil || !bytes.Equal(splits.Train.Images, pixels) || !slices.Equal(splits.Train.Labels, []int32{0, 1}) || !slices.Equal(splits.Train.Remarks, want) {
			t.Errorf("%s: %+v, %v", heading, splits, err)
		}
	}
}

// A column of groups is no pixel, with names of any kind, and a data set without it is refused.
func TestCSVGroups(t *testing.T) {
	var content strings.Builder
	content.WriteString("label,Patient,p1,p2,p3,p4\n")
	for i := range 40 {
		fmt.Fprintf(&content, "%d,\"patient %d\",%d,2,3,4\n", i%2, i/4, i)
	}
	path := filepath.Join(t.TempDir(), "some.csv")
	write(t, []byte(content.String()), path)
	options := isolated(t)
	options.Group = "column=patient"
	splits, err := Open(path, options)
	if err != nil {
		t.Fatal(err)
	}
	wantApart(t, splits, 40)
	for _, d := range splits.all() {
		for i, group := range d.Groups {
			if want := fmt.Sprintf("patient %d", d.Images[4*i]/4); group != want {
				t.Errorf("the image %d has group %q, want %q", d.Images[4*i], group, want)
			}
		}
	}
	options.Group = "column=video"
	_, err = Open(path, options)
	wantError(t, err, "some.csv: must have a header with the column video, got none")
	_, _, err = readCSV("some.csv", strings.NewReader("label,patient,p1\n1,,5\n"), Options{Group: "column=patient"})
	wantError(t, err, "some.csv: line 2: column 2: must have the image's group, got nothing")
}

// OtherColumns are not read, where a file has them; the error for any other column lists them.
func TestCSVOtherColumns(t *testing.T) {
	pixels := strings.Repeat(",p1", 16)
	values := strings.Repeat(",7", 16) + "\n"
	options := Options{Unlabelled: true, OtherColumns: []string{"Patient_ID", "Site"}, limits: ArrayLimits{Bytes: 100}}
	for heading, fields := range map[string]string{
		"patient_id" + pixels: "a", "SITE,patient_id" + pixels: "b,a", "id,site" + pixels: "5,b", "patient_id,label" + pixels: "a,1", "label" + pixels: "1",
	} {
		part, columns, err := readCSV("some.csv", strings.NewReader(heading+"\n"+fields+values), options)
		if err != nil || part.count() != 1 || !slices.Equal(part.images, bytes.Repeat([]byte{7}, 16)) {
			t.Errorf("%s: %+v, %v", heading, part, err)
			continue
		}
		if hasIDs, want := part.ids != nil, strings.HasPrefix(heading, "id,"); hasIDs != want || part.groups != nil {
			t.Errorf("%s: columns %+v, identifiers %v, groups %v", heading, columns, part.ids, part.groups)
		}
	}
	for heading, want := range map[string]string{
		"patient_id,scanner" + pixels: `in columns with a number in their names, got 17 columns, with "scanner" among them; ` +
			`columns next to the pixels may be the label (label, class, ...) or the number of the image (id, index, ...) or "site"`,
		"patient_id,scanner,label" + pixels: `next to the label, N x N or N x N x 3, got 17 columns, with "scanner" among them; ` +
			`columns next to the pixels may be the number of the image (id, index, ...) or "site"`,
	} {
		_, _, err := readCSV("some.csv", strings.NewReader(heading+"\n"), options)
		wantError(t, err, "datasets: some.csv: line 1: ", want)
	}
	// Such a file in a directory is an error that names the column, too.
	dir := t.TempDir()
	write(t, []byte("scanner"+pixels+"\nb"+values), dir, "test.csv")
	_, err := ReadImages([]string{dir}, options)
	wantError(t, err, `test.csv: line 1: `, `with "scanner" among them`)
}

// A column image_id has the file names of a label table, unless all other columns are pixels.
func TestCSVImageID(t *testing.T) {
	heading := "image_id,label" + strings.Repeat(",p1", 16) + "\n"
	part, columns, err := readCSV("some.csv", strings.NewReader(heading+"5,1"+strings.Repeat(",7", 16)+"\n"), Options{limits: ArrayLimits{Bytes: 100}})
	if err != nil || part.count() != 1 || columns.skipped != `1, "image_id",` {
		t.Errorf("%+v, %+v, %v", part, columns, err)
	}
	_, _, err = readCSV("some.csv", strings.NewReader("image_id,label,x,y,w,h\na,1,2,3,4,5\n"), Options{limits: ArrayLimits{Bytes: 100}})
	wantError(t, err, "got the header of a table of files")
}

// endless repeats a text.
type endless struct{ text string }

func (e endless) Read(to []byte) (int, error) {
	if len(to) < len(e.text) {
		return 0, io.ErrShortBuffer
	}
	whole := len(to) / len(e.text)
	return copy(to, strings.Repeat(e.text, whole)), nil
}

// Endless lines, and an endless file, take no more memory than allowed.
func TestCSVHostile(t *testing.T) {
	for _, test := range []struct {
		text string
		from io.Reader
		want string
	}{
		{"a line", endless{"1"}, "some.csv: line 1: must have a"},
		{"columns", endless{","}, "some.csv: line 1: must have a"},
		{"columns of a line", strings.NewReader(strings.Repeat(",", csvMaxLine-1)), "some.csv: line 1: must have at most 2097152 columns, a label and pixels"},
		{"lines", io.MultiReader(strings.NewReader("1,0,0,0,0\n"), endless{"1,0,0,0,0\n"}), "some.csv: line 16385: must have at most 65536 values in total"},
	} {
		var err error
		used := testenv.Allocated(func() { _, _, err = readCSV("some.csv", test.from, Options{limits: ArrayLimits{Bytes: 1 << 16}}) })
		wantError(t, err, test.want)
		if used > 300<<20 {
			t.Errorf("%s: reading allocated %d bytes", test.text, used)
		}
	}
}

func FuzzReadCSV(f *testing.F) {
	f.Add([]byte("label,a,b,c,d\n1,2,3,4,5\n"))
	f.Add([]byte("1;2;3;4;5\r\n\r\n0;0;0;0;255"))
	f.Add([]byte("\ufeff\"a\",\"class\"\n7,9\n"))
	f.Add(packed(f, []byte("1,2,3,4,5\n")))
	f.Add([]byte("label,a,b,c,d\n,0,0,0,0\n1,0,0,0,0\n")) // an image without a label
	f.Fuzz(func(t *testing.T, content []byte) {
		part, _, err := readCSV("file", bytes.NewReader(content), Options{limits: ArrayLimits{Bytes: 1 << 16}})
		if err != nil {
			if part != nil || !strings.HasPrefix(err.Error(), "datasets: file: ") {
				t.Errorf("got %v with error %v", part, err)
			}
			return
		}
		size := part.channels * part.height * part.width
		if part.labels != nil && len(part.images) != len(part.labels)*size || part.count() == 0 || len(part.images)%size != 0 || len(part.images) > 1<<16 {
			t.Errorf("%d labels, %d bytes of images of %dx%dx%d", len(part.labels), len(part.images), part.channels, part.height, part.width)
		}
		// What was read, written again in the plain form, reads back the same.
		if part.channels > 1 || part.labels == nil {
			return
		}
		labels := make([]int, len(part.labels))
		for i, label := range part.labels {
			labels[i] = int(label)
		}
		plain := csvLines(labels, part.images, false)
		if slices.Contains(part.labels, noLabel) { // which is an empty field, below a header
			plain = "label" + strings.Repeat(",0", size) + "\n" + strings.ReplaceAll(plain, fmt.Sprintf("%d,", noLabel), ",")
		}
		again, _, err := readCSV("file", strings.NewReader(plain), Options{limits: ArrayLimits{Bytes: 1 << 16}})
		if err != nil || !slices.Equal(again.labels, part.labels) || !bytes.Equal(again.images, part.images) {
			t.Errorf("read again: %+v, %v", again, err)
		}
	})
}
