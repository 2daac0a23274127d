package serve

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/memory"
)

// Server is an http.Handler that serves predictions. The package documentation lists its routes. It
// can be mounted below any path with http.StripPrefix.
type Server struct {
	options  Options
	models   models
	shared   shared
	memory   budget
	pool     *decodePool
	watchdog *watchdog
	counts   *counts
	secrets  atomic.Pointer[secrets]
	routes   *http.ServeMux
	document func() []byte // OpenAPI's

	reloading sync.Mutex     // held by Reload
	retiring  sync.WaitGroup // models that were removed, and are not closed yet
}

// runInfo is the JSON of GET /run.
type runInfo struct {
	Name       string   `json:"name" doc:"The name of the model."`
	Version    string   `json:"version" doc:"The version of the model."`
	Network    string   `json:"network"`
	Method     string   `json:"method"`
	Data       string   `json:"data" doc:"The name of the training data."`
	Examples   int      `json:"examples" doc:"The number of training images."`
	Parameters int      `json:"parameters"`
	Channels   int      `json:"channels"`
	Height     int      `json:"height"`
	Width      int      `json:"width"`
	ClassNames []string `json:"classNames"`
	Samples    int      `json:"samples" doc:"Posterior samples averaged."`
	Expected   int      `json:"expected" doc:"Posterior samples when the run is finished."`
	Calibrated bool     `json:"calibrated" doc:"Whether both level and inDistributionRate are present."`
	// See bayes.Predictor.Levels.
	Level              float64               `json:"level,omitzero" doc:"The probability with which a prediction set contains the true class."`
	InDistributionRate float64               `json:"inDistributionRate,omitzero" doc:"The fraction of in-distribution images that are recognized as such."`
	SetRule            *evaluate.SetRule     `json:"setRule,omitempty" doc:"How prediction sets are formed."`
	Thresholds         []classThreshold      `json:"classThresholds,omitempty" doc:"The thresholds of class-conditional sets."`
	Risk               *evaluate.Certificate `json:"risk,omitempty" doc:"The certificate by which images are answered or referred to a person."`
	Calibration        *calibration          `json:"calibration,omitempty" doc:"What the run was calibrated on."`
	SelfTest           *selfTest             `json:"selfTest,omitempty" doc:"The run's test of in-distribution decisions on strange images."`
	MaxImages          int                   `json:"maxImages" doc:"The maximum number of images of a request."`
	MaxBody            int                   `json:"maxBody" doc:"The maximum bytes of a request."`
	MaxPixels          int                   `json:"maxPixels" doc:"The maximum pixels of an image."`
	Digest             string                `json:"digest" doc:"The digest of the run."`
}

// classThreshold is a threshold with the name of its class.
type classThreshold struct {
	Class string `json:"class"`
	evaluate.ClassThreshold
}

// calibration describes an evaluate.Calibration.
type calibration struct {
	Data    string `json:"data"`
	Images  int    `json:"images"`
	Content string `json:"content,omitempty"` // SHA-256 of images and labels
}

// selfTest is an evaluate.SelfTest.
type selfTest struct {
	Passed   bool    `json:"passed"`
	Result   string  `json:"result" doc:"The result in words, such as \"rejects 97 % of 600 strange images\"."`
	Images   int     `json:"images"`
	Rejected float64 `json:"rejected" doc:"The fraction of the images that is rejected."`
}

// New loads the networks and the present samples of the models' runs. POST /predict is answered by
// the first model, requests without a version by the last version of a name. The caller must call
// Close. It returns an OptionError for an invalid option, and a bayes.MemoryError if the runs need
// more memory than there is.
func New(list []Model, options Options) (*Server, error) {
	options, err := options.resolve()
	if err != nil {
		return nil, err
	}
	secrets, err := options.load()
	if err != nil {
		return nil, err
	}
	if list, err = named(list); err != nil {
		return nil, err
	}
	all, err := load(list, func(int) (bool, error) { return false, nil }, options)
	if err != nil {
		return nil, err
	}
	s := newServer(options)
	for i, p := range all {
		s.models.all = append(s.models.all, s.newModel(list[i].Name, list[i].Version, list[i].Run.Manifest().Data, p))
	}
	s.secrets.Store(secrets)
	return s, nil
}

// newServer returns a server without models, which must be added before its first request.
func newServer(options Options) *Server {
	options, decoding := options.withinMemory(memory.Available())
	s := &Server{options: options, counts: newCounts(), routes: http.NewServeMux(), document: sync.OnceValue(openAPIDocument)}
	s.shared.turn = make(chan struct{}, 1)
	s.secrets.Store(&secrets{})
	s.memory.limit = int64(options.Memory)
	s.watchdog = &watchdog{report: options.Report}
	s.pool = newDecodePool(options, decoding, s.watchdog)
	s.addRoutes()
	return s
}

// newModel returns a model that is answered with a predictor.
func (s *Server) newModel(name, version string, data bayes.Data, p *served) *model {
	p.info.limits(s.options)
	return &model{
		name: name, version: version, data: data, drift: newDrift(data.ClassNames),
		queue: newQueue(p, s.options, &s.shared, s.watchdog, s.counts),
	}
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	seconds := stopwatch()
	recorded := &recorder{ResponseWriter: w}
	id := requestID(r)
	w.Header().Set(requestIDHeader, id)
	defer func() {
		if reason := recover(); reason != nil {
			s.counts.panics.Add(1)
			s.options.Report(errors.Errorf("serve: request %s: %s: panic: %v\n%s", id, r.Pattern, reason, debug.Stack()))
			if recorded.code == 0 {
				writeJSON(recorded, http.StatusInternalServerError, errorInfo{"the request failed; the error was reported to the operator"})
			}
		}
		took := seconds()
		s.counts.request(r.Pattern, recorded.code, took)
		s.logAccess(r, recorded, id, took)
	}()
	if s.admit(recorded, r) {
		s.route(recorded, r)
	}
}

// recorder records the status of a response, and how many bytes its body has.
type recorder struct {
	http.ResponseWriter
	code  int
	bytes int
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(code int) {
	if r.code == 0 {
		r.code = code
	}
	r.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(content []byte) (int, error) {
	if r.code == 0 {
		r.code = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(content)
	r.bytes += n
	return n, err
}

// Unwrap returns the underlying writer for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// run handles GET /run.
func (s *Server) run(w http.ResponseWriter, r *http.Request) error {
	q, err := readQuery(r, "model", "version")
	if err != nil {
		return err
	}
	m, err := s.models.acquire(q.model, q.version)
	if err != nil {
		return err
	}
	defer m.requests.Done()
	writeJSON(w, http.StatusOK, m.info())
	return nil
}

// state returns the server's state, "ready", "closing" or "stuck", and the status of a response
// about it.
func (s *Server) state() (state string, code int) {
	switch {
	case !s.models.open():
		return "closing", http.StatusServiceUnavailable
	case s.watchdog.stuck.Load() > 0:
		return "stuck", http.StatusServiceUnavailable
	}
	return "ready", http.StatusOK
}

// healthInfo is the JSON of GET /health; without the token it has only the status.
type healthInfo struct {
	Status  string `json:"status"`
	Run     string `json:"run,omitempty"`
	Samples int    `json:"samples,omitempty"`
	Digest  string `json:"digest,omitempty"`
}

// health handles GET /health, which needs no token.
func (s *Server) health(w http.ResponseWriter, r *http.Request) error {
	var h healthInfo
	var code int
	if h.Status, code = s.state(); s.authorized(r) {
		run := s.models.list()[0].info()
		h.Run, h.Samples, h.Digest = run.Name, run.Samples, run.Digest
	}
	writeJSON(w, code, h)
	return nil
}

// metrics handles GET /metrics.
func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) error {
	var text bytes.Buffer
	s.counts.write(&text,
		metric{"pollen_queue_images", "gauge", "Images waiting for an answer.", s.shared.waiting.Load()},
		metric{"pollen_stuck", "gauge", "Decoders and predictions that have not ended in time.", s.watchdog.stuck.Load()},
		metric{"pollen_memory_bytes", "gauge", "Bytes reserved for bodies and images.", s.memory.used.Load()},
	)
	writeModels(&text, s.models.list())
	w.Header().Set("Content-Type", metricsType)
	w.Write(text.Bytes())
	return nil
}

// Serve serves on a listener until the context ends, by HTTPS if Options has a certificate. It then
// answers pending requests, rejects new ones, and returns nil. Requests that have not ended after a
// Timeout are cancelled, and Serve returns an error. It closes connections of slow clients after a
// few Timeouts. It closes the listener, but not the Server.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	requests, cancel := context.WithCancel(context.Background())
	defer cancel()
	if s.secrets.Load().certificate != nil {
		listener = tls.NewListener(listener, s.tlsConfig())
	}
	web := &http.Server{
		Handler:           s,
		BaseContext:       func(net.Listener) context.Context { return withLoopback(requests, listener.Addr()) },
		ReadHeaderTimeout: min(s.options.Timeout, 10*time.Second),
		ReadTimeout:       s.options.Timeout,
		WriteTimeout:      3 * s.options.Timeout, // for reading the body, answering, and writing
		IdleTimeout:       6 * s.options.Timeout,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(errorHandler{s.options.Report}, slog.LevelError),
	}
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(listener) }()
	select {
	case err := <-ended:
		return errors.Wrap(err, "serve")
	case <-ctx.Done():
	}
	grace, end := context.WithTimeout(context.Background(), s.options.Timeout)
	defer end()
	err := web.Shutdown(grace)
	if err != nil { // requests did not end in time
		cancel()
		web.Close()
	}
	return errors.Wrap(err, "serve: shutdown")
}

// Close answers waiting requests, rejects new ones, and frees the memory of the networks. It
// returns an error if a prediction has not ended after half a Timeout; it does not wait for stuck
// decoders.
func (s *Server) Close() error {
	s.models.mu.Lock()
	s.models.closed = true
	all := slices.Clone(s.models.all)
	s.models.mu.Unlock()
	failed := make([]error, len(all))
	var closing sync.WaitGroup
	for i, m := range all {
		closing.Go(func() { failed[i] = m.queue.close() })
	}
	closing.Wait()
	retired := make(chan struct{})
	go func() {
		s.retiring.Wait()
		close(retired)
	}()
	select {
	case <-retired:
	case <-time.After(s.options.Timeout / 2):
		failed = append(failed, errors.New("serve: close: a model that was removed still has requests"))
	}
	return cmp.Or(failed...)
}

// errorHandler passes the log of an http.Server to Report.
type errorHandler struct{ report func(error) }

// Enabled implements slog.Handler.
func (errorHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (c errorHandler) Handle(_ context.Context, r slog.Record) error {
	c.report(errors.New(r.Message))
	return nil
}

// WithAttrs implements slog.Handler.
func (c errorHandler) WithAttrs([]slog.Attr) slog.Handler { return c }

// WithGroup implements slog.Handler.
func (c errorHandler) WithGroup(string) slog.Handler { return c }

// writeError writes an error response. It reports a server error to Options.Report, and hides the
// details from the client.
func (s *Server) writeError(w http.ResponseWriter, err error) {
	code, text := statusOf(err), err.Error()
	switch code {
	case statusClientClosed:
		w.WriteHeader(statusClientClosed) // for the metrics
		return
	case http.StatusInternalServerError:
		s.options.Report(err)
		text = "the prediction failed; the error was reported to the operator"
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	case http.StatusRequestTimeout:
		w.Header().Set("Connection", "close")
	}
	writeJSON(w, code, errorInfo{text})
}
