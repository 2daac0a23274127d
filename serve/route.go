package serve

import (
	"net/http"
)

// newRoutes returns the routes of all endpoints.
func (b *backend) newRoutes() *http.ServeMux {
	routes := http.NewServeMux()
	for _, e := range endpoints() {
		routes.HandleFunc(e.route(), func(w http.ResponseWriter, r *http.Request) {
			if err := e.handle(b, w, r); err != nil {
				b.writeError(w, err)
			}
		})
	}
	return routes
}

// isPublic reports whether a route needs no token. Probes have none, and the page must load
// before it can ask for one. Public routes reveal nothing about the runs.
func isPublic(route string) bool { return publicRoutes[route] }

var publicRoutes = func() map[string]bool {
	all := map[string]bool{}
	for _, e := range endpoints() {
		all[e.route()] = e.public
	}
	return all
}()

// route passes a request to its route. A path without a route, or a method that a path does not
// have, is an error in JSON like all others.
func (b *backend) route(routes *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	handler, pattern := routes.Handler(r)
	if pattern != "" {
		routes.ServeHTTP(w, r)
		return
	}
	d := dry{header: http.Header{}}
	handler.ServeHTTP(&d, r)
	switch d.code {
	case http.StatusMethodNotAllowed:
		allow := d.header.Get("Allow")
		w.Header().Set("Allow", allow)
		b.writeError(w, refuse(d.code, "%.100q has the methods %s, got %.20q", r.URL.Path, allow, r.Method))
	case http.StatusNotFound:
		b.writeError(w, refuse(d.code, "there is no %.100q; GET /openapi.json describes all paths", r.URL.Path))
	default: // a redirect
		handler.ServeHTTP(w, r)
	}
}

// dry is a ResponseWriter that discards the body and keeps the status and the header.
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
