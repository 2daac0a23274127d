package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// BenchmarkThroughput compares requests over HTTP with Run.Predict of the same images, taking
// turns. "x Predict" is the ratio of their times. Most of the difference is encoding, sending and
// decoding the images; with a larger network it is small.
func BenchmarkThroughput(b *testing.B) {
	const clients, perRequest = 16, 32
	s := newTest(b, Options{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error)
	go func() { ended <- s.Serve(ctx, listener) }()
	var images [][]byte
	for i := range perRequest {
		images = append(images, pngOf(theTest.Image(i)))
	}
	body, err := json.Marshal(map[string]any{"images": images})
	check(err)
	same := patterns(clients*perRequest, 4)
	var served, predicted time.Duration
	for b.Loop() {
		start := time.Now()
		var asking sync.WaitGroup
		for range clients {
			asking.Go(func() {
				response, err := http.Post("http://"+listener.Addr().String()+"/predict", "application/json", bytes.NewReader(body))
				if err != nil || response.StatusCode != 200 {
					b.Errorf("%v, %v", response, err)
					return
				}
				io.Copy(io.Discard, response.Body)
				response.Body.Close()
			})
		}
		asking.Wait()
		served += time.Since(start)
		start = time.Now()
		if _, err := theRun.Predict(b.Context(), same); err != nil {
			b.Fatal(err)
		}
		predicted += time.Since(start)
	}
	b.ReportMetric(served.Seconds()/predicted.Seconds(), "x_Predict")
	b.ReportMetric(float64(b.N*clients*perRequest)/served.Seconds(), "images/s")
	stop()
	if err := <-ended; err != nil {
		b.Error(err)
	}
}
