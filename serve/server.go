package serve

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pkg/errors"
)

// Server is an http.Handler that serves predictions. The package documentation lists its routes. It
// can be mounted below any path with http.StripPrefix.
type Server struct {
	*backend
	routes *http.ServeMux

	reloading sync.Mutex     // held by Reload
	retiring  sync.WaitGroup // models that were removed, and are not closed yet
}

// New loads the networks and the present samples of the models' runs. POST /predict uses the
// first model, and requests without a version use the last version of a name. The caller must
// call Close. New returns an OptionError for an invalid option, and a bayes.MemoryError if the
// runs need more memory than there is.
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
	b := newBackend(options)
	b.document = sync.OnceValue(func() []byte { return openAPIDocument(endpoints()) })
	return &Server{backend: b, routes: b.newRoutes()}
}

// String returns the models in words, as in "flowers version 1: 30 samples".
func (s *Server) String() string {
	var all []string
	for _, m := range s.Models() {
		all = append(all, m.String())
	}
	return strings.Join(all, ", ")
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
	if _, pattern := s.routes.Handler(r); s.admit(recorded, r, isPublic(pattern)) {
		s.route(s.routes, recorded, r)
	}
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
	if err != nil { // some requests did not end in time
		cancel()
		web.Close()
	}
	return errors.Wrap(err, "serve: shutdown")
}

// tlsConfig returns the TLS settings, with the certificate of the last Reload. Connections use
// HTTP/1.1: the Options' limits of time and size apply to it.
func (s *Server) tlsConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return s.secrets.Load().certificate, nil
		},
	}
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
