package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
)

// pythonVariable is the environment variable for the Python that has the clients' packages.
const pythonVariable = "POLLEN_PYTHON"

// python returns a Python that has modules, or skips the test.
func python(t *testing.T, modules ...string) string {
	t.Helper()
	path := os.Getenv(pythonVariable)
	if path == "" {
		path = "python3"
	}
	path, err := exec.LookPath(path)
	if err != nil {
		t.Skipf("no Python, see %s: %v", pythonVariable, err)
	}
	if out, err := exec.Command(path, "-c", "import "+strings.Join(modules, ", ")).CombinedOutput(); err != nil {
		t.Skipf("%s lacks modules, see %s: %v: %s", path, pythonVariable, err, out)
	}
	return path
}

// runPython runs a script and decodes the JSON that it prints.
func runPython(t *testing.T, to any, arguments ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), arguments[0], arguments[1:]...)
	var failed bytes.Buffer
	command.Stderr = &failed
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s%s", arguments, err, out, failed.String())
	}
	if err := json.Unmarshal(out, to); err != nil {
		t.Fatalf("%v: %v in %s", arguments, err, out)
	}
}

// writeImages writes test images for the scripts, and returns the path of their array.
func writeImages(t *testing.T, images int) string {
	t.Helper()
	dir := t.TempDir()
	var pixels []byte
	for i := range images {
		pixels = append(pixels, theTest.Image(i)...)
		check(os.WriteFile(filepath.Join(dir, fmt.Sprint(i, ".png")), pngOf(theTest.Image(i)), 0o600))
	}
	path := filepath.Join(dir, "images.npy")
	check(os.WriteFile(path, npyOf(fmt.Sprintf("(%d, %d, %[2]d)", images, side), pixels), 0o600))
	return path
}

// TestTritonClient: Triton's Python client works as it is.
func TestTritonClient(t *testing.T) {
	interpreter := python(t, "numpy", "tritonclient.http")
	address := serving(t, newTest(t, Options{}))
	const images = 8
	var results map[string]map[string][]any
	runPython(t, &results, interpreter, "testdata/triton.py", address, writeImages(t, images))
	want := expected(t, 8)[:images]
	if len(results) != 8 {
		t.Errorf("%d results, want 8", len(results))
	}
	for name, outputs := range results {
		names := allOutputs
		if name == "selected" {
			names = []string{"class", "probabilities"}
		}
		sameTensors(t, name, outputs, want, names...)
	}
}

// TestGeneratedClient: a client that is generated from the OpenAPI document works as it is.
func TestGeneratedClient(t *testing.T) {
	interpreter := python(t, "numpy", "openapi_python_client")
	address := serving(t, newTest(t, Options{Token: testToken}))
	dir := t.TempDir()
	generate := exec.CommandContext(t.Context(), interpreter, "-m", "openapi_python_client", "generate", "--url", "http://"+address+"/openapi.json",
		"--meta", "none", "--output-path", filepath.Join(dir, "pollen_client"), "--fail-on-warning")
	ruff := filepath.Dir(interpreter) + string(os.PathListSeparator) + os.Getenv("PATH") // which formats the client
	generate.Env = append(os.Environ(), "PATH="+ruff)
	if out, err := generate.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const images = 8
	results := struct {
		JSON, Form []bayes.Answer
		One        []bayes.Answer `json:"one file"`
		Tensor     map[string][]any
	}{}
	runPython(t, &results, interpreter, "testdata/generated.py", "http://"+address, testToken, writeImages(t, images), dir)
	want := expected(t, 8)[:images]
	same(t, "JSON", results.JSON, want)
	same(t, "one file", results.One, want[:1])
	for i := range results.Form {
		if name := fmt.Sprint(i, ".png"); results.Form[i].File != name {
			t.Errorf("the answer for %s is for %s", name, results.Form[i].File)
		}
		results.Form[i].File = ""
	}
	same(t, "form", results.Form, want)
	sameTensors(t, "tensor", results.Tensor, want, "class", "confidence")
}

// TestCurl runs the commands of docs/serving.md that send an image as base64, with an image that is
// larger than an argument of a program may be.
func TestCurl(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "docs", "serving.md"))
	check(err)
	commands := regexp.MustCompile(`(?m)^    .*\$\(base64[^|]*\|.*$`).FindAllString(string(content), -1)
	if len(commands) != 2 {
		t.Fatalf("docs/serving.md has the commands %q, want 2", commands)
	}
	for _, program := range []string{"sh", "base64", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	address := serving(t, newTest(t, Options{}))
	photo := image.NewGray(image.Rect(0, 0, 600, 600))
	for i := range photo.Pix {
		photo.Pix[i] = byte(i * i >> 3)
	}
	var file bytes.Buffer
	check((&png.Encoder{CompressionLevel: png.NoCompression}).Encode(&file, photo))
	dir := t.TempDir()
	check(os.WriteFile(filepath.Join(dir, "rose.jpg"), file.Bytes(), 0o600))
	for _, command := range commands {
		command = strings.NewReplacer("localhost:8080", address, "models/flowers", "models/patterns").Replace(command)
		run := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(command, "curl --json", "curl -s --json"))
		run.Dir = dir
		if out, err := run.CombinedOutput(); err != nil || !regexp.MustCompile(`"class"|"name":"class"`).Match(out) {
			t.Errorf("%.100s: %.300s, %v", command, out, err)
		}
	}
}

// TestPythonSnippet runs the Python program of docs/serving.md.
func TestPythonSnippet(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "docs", "serving.md"))
	check(err)
	snippets := regexp.MustCompile("(?s)```python\n(.*?)```").FindAllStringSubmatch(string(content), -1)
	if len(snippets) != 1 {
		t.Fatalf("docs/serving.md has %d Python programs, want 1", len(snippets))
	}
	interpreter := python(t, "numpy", "tritonclient.http")
	address := serving(t, newTest(t, Options{}))
	program := snippets[0][1]
	image := filepath.Join(filepath.Dir(writeImages(t, 1)), "0.png")
	for before, after := range map[string]string{"localhost:8080": address, "rose.jpg": image, `"flowers"`: `"patterns"`} {
		if strings.Count(program, before) != 1 {
			t.Errorf("the program has %q %d times, want once", before, strings.Count(program, before))
		}
		program = strings.Replace(program, before, after, 1)
	}
	out, err := exec.CommandContext(t.Context(), interpreter, "-c", program).CombinedOutput()
	want := expected(t, 8)[0]
	if words := fmt.Sprint(want.Class, " ", float32(want.Confidence)); err != nil || !strings.HasPrefix(string(out), words[:len(want.Class)+6]) {
		t.Errorf("the program printed %s (%v), want %s", out, err, words)
	}
}
