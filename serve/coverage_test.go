package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/evaluate"
)

// TestOpenAPIComplete gets every status, content type and field of every operation of the
// document from the server; record compares each response with the document. The test fails if
// the document describes anything that the server does not return, or the other way round.
func TestOpenAPIComplete(t *testing.T) {
	quiet := Options{Token: testToken, MaxBody: 1 << 20, Report: func(error) {}}
	s := newTest(t, quiet)
	closed, _ := newFake(t, quiet, ones)
	check(closed.Close())
	stuck, _ := newFake(t, quiet, ones)
	stuck.watchdog.stuck.Add(1)
	failing, _ := newFake(t, quiet, func([]byte) ([]bayes.Answer, error) { return nil, errors.New("failing") })
	broken, _ := newFake(t, Options{Report: func(error) {}}, ones)
	broken.models.all = []*model{nil} // every use of it panics
	defer func() { broken.models.all = nil }()
	for _, e := range endpoints() {
		for _, s := range []*Server{s, closed, stuck, failing, broken} {
			name := s.models.all[0].nameOr("fake")
			target := strings.NewReplacer("{name}", name, "{version}", "1", "{$}", "").Replace(e.path)
			with := func(change func(r *http.Request)) {
				body := ""
				if e.method == http.MethodPost {
					body = string(forms(1)["UINT8"])
				}
				if e.path == "/predict" {
					body = string(pngOf(theTest.Image(0)))
				}
				r := httptest.NewRequest(e.method, target, strings.NewReader(body))
				r.Header.Set("Authorization", "Bearer "+testToken)
				change(r)
				record(s, r)
			}
			with(func(*http.Request) {})
			with(func(r *http.Request) { r.Header.Del("Authorization") })
			with(func(r *http.Request) { // a name that a foreign page resolves to this server
				*r = *r.WithContext(withLoopback(context.Background(), &net.TCPAddr{IP: net.IPv6loopback}))
			})
			with(func(r *http.Request) { r.URL.RawQuery = "level=0.5" })
			with(func(r *http.Request) { r.URL.Path = strings.Replace(r.URL.Path, name, "nothing", 1) })
			with(func(r *http.Request) { r.URL.RawQuery = "model=nothing" })
			with(func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") })
			with(func(r *http.Request) { r.Header.Set("Content-Encoding", "br") })
			with(func(r *http.Request) { r.Header.Set(inferHeader, "0") })
			with(func(r *http.Request) { r.ContentLength = 1 << 30 })
			with(func(r *http.Request) { r.Body, r.ContentLength = http.NoBody, -1 })
			late, err := http.NewRequest("POST", "/", lateBody{})
			check(err)
			with(func(r *http.Request) { r.Body, r.ContentLength = late.Body, -1 })
		}
	}
	coverFields(t, s)
	// Rules of prediction sets and a risk; the level is too high for the images of single classes.
	for _, rule := range []evaluate.SetRule{
		{Score: evaluate.RegularizedSets, Lambda: 0.1, KReg: 1, Randomized: true, AllowEmpty: true}, {PerClass: true},
	} {
		run := theRun.With(bayes.WithSetRule(rule), bayes.WithRisk(0.1, 0.9), bayes.WithLevel(0.98))
		s, err := New([]Model{{Run: run}}, quiet)
		check(err)
		r := httptest.NewRequest("GET", "/run", nil)
		r.Header.Set("Authorization", "Bearer "+testToken)
		record(s, r)
		coverFields(t, s)
		check(s.Close())
	}
	for _, what := range missing() {
		// Each operation can fail, but most have nothing that a test could break.
		if strings.HasPrefix(what, "GET ") && strings.HasSuffix(what, " 500") {
			continue
		}
		t.Errorf("the document has %q, which this test has not seen", what)
	}
}

// nameOr returns the name of a model, or another one for nil.
func (m *model) nameOr(other string) string {
	if m == nil {
		return other
	}
	return m.name
}

// coverFields sends requests with all fields, and gets answers with all fields.
func coverFields(t *testing.T, s *Server) {
	ask := func(target, kind string, body []byte) string {
		if kind == jsonType {
			documentedRequest("POST", strings.Replace(target, "/patterns/", "/{name}/", 1), body)
		}
		r := httptest.NewRequest("POST", target, bytes.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+testToken)
		r.Header.Set("Content-Type", kind)
		w := record(s, r)
		if w.Code != 200 && w.Code != 400 {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
		return w.Body.String()
	}
	image := pngOf(theTest.Image(0))
	encode := func(value any) []byte {
		content, err := json.Marshal(value)
		check(err)
		return content
	}
	ask("/predict", jsonType, encode(object{"images": [][]byte{image}, "probabilities": true}))
	ask("/predict", jsonType, encode(object{"instances": []any{image}}))
	ask("/predict", jsonType, encode(object{"images": []string{"AAAA", "AAAA"}})) // an error, for each image and for all
	table := "Id" + strings.Repeat(",p1", side*side) + "\na-7" + strings.Repeat(",0", side*side) + "\n"
	if text := ask("/predict", "text/csv", []byte(table)); !strings.Contains(text, `{"file":"body.csv[0]","id":"a-7"`) {
		t.Errorf("a table: %s", text)
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for _, content := range [][]byte{image, []byte("garbage")} {
		part, err := form.CreateFormFile("images", "a.png")
		check(err)
		part.Write(content)
	}
	check(form.Close())
	if text := ask("/predict", form.FormDataContentType(), body.Bytes()); !strings.Contains(text, `{"file":"a.png","error":"image 1`) {
		t.Errorf("an image that cannot be decoded: %s", text)
	}
	conformsTo("FormRequest", object{"images": []any{""}})
	ask(inferTarget, jsonType, tensorRequest("BYTES", []int{1}, [][]byte{image}, "id", "7", "parameters", object{"binary_data_output": true},
		"outputs", []object{{"name": "class", "parameters": object{"binary_data": true}}}))
	for _, target := range []string{inferTarget, "/v2/models/patterns/versions/1/infer"} {
		r := binaryRequest(target, "UINT8", []int{1, side, side}, theTest.Image(0), "parameters", object{"binary_data_output": true})
		r.Header.Set("Authorization", "Bearer "+testToken)
		record(s, r)
	}
}
