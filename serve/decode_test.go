package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"mime/multipart"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pollen-ml/pollen/bayes"
)

// idle reports whether no decoder has a worker or memory.
func (p *decodePool) idle() bool {
	p.small.mu.Lock()
	defer p.small.mu.Unlock()
	p.large.mu.Lock()
	defer p.large.mu.Unlock()
	return p.small.free == p.workers && p.large.free == p.memory
}

// await waits for a condition.
func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not after a minute", what)
		}
	}
}

// A bad image of a batch has its own error, and the others have their answers.
func TestBatchErrors(t *testing.T) {
	s := newTest(t, Options{})
	want := expected(t, 8)
	images := [][]byte{pngOf(theTest.Image(0)), []byte("garbage"), pngOf(theTest.Image(1)), bomb(10_000, 10_000)}
	const first, third = "image 1: offset 0: must begin like an image", "image 3 must have at most 25000000 pixels (--max-pixels), got 10000x10000"
	check := func(code int, body string, names ...string) {
		t.Helper()
		var got struct {
			Error   string
			Answers []bayes.Answer
		}
		if err := json.Unmarshal([]byte(body), &got); err != nil || code != 200 || len(got.Answers) != 4 || got.Error != "" {
			t.Fatalf("%d %s, %v", code, body, err)
		}
		for i, a := range got.Answers {
			if i%2 == 0 && (a.Error != "" || a.Class != want[i/2].Class || a.Confidence != want[i/2].Confidence) {
				t.Errorf("answer %d is %+v, want %+v", i, a, want[i/2])
			}
			if names != nil && a.File != names[i] {
				t.Errorf("file %d is %s, want %s", i, a.File, names[i])
			}
		}
		if names == nil && (!strings.HasPrefix(got.Answers[1].Error, first) || got.Answers[3].Error != third) ||
			names != nil && !strings.HasPrefix(got.Answers[1].Error, "image 1 (b): offset 0: must begin like an image") {
			t.Errorf("errors are %q and %q", got.Answers[1].Error, got.Answers[3].Error)
		}
		if strings.Count(body, `"class"`) != 2 {
			t.Errorf("a class for an error: %s", body)
		}
	}
	content, err := json.Marshal(map[string]any{"images": images})
	if err != nil {
		t.Fatal(err)
	}
	code, _, body := post(s, "/predict", "application/json", bytes.NewReader(content))
	check(code, body)
	var form bytes.Buffer
	parts := multipart.NewWriter(&form)
	for i, name := range []string{"a", "b", "c", "d"} {
		part, err := parts.CreateFormFile("images", name)
		if err == nil {
			_, err = part.Write(images[i])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	parts.Close()
	code, _, body = post(s, "/predict", parts.FormDataContentType(), &form)
	check(code, body, "a", "b", "c", "d")

	code, _, body = post(s, "/predict", "application/json", strings.NewReader(`{"images":["AAAA","////"]}`))
	refused(t, "only bad images", code, body, 400, "image 0: offset 0: must begin like an image")
	if !strings.Contains(body, `{"error":"image 1: offset 0: must begin like an image`) {
		t.Errorf("only bad images: %s", body)
	}
}

// A JPEG image of thousands of scans is refused before it is decoded.
func TestScans(t *testing.T) {
	s, _ := newFake(t, Options{}, ones)
	s.pool.decode = func(context.Context, []byte, *bayes.Data) ([]byte, error) { panic("decoded") }
	jpeg := []byte("\xff\xd8\xff\xc2\x00\x0b\x08\x13\x88\x13\x88\x01\x01\x11\x00")
	jpeg = append(jpeg, bytes.Repeat([]byte("\xff\xda\x00\x08\x01\x01\x00\x01\x3f\x00\x12\x34"), 2000)...)
	code, _, body := post(s, "/predict", "", bytes.NewReader(jpeg))
	refused(t, "2000 scans", code, body, 400, "image 0: JPEG: must have at most 100 scans, got more")
	code, _, body = post(s, "/v2/models/fake/infer", "", bytes.NewReader(tensorRequest("BYTES", []int{1}, [][]byte{jpeg})))
	refused(t, "2000 scans in a tensor", code, body, 400, "image 0: JPEG: must have at most 100 scans, got more")
	// A panic of a decoder ends one image.
	code, _, body = post(s, "/predict", "", bytes.NewReader(pngOf(theTest.Image(0))))
	refused(t, "panic", code, body, 400, "image 0: the decoder failed: decoded")
}

// A decoder stops at its deadline, and when its client is gone.
func TestDecodeDeadline(t *testing.T) {
	s, _ := newFake(t, Options{DecodeTimeout: 10 * time.Millisecond}, ones)
	started := make(chan bool, 1)
	s.pool.decode = func(ctx context.Context, _ []byte, _ *bayes.Data) ([]byte, error) {
		started <- true
		<-ctx.Done()
		return nil, ctx.Err()
	}
	image := pngOf(theTest.Image(0))
	code, _, body := post(s, "/predict", "", bytes.NewReader(image))
	refused(t, "slow", code, body, 413, "image 0 must be decoded within 10ms")
	await(t, "the decoder", s.pool.idle)
	<-started
	code, _, body = post(s, "/v2/models/fake/infer", "", bytes.NewReader(tensorRequest("BYTES", []int{1}, [][]byte{image})))
	refused(t, "slow, of a tensor", code, body, 413, "image 0 must be decoded within 10ms")
	await(t, "the decoder", s.pool.idle)
	<-started
	s.pool.timeout = time.Hour
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		<-started
		leave()
	}()
	h := newReservation(&s.memory)
	if _, _, err := s.pool.decodeAll(ctx, s.first(), []upload{{content: image}}, h); statusOf(err) != statusClientClosed {
		t.Errorf("a client that has gone: %v", err)
	}
	h.release()
	await(t, "the decoder", func() bool { return s.pool.idle() && s.memory.used.Load() == 0 })
}

// Decoders that do not stop are isolated: their clients get an error, other requests are answered,
// /health reports them, and the server ends.
func TestStuckDecoders(t *testing.T) {
	large := blank(2000)
	var reports atomic.Int64
	s, _ := newFake(t, Options{DecodeTimeout: 200 * time.Millisecond, Report: func(error) { reports.Add(1) }}, ones)
	decode, release := s.pool.decode, make(chan bool)
	s.pool.decode = func(ctx context.Context, content []byte, d *bayes.Data) ([]byte, error) {
		if len(content) == len(large) {
			<-release
			return make([]byte, side*side), nil
		}
		return decode(ctx, content, d)
	}
	_, units, _, err := s.pool.lane(large)
	if err != nil {
		t.Fatal(err)
	}
	all := s.pool.memory / units // take all memory
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Serve(ctx, listener) }()
	address := "http://" + listener.Addr().String()
	var asking sync.WaitGroup
	for range all {
		asking.Go(func() {
			response, err := http.Post(address+"/predict", "", bytes.NewReader(large))
			if err != nil || response.StatusCode != 413 {
				t.Errorf("stuck: %+v, %v", response, err)
				return
			}
			response.Body.Close()
		})
	}
	asking.Wait()
	await(t, "the watchdog", func() bool { return s.watchdog.stuck.Load() == int64(all) })
	if code, _, body := get(s, "/health"); code != 503 || !strings.Contains(body, `"status":"stuck"`) {
		t.Errorf("health: %d %s", code, body)
	}
	if code, _, body := post(s, "/predict", "", bytes.NewReader(pngOf(theTest.Image(0)))); code != 200 {
		t.Errorf("a small image: %d %s", code, body)
	}
	if used := s.memory.used.Load(); used < int64(all*len(large)) {
		t.Errorf("%d bytes are reserved, want those of the bodies", used)
	}
	if reports.Load() != int64(all) {
		t.Errorf("%d reports", reports.Load())
	}
	http.DefaultClient.CloseIdleConnections()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	close(release)
	await(t, "the end", func() bool { return s.pool.idle() && s.memory.used.Load() == 0 && s.watchdog.stuck.Load() == 0 })
	if code, _, body := get(s, "/health"); code != 200 {
		t.Errorf("health at last: %d %s", code, body)
	}
}

// A prediction that does not end is reported, and delays the end of Serve and Close by Timeouts
// only.
func TestStuckPrediction(t *testing.T) {
	started, release := make(chan bool), make(chan bool)
	s, f := newFake(t, Options{Timeout: 200 * time.Millisecond, DecodeTimeout: time.Minute}, func(pixels []byte) ([]bayes.Answer, error) {
		started <- true
		<-release
		return ones(pixels)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Serve(ctx, listener) }()
	go func() {
		if response, err := http.Post("http://"+listener.Addr().String()+"/predict", "", bytes.NewReader(pngOf(theTest.Image(0)))); err == nil {
			response.Body.Close()
		}
	}()
	<-started
	await(t, "the watchdog", func() bool { return s.watchdog.stuck.Load() == 1 })
	if code, _, body := get(s, "/health"); code != 503 || !strings.Contains(body, `"status":"stuck"`) {
		t.Errorf("health: %d %s", code, body)
	}
	stop()
	<-ended
	if err := s.Close(); err == nil || f.closed || !strings.Contains(err.Error(), "serve: close: a prediction has not ended after 100ms") {
		t.Errorf("closed %t: %v", f.closed, err)
	}
	close(release)
	await(t, "the prediction", func() bool { return s.watchdog.stuck.Load() == 0 })
}

// Requests that do not end are cancelled after a Timeout.
func TestServeEnds(t *testing.T) {
	s, _ := newFake(t, Options{Timeout: 100 * time.Millisecond}, ones)
	web := &blocking{started: make(chan bool), ended: make(chan error, 1)}
	s.routes.Handle("GET /block", web)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Serve(ctx, listener) }()
	go func() {
		if response, err := http.Get("http://" + listener.Addr().String() + "/block"); err == nil {
			response.Body.Close()
		}
	}()
	<-web.started
	stop()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "serve: shutdown: context deadline exceeded") {
		t.Errorf("Serve: %v", err)
	}
	if err := <-web.ended; err != context.Canceled {
		t.Errorf("the request's context: %v", err)
	}
}

// blocking is a handler that waits for the end of its request's context.
type blocking struct {
	started chan bool
	ended   chan error
}

func (b *blocking) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	close(b.started)
	<-r.Context().Done()
	b.ended <- r.Context().Err()
}
