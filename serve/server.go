package serve

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/memory"
)

// Server is an http.Handler that serves predictions. The package documentation lists its routes. It
// can be mounted below any path with http.StripPrefix.
type Server struct {
	options  Options
	data     pollen.Data
	queue    *queue
	memory   budget
	pool     *decodePool
	watchdog *watchdog
	counts   *counts
	drift    *drift
	secrets  atomic.Pointer[secrets]
	routes   *http.ServeMux
}

// runInfo is the JSON of GET /run.
type runInfo struct {
	Name               string   `json:"name"` // base name of the run's directory
	Network            string   `json:"network"`
	Method             string   `json:"method"`
	Data               string   `json:"data"`
	Examples           int      `json:"examples"` // number of training images
	Parameters         int      `json:"parameters"`
	Channels           int      `json:"channels"`
	Height             int      `json:"height"`
	Width              int      `json:"width"`
	ClassNames         []string `json:"classNames"`
	Samples            int      `json:"samples"` // posterior samples averaged
	Expected           int      `json:"expected"`
	Calibrated         bool     `json:"calibrated"`                  // both of the following are present
	Level              float64  `json:"level,omitzero"`              // see pollen.Predictor.Levels
	InDistributionRate float64  `json:"inDistributionRate,omitzero"` // likewise
	// SetRule is how prediction sets are formed, and Thresholds are those of class-conditional
	// sets.
	SetRule    *evaluate.SetRule `json:"setRule,omitempty"`
	Thresholds []classThreshold  `json:"classThresholds,omitempty"`
	// Risk is the certificate by which images are answered or referred to a person, if Refer is
	// asked for.
	Risk *evaluate.Certificate `json:"risk,omitempty"`
	// Calibration is what the run was calibrated on.
	Calibration *calibration `json:"calibration,omitempty"`
	// SelfTest is the run's test of in-distribution decisions on strange images, if there was one.
	SelfTest  *selfTest `json:"selfTest,omitempty"`
	MaxImages int       `json:"maxImages"`
	MaxBody   int       `json:"maxBody"`
	MaxPixels int       `json:"maxPixels"`
	Digest    string    `json:"digest"` // see pollen.Run.Digest
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
	Result   string  `json:"result"` // in words, as in "rejects 97 % of 600 strange images"
	Images   int     `json:"images"`
	Rejected float64 `json:"rejected"` // the fraction of Images
}

// New loads the network of a run and its present samples. The caller must call Close. It returns an
// OptionError for an invalid option.
func New(run *pollen.Run, options Options) (*Server, error) {
	options, err := options.resolve()
	if err != nil {
		return nil, err
	}
	secrets, err := options.load()
	if err != nil {
		return nil, err
	}
	p, err := loadRun(run, options)
	if err != nil {
		return nil, err
	}
	s := newServer(p.predictor, run.Manifest().Data, p.info, options)
	s.secrets.Store(secrets)
	return s, nil
}

func newServer(p predictor, data pollen.Data, a runInfo, options Options) *Server {
	options, decoding := options.withinMemory(memory.Available())
	s := &Server{options: options, data: data, counts: newCounts(), drift: newDrift(data.ClassNames), routes: http.NewServeMux()}
	s.secrets.Store(&secrets{})
	s.memory.limit = int64(options.Memory)
	s.watchdog = &watchdog{report: options.Report}
	s.pool = newDecodePool(options, decoding, &s.data, s.watchdog)
	a.limits(options)
	s.queue = newQueue(&served{p, a}, options, s.watchdog, s.counts)
	s.routes.HandleFunc(predictRoute, func(w http.ResponseWriter, r *http.Request) {
		if err := s.predict(w, r); err != nil {
			s.writeError(w, err)
		}
	})
	s.routes.HandleFunc("GET /run", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, s.info()) })
	s.routes.HandleFunc("GET /health", s.health)
	s.routes.HandleFunc("GET /metrics", s.metrics)
	s.addPage()
	return s
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
				writeJSON(recorded, http.StatusInternalServerError, map[string]string{"error": "the request failed; the error was reported to the operator"})
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

// info returns the description of the run that is served.
func (s *Server) info() runInfo { return s.queue.served.Load().info }

// health handles GET /health, which needs no token: without it, the answer has only the status.
func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	status, code := "ready", http.StatusOK
	switch {
	case !s.queue.open():
		status, code = "closing", http.StatusServiceUnavailable
	case s.watchdog.stuck.Load() > 0:
		status, code = "stuck", http.StatusServiceUnavailable
	}
	if !s.authorized(r) {
		writeJSON(w, code, map[string]string{"status": status})
		return
	}
	run := s.info()
	writeJSON(w, code, struct {
		Status  string `json:"status"`
		Run     string `json:"run"`
		Samples int    `json:"samples"`
		Digest  string `json:"digest"`
	}{status, run.Name, run.Samples, run.Digest})
}

func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) {
	var text bytes.Buffer
	s.counts.write(&text,
		metric{"pollen_samples", "gauge", "Posterior samples that are averaged.", int64(s.info().Samples)},
		metric{"pollen_queue_images", "gauge", "Images waiting for an answer.", s.queue.waiting.Load()},
		metric{"pollen_stuck", "gauge", "Decoders and predictions that have not ended in time.", s.watchdog.stuck.Load()},
		metric{"pollen_memory_bytes", "gauge", "Bytes reserved for bodies and images.", s.memory.used.Load()},
	)
	s.drift.write(&text)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Write(text.Bytes())
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

// Close answers waiting requests, rejects new ones, and frees the network's memory. It returns an
// error if a prediction has not ended after half a Timeout; it does not wait for stuck decoders.
func (s *Server) Close() error { return s.queue.close() }

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
	writeJSON(w, code, map[string]string{"error": text})
}
