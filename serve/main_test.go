package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"image"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/testenv"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/tensor/random"
)

// side is the height and width of the run's images.
const side = 28

// theRun is a run on patterns, calibrated, and its test images.
var (
	theRun  *bayes.Run
	theTest *datasets.Dataset
)

func TestMain(m *testing.M) {
	testenv.InMemory()
	dir, err := os.MkdirTemp("", "serve")
	check(err)
	data := &datasets.Splits{Train: patterns(300, 1), Validation: patterns(100, 2), Test: patterns(64, 3)}
	theTest = data.Test
	spec := bayes.Spec{Network: "lenet-small", Method: langevin.SGLD{}, Batch: 30, Epochs: 4, Chains: 2, Samples: 3}
	theRun, err = bayes.Fit(context.Background(), spec, data, filepath.Join(dir, "patterns"))
	check(err)
	code := m.Run()
	check(os.RemoveAll(dir))
	os.Exit(code)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// patterns are noisy stripes across, along, and checks.
func patterns(n int, stream uint16) *datasets.Dataset {
	noise := make([]float32, n*side*side)
	random.Uniforms(noise, 0, random.Address{Seed: 7, Stream: stream})
	pixels := make([]byte, len(noise))
	labels := make([]int32, n)
	for i := range pixels {
		image, row, column := i/(side*side), i/side%side, i%side
		labels[image] = int32(image % 3)
		on := []int{row / 4, column / 4, row/4 + column/4}[image%3] % 2
		pixels[i] = byte(100*on) + byte(155*noise[i])
	}
	d, err := datasets.New("patterns", pixels, labels, 1, side, side, []string{"across", "along", "checked"})
	check(err)
	return d
}

func pngOf(pixels []byte) []byte {
	img := image.NewGray(image.Rect(0, 0, side, side))
	copy(img.Pix, pixels)
	var b bytes.Buffer
	check(png.Encode(&b, img))
	return b.Bytes()
}

// expected returns the answers of Run.Predict for the test images, in batches of the size that
// the server's network uses.
func expected(t testing.TB, batch int) []bayes.Answer {
	t.Helper()
	var all []bayes.Answer
	for from := 0; from < theTest.Len(); from += batch {
		part, err := theTest.Slice(from, from+batch)
		check(err)
		answers, err := theRun.Predict(t.Context(), part)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, answers...)
	}
	return all
}

func newTest(t testing.TB, options Options) *Server {
	t.Helper()
	if options.Report == nil {
		options.Report = func(err error) { t.Errorf("reported: %v", err) }
	}
	s, err := New([]Model{{Run: theRun}}, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// fake is a predictor whose answers a test determines.
type fake struct {
	answer func(pixels []byte) ([]bayes.Answer, error)
	closed bool
}

func (f *fake) Answer(_ context.Context, pixels []byte) ([]bayes.Answer, error) {
	return f.answer(pixels)
}
func (f *fake) PartSize() int { return 16 }
func (f *fake) Close() error  { f.closed = true; return nil }

func newFake(t testing.TB, options Options, answer func(pixels []byte) ([]bayes.Answer, error)) (*Server, *fake) {
	t.Helper()
	options, err := options.resolve()
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{answer: answer}
	s := newServer(options)
	data := theRun.Manifest().Data
	s.models.all = []*model{s.newModel("fake", "1", data, &served{predictor: f, info: runInfo{Name: "fake", ClassNames: data.ClassNames}})}
	t.Cleanup(func() { s.Close() })
	return s, f
}

// first returns the first model of a server.
func (s *Server) first() *model { return s.models.list()[0] }

// ones answers with the first class.
func ones(pixels []byte) ([]bayes.Answer, error) {
	answers := make([]bayes.Answer, len(pixels)/(side*side))
	for i := range answers {
		answers[i] = bayes.Answer{Class: "across", Confidence: 1, Probabilities: []float64{1, 0, 0}}
	}
	return answers, nil
}

// post asks a server and returns the status, the header and the body.
func post(s *Server, target, kind string, body io.Reader) (int, http.Header, string) {
	r := httptest.NewRequest("POST", target, body)
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	w := record(s, r)
	return w.Code, w.Result().Header, w.Body.String()
}

func get(s *Server, target string) (int, http.Header, string) {
	w := record(s, httptest.NewRequest("GET", target, nil))
	return w.Code, w.Result().Header, w.Body.String()
}

func answersOf(t testing.TB, content string) []bayes.Answer {
	t.Helper()
	var got struct{ Answers []bayes.Answer }
	if err := json.Unmarshal([]byte(content), &got); err != nil {
		t.Fatalf("%v in %s", err, content)
	}
	return got.Answers
}

// same compares answers by their JSON, which has all bits of a float64.
func same(t testing.TB, what string, got, want []bayes.Answer) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d answers, want %d", what, len(got), len(want))
	}
	for i := range got {
		g, err := json.Marshal(got[i])
		check(err)
		w, err := json.Marshal(want[i])
		check(err)
		if !bytes.Equal(g, w) {
			t.Fatalf("%s: answer %d is\n%s, want\n%s", what, i, g, w)
		}
	}
}

// refused requires an error of the given status whose text contains the words.
func refused(t testing.TB, what string, code int, body string, wantCode int, words string) {
	t.Helper()
	var e struct{ Error string }
	if err := json.Unmarshal([]byte(body), &e); err != nil || code != wantCode || !strings.Contains(e.Error, words) {
		t.Errorf("%s: %d %s, want %d and %q", what, code, body, wantCode, words)
	}
}
