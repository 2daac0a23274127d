package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/optimizers"
)

// tableRun fits a network to images of 4x4 pixels of the classes cat and dog, and returns its
// directory, and a table of three images with identifiers.
func tableRun(t *testing.T) (dir, table string) {
	t.Helper()
	images, labels := make([]byte, 40*16), make([]int32, 40)
	for i := range images {
		labels[i/16] = int32(i / 16 % 2)
		images[i] = byte(labels[i/16]*200) + byte(i*i%50)
	}
	data, err := datasets.New("pets", images, labels, 1, 4, 4, []string{"cat", "dog"})
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "run")
	spec := bayes.Spec{Network: "mlp-4", Method: optimizers.SGD{}, Batch: 10, Epochs: 30}
	if _, err = bayes.Fit(t.Context(), spec, &datasets.Splits{Train: data}, dir); err != nil {
		t.Fatal(err)
	}
	text := "PetId"
	for i := range 16 {
		text += ",p" + strconv.Itoa(i)
	}
	text += "\nx7" + strings.Repeat(",210", 16) + "\nx5" + strings.Repeat(",9", 16) + "\nx6" + strings.Repeat(",220", 16) + "\n"
	return dir, writeText(t, "test.csv", text)
}

func writeText(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestAnswerFormats: the answers for a table keep its identifiers in each format, on the standard
// output or in a file, and a submission has the columns of its template.
func TestAnswerFormats(t *testing.T) {
	run, table := tableRun(t)
	out := filepath.Join(t.TempDir(), "answers")
	predict := func(code int, arguments ...string) (stdout, stderr string) {
		t.Helper()
		got, stdout, stderr := runInProcess(append([]string{"predict", run}, arguments...)...)
		if got != code {
			t.Fatalf("%q: exit code %d, want %d: %s", arguments, got, code, stderr)
		}
		return stdout, stderr
	}
	for _, c := range []struct {
		arguments string
		want      string // prefix of the answers
	}{
		{"--csv", "file,id,class,confidence,"},
		{"--format csv --out " + out, "file,id,class,confidence,"},
		{"--out " + out + ".csv", "file,id,class,confidence,"},
		{"--json", "[\n  {\n    \"file\": \""},
		{"--out " + out + ".jsonl", `{"file":"` + table + `[0]","id":"x7","class":"dog","index":1,`},
		{"--format table", "image "},
		{"--format submission", "PetId,Label\nx7,dog\nx5,cat\nx6,dog\n"},
		{"--format submission --class-numbers", "PetId,Label\nx7,1\nx5,0\nx6,1\n"},
		{"--template " + writeText(t, "s.csv", "Pet,Kind\nx5,?\nx6,?\nx7,?\n"), "Pet,Kind\nx5,cat\nx6,dog\nx7,dog\n"},
		{"--template " + writeText(t, "s.csv", "\ufeffid,dog,cat\nx5,0.5,0.5\n") + " --out " + out + ".csv", "id,dog,cat\nx5,0."},
	} {
		fields := strings.Fields(c.arguments)
		got, _ := predict(0, append([]string{table}, fields...)...)
		if path := fields[len(fields)-1]; strings.HasPrefix(path, out) {
			content, err := os.ReadFile(path)
			if err != nil || got != "" {
				t.Errorf("%s: printed %q (%v)", c.arguments, got, err)
			}
			got = string(content)
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %.300s, want %s", c.arguments, got, c.want)
		}
		if strings.HasSuffix(c.arguments, ".jsonl") {
			for line := range strings.Lines(got) {
				if !json.Valid([]byte(line)) {
					t.Errorf("a line is no JSON: %s", line)
				}
			}
			if strings.Count(got, "\n") != 3 {
				t.Errorf("%d lines, want 3", strings.Count(got, "\n"))
			}
		}
	}
	// Arrays are numbered from 1 without identifiers, or are in a template's order.
	plain := writeText(t, "test.csv", strings.Repeat("p,", 15)+"p0\n"+strings.Repeat(strings.Repeat("9,", 15)+"9\n", 2))
	plain2 := strings.ReplaceAll(readText(t, plain), "p,", "p1,")
	plain = writeText(t, "test.csv", plain2)
	if got, _ := predict(0, plain, "--format", "submission"); got != "ImageId,Label\n1,cat\n2,cat\n" {
		t.Errorf("a table without identifiers: %s", got)
	}
	template := writeText(t, "s.csv", "Id,Class\na,\nb,\n")
	if got, _ := predict(0, plain, "--template", template); got != "Id,Class\na,cat\nb,cat\n" {
		t.Errorf("a template for arrays: %s", got)
	}
	predict(0, table, "--out", out+".npz", "--risk", "0.5")
	if reread, err := datasets.ReadImages([]string{out + ".npz"}, datasets.Options{}); err == nil {
		t.Errorf("answers were read as images: %v", reread)
	}
	content := readText(t, out+".npz")
	for _, name := range []string{"file.npy", "id.npy", "class_names.npy", "probabilities.npy", "index.npy", "mutual_information.npy", "refer.npy"} {
		if !strings.Contains(content, name) {
			t.Errorf("the archive has no %s", name)
		}
	}
	for _, c := range []struct {
		code      int
		arguments string
		words     string
	}{
		{exitUsage, "--json --csv", "--json and --csv cannot be combined"},
		{exitUsage, "--json --format csv", "--format csv and --json cannot be combined"},
		{exitUsage, "--csv answers.csv", "answers.csv does not exist, and --csv takes no file: write the answers to one by --out answers.csv"},
		{exitUsage, "--format xml", `--format must be table, json, jsonl, csv, npz or submission, got "xml"`},
		{exitUsage, "--format npz", "--format npz needs --out"},
		{exitUsage, "--out answers.xls", `must end in .txt, .json, .jsonl, .csv or .npz, or --format must be given, got "answers.xls"`},
		{exitUsage, "--format json --class-numbers", "--template and --class-numbers are for --format submission"},
		{exitUsage, "--float-max 2", "float-max: must be 1 or 255, got 2"},
		{exitFailure, "--template none.csv", "no such file"},
		{exitFailure, "--template " + writeText(t, "s.csv", "id\n1\n"), "must have a header of two columns or more"},
		{exitFailure, "--template " + writeText(t, "s.csv", "id,label\nx9,\n"), `the image "x9" must be among the 3 images`},
		{exitFailure, "--template " + writeText(t, "s.csv", "id,dog,bird\nx5,,\n"), `column "bird" must be one of the run's classes`},
	} {
		_, stderr := predict(c.code, append([]string{table}, strings.Fields(c.arguments)...)...)
		if !strings.Contains(stderr, c.words) {
			t.Errorf("%s: %s, want %s", c.arguments, stderr, c.words)
		}
		if strings.Contains(stderr, "100%") {
			t.Errorf("%s: refused after the prediction: %s", c.arguments, stderr)
		}
	}
	broken := writeText(t, "broken.png", "no image")
	if _, stderr := predict(exitFailure, table, broken, "--format", "submission"); !strings.Contains(stderr, "every image must have an answer") {
		t.Errorf("a submission with an image that cannot be read: %s", stderr)
	}
	if _, stderr := predict(exitFailure, filepath.Join("testdata", "none.png"), plain, "--format", "submission"); !strings.Contains(stderr, "--unread-class") {
		t.Errorf("a submission with an image that is missing: %s", stderr)
	}
	got, stderr := predict(exitUnread, plain, broken, "--format", "submission", "--unread-class", "dog")
	if got != "ImageId,Label\n1,cat\n2,cat\nbroken.png,dog\n" || !strings.Contains(stderr, "images that could not be read have the class dog") {
		t.Errorf("a submission with a class for an image that cannot be read: %s, %s", got, stderr)
	}
	predict(exitFailure, table, broken, "--format", "submission", "--unread-class", "dog") // which has no identifier
	predict(exitUsage, plain, "--format", "submission", "--unread-class", "bird")
	predict(exitUsage, plain, "--csv", "--unread-class", "dog")
	floats := writeText(t, "floats.csv", strings.Repeat("0.9,", 15)+"0.9\n")
	if _, stderr := predict(exitFailure, floats); !strings.Contains(stderr, "must be an integer") {
		t.Errorf("floats: %s", stderr)
	}
	if got, _ := predict(0, floats, "--float-max", "1", "--format", "submission"); got != "ImageId,Label\n1,dog\n" {
		t.Errorf("floats with their largest value: %s", got)
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestSubmissionOfFiles: the images of a template are found by the names of files. A name of
// several files stands for none of them, unless it has one's extension.
func TestSubmissionOfFiles(t *testing.T) {
	answers := []bayes.Answer{{File: "x/1.png", Class: "cat"}, {File: "y/1.jpg", Class: "dog"}, {File: "y/2.jpg", Class: "dog"}, {File: "y/2.jpg", Class: "dog"}}
	for ids, want := range map[string]string{
		"1.png\n2\n1.jpg\n": "id,label\n1.png,cat\n2,dog\n1.jpg,dog\n",
		"1\n":               `the image "1" must be a single image, got x/1.png and y/1.jpg`,
		"3\n":               `the image "3" must be among the 4 images`,
	} {
		o := outputFlags{template: writeText(t, "s.csv", "id,label\n"+strings.ReplaceAll(ids, "\n", ",\n"))}
		var got strings.Builder
		if err := o.printSubmission(&got, answers, []string{"cat", "dog"}, ""); err != nil {
			got.Reset()
			got.WriteString(err.Error())
		}
		if !strings.Contains(got.String(), want) {
			t.Errorf("%q: %s, want %s", ids, got.String(), want)
		}
	}
}

// A run that was trained by bayes.Fit does not record where its data are, and the error says so.
func TestDataOfAnotherProgram(t *testing.T) {
	run, _ := tableRun(t)
	for _, command := range [][]string{{"eval", run}, {"fit", "--resume", run}} {
		code, _, stderr := runInProcess(command...)
		want := `did not record where its data, "pets", are: state them as --data, or resume the run by bayes.Resume`
		if code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit code %d, %s, want %q", command, code, stderr, want)
		}
	}
}
