package serve

import (
	"net/http"
	"sync/atomic"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/internal/memory"
)

// backend has everything that handlers need: the models, and the limits of all requests together.
type backend struct {
	options  Options
	models   models
	shared   shared
	memory   budget
	pool     *decodePool
	watchdog *watchdog
	counts   *counts
	secrets  atomic.Pointer[secrets]
	document func() []byte // returns the OpenAPI document
}

// newBackend returns a backend without models and without the OpenAPI document.
func newBackend(options Options) *backend {
	options, decoding := options.withinMemory(memory.Available())
	b := &backend{options: options, counts: newCounts()}
	b.shared.turn = make(chan struct{}, 1)
	b.secrets.Store(&secrets{})
	b.memory.limit = int64(options.Memory)
	b.watchdog = &watchdog{report: options.Report}
	b.pool = newDecodePool(options, decoding, b.watchdog)
	return b
}

// newModel returns a model whose predictions p makes.
func (b *backend) newModel(name, version string, data bayes.Data, p *served) *model {
	p.info.limits(b.options)
	return &model{
		name: name, version: version, data: data, drift: newDrift(data.ClassNames),
		queue: newQueue(p, b.options, &b.shared, b.watchdog, b.counts),
	}
}

// writeError writes an error response. It reports a server error to Options.Report, and hides the
// details from the client.
func (b *backend) writeError(w http.ResponseWriter, err error) {
	code, text := statusOf(err), err.Error()
	switch code {
	case statusClientClosed:
		w.WriteHeader(statusClientClosed) // for the metrics
		return
	case http.StatusInternalServerError:
		b.options.Report(err)
		text = "the prediction failed; the error was reported to the operator"
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	case http.StatusRequestTimeout:
		w.Header().Set("Connection", "close")
	}
	writeJSON(w, code, errorInfo{text})
}

// tooMany returns the error for a request with more than MaxImages images.
func (b *backend) tooMany() error {
	return refuse(http.StatusRequestEntityTooLarge, "a request must have at most %d images, got more", b.options.MaxImages)
}
