package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pollen-ml/pollen/bayes"
)

// storm is a server on 127.0.0.1 with well-meaning clients and others.
type storm struct {
	*testing.T
	address string
	client  *http.Client
	images  [][]byte // encoded
	want    []bayes.Answer
	busy    atomic.Int64 // 503, after which a client asks again
	peak    atomic.Uint64
}

// TestStorm has 1000 clients at once: most send good images, others garbage, images that are
// large when decoded, or bodies that never end. The good ones get the answers of Run.Predict, bit
// by bit, the others clear errors, and memory stays bounded.
func TestStorm(t *testing.T) {
	const clients = 1000
	s := &storm{T: t, want: expected(t, 8), client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}}
	for i := range theTest.Len() {
		s.images = append(s.images, pngOf(theTest.Image(i)))
	}
	server := newTest(t, Options{Timeout: 4 * time.Second, Queue: 256, MaxPixels: 1_000_000, MaxBody: 1 << 20, Memory: 32 << 20})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- server.Serve(ctx, listener) }()
	s.address = listener.Addr().String()

	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	watching := make(chan bool)
	go s.watch(watching)
	large, larger, long := blank(1000), blank(1001), make([]byte, 2<<20)
	var all sync.WaitGroup
	for client := range clients {
		all.Go(func() {
			kind := client % 20
			if kind == 6 && client > 200 {
				kind = 7 // these take the most time
			}
			switch kind {
			case 0:
				s.refused(client, []byte("garbage"), "", 400, `a text that begins with "garbage"`)
			case 1:
				s.refused(client, []byte(`{"images":["AAAA"]}`), "application/json", 400, "image 0: offset 0: must begin like an image")
			case 2:
				s.refused(client, larger, "", 413, "got 1001x1001")
			case 3:
				s.refused(client, bomb(10_000, 10_000), "", 413, "got 10000x10000")
			case 4:
				s.refused(client, long, "", 413, "at most 1048576 bytes (--max-body), got")
			case 5:
				s.slow(client)
			case 6:
				if code, body := s.ask(client, large, ""); code != 200 {
					t.Errorf("client %d: an image at the limit: %d %s", client, code, body)
				}
			default:
				s.good(client)
				s.good(client + 1)
			}
		})
	}
	all.Wait()
	close(watching)
	rose := int64(s.peak.Load()) - int64(before.HeapAlloc)
	t.Logf("%d clients, %d times busy, the heap rose by %d MiB", clients, s.busy.Load(), rose>>20)
	if rose > 512<<20 {
		t.Errorf("the heap rose by %d MiB", rose>>20)
	}
	s.client.CloseIdleConnections()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if used := server.memory.used.Load(); used != 0 || !server.pool.idle() || server.shared.waiting.Load() != 0 {
		t.Errorf("%d bytes, %d images are not given back, or workers of the pool", used, server.shared.waiting.Load())
	}
}

// blank is an image of few bytes and many pixels.
func blank(side int) []byte {
	var b bytes.Buffer
	check(png.Encode(&b, image.NewGray(image.Rect(0, 0, side, side))))
	return b.Bytes()
}

// watch records the highest use of memory.
func (s *storm) watch(until chan bool) {
	for {
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		s.peak.Store(max(s.peak.Load(), now.HeapAlloc))
		select {
		case <-until:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// ask asks for predictions until the server has time.
func (s *storm) ask(client int, body []byte, kind string) (int, string) {
	return s.askFor("/predict?probabilities=1", client, body, kind)
}

func (s *storm) askFor(target string, client int, body []byte, kind string) (int, string) {
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		response, err := s.client.Post("http://"+s.address+target, kind, bytes.NewReader(body))
		if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
			// On a slow machine the server closes, half a second after it refused a long body,
			// before the client has read that.
			s.busy.Add(1)
			time.Sleep(pause)
			continue
		}
		if err != nil {
			s.Errorf("client %d: %v", client, err)
			return 0, ""
		}
		content, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			s.Errorf("client %d: %v", client, err)
		}
		// On a slow machine, 408 is for bodies that the client had no time to send.
		if response.StatusCode != 503 && response.StatusCode != 408 {
			return response.StatusCode, string(content)
		}
		if response.StatusCode == 503 && response.Header.Get("Retry-After") == "" {
			s.Errorf("client %d: 503 without Retry-After: %s", client, content)
		}
		s.busy.Add(1)
		time.Sleep(pause)
	}
}

func (s *storm) refused(client int, body []byte, kind string, code int, words string) {
	got, content := s.ask(client, body, kind)
	refused(s, fmt.Sprint("client ", client), got, content, code, words)
}

// good sends one image as it is, or two in JSON.
func (s *storm) good(client int) {
	first, second := client%theTest.Len(), client/2%theTest.Len()
	body, kind, want := s.images[first], "image/png", s.want[first:first+1:first+1]
	if client%3 == 0 {
		var err error
		body, err = json.Marshal(map[string]any{"images": [][]byte{body, s.images[second]}})
		check(err)
		kind, want = "application/json", append(want, s.want[second])
	}
	if client%4 == 1 {
		s.tensor(client, kind == "application/json", body, want)
		return
	}
	code, content := s.ask(client, body, kind)
	if code != 200 {
		s.Errorf("client %d: %d %s", client, code, content)
		return
	}
	if got := answersOf(s, content); !reflect.DeepEqual(got, want) {
		s.Errorf("client %d: %+v, want %+v", client, got, want)
	}
}

// tensor sends the images of good by the protocol of KServe.
func (s *storm) tensor(client int, inJSON bool, body []byte, want []bayes.Answer) {
	images := [][]byte{body}
	if inJSON {
		var request struct{ Images [][]byte }
		check(json.Unmarshal(body, &request))
		images = request.Images
	}
	code, content := s.askFor(inferTarget, client, tensorRequest("BYTES", []int{len(images)}, images), "")
	if code != 200 {
		s.Errorf("client %d, tensor: %d %s", client, code, content)
		return
	}
	w := httptest.NewRecorder()
	w.WriteString(content)
	sameTensors(s, fmt.Sprint("client ", client), tensorsOf(s, w), want, allOutputs...)
}

// slow promises a body, sends some of it, and waits for the outcome.
func (s *storm) slow(client int) {
	connection, err := net.Dial("tcp", s.address)
	if err != nil {
		s.Errorf("client %d: %v", client, err)
		return
	}
	defer connection.Close()
	fmt.Fprintf(connection, "POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nabc")
	answer, err := io.ReadAll(connection)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 408") || !strings.Contains(string(answer), "did not arrive in time") {
		s.Errorf("client %d, slow: %q, %v", client, answer, err)
	}
}
