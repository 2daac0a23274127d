// Command serving measures the latency of a server of pollen serve under load. With one core for
// each:
//
//	taskset -c 0 pollen serve runs/digits-distilled
//	taskset -c 1 go run ./benchmarks/serving -image digit.png
//
// It first finds the maximum rate: a number of connections that each send the next request as soon
// as the previous one is answered. Then requests start at a fraction of that rate, evenly spaced,
// or with -random independently of each other (a Poisson process). As in wrk2, the number of
// connections is the same, and a latency is measured from the time when its request should have
// started, so that a slow answer counts for all requests that wait for it. The two take turns in
// rounds, and the last line has the round with the median ratio of p99 to median.
package main

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/interrupt"
)

// options are the flags.
type options struct {
	url, image  string
	connections int
	fraction    float64
	each        time.Duration
	rounds      int
	random      bool
}

func main() {
	var o options
	flag.StringVar(&o.url, "url", "http://localhost:8080/predict", "address of the request")
	flag.StringVar(&o.image, "image", "", "file that each request sends")
	flag.IntVar(&o.connections, "connections", 16, "number of connections")
	flag.Float64Var(&o.fraction, "fraction", 0.8, "fraction of the maximum rate")
	flag.DurationVar(&o.each, "time", 3*time.Second, "time of each measurement")
	flag.IntVar(&o.rounds, "rounds", 5, "number of rounds")
	flag.BoolVar(&o.random, "random", false, "requests start at random times instead of evenly spaced")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "serving: takes flags only, got %q\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := interrupt.Context()
	err := o.run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (o *options) run(ctx context.Context, out io.Writer) error {
	if o.connections < 1 || o.rounds < 1 || o.each <= 0 || !(o.fraction > 0 && o.fraction <= 1) {
		return errors.New("serving: connections, rounds and time must be positive, and fraction between 0 and 1")
	}
	body, err := os.ReadFile(o.image)
	if err != nil {
		return errors.Wrap(err, "serving")
	}
	c := client{url: o.url, body: body, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: o.connections, MaxConnsPerHost: o.connections}}}
	defer c.http.CloseIdleConnections()
	if err := c.ask(ctx); err != nil {
		return err
	}
	var all []round
	for number := range o.rounds {
		var r round
		if r.most, err = c.most(ctx, o.connections, o.each); err != nil {
			return err
		}
		if r.latencies, err = c.load(ctx, starts(o.fraction*r.most, o.each, o.random, uint64(number))); err != nil {
			return err
		}
		all = append(all, r)
		fmt.Fprintln(out, r.text(o.fraction))
	}
	fmt.Fprintf(out, "median of %d rounds: %s\n", o.rounds, median(all).text(o.fraction))
	return nil
}

// round has the figures of one round.
type round struct {
	most      float64 // requests per second
	latencies []time.Duration
}

// quantile returns a quantile of the latencies.
func (r round) quantile(q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(r.latencies))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

func (r round) text(fraction float64) string {
	half, most := r.quantile(0.5), r.quantile(0.99)
	return fmt.Sprintf("at most %.0f requests/s; at %.0f %% of that: median %.2f ms, p99 %.2f ms, %.2f times the median",
		r.most, 100*fraction, milliseconds(half), milliseconds(most), float64(most)/float64(half))
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// median returns the round with the median ratio of p99 to median.
func median(all []round) round {
	ratio := func(r round) float64 { return float64(r.quantile(0.99)) / float64(r.quantile(0.5)) }
	sorted := slices.SortedFunc(slices.Values(all), func(a, b round) int { return cmp.Compare(ratio(a), ratio(b)) })
	return sorted[len(sorted)/2]
}

// client sends equal requests.
type client struct {
	url  string
	body []byte
	http *http.Client
}

// ask sends a request and reads the answer.
func (c *client) ask(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(c.body))
	if err != nil {
		return errors.Wrap(err, "serving")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return errors.Wrap(err, "serving")
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.Errorf("%s: %s", response.Status, content)
	}
	return errors.Wrap(err, "serving")
}

// most returns the number of requests per second that are answered when all connections send
// without a pause.
func (c *client) most(ctx context.Context, connections int, each time.Duration) (rate float64, err error) {
	begin := time.Now()
	end := begin.Add(each)
	counts, failures := make([]int, connections), make([]error, connections)
	var asking sync.WaitGroup
	for i := range connections {
		asking.Go(func() {
			for time.Now().Before(end) && failures[i] == nil {
				failures[i] = c.ask(ctx)
				counts[i]++
			}
		})
	}
	asking.Wait()
	took, total := time.Since(begin), 0
	for i, n := range counts {
		total += n
		if failures[i] != nil {
			return 0, failures[i]
		}
	}
	return float64(total) / took.Seconds(), nil
}

// starts returns the times at which requests start, with a rate per second, until the time each.
func starts(rate float64, each time.Duration, random bool, seed uint64) (all []time.Duration) {
	numbers := rand.New(rand.NewPCG(seed, 0))
	gap := func() float64 {
		if random {
			return numbers.ExpFloat64() / rate
		}
		return 1 / rate
	}
	for at := gap(); at < each.Seconds(); at += gap() {
		all = append(all, time.Duration(at*float64(time.Second)))
	}
	return all
}

// load sends requests at the given times, and returns their latencies.
func (c *client) load(ctx context.Context, starts []time.Duration) ([]time.Duration, error) {
	if len(starts) == 0 {
		return nil, errors.New("serving: no request at this rate: use a longer time")
	}
	latencies, failures := make([]time.Duration, len(starts)), make([]error, len(starts))
	begin := time.Now()
	var asking sync.WaitGroup
	for i, start := range starts {
		pause(time.Until(begin.Add(start)))
		asking.Go(func() {
			failures[i] = c.ask(ctx)
			latencies[i] = time.Since(begin) - start
		})
	}
	asking.Wait()
	return latencies, cmp.Or(failures...)
}
