package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A server that needs 5 ms for each request, one after the other, has a maximum rate of at most 200
// requests/s, and no latency below 5 ms.
func TestServing(t *testing.T) {
	var turn atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for !turn.CompareAndSwap(0, 1) {
			time.Sleep(100 * time.Microsecond)
		}
		time.Sleep(5 * time.Millisecond)
		turn.Store(0)
	}))
	defer server.Close()
	c := client{url: server.URL, http: server.Client()}
	rate, err := c.most(t.Context(), 4, 200*time.Millisecond)
	if err != nil || rate > 220 || rate < 1 {
		t.Fatalf("the maximum rate is %v (%v), want at most 200", rate, err)
	}
	latencies, err := c.load(t.Context(), starts(rate/2, 300*time.Millisecond, false, 1))
	if err != nil {
		t.Fatal(err)
	}
	r := round{rate, latencies}
	if half := r.quantile(0.5); half < 5*time.Millisecond || r.quantile(0.99) < half {
		t.Errorf("the median is %v, and p99 %v", half, r.quantile(0.99))
	}
}

// A refused request is an error, as are options out of range.
func TestRefused(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	image := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(image, []byte("image"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := options{url: server.URL, image: image, connections: 1, fraction: 0.8, each: time.Millisecond, rounds: 1}
	if err := o.run(t.Context(), t.Output()); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("the error is %v, want 404", err)
	}
	o.fraction = 2
	if err := o.run(t.Context(), t.Output()); err == nil || !strings.Contains(err.Error(), "fraction between 0 and 1") {
		t.Errorf("the error is %v", err)
	}
}

// Requests have the rate that is asked for, also if they start at random times.
func TestStarts(t *testing.T) {
	even, random := starts(100, 10*time.Second, false, 1), starts(100, 10*time.Second, true, 1)
	if n := len(even); n < 998 || n > 1000 || even[1]-even[0] != 10*time.Millisecond {
		t.Errorf("%d requests start evenly, %v apart", n, even[1]-even[0])
	}
	if n := len(random); n < 900 || n > 1100 || random[1]-random[0] == random[2]-random[1] {
		t.Errorf("%d requests start at random", n)
	}
}

// The last line shows the round whose ratio of p99 to median is the median of all rounds.
func TestMedian(t *testing.T) {
	var all []round
	for _, worst := range []time.Duration{9, 2, 4} {
		all = append(all, round{float64(worst), []time.Duration{1, 1, worst}})
	}
	if got := median(all); got.most != 4 {
		t.Errorf("the median is the round of %v, want 4", got.most)
	}
}
