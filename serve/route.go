package serve

import (
	"net/http"
)

// route passes a request to its route. A path without a route, and a method that a path does not
// have, are errors in JSON as all others.
func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	handler, pattern := s.routes.Handler(r)
	if pattern != "" {
		s.routes.ServeHTTP(w, r)
		return
	}
	d := dry{header: http.Header{}}
	handler.ServeHTTP(&d, r)
	switch d.code {
	case http.StatusMethodNotAllowed:
		allow := d.header.Get("Allow")
		w.Header().Set("Allow", allow)
		s.writeError(w, refuse(d.code, "%.100q has the methods %s, got %.20q", r.URL.Path, allow, r.Method))
	case http.StatusNotFound:
		s.writeError(w, refuse(d.code, "there is no %.100q; package serve documents the routes", r.URL.Path))
	default: // a redirect
		handler.ServeHTTP(w, r)
	}
}

// dry is a ResponseWriter that keeps only the status and the header.
type dry struct {
	header http.Header
	code   int
}

// Header implements http.ResponseWriter.
func (d *dry) Header() http.Header { return d.header }

// Write implements http.ResponseWriter.
func (d *dry) Write(content []byte) (int, error) { return len(content), nil }

// WriteHeader implements http.ResponseWriter.
func (d *dry) WriteHeader(code int) { d.code = code }
