package serve

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
)

// Base64 of every common kind is the same image.
func TestEncodedImages(t *testing.T) {
	s := newTest(t, Options{})
	want := expected(t, 8)[:1]
	want[0].Probabilities = nil
	content := pngOf(theTest.Image(0))
	for len(content)%3 != 1 { // so that there is padding; decoders ignore bytes after the end
		content = append(content, 0xfb)
	}
	content = append(content, 0xff, 0xfe, 0xff) // "//7/"
	padded := base64.StdEncoding.EncodeToString(content)
	wrapped := ""
	for text := padded; text != ""; text = text[min(len(text), 76):] {
		wrapped += text[:min(len(text), 76)] + "\r\n"
	}
	for name, image := range map[string]any{
		"padded": padded, "wrapped": wrapped, "unpadded": strings.TrimRight(padded, "="),
		"URL-safe": base64.URLEncoding.EncodeToString(content), "URL-safe, unpadded": base64.RawURLEncoding.EncodeToString(content),
		"data URI": "data:image/png;base64," + padded, "data URI, capitals": "DATA:;charset=x;BASE64," + padded,
		"object": map[string]any{"b64": padded}, "nested object": map[string]any{"image_bytes": map[string]string{"b64": padded}},
	} {
		for _, key := range []string{"images", "instances"} {
			request, err := json.Marshal(map[string]any{key: []any{image}})
			check(err)
			code, _, body := post(s, "/predict", "application/json", bytes.NewReader(request))
			if code != 200 {
				t.Fatalf("%s as %s: %d %s", name, key, code, body)
			}
			if key == "instances" {
				body = strings.Replace(body, `"predictions"`, `"answers"`, 1)
			}
			same(t, name, answersOf(t, body), want)
		}
	}
	deep := strings.Repeat(`{"b64":`, 3) + `"` + padded + `"` + strings.Repeat("}", 3)
	for image, words := range map[string]string{
		`"data:image/png,%89PNG"`: "image 0: a data URI must be of the form",
		`"a=b"`:                   "image 0: illegal base64",
		`[1, 2]`:                  "image 0: must be base64 text, got an array",
		`null`:                    "image 0: must be base64 text, got null",
		`7`:                       "image 0: must be base64 text, got a number",
		`{}`:                      "image 0: must be base64 text or",
		`{"b64": 7}`:              "image 0: must be base64 text, got a number",
		deep:                      "image 0: must be base64 text, got an object",
	} {
		code, _, body := post(s, "/predict", "application/json", strings.NewReader(`{"images":[`+image+`]}`))
		refused(t, image[:min(len(image), 30)], code, body, 400, words)
	}
}

// An image without ends of lines in a form is probably one that curl -d has changed.
func TestCurlHint(t *testing.T) {
	s := newTest(t, Options{})
	const form = "application/x-www-form-urlencoded"
	image := pngOf(theTest.Image(0))
	without := strings.NewReplacer("\r", "", "\n", "", "\x00", "").Replace(string(image))
	for body, hint := range map[string]bool{without: true, "rose.jpg": true, "no image\n": false} {
		code, _, answer := post(s, "/predict", form, strings.NewReader(body))
		if code != 400 || strings.Contains(answer, "--data-binary @FILE") != hint {
			t.Errorf("%.20q: %d %s, want 400 and a hint: %v", body, code, answer, hint)
		}
	}
	if code, _, answer := post(s, "/predict", form, bytes.NewReader(image)); code != 200 {
		t.Errorf("an image in a form: %d %s", code, answer)
	}
	code, _, answer := post(s, "/predict", "image/png", strings.NewReader(without))
	if code != 400 || strings.Contains(answer, "curl") {
		t.Errorf("another client: %d %s", code, answer)
	}
}

// Unknown parameters of a query are refused, not ignored.
func TestQueryParameters(t *testing.T) {
	s := newTest(t, Options{})
	image := pngOf(theTest.Image(0))
	for query, words := range map[string]string{
		"level=0.5":                           `unknown parameter "level": the server's option --level`,
		"probabilities=1&x=2":                 `unknown parameter "x"; the only parameters are probabilities, model, version`,
		"Probabilities=true":                  `unknown parameter "Probabilities"`,
		"probabilities=true&probabilities=no": "probabilities must be given once, got 2 times",
		"probabilities=%zz":                   "query: invalid URL escape",
	} {
		code, _, body := post(s, "/predict?"+query, "image/png", bytes.NewReader(image))
		refused(t, query, code, body, 400, words)
	}
}

// zipped returns content compressed by gzip.
func zipped(content []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(content)
	check(w.Close())
	return b.Bytes()
}

// A compressed body is unpacked, within the limit for bodies.
func TestCompressedBodies(t *testing.T) {
	const limit = 100_000
	s := newTest(t, Options{MaxBody: limit})
	want := expected(t, 8)[:1]
	want[0].Probabilities = nil
	image := pngOf(theTest.Image(0))
	cut := zipped(image)
	damaged := zipped(bytes.Repeat(image, 20))
	damaged[len(damaged)-5] ^= 0xff // the checksum
	for name, c := range map[string]struct {
		encoding string
		body     []byte
		code     int
		words    string
	}{
		"gzip":         {"gzip", zipped(image), 200, ""},
		"capitals":     {"GZIP", zipped(image), 200, ""},
		"identity":     {"identity", image, 200, ""},
		"of the limit": {"gzip", zipped(append(bytes.Clone(image), make([]byte, limit-len(image))...)), 200, ""},
		"beyond it":    {"gzip", zipped(append(bytes.Clone(image), make([]byte, limit-len(image)+1)...)), 413, "at most 100000 bytes (--max-body), got more"},
		"bomb":         {"gzip", zipped(make([]byte, 50<<20)), 413, "at most 100000 bytes (--max-body), got more"},
		"not gzip":     {"gzip", image, 400, "the body must be gzip, as its Content-Encoding says"},
		"damaged":      {"gzip", damaged, 400, "the body must be gzip, as its Content-Encoding says"},
		"cut":          {"gzip", cut[:len(cut)-20], 400, "the body is incomplete"},
		"empty":        {"gzip", nil, 400, "the body is incomplete"},
		"br":           {"br", image, 415, `must be gzip or none, got "br"`},
	} {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequest(http.MethodPost, "/predict", bytes.NewReader(c.body))
			request.Header.Set("Content-Encoding", c.encoding)
			w := record(s, request)
			if c.code == 200 {
				if w.Code != 200 {
					t.Fatalf("%d %s", w.Code, w.Body)
				}
				same(t, name, answersOf(t, w.Body.String()), []bayes.Answer{want[0]})
				return
			}
			refused(t, name, w.Code, w.Body.String(), c.code, c.words)
		})
	}
	if used := s.memory.used.Load(); used != 0 {
		t.Errorf("%d bytes of the budget are not given back", used)
	}
}
