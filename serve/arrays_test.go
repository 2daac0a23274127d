package serve

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"mime/multipart"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/internal/parquettest"
)

// npyOf is a file as written by numpy.save.
func npyOf(shape string, values []byte) []byte {
	header := fmt.Sprintf("{'descr': '|u1', 'fortran_order': False, 'shape': %s, }\n", shape)
	content := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
	return slices.Concat(content, []byte(header), values)
}

// npzOf is a compressed archive of one array.
func npzOf(name string, array []byte) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	member, err := w.Create(name + ".npy")
	check(err)
	_, err = member.Write(array)
	check(err)
	check(w.Close())
	return b.Bytes()
}

// linesOf is CSV without a label.
func linesOf(images []byte, size int) []byte {
	var heads []string
	for i := range size {
		heads = append(heads, fmt.Sprint("pixel", i))
	}
	text := strings.Join(heads, ",")
	for i, pixel := range images {
		text += map[bool]string{true: "\n", false: ","}[i%size == 0] + fmt.Sprint(pixel)
	}
	return []byte(text + "\n")
}

// The images of arrays get the answers of Run.Predict.
func TestPredictArrays(t *testing.T) {
	s := newTest(t, Options{})
	d := theTest
	n := min(d.Len(), 5)
	pixels := d.Images[:n*d.ImageSize()]
	want := expected(t, 8)[:n]
	shape := fmt.Sprintf("(%d, %d, %d)", n, d.Height, d.Width)
	idx := []byte{0, 0, 8, 3}
	for _, size := range []int{n, d.Height, d.Width} {
		idx = binary.BigEndian.AppendUint32(idx, uint32(size))
	}
	arrays := map[string][]byte{
		"a.npy": npyOf(shape, pixels), "a.npz": npzOf("images", npyOf(shape, pixels)), "a-idx3-ubyte": append(idx, pixels...),
		"a.csv": linesOf(pixels, d.ImageSize()),
	}
	var files []parquettest.Image
	for i := range n {
		files = append(files, parquettest.Image{Bytes: netpbm(d.Image(i), d.Channels, d.Height, d.Width), Path: "x.pgm"})
	}
	arrays["a.parquet"] = parquettest.Write(parquettest.Options{Codec: parquettest.Zstd}, parquettest.Column{Name: "image", Values: files})
	named := func(name string) {
		for i := range want {
			want[i].File = fmt.Sprintf("%s[%d]", name, i)
		}
	}
	for name, content := range arrays {
		var form bytes.Buffer
		parts := multipart.NewWriter(&form)
		part, err := parts.CreateFormFile("images", name)
		check(err)
		part.Write(content)
		check(parts.Close())
		code, _, body := post(s, "/predict?probabilities=true", parts.FormDataContentType(), &form)
		if code != 200 {
			t.Fatalf("%s: %d %s", name, code, body)
		}
		named(name)
		same(t, name, answersOf(t, body), want)
	}
	for kind, content := range map[string][]byte{"application/octet-stream": arrays["a.npz"], "text/csv; charset=utf-8": arrays["a.csv"]} {
		code, _, body := post(s, "/predict?probabilities=true", kind, bytes.NewReader(content))
		if code != 200 {
			t.Fatalf("%s: %d %s", kind, code, body)
		}
		named(map[bool]string{true: "body.csv"}[strings.HasPrefix(kind, "text")])
		same(t, kind, answersOf(t, body), want)
	}
	// A column of the run's groups is not read.
	lines := strings.Split(strings.TrimSpace(string(arrays["a.csv"])), "\n")
	table := "patient," + strings.Join(lines, "\nx,")
	code, _, body := post(s, "/predict?probabilities=true", "text/csv", strings.NewReader(table))
	refused(t, "a column", code, body, 400, `with "patient" among them`)
	model := Model{Run: theRun, OtherColumns: []string{"patient"}}
	check(s.Reload([]Model{model}))
	code, _, body = post(s, "/predict?probabilities=true", "text/csv", strings.NewReader(table))
	if code != 200 {
		t.Fatalf("a column of groups: %d %s", code, body)
	}
	named("body.csv")
	same(t, "a column of groups", answersOf(t, body), want)
	// Floating-point pixels are read in the run's range.
	floats := bytes.Replace(npyOf(shape, nil), []byte("|u1"), []byte("<f4"), 1)
	for _, pixel := range pixels {
		floats = binary.LittleEndian.AppendUint32(floats, math.Float32bits(float32(pixel)/255))
	}
	var form bytes.Buffer
	parts := multipart.NewWriter(&form)
	part, err := parts.CreateFormFile("images", "f.npy")
	check(err)
	part.Write(floats)
	check(parts.Close())
	code, _, body = post(s, "/predict?probabilities=true", parts.FormDataContentType(), bytes.NewReader(form.Bytes()))
	refused(t, "floats", code, body, 400, "as float-max")
	model.FloatMax = 1
	check(s.Reload([]Model{model}))
	code, _, body = post(s, "/predict?probabilities=true", parts.FormDataContentType(), bytes.NewReader(form.Bytes()))
	if code != 200 {
		t.Fatalf("floats: %d %s", code, body)
	}
	named("f.npy")
	same(t, "floats", answersOf(t, body), want)
	if used := s.memory.used.Load(); used != 0 {
		t.Errorf("%d bytes of the budget are not given back", used)
	}
}

// TestPredictManyArrays: a request can have many small files of arrays.
func TestPredictManyArrays(t *testing.T) {
	s := newTest(t, Options{})
	const files = 20
	content := npyOf("(3, 4, 4)", make([]byte, 48))
	var form bytes.Buffer
	parts := multipart.NewWriter(&form)
	for range files {
		part, err := parts.CreateFormFile("images", "a.npy")
		check(err)
		part.Write(content)
	}
	check(parts.Close())
	code, _, body := post(s, "/predict", parts.FormDataContentType(), &form)
	if code != 200 || len(answersOf(t, body)) != 3*files {
		t.Fatalf("%d %.300s", code, body)
	}
	if used := s.memory.used.Load(); used != 0 {
		t.Errorf("%d bytes of the budget are not given back", used)
	}
}

func TestPredictArraysRefuses(t *testing.T) {
	s := newTest(t, Options{MaxImages: 2, MaxBody: 100_000, MaxPixels: 1_000_000})
	object := func(contents ...[]byte) string {
		var images []string
		for _, content := range contents {
			images = append(images, base64.StdEncoding.EncodeToString(content))
		}
		content, err := json.Marshal(map[string]any{"images": images})
		check(err)
		return string(content)
	}
	for name, c := range map[string]struct {
		kind, body string
		code       int
		words      string
	}{
		"cut":         {"", string(npyOf("(1, 4, 4)", make([]byte, 15))), 400, "got 15 of 16 bytes of values of [1 4 4]"},
		"many":        {"", string(npyOf("(3, 4, 4)", make([]byte, 48))), 400, "must have at most 2 images, got 3"},
		"many, small": {"", string(npzOf("images", npyOf("(90000, 1, 1)", make([]byte, 90000)))), 400, "must have at most 2 images, got 90000"},
		"with others": {"application/json", object(npyOf("(2, 4, 4)", make([]byte, 32)), pngOf(theTest.Image(0))), 413, "at most 2 images, got more"},
		"bomb":        {"", string(npzOf("images", npyOf("(1, 10000, 10000)", make([]byte, 100_000_000)))), 400, "values must have at most"},
		"promise":     {"", string(npyOf("(1, 60000, 60000)", nil)), 400, "values must have at most"},
		"floats":      {"", strings.Replace(string(npyOf("(1, 4, 4)", make([]byte, 64))), "|u1", "<f4", 1), 400, "got float32: save (255 * images)"},
		"CSV":         {"text/csv", "a,b\n1,2\n", 400, "image 0 (body.csv): line 1: column 1 must be an integer"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, body := post(s, "/predict", c.kind, strings.NewReader(c.body))
			refused(t, name, code, body, c.code, c.words)
		})
	}
	if used := s.memory.used.Load(); used != 0 {
		t.Errorf("%d bytes of the budget are not given back", used)
	}
}

// Parquet files that cannot be read, or have too much, are refused, and give their memory back.
func TestPredictParquetRefused(t *testing.T) {
	s := newTest(t, Options{MaxImages: 2})
	image := parquettest.Image{Bytes: netpbm(theTest.Image(0), theTest.Channels, theTest.Height, theTest.Width)}
	file := func(images ...parquettest.Image) []byte {
		return parquettest.Write(parquettest.Options{}, parquettest.Column{Name: "image", Values: images})
	}
	for _, test := range []struct {
		name    string
		content []byte
		want    string
	}{
		{"too many", file(image, image, image), "must have at most 2 images, got 3"},
		{"no bytes", file(image, parquettest.Image{Path: "x.pgm"}), "row 1: must have the bytes of an image, got none"},
		{"cut off", file(image)[:100], "must end with PAR1"},
		{"no column", parquettest.Write(parquettest.Options{}, parquettest.Column{Name: "label", Values: []int64{1}}), "must have a column of images"},
	} {
		code, _, body := post(s, "/predict", "application/octet-stream", bytes.NewReader(test.content))
		refused(t, test.name, code, body, 400, test.want)
	}
	// A row whose image cannot be decoded is an answer with an error, as a file is.
	code, _, body := post(s, "/predict", "application/octet-stream", bytes.NewReader(file(image, parquettest.Image{Bytes: []byte("x")})))
	if code != 200 || !strings.Contains(body, `"file":"[1]","error":"image 1 ([1]): offset 0: must begin like an image`) {
		t.Errorf("a row without an image: %d %s", code, body)
	}
	if used := s.memory.used.Load(); used != 0 {
		t.Errorf("%d bytes of the budget are not given back", used)
	}
}

// netpbm encodes an image [C H W] as PGM or, if it has three channels, as PPM.
func netpbm(pixels []byte, channels, height, width int) []byte {
	var b bytes.Buffer
	kind := map[int]string{1: "P5", 3: "P6"}[channels]
	fmt.Fprintf(&b, "%s %d %d 255\n", kind, width, height)
	plane := height * width
	for p := range plane {
		for c := range channels {
			b.WriteByte(pixels[c*plane+p])
		}
	}
	return b.Bytes()
}
