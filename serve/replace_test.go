package serve

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/internal/testenv"
)

// TestReplacements replaces, adds and removes runs while clients ask without a pause. No request
// may fail, and each must be answered by the run whose digest it has.
func TestReplacements(t *testing.T) {
	replacements := 8
	if testenv.All(t) {
		replacements = 100
	}
	runs := []*bayes.Run{theRun, other(t, patterns(90, 4))}
	want := map[string]string{} // the answer by digest
	image, err := theTest.Slice(0, 1)
	check(err)
	for _, run := range runs {
		digest, err := run.Digest()
		check(err)
		answers, err := run.Predict(t.Context(), image)
		check(err)
		want[digest] = answers[0].Class
	}
	s := newTest(t, Options{})
	address := serving(t, s)
	tensor := tensorRequest("UINT8", []int{1, side, side}, toInts(theTest.Image(0)))
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	defer client.CloseIdleConnections()
	var asked, byOther atomic.Int64
	first, err := theRun.Digest()
	check(err)
	ask := func(target string, body []byte) {
		response, err := client.Post("http://"+address+target, "", bytes.NewReader(body))
		if err != nil {
			t.Errorf("%s: %v", target, err)
			return
		}
		defer response.Body.Close()
		content, err := io.ReadAll(response.Body)
		digest := response.Header.Get(digestHeader)
		var got struct {
			Answers []bayes.Answer
			Outputs []struct{ Data []any }
		}
		if err == nil {
			err = json.Unmarshal(content, &got)
		}
		class := ""
		switch {
		case len(got.Answers) == 1:
			class = got.Answers[0].Class
		case len(got.Outputs) > 1:
			class, _ = got.Outputs[1].Data[0].(string)
		}
		if err != nil || response.StatusCode != 200 || want[digest] == "" || class != want[digest] {
			t.Errorf("%s: %d %s (%v), by the run %s", target, response.StatusCode, content, err, digest)
		}
		asked.Add(1)
		if digest != first {
			byOther.Add(1)
		}
	}
	stop := make(chan bool)
	var asking sync.WaitGroup
	for _, each := range []struct {
		target string
		body   []byte
	}{
		{"/predict", pngOf(theTest.Image(0))}, {"/predict?model=patterns", pngOf(theTest.Image(0))},
		{inferTarget, tensor}, {"/v2/models/patterns/versions/1/infer", tensor},
	} {
		asking.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					ask(each.target, each.body)
				}
			}
		})
	}
	began := time.Now()
	for i := range replacements {
		list := []Model{{Name: "patterns", Version: "1", Run: runs[(i+1)%2]}}
		if i%3 > 0 { // which then answers requests without a version
			list = append(list, Model{Name: "patterns", Version: "2", Run: runs[i%2]})
		}
		if err := s.Reload(list); err != nil {
			t.Fatal(err)
		}
		for before := asked.Load(); asked.Load() < before+4; { // some requests between two replacements
			time.Sleep(time.Millisecond)
		}
	}
	took := time.Since(began)
	close(stop)
	asking.Wait()
	t.Logf("%d requests during %d replacements in %v, %d of them answered by the second run", asked.Load(), replacements, took, byOther.Load())
	if n := byOther.Load(); n == 0 || n == asked.Load() {
		t.Errorf("%d of %d requests were answered by the second run", n, asked.Load())
	}
	s.retiring.Wait()
	if used := s.memory.used.Load(); used != 0 || s.shared.waiting.Load() != 0 {
		t.Errorf("%d bytes, %d images are not given back", used, s.shared.waiting.Load())
	}
}

func toInts(pixels []byte) []int {
	values := make([]int, len(pixels))
	for i, v := range pixels {
		values[i] = int(v)
	}
	return values
}

// TestReloadModels: models that are not in the list are removed, new ones are added, and
// unchanged ones are not loaded again. A mistake changes nothing.
func TestReloadModels(t *testing.T) {
	s := newTest(t, Options{})
	next := other(t, patterns(90, 4))
	models := func() string {
		_, _, body := get(s, "/v2/models")
		var got struct {
			Models []struct{ Name, Version string }
		}
		check(json.Unmarshal([]byte(body), &got))
		text := ""
		for _, m := range got.Models {
			text += m.Name + ":" + m.Version + " "
		}
		return text
	}
	before := s.first().queue.served.Load()
	for _, c := range []struct {
		list []Model
		want string // the models, or the error
	}{
		{[]Model{{Name: "patterns", Run: theRun}, {Name: "patterns", Version: "2", Run: next}}, "patterns:1 patterns:2 "},
		{nil, "serve: options: models: must be at least one, got none"},
		{[]Model{{Name: "a/b", Run: theRun}}, `must be printable text of 1 to 255 bytes without slashes, got "a/b"`},
		{[]Model{{Name: "a", Run: theRun}, {Name: "a", Version: "1", Run: next}}, "must have different names or versions, got a version 1 twice"},
		{[]Model{{Name: "a"}}, "model 0 must have a run"},
		{[]Model{{Name: "other", Run: next}, {Name: "patterns", Run: theRun}}, "other:1 patterns:1 "},
	} {
		err := s.Reload(c.list)
		if got := models(); err == nil && got != c.want || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: models %s (%v), want %s", c.list, got, err, c.want)
		}
		var run, health struct{ Digest string } // of the model that answers without parameters
		_, _, body := get(s, "/run")
		check(json.Unmarshal([]byte(body), &run))
		_, _, body = get(s, "/health")
		check(json.Unmarshal([]byte(body), &health))
		if health != run || run.Digest == "" {
			t.Errorf("%v: /health has the digest %s, /run %s", c.list, health.Digest, run.Digest)
		}
	}
	if now := s.models.find("patterns", "1").queue.served.Load(); now != before {
		t.Error("a run that has not changed was loaded again")
	}
	s.retiring.Wait()
	code, _, body := get(s, "/v2/models/patterns/versions/2")
	refused(t, "a version that was removed", code, body, 404, `there is no version "2" of model "patterns"`)
	if _, _, body := get(s, "/run"); !strings.Contains(body, `{"name":"other","version":"1","network":"mlp-4"`) {
		t.Errorf("the first model is %s", body)
	}
	if _, _, body := get(s, "/run?model=patterns&version=1"); !strings.Contains(body, `{"name":"patterns","version":"1","network":"lenet-small"`) {
		t.Errorf("/run of a model is %s", body)
	}
	if _, _, body := get(s, "/metrics"); !strings.Contains(body, `pollen_samples{model="other",version="1"} 3`) {
		t.Errorf("metrics are %s", body)
	}
}
