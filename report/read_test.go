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
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return ReadSubject(path, like)
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
		"a,b,c\n0,0,1\n":                         "line 1: strconv.ParseFloat",
		"\n\n0 0 1\n0 0 1e":                      "line 4: strconv.ParseFloat",
		"0 0 1\n" + strings.Repeat("0", 1<<24+1): "token too long",
	} {
		if _, err := read(content); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: got %v, want an error with %q", content, err, want)
		}
	}
	if _, err := ReadSubject(filepath.Dir(path)+"/nowhere", like); err == nil {
		t.Error("a file that is not there: no error")
	}
}
