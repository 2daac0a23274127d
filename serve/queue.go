package serve

import (
	"context"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
)

// shared is the state that the queues of all models share: they predict one after another, on one
// device.
type shared struct {
	turn    chan struct{} // has an element while a predictor is in use, or predictors are replaced
	waiting atomic.Int64  // number of waiting images
}

// queue collects the images of requests for a model and passes them to its predictor in batches.
type queue struct {
	*shared
	served   atomic.Pointer[served]
	batch    int           // images that the network computes in a step
	capacity int           // maximum number of waiting images, of all queues
	wait     time.Duration // longest time that a batch waits for expected requests
	timeout  time.Duration // a prediction is stuck after twice this time; close waits for half of it
	watchdog *watchdog
	counts   *counts

	// Of the last batch, for serve only.
	several bool          // requests
	took    time.Duration // of a step of the network

	expected atomic.Int64  // requests whose images are being decoded, or are in jobs
	fewer    chan struct{} // has an element after a request has ended without a job

	mu     sync.RWMutex // guards closed; jobs are sent with the read lock held
	closed bool
	jobs   chan *job // buffers capacity jobs, each of at least one image: sending never blocks
	ended  chan struct{}
}

// job has the images of a request.
type job struct {
	context context.Context
	images  int
	pixels  []byte
	result  chan result // buffered
}

type result struct {
	answers []bayes.Answer
	digest  string // of the run that made the answers
	err     error
}

func newQueue(first *served, o Options, sh *shared, w *watchdog, c *counts) *queue {
	q := &queue{
		shared: sh, batch: o.Batch, capacity: o.Queue, wait: o.Wait, timeout: o.Timeout, watchdog: w, counts: c,
		jobs: make(chan *job, o.Queue), ended: make(chan struct{}), fewer: make(chan struct{}, 1),
	}
	q.served.Store(first)
	go q.serve()
	return q
}

// expectation is a request whose images are being decoded, for which a batch may wait.
type expectation struct {
	queue *queue
	ended bool
}

// expect announces a request. The caller must call end. After submit has sent the job, end does
// nothing: the receiver of the job then ends the expectation.
func (q *queue) expect() *expectation {
	q.expected.Add(1)
	return &expectation{queue: q}
}

// end ends the expectation of a request that has not sent a job.
func (e *expectation) end() {
	if !e.ended {
		e.ended = true
		e.queue.expected.Add(-1)
		select {
		case e.queue.fewer <- struct{}{}:
		default:
		}
	}
}

// submit sends images [images C H W] and waits for their answers.
func (e *expectation) submit(ctx context.Context, images int, pixels []byte) result {
	j := &job{ctx, images, pixels, make(chan result, 1)}
	if err := e.queue.enqueue(j); err != nil {
		return result{err: err}
	}
	e.ended = true
	select {
	case r := <-j.result:
		return r
	case <-ctx.Done():
		return result{err: contextError(ctx)}
	}
}

func (q *queue) enqueue(j *job) error {
	q.mu.RLock()
	defer q.mu.RUnlock()
	if q.closed {
		return refuse(http.StatusServiceUnavailable, "the server is closing")
	}
	if waiting := q.waiting.Add(int64(j.images)); waiting > int64(q.capacity) {
		q.waiting.Add(-int64(j.images))
		return refuse(http.StatusServiceUnavailable, "the server is busy: the queue must have at most %d images, got %d with these %d",
			q.capacity, waiting, j.images)
	}
	q.jobs <- j
	return nil
}

// serve processes jobs until the queue is closed and empty.
func (q *queue) serve() {
	defer close(q.ended)
	for first := range q.jobs {
		q.expected.Add(-1)
		q.answer(q.gather(first))
	}
}

// gather returns a batch of jobs, up to the predictor's capacity: the first one, the waiting
// ones, and the expected ones that arrive within q.wait. If the last batch had several requests,
// and the network computes more images in a step than there are jobs, gather first waits in any
// case, for a quarter of the time of a step but at most q.wait.
func (q *queue) gather(first *job) []*job {
	if q.several && 1+len(q.jobs) < q.batch { // under load, a full step is worth some waiting
		time.Sleep(min(q.wait, q.took/4))
	}
	// On a single processor, requests that arrived together with the first have not run yet.
	runtime.Gosched()
	together, images := []*job{first}, first.images
	var over <-chan time.Time
	if q.wait > 0 {
		timer := time.NewTimer(q.wait)
		defer timer.Stop()
		over = timer.C
	}
	for images < q.served.Load().PartSize() {
		var next *job
		select {
		case next = <-q.jobs:
		default:
			if over == nil || q.expected.Load() == 0 {
				return together
			}
			select {
			case next = <-q.jobs:
			case <-q.fewer:
				continue
			case <-over:
				over = nil
				continue
			}
		}
		if next == nil { // closed
			return together
		}
		q.expected.Add(-1)
		together, images = append(together, next), images+next.images
	}
	return together
}

// answer predicts a batch of jobs, except those whose context has ended.
func (q *queue) answer(together []*job) {
	var wanted []*job
	var pixels []byte
	images := 0
	for _, j := range together {
		q.waiting.Add(-int64(j.images))
		if j.context.Err() == nil {
			wanted, pixels, images = append(wanted, j), append(pixels, j.pixels...), images+j.images
		}
	}
	if images == 0 {
		return
	}
	q.turn <- struct{}{}
	now, took := q.served.Load(), stopwatch()
	answers, err := q.predict(now, pixels)
	steps := (images + q.batch - 1) / q.batch
	q.several, q.took = len(wanted) > 1, time.Duration(took()*float64(time.Second))/time.Duration(steps)
	<-q.turn
	if err == nil && len(answers) != images {
		err = errors.Errorf("serve: %d answers for %d images", len(answers), images)
	}
	q.counts.batch(images)
	for _, j := range wanted {
		if err != nil {
			j.result <- result{err: err}
			continue
		}
		j.result <- result{answers: answers[:j.images:j.images], digest: now.info.Digest}
		answers = answers[j.images:]
	}
}

// predict turns a panic into an error, so that it ends only these requests.
func (q *queue) predict(p predictor, pixels []byte) (answers []bayes.Answer, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			q.counts.panics.Add(1)
			err = errors.Errorf("serve: predict: panic: %v\n%s", reason, debug.Stack())
		}
	}()
	defer q.watchdog.watch("a prediction", 2*q.timeout)()
	return p.Answer(context.Background(), pixels)
}

// close answers waiting requests, rejects new ones, and closes the predictor. It returns an error
// and does not close the predictor if a prediction does not end within half of the timeout.
func (q *queue) close() error {
	q.mu.Lock()
	first := !q.closed
	if first {
		q.closed = true
		close(q.jobs)
	}
	q.mu.Unlock()
	select {
	case <-q.ended:
	case <-time.After(q.timeout / 2):
		return errors.Errorf("serve: close: a prediction has not ended after %v", q.timeout/2)
	}
	if !first {
		return nil
	}
	return q.served.Load().Close()
}

// open reports whether the queue accepts images.
func (q *queue) open() bool {
	q.mu.RLock()
	defer q.mu.RUnlock()
	return !q.closed
}
