package serve

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/langevin"
)

func TestPages(t *testing.T) {
	s := newTest(t, Options{})
	for _, c := range []struct{ target, kind, words string }{
		{"/", "text/html", `<script src="page.js"`},
		{"/page.js", "text/javascript", "predict?probabilities=true"},
		{"/page.css", "text/css", "prefers-color-scheme"},
		{"/run", "application/json", `"name":"patterns","version":"1","network":"lenet-small","method":"sgld","data":"patterns","examples":300`},
		{"/run", "application/json", `"classNames":["across","along","checked"],"samples":6,"expected":6,"calibrated":true,"level":0.9,"inDistributionRate":0.95`},
		{"/health", "application/json", `{"status":"ready","run":"patterns","samples":6,"digest":"`},
	} {
		code, header, body := get(s, c.target)
		if code != 200 || !strings.HasPrefix(header.Get("Content-Type"), c.kind) || !strings.Contains(body, c.words) {
			t.Errorf("%s: %d %s %s, want %s", c.target, code, header.Get("Content-Type"), body, c.words)
		}
		if c.kind == "text/html" {
			if policy := header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") {
				t.Errorf("the page's policy is %q", policy)
			}
			if strings.Contains(body, "http") {
				t.Error("the page asks for something from elsewhere")
			}
		}
	}
	if code, _, _ := get(s, "/nothing"); code != 404 {
		t.Errorf("/nothing: %d", code)
	}
	if code, header, _ := get(s, "/predict"); code != 405 || header.Get("Allow") != "POST" {
		t.Errorf("GET /predict: %d, allows %s", code, header.Get("Allow"))
	}
}

// The text of a custom network is shown as "network file".
func TestNetworkFile(t *testing.T) {
	data := &datasets.Splits{Train: patterns(30, 1)}
	spec := bayes.Spec{Network: "- flatten\n- linear: {outputs: classes}\n", Method: langevin.SGLD{}, Batch: 30, Epochs: 2, Samples: 1}
	run, err := bayes.Fit(t.Context(), spec, data, filepath.Join(t.TempDir(), "own"))
	check(err)
	s, err := New([]Model{{Run: run}}, Options{})
	check(err)
	defer s.Close()
	if _, _, body := get(s, "/run"); !strings.Contains(body, `"name":"own","version":"1","network":"network file","method":"sgld"`) {
		t.Errorf("/run: %s", body)
	}
}

func TestMetrics(t *testing.T) {
	s, _ := newFake(t, Options{}, ones)
	image := string(pngOf(theTest.Image(0)))
	for range 3 {
		post(s, "/predict", "", strings.NewReader(image))
	}
	post(s, "/predict", "", strings.NewReader("garbage"))
	get(s, "/nothing")
	code, header, body := get(s, "/metrics")
	if code != 200 || !strings.HasPrefix(header.Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Errorf("%d %s", code, header.Get("Content-Type"))
	}
	for _, line := range []string{
		`pollen_requests_total{route="POST /predict",code="200"} 3`,
		`pollen_requests_total{route="POST /predict",code="400"} 1`,
		`pollen_requests_total{route="other",code="404"} 1`,
		"# TYPE pollen_predict_seconds histogram",
		`pollen_predict_seconds_bucket{le="+Inf"} 4`,
		"pollen_predict_seconds_count 4",
		`pollen_batch_images_bucket{le="1"} 3`,
		"pollen_batch_images_sum 3",
		"pollen_images_total 3",
		"pollen_queue_images 0",
		"pollen_memory_bytes 0",
		"pollen_panics_total 0",
	} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("no line %q in\n%s", line, body)
		}
	}
	for _, line := range strings.Split(strings.TrimSpace(body), "\n") {
		if fields := strings.Fields(line); !strings.HasPrefix(line, "# ") && len(fields) < 2 {
			t.Errorf("line %q has no value", line)
		}
	}
}

func TestHistogram(t *testing.T) {
	h := newHistogram(1, 2)
	for _, value := range []float64{0.5, 1, 1.5, 2, 3} {
		h.add(value)
	}
	var text strings.Builder
	h.write(&text, "h")
	want := "h_bucket{le=\"1\"} 2\nh_bucket{le=\"2\"} 4\nh_bucket{le=\"+Inf\"} 5\nh_sum 8\nh_count 5\n"
	if text.String() != want {
		t.Errorf("got\n%s, want\n%s", text.String(), want)
	}
}

func TestOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"Batch": {Batch: -1}, "Queue": {Queue: -1}, "MaxImages": {MaxImages: 513}, "MaxBody": {MaxBody: 1 << 29},
		"MaxPixels": {MaxPixels: 100_000_001}, "Memory": {Memory: -1}, "Timeout": {Timeout: -1}, "DecodeTimeout": {DecodeTimeout: -1},
	} {
		var invalid *OptionError
		_, err := New([]Model{{Run: theRun}}, o)
		if !errors.As(err, &invalid) || invalid.Option != name || !strings.HasPrefix(err.Error(), "serve: options: "+name+": ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFailures: failures on the server's side end their requests with 500, and are reported; the
// server continues.
func TestFailures(t *testing.T) {
	var reported []string
	var mu sync.Mutex
	how := errors.New("the device is on fire")
	report := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		reported = append(reported, err.Error())
	}
	s, _ := newFake(t, Options{Report: report}, func(pixels []byte) ([]bayes.Answer, error) {
		switch how.Error() {
		case "panic":
			panic("a broken invariant")
		case "few":
			return nil, nil
		case "none":
			return ones(pixels)
		}
		return nil, how
	})
	image := string(pngOf(theTest.Image(0)))
	for i, c := range []struct{ how, words string }{
		{"the device is on fire", "the device is on fire"}, {"panic", "a broken invariant"}, {"few", "0 answers for 1 images"},
	} {
		how = errors.New(c.how)
		code, _, body := post(s, "/predict", "", strings.NewReader(image))
		refused(t, c.how, code, body, 500, "the error was reported to the operator")
		if len(reported) != i+1 || !strings.Contains(reported[i], c.words) {
			t.Errorf("%s: reported %q", c.how, reported)
		}
	}
	how = errors.New("none")
	if code, _, body := post(s, "/predict", "", strings.NewReader(image)); code != 200 {
		t.Errorf("afterwards: %d %s", code, body)
	}

	// A panic outside the predictor.
	s.routes.HandleFunc("GET /panic", func(http.ResponseWriter, *http.Request) { panic("elsewhere") })
	code, _, body := get(s, "/panic")
	refused(t, "panic of a handler", code, body, 500, "the error was reported to the operator")
	if last := reported[len(reported)-1]; !strings.Contains(last, "elsewhere") || s.counts.panics.Load() != 2 {
		t.Errorf("reported %q, %d panics", last, s.counts.panics.Load())
	}
}

// TestQueue: images of waiting requests are answered for together, up to the predictor's room; a
// full queue refuses. A closed one does, too, but first answers what it has.
func TestQueue(t *testing.T) {
	started, go_ := make(chan int, 100), make(chan bool)
	s, f := newFake(t, Options{Queue: 20, MaxImages: 10, Wait: -1}, func(pixels []byte) ([]bayes.Answer, error) {
		started <- len(pixels) / (side * side)
		<-go_
		return ones(pixels)
	})
	image := theTest.Image(0)
	var answered atomic.Int64
	var asking sync.WaitGroup
	ask := func(n int) {
		asking.Go(func() {
			r := s.first().queue.expect().submit(t.Context(), n, make([]byte, n*len(image)))
			if r.err != nil || len(r.answers) != n {
				t.Errorf("%d answers for %d: %v", len(r.answers), n, r.err)
			}
			answered.Add(int64(len(r.answers)))
		})
	}
	ask(1)
	if n := <-started; n != 1 {
		t.Fatalf("%d images at first", n)
	}
	for range 18 {
		ask(1)
	}
	for s.first().queue.waiting.Load() != 18 {
		time.Sleep(time.Millisecond)
	}
	err := s.first().queue.expect().submit(t.Context(), 3, make([]byte, 3*len(image))).err
	if code := statusOf(err); code != 503 {
		t.Errorf("a full queue: %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	given := make(chan error)
	go func() {
		given <- s.first().queue.expect().submit(cancelled, 1, image).err
	}()
	for s.first().queue.waiting.Load() != 19 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-given; statusOf(err) != statusClientClosed {
		t.Errorf("a client that is gone: %v", err)
	}
	go_ <- true
	if n := <-started; n != 16 {
		t.Errorf("%d images together, want the 16 that there is room for", n)
	}
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	for s.first().queue.open() {
		time.Sleep(time.Millisecond)
	}
	code, header, body := post(s, "/predict", "", strings.NewReader("x"))
	refused(t, "closing", code, body, 503, "the server is closing")
	if header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	if code, _, body := get(s, "/health"); code != 503 || !strings.Contains(body, "closing") {
		t.Errorf("health when closing: %d %s", code, body)
	}
	go_ <- true
	if n := <-started; n != 2 {
		t.Errorf("%d images at last, want 2: nobody waits for the third", n)
	}
	go_ <- true
	if err := <-closed; err != nil || !f.closed {
		t.Errorf("closed %t: %v", f.closed, err)
	}
	asking.Wait()
	if answered.Load() != 19 {
		t.Errorf("%d answers, want 19", answered.Load())
	}
}

// TestWait: a batch waits for requests that are being decoded, and only for these.
func TestWait(t *testing.T) {
	var sizes []int
	s, _ := newFake(t, Options{Wait: time.Hour}, func(pixels []byte) ([]bayes.Answer, error) {
		sizes = append(sizes, len(pixels)/(side*side))
		return ones(pixels)
	})
	if err := s.first().queue.expect().submit(t.Context(), 1, theTest.Image(0)).err; err != nil { // waits for nobody
		t.Error(err)
	}
	sizes = nil
	var asking sync.WaitGroup
	var all []*expectation
	for range 32 {
		all = append(all, s.first().queue.expect())
	}
	for _, e := range all {
		asking.Go(func() {
			if err := e.submit(t.Context(), 1, theTest.Image(0)).err; err != nil {
				t.Error(err)
			}
		})
	}
	asking.Wait()
	if len(sizes) != 2 || sizes[0] != 16 {
		t.Errorf("batches of %v, want two of 16", sizes)
	}
}

// TestWaitEnds: a request whose image cannot be decoded is waited for no longer, whether it ends
// before or during the wait.
func TestWaitEnds(t *testing.T) {
	s, _ := newFake(t, Options{Wait: time.Hour}, ones)
	if code, _, _ := post(s, "/predict", "", strings.NewReader("no image")); code != http.StatusBadRequest && code != http.StatusUnsupportedMediaType {
		t.Errorf("no image: %d", code)
	}
	if code, _, body := post(s, "/predict", "", strings.NewReader(string(pngOf(theTest.Image(0))))); code != http.StatusOK {
		t.Errorf("after it: %d %s", code, body)
	}
	q := s.first().queue
	other, answered := q.expect(), make(chan error)
	go func() { answered <- q.expect().submit(t.Context(), 1, theTest.Image(0)).err }()
	for q.expected.Load() != 1 || len(q.jobs) > 0 { // until the job is received
		time.Sleep(time.Millisecond)
	}
	select {
	case err := <-answered:
		t.Errorf("answered before the other request ended (%v)", err)
	case <-time.After(20 * time.Millisecond):
	}
	other.end()
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func TestTimeout(t *testing.T) {
	go_ := make(chan bool)
	defer close(go_)
	s, _ := newFake(t, Options{Timeout: 20 * time.Millisecond}, func(pixels []byte) ([]bayes.Answer, error) {
		<-go_
		return ones(pixels)
	})
	code, header, body := post(s, "/predict", "", strings.NewReader(string(pngOf(theTest.Image(0)))))
	refused(t, "no answer", code, body, 503, "no answer in time")
	if header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}

// TestMemory: a body that does not fit is refused, and reserved memory grows only with received
// bytes.
func TestMemory(t *testing.T) {
	s, _ := newFake(t, Options{Memory: 1 << 20, MaxBody: 1 << 20}, ones)
	s.memory.reserve(1 << 19)
	code, _, body := post(s, "/predict", "", strings.NewReader(strings.Repeat("x", 1<<19)))
	refused(t, "no room", code, body, 503, "not enough memory")
	slow, sending := io.Pipe()
	done := make(chan bool)
	go func() {
		post(s, "/predict", "", slow)
		done <- true
	}()
	sending.Write([]byte("x"))
	if used := s.memory.used.Load(); used > 1<<19+firstRoom {
		t.Errorf("a byte takes %d", used-1<<19)
	}
	sending.Close()
	<-done
	if used := s.memory.used.Load(); used != 1<<19 {
		t.Errorf("%d bytes are not given back", used-1<<19)
	}
}

func TestTurns(t *testing.T) {
	turns := semaphore{free: 10}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if err := turns.acquire(gone, 1, 0); !errors.Is(err, context.Canceled) || turns.free != 10 {
		t.Errorf("a client that has gone: %v, %d left of 10", err, turns.free)
	}
	check(turns.acquire(t.Context(), 6, 0))
	order := make(chan int, 3)
	wait := func(n int) {
		go func() {
			check(turns.acquire(t.Context(), n, 7))
			order <- n
		}()
		for waiting := false; !waiting; {
			time.Sleep(time.Millisecond)
			turns.mu.Lock()
			for _, w := range turns.waiting {
				waiting = waiting || w.units == n
			}
			turns.mu.Unlock()
		}
	}
	wait(10)
	wait(3) // there would be room, but it is not its turn
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := turns.acquire(over, 5, 0); err != context.Canceled {
		t.Errorf("a context that has ended: %v", err)
	}
	turns.release(6)
	if n := <-order; n != 10 {
		t.Errorf("%d came first", n)
	}
	turns.release(10)
	if n := <-order; n != 3 || turns.free != 7 {
		t.Errorf("%d came next, %d are free", n, turns.free)
	}
}

// Waiters with a lower cost come first.
func TestTurnsByCost(t *testing.T) {
	turns := semaphore{}
	order := make(chan int, 4)
	for waiting, cost := range []int{5, 9, 1, 5} {
		go func() {
			check(turns.acquire(t.Context(), 1, cost))
			order <- cost
		}()
		await(t, "a waiter", func() bool {
			turns.mu.Lock()
			defer turns.mu.Unlock()
			return len(turns.waiting) == waiting+1
		})
	}
	for _, want := range []int{1, 5, 5, 9} {
		turns.release(1)
		if got := <-order; got != want {
			t.Errorf("cost %d came, want %d", got, want)
		}
	}
}

// Large bodies leave an eighth of the memory to small ones.
func TestSmallReservations(t *testing.T) {
	b := budget{limit: 1 << 20}
	if b.reserve(1<<20 - 1<<17 + 1) {
		t.Error("a large reservation took the memory that is kept for small ones")
	}
	if !b.reserve(1<<20-1<<17) || b.reserve(smallReservation+1) || !b.reserve(smallReservation) || !b.reserve(smallReservation) || b.reserve(1) {
		t.Errorf("%d bytes of %d are reserved", b.used.Load(), b.limit)
	}
}

// TestServe ends the server during requests, which are answered.
func TestServe(t *testing.T) {
	started, go_ := make(chan bool), make(chan bool)
	s, _ := newFake(t, Options{}, func(pixels []byte) ([]bayes.Answer, error) {
		started <- true
		<-go_
		return ones(pixels)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Serve(ctx, listener) }()
	address := "http://" + listener.Addr().String()
	answer := make(chan int)
	go func() {
		response, err := http.Post(address+"/predict", "image/png", strings.NewReader(string(pngOf(theTest.Image(0)))))
		check(err)
		response.Body.Close()
		answer <- response.StatusCode
	}()
	<-started
	stop()
	go_ <- true
	if code := <-answer; code != 200 {
		t.Errorf("the last request: %d", code)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := http.Get(address + "/health"); err == nil {
		t.Error("it still answers")
	}
	if err := s.Serve(t.Context(), listener); err == nil {
		t.Error("a closed listener: no error")
	}
}
