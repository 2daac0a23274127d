package report

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/evaluate"
)

func TestReadSubject(t *testing.T) {
	path := filepath.Join(t.TempDir(), "theirs.csv")
	like := &evaluate.Predictions{Name: "roses", Labels: []int32{1, 0}, Classes: 3}
	read := func(content string) (Subject, error) {
		s, remark, err := ReadSubject(written(t, path, content), like, nil, nil)
		if remark != "" {
			t.Errorf("%.20q: remark %q", content, remark)
		}
		return s, err
	}
	for name, content := range map[string]string{
		"numpy.savetxt": "# theirs\n2.500000000000000000e-01 5.0e-01 2.5e-01\n0 0 1\n",
		"CSV":           "0.25,0.5,0.25\r\n0,0,1",
		"padded":        "\n  .25;  .5;\t.25\n\n0 0 1\n\n",
	} {
		got, err := read(content)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := []float64{0.25, 0.5, 0.25, 0, 0, 1}
		if !slices.Equal(got.In.Probabilities, want) || got.Name != path || got.In.Name != "roses" || got.Values["accuracy"] != 0.5 {
			t.Errorf("%s: got %q, %v, accuracy %v, want %v and 0.5", name, got.Name, got.In.Probabilities, got.Values["accuracy"], want)
		}
	}
	for content, want := range map[string]string{
		"":                                       "must have a line of probabilities",
		"0 0 1\n":                                "must have 2 examples x 3 classes = 6 probabilities, got 3",
		"0 0 1\n0 0 .9\n":                        "within 0.0001, got 0.9",
		"0 0 1\n0 1\n":                           "line 2 must have 3 numbers, one per class, got 2",
		"0 0 1 0":                                "line 1 must have 3 numbers, one per class, got 4",
		"a,b,c\n0,0,1\n":                         "line 1: column 1 must be a number, the name of a class or file, got \"a\"",
		"\n\n0 0 1\n0 0 1e":                      "line 4: strconv.ParseFloat",
		"0 0 1\n" + strings.Repeat("0", 1<<24+1): "token too long",
	} {
		if _, err := read(content); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: got %v, want an error with %q", content, err, want)
		}
	}
	if _, _, err := ReadSubject(filepath.Dir(path)+"/nowhere", like, nil, nil); err == nil {
		t.Error("a file that is not there: no error")
	}
}

// written writes a file and returns its path.
func written(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Names match columns and lines in any order; without them, both orders are described.
func TestReadSubjectByName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "theirs.csv")
	classes, files := []string{"1", "2", "10"}, []string{"a/1.png", "a/2.png", "b/1.png", "b/3.png"}
	like := &evaluate.Predictions{Name: "roses", Labels: []int32{0, 0, 1, 2}, Classes: 3}
	inOrder := "0.5 0.25 0.25\n1 0 0\n0 1 0\n0 0 1\n"
	const columns, lines = "columns are read as the classes 1, 2, 10", "lines as the test images in their order, from a/1.png to b/3.png"
	for name, test := range map[string]struct {
		content string
		remark  []string
	}{
		"no names":         {inOrder, []string{columns + ", " + lines}},
		"numbers as names": {"1 10 2\n0.5 0.25 0.25\n1 0 0\n0 0 1\n0 1 0\n", []string{lines}},
		"numpy.savetxt":    {"# 1 10 2\n0.5 0.25 0.25\n1 0 0\n0 0 1\n0 1 0\n", []string{columns}},
		"files":            {"file,10,1,2\nb/3.png,1,0,0\nb/1.png,0,0,1\na/1.png,.25,.5,.25\na/2.png,0,1,0\n", nil},
		"other files": {"file,10,1,2\nz.png,0,0,1\nb/3.png,1,0,0\nb/1.png,0,0,1\na/1.png,.25,.5,.25\na/2.png,0,1,0\n",
			[]string{"1 lines are not of test images, and skipped"}},
		"longer paths": {"1;2;10;Path\r\n0;0;1;/home/x/b/3.png\r\n0;1;0;C:\\b\\1.png\r\n.5;.25;.25;x/a/1.png\r\n1;0;0;2.png\r\n", nil},
		"earlier pollen predict": {"file,class,confidence,entropy,mutual_information,prediction_set,in_distribution,p(1),p(2),p(10)\n" +
			"3.png,10,1,0,0,10,,0,0,1\n\"b/1.png\",2,1,0,0,\"1;2\",true,0,1,0\na/1.png,1,.5,0,0,1,,.5,.25,.25\na/2.png,1,1,0,0,1,,1,0,0\n", nil},
		"pollen predict": {"file,id,class,confidence,entropy,mutual_information,prediction_set,set_size,in_distribution,refer,error,p(1),p(2),p(10)\n" +
			"b/3.png,7,10,1,0,0,10,1,,,,0,0,1\nb/1.png,8,2,1,0,0,1;2,2,true,false,,0,1,0\na/1.png,5,1,.5,0,0,,,,true,,.5,.25,.25\n" +
			"a/2.png,6,1,1,0,0,1,1,,,,1,0,0\nb/2.png,,,,,,,,,,\"not an image, but text\",,,\n", []string{"1 lines are not of test images, and skipped"}},
	} {
		got, remark, err := ReadSubject(written(t, path, test.content), like, classes, files)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if want := []float64{0.5, 0.25, 0.25, 1, 0, 0, 0, 1, 0, 0, 0, 1}; !slices.Equal(got.In.Probabilities, want) {
			t.Errorf("%s: got %v, want %v", name, got.In.Probabilities, want)
		}
		if name == "numpy.savetxt" {
			test.remark = []string{lines}
		}
		for _, part := range test.remark {
			if !strings.Contains(remark, part) {
				t.Errorf("%s: remark %q, want %q", name, remark, part)
			}
		}
		if (remark == "") != (test.remark == nil) || name != "no names" && strings.Contains(remark, columns) {
			t.Errorf("%s: remark %q", name, remark)
		}
	}
	for content, want := range map[string]string{
		"1 2 ten\n" + inOrder:                           `line 1: column 3 must be a number, the name of a class (1, 2, 10) or file, got "ten"`,
		"file,1,2\n":                                    `line 1: must have a column for each class, got none for "10"`,
		"file,1,2,2\n":                                  `line 1: must have a column for each class, got two for "2"`,
		"file,1,2,10\nc/1.png,1,0,0\n":                  "must have a line for each of 4 test images, got none for a/1.png; the lines are for c/1.png",
		"file,1,2,10\n1.png,1,0,0\n":                    "got none for a/1.png; the lines are for 1.png",
		"file,1,2,10\na/1.png,1,0,0\nx/a/1.png,1,0,0\n": "must have one line for each test image, got a/1.png and x/a/1.png for a/1.png",
		"file,1,2,10\na/1.png,1,0,0\n":                  "must have a line for each of 4 test images, got none for a/2.png",
		"file,1,2,10\na/1.png,1,0\n":                    "line 2 must have 4 numbers, one per class, got 3",
		"PK\x03\x04-\x00\x00\n":                         "line 1: must be text in UTF-8, got other data: save an array of probabilities by numpy.savetxt",
		"\x93NUMPY\x01v\n":                              "line 1: must be text in UTF-8",
		"file,1,2,10\na/1.png,1\",0,0\n":                "line 2: column 10: bare \" in non-quoted-field",
		"7 8 9\n" + inOrder:                             "must have 4 examples x 3 classes = 12 probabilities, got 15",
	} {
		if _, _, err := ReadSubject(written(t, path, content), like, classes, files); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: got %v, want an error with %q", content, err, want)
		}
	}
	_, _, err := ReadSubject(written(t, path, "file,1,2,10\na/1.png,1,0,0\n"), like, classes, nil)
	if want := "must have no column of files, since the test images are not files"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want an error with %q", err, want)
	}
}
