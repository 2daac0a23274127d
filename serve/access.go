package serve

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// checkAccess checks the options of who may use the server.
func (o *Options) checkAccess() error {
	switch {
	case o.TLSCert != "" && o.TLSKey == "":
		return invalid("TLSKey", "must be given together with the certificate")
	case o.TLSCert == "" && o.TLSKey != "":
		return invalid("TLSCert", "must be given together with the key")
	case o.Token != "" && o.TokenFile != "":
		return invalid("TokenFile", "must not be given together with a token")
	}
	for _, name := range o.Hosts {
		if name == "" || strings.ContainsAny(name, "/: *") {
			return invalid("Hosts", "must be a name without scheme and port, such as flowers.example.org, got %q", name)
		}
	}
	for _, origin := range o.CORSOrigins {
		if u, err := url.Parse(origin); origin != "*" && (err != nil || u.Scheme == "" || u.Host == "" || origin != u.Scheme+"://"+u.Host) {
			return invalid("CORSOrigins", `must be an origin such as https://viewer.example.org, or "*", got %q`, origin)
		}
	}
	return nil
}

// admit refuses requests that may not be answered, and answers those that ask whether they may. It
// reports whether the request is to be handled.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) bool {
	if !s.knows(r) {
		s.writeError(w, refuse(http.StatusMisdirectedRequest, "the header Host must name this server, got %.100q; pollen serve --host adds names", r.Host))
		return false
	}
	if s.crossOrigin(w, r) {
		w.WriteHeader(http.StatusNoContent)
		return false
	}
	if err := s.foreign(r); err != nil {
		s.writeError(w, err)
		return false
	}
	if _, route := s.routes.Handler(r); !s.authorized(r) && !isPublic(route) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="pollen"`)
		s.writeError(w, refuse(http.StatusUnauthorized, `the request must have the header "Authorization: Bearer TOKEN" with the server's token`))
		return false
	}
	return true
}

// loopbackKey is the key of a request's context for whether the server listens on a loopback
// address.
type loopbackKey struct{}

func withLoopback(ctx context.Context, at net.Addr) context.Context {
	tcp, is := at.(*net.TCPAddr)
	return context.WithValue(ctx, loopbackKey{}, is && tcp.IP.IsLoopback())
}

// knows reports whether the request's Host is a name of this server, see Options.Hosts.
func (s *Server) knows(r *http.Request) bool {
	loopback, _ := r.Context().Value(loopbackKey{}).(bool)
	if !loopback && len(s.options.Hosts) == 0 {
		return true
	}
	name := strings.TrimSuffix((&url.URL{Host: r.Host}).Hostname(), ".")
	if ip := net.ParseIP(name); ip != nil {
		return !loopback || ip.IsLoopback()
	}
	same := func(other string) bool { return strings.EqualFold(name, other) }
	return same("localhost") || slices.ContainsFunc(s.options.Hosts, same)
}

// crossOrigin sets the headers that let the web pages of CORSOrigins read the answer. It reports
// whether the request is a preflight, by which a browser asks whether it may send another one.
func (s *Server) crossOrigin(w http.ResponseWriter, r *http.Request) (preflight bool) {
	if len(s.options.CORSOrigins) == 0 {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if origin == "" || !s.allows(origin) {
		return false
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", requestIDHeader+", "+digestHeader+", "+inferHeader+", Retry-After")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, "+inferHeader+", "+requestIDHeader)
	h.Set("Access-Control-Max-Age", "600")
	return true
}

// allows reports whether web pages of an origin may use the server.
func (s *Server) allows(origin string) bool {
	return slices.Contains(s.options.CORSOrigins, "*") || slices.Contains(s.options.CORSOrigins, origin)
}

// foreign refuses what a web page of another origin sends: it could not read the answer, but would
// take the server's time.
func (s *Server) foreign(r *http.Request) error {
	if origin := r.Header.Get("Origin"); origin != "" && s.allows(origin) {
		return nil
	}
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		origin := r.Header.Get("Origin")
		return refuse(http.StatusForbidden, "web pages of %.100q may not use this server; pollen serve --cors-origin admits them", origin)
	}
	return nil
}
