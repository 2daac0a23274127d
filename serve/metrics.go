package serve

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// counts are the counters and histograms of GET /metrics.
type counts struct {
	panics atomic.Int64
	images atomic.Int64 // predicted

	mu       sync.Mutex
	requests map[requestKind]int64
	seconds  histogram // of predictions
	batches  histogram // images per batch
}

type requestKind struct {
	route string
	code  int
}

// histogram counts values by upper bounds.
type histogram struct {
	bounds []float64
	counts []int64 // one more than bounds, for +Inf
	sum    float64
}

func newCounts() *counts {
	return &counts{
		requests: map[requestKind]int64{},
		seconds:  newHistogram(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
		batches:  newHistogram(1, 2, 4, 8, 16, 32, 64, 128, 256),
	}
}

func newHistogram(bounds ...float64) histogram {
	return histogram{bounds: bounds, counts: make([]int64, len(bounds)+1)}
}

func (h *histogram) add(value float64) {
	place, _ := slices.BinarySearch(h.bounds, value)
	h.counts[place]++
	h.sum += value
}

func (h *histogram) write(w io.Writer, name string) {
	total := int64(0)
	for i, count := range h.counts {
		total += count
		bound := "+Inf"
		if i < len(h.bounds) {
			bound = strconv.FormatFloat(h.bounds[i], 'g', -1, 64)
		}
		fmt.Fprintf(w, "%s_bucket{le=%q} %d\n", name, bound, total)
	}
	fmt.Fprintf(w, "%s_sum %v\n%s_count %d\n", name, h.sum, name, total)
}

// request counts a request of a route; "" is an unknown route.
func (c *counts) request(route string, code int, seconds float64) {
	route = cmp.Or(route, "other")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests[requestKind{route, code}]++
	if strings.HasPrefix(route, http.MethodPost) { // all of which predict
		c.seconds.add(seconds)
	}
}

func (c *counts) batch(images int) {
	c.images.Add(int64(images))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.batches.add(float64(images))
}

// metric is a counter or gauge without labels.
type metric struct {
	name, kind, help string
	value            int64
}

// write writes all metrics in Prometheus's text format, version 0.0.4.
func (c *counts) write(w io.Writer, more ...metric) {
	head := func(name, kind, help string) {
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	}
	for _, m := range append(more,
		metric{"pollen_images_total", "counter", "Images predicted.", c.images.Load()},
		metric{"pollen_panics_total", "counter", "Requests that ended with a panic.", c.panics.Load()},
	) {
		head(m.name, m.kind, m.help)
		fmt.Fprintf(w, "%s %d\n", m.name, m.value)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var lines []string
	for kind, count := range c.requests {
		lines = append(lines, fmt.Sprintf("pollen_requests_total{route=%q,code=\"%d\"} %d\n", kind.route, kind.code, count))
	}
	slices.Sort(lines)
	head("pollen_requests_total", "counter", "Requests by route and status; 499: the client closed the connection.")
	for _, line := range lines {
		io.WriteString(w, line)
	}
	head("pollen_predict_seconds", "histogram", "Time from a request's header to its answer.")
	c.seconds.write(w, "pollen_predict_seconds")
	head("pollen_batch_images", "histogram", "Images per batch.")
	c.batches.write(w, "pollen_batch_images")
}
