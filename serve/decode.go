package serve

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
)

// decodePool decodes images in its own goroutines, so that a request does not wait for a decoder
// that does not stop. Small images have their own workers and memory, so that a large one, which
// can take seconds, does not delay them.
type decodePool struct {
	small, large semaphore // units are workers for small images, and bytes for large ones
	memory       int       // bytes for all large images
	workers      int       // for small images, and the maximum for large ones
	timeout      time.Duration
	maxPixels    int
	watchdog     *watchdog
	decode       func(ctx context.Context, content []byte, d *bayes.Data) ([]byte, error)
}

func newDecodePool(options Options, m decoding, w *watchdog) *decodePool {
	p := &decodePool{
		workers: m.workers, memory: m.large, timeout: options.DecodeTimeout, maxPixels: options.MaxPixels, watchdog: w,
	}
	p.small.free, p.large.free = p.workers, p.memory
	p.decode = func(ctx context.Context, content []byte, d *bayes.Data) ([]byte, error) {
		return datasets.Decode(ctx, content, datasets.Options{Channels: d.Channels, Height: d.Height, Width: d.Width, Crop: d.Crop, Bits: d.Bits})
	}
	return p
}

// lane returns the semaphore for an image, the units to acquire and the cost that orders the
// waiters, or an error if the image is larger than the limits. The smallest of the small images are
// decoded first. Large ones may take all units, and are decoded in the order of their arrival.
func (p *decodePool) lane(content []byte) (lane *semaphore, units, cost int, err error) {
	m, err := datasets.Measure(content)
	switch {
	case m.Width > 0 && m.Height > p.maxPixels/m.Width: // also if there is an error
		return nil, 0, 0, refuse(http.StatusRequestEntityTooLarge, " must have at most %d pixels (--max-pixels), got %dx%d", p.maxPixels, m.Width, m.Height)
	case err != nil:
		return nil, 0, 0, refuse(http.StatusBadRequest, ": %s", clientText(err))
	case m.Memory > p.memory:
		return nil, 0, 0, refuse(http.StatusRequestEntityTooLarge, " must take at most %d bytes to decode, got %d", p.memory, m.Memory)
	case m.Memory <= smallMemory && m.Height*m.Width <= smallPixels:
		return &p.small, 1, m.Memory, nil
	}
	return &p.large, max(m.Memory, p.memory/p.workers), 0, nil
}

// upload is an image as received, or of a file of arrays.
type upload struct {
	file    string // the client's file name, or ""
	id      string // of the image in its table, or ""
	content []byte // encoded
	pixels  []byte // instead of content, of an array in the shape of the network's input
}

// place names the upload for an error. i is its number.
func (u upload) place(i int) string {
	if u.file == "" {
		return fmt.Sprintf("image %d", i)
	}
	return fmt.Sprintf("image %d (%.80s)", i, u.file)
}

// run decodes an image for a network that was trained on data like d. Its error is about the
// image, unless ctx has ended. If a decoder has not stopped when run returns, its worker and its
// memory, and the request's reservation, stay in use until it does.
func (p *decodePool) run(ctx context.Context, content []byte, d *bayes.Data, h *reservation) ([]byte, error) {
	lane, units, cost, err := p.lane(content)
	if err != nil {
		return nil, err
	}
	if err := lane.acquire(ctx, units, cost); err != nil {
		return nil, err
	}
	type decoded struct {
		pixels []byte
		err    error
	}
	limited, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	result := make(chan decoded, 1)
	h.share()
	go func() {
		ended := p.watchdog.watch("decoding an image", 2*p.timeout)
		pixels, err := p.guarded(limited, content, d)
		ended()
		lane.release(units)
		h.release()
		result <- decoded{pixels, err}
	}()
	select {
	case r := <-result:
		if r.err == nil {
			return r.pixels, nil
		}
		err = r.err
	case <-limited.Done():
		err = limited.Err()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, refuse(http.StatusRequestEntityTooLarge, " must be decoded within %v", p.timeout)
	}
	return nil, refuse(http.StatusBadRequest, ": %s", clientText(err))
}

// guarded decodes an image and turns a panic into an error: in this goroutine a panic would end
// the program.
func (p *decodePool) guarded(ctx context.Context, content []byte, d *bayes.Data) (pixels []byte, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = errors.Errorf("the decoder failed: %v", reason)
		}
	}()
	return p.decode(ctx, content, d)
}

// decodeAll decodes uploads into the input of a model's network, [n C H W], and leaves out the
// images that have an error. It returns the error of each upload, and an error if the request
// ends.
func (p *decodePool) decodeAll(ctx context.Context, m *model, uploads []upload, h *reservation) (pixels []byte, failed []error, err error) {
	size := m.imageSize()
	if err := h.reserve(2 * size * len(uploads)); err != nil { // pixels, and their copy in a batch
		return nil, nil, err
	}
	pixels = make([]byte, 0, size*len(uploads))
	failed = make([]error, len(uploads))
	for i, u := range uploads {
		image := u.pixels
		if image == nil {
			image, err = p.run(ctx, u.content, &m.data, h)
		}
		if ctx.Err() != nil {
			return nil, nil, contextError(ctx)
		}
		if err != nil {
			failed[i] = &statusError{statusOf(err), errors.New(u.place(i) + err.Error())}
		}
		pixels = append(pixels, image...)
	}
	return pixels, failed, nil
}
