package serve

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"mime/multipart"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
)

// TestPredict asks in each of the three ways, and compares with Run.Predict bit by bit.
func TestPredict(t *testing.T) {
	s := newTest(t, Options{})
	want := expected(t, 8)
	var images [][]byte
	var form bytes.Buffer
	parts := multipart.NewWriter(&form)
	for i := range theTest.Len() {
		images = append(images, pngOf(theTest.Image(i)))
		part, err := parts.CreateFormFile("images", "image.png")
		check(err)
		part.Write(images[i])
	}
	check(parts.Close())
	if !want[0].Calibrated || len(want[0].Probabilities) != 3 {
		t.Fatalf("the run answers %+v: this test is of no use", want[0])
	}

	request, err := json.Marshal(map[string]any{"images": images, "probabilities": true})
	check(err)
	code, _, body := post(s, "/predict", "application/json; charset=utf-8", bytes.NewReader(request))
	if code != 200 {
		t.Fatalf("JSON: %d %s", code, body)
	}
	same(t, "JSON", answersOf(t, body), want)

	code, _, body = post(s, "/predict?probabilities=true", parts.FormDataContentType(), &form)
	if code != 200 {
		t.Fatalf("form: %d %s", code, body)
	}
	named := append([]bayes.Answer(nil), want...)
	for i := range named {
		named[i].File = "image.png"
	}
	same(t, "form", answersOf(t, body), named)

	for _, kind := range []string{"image/png", "", "application/x-www-form-urlencoded", "nonsense;;"} {
		code, header, body := post(s, "/predict", kind, bytes.NewReader(images[5]))
		if code != 200 || header.Get("Content-Type") != "application/json" {
			t.Fatalf("one image as %q: %d %s", kind, code, body)
		}
		without := want[5]
		without.Probabilities = nil
		same(t, "one image", answersOf(t, body), []bayes.Answer{without})
		if strings.Contains(body, "probabilities") {
			t.Errorf("probabilities that nobody asked for: %s", body)
		}
	}
}

func TestPredictRefuses(t *testing.T) {
	s := newTest(t, Options{MaxImages: 2, MaxBody: 100_000, MaxPixels: 1_000_000})
	good := base64.StdEncoding.EncodeToString(pngOf(theTest.Image(0)))
	object := func(images ...string) string {
		content, err := json.Marshal(map[string]any{"images": images})
		check(err)
		return string(content)
	}
	form := func(end string) string {
		return "--x\r\nContent-Disposition: form-data; name=a; filename=odd.png\r\n\r\nnot an image" + end
	}
	const asJSON, asForm = "application/json", "multipart/form-data; boundary=x"
	for name, c := range map[string]struct {
		target, kind, body string
		code               int
		words              string
	}{
		"nothing":             {"", "", "", 400, "got an empty one"},
		"garbage":             {"", "", "garbage", 400, "image 0: offset 0: must begin like an image"},
		"JSON without type":   {"", "application/x-www-form-urlencoded", ` {"images":[]}`, 415, "must have the header Content-Type: application/json"},
		"HEIC":                {"", "", "\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic", 400, "netpbm), got HEIC: convert it to PNG or JPEG"},
		"cut image":           {"", "", string(pngOf(theTest.Image(0))[:60]), 400, "image 0: PNG"},
		"no such option":      {"?probabilities=maybe", "", "x", 400, `true or false, got "maybe"`},
		"large body":          {"", "", strings.Repeat("x", 100_001), 413, "at most 100000 bytes (--max-body), got 100001"},
		"bomb":                {"", "", string(bomb(10_000, 10_000)), 413, "image 0 must have at most 1000000 pixels (--max-pixels), got 10000x10000"},
		"larger bomb":         {"", "", string(bomb(1<<30, 1<<30)), 400, "image 0: PNG"},
		"JSON garbage":        {"", asJSON, "{]", 400, "JSON: invalid character"},
		"JSON null":           {"", asJSON, "null", 400, "JSON: expected {, got null"},
		"JSON cut":            {"", asJSON, `{"images":["` + good, 400, "JSON: image 0: unexpected EOF"},
		"JSON cut early":      {"", asJSON, `{"images"`, 400, "JSON: unexpected EOF"},
		"JSON of none":        {"", asJSON, `{"images":[]}`, 400, "got none"},
		"JSON without any":    {"", asJSON, `{}`, 400, "got none"},
		"JSON twice":          {"", asJSON, `{"images":[],"images":[]}`, 400, `unknown member "images"`},
		"JSON other field":    {"", asJSON, `{"picture":""}`, 400, `unknown member "picture"`},
		"JSON not base64":     {"", asJSON, `{"images":["%"]}`, 400, "JSON: image 0: illegal base64"},
		"JSON number":         {"", asJSON, `{"images":[1]}`, 400, "JSON: image 0"},
		"JSON and more":       {"", asJSON, object(good) + "1", 400, "data after the object"},
		"JSON bad option":     {"", asJSON, `{"probabilities":1}`, 400, "JSON: json: cannot unmarshal number"},
		"JSON of many":        {"", asJSON, object(good, good, good), 413, "at most 2 images, got more"},
		"JSON of many, empty": {"", asJSON, `{"images":[` + strings.Repeat(`"",`, 30_000), 413, "at most 2 images, got more"},
		"JSON of bad images":  {"", asJSON, object("AAAA", "////"), 400, "image 0: offset 0: must begin like an image"},
		"form garbage":        {"", asForm, "garbage", 400, "form: part 0"},
		"form cut":            {"", asForm, form(""), 400, "form: part 0"},
		"form without end":    {"", "multipart/form-data", form(""), 400, "must have a boundary"},
		"form of a text":      {"", asForm, form("\r\n--x--"), 400, "image 0 (odd.png): offset 0: must begin like an image"},
		"form of none":        {"", asForm, "--x--", 400, "got none"},
		"form of many":        {"", asForm, strings.Repeat("--x\r\n\r\na\r\n", 3) + "--x--", 413, "at most 2 images, got more"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, body := post(s, "/predict"+c.target, c.kind, strings.NewReader(c.body))
			refused(t, name, code, body, c.code, c.words)
		})
	}
	if used := s.memory.used.Load(); used != 0 {
		t.Errorf("%d bytes of the budget are not given back", used)
	}
	if !s.pool.idle() {
		t.Error("workers of the pool are not given back")
	}
}

// bomb returns a PNG with the given size in its header and without pixels.
func bomb(width, height uint32) []byte {
	header := []byte("IHDR")
	header = binary.BigEndian.AppendUint32(header, width)
	header = binary.BigEndian.AppendUint32(header, height)
	header = append(header, 8, 6, 0, 0, 0)
	content := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), header...)
	return binary.BigEndian.AppendUint32(content, crc32.ChecksumIEEE(header))
}
