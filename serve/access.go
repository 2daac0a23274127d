package serve

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// admit checks whether the request comes from an allowed host, origin and client, and reports
// whether it is to be handled. If not, or if it is a CORS preflight, admit writes the response. A
// public route needs no token.
func (b *backend) admit(w http.ResponseWriter, r *http.Request, public bool) bool {
	if !b.knows(r) {
		b.writeError(w, refuse(http.StatusMisdirectedRequest, "the header Host must name this server, got %.100q; pollen serve --host adds names", r.Host))
		return false
	}
	if b.crossOrigin(w, r) {
		w.WriteHeader(http.StatusNoContent)
		return false
	}
	if err := b.foreign(r); err != nil {
		b.writeError(w, err)
		return false
	}
	if !public && !b.secrets.Load().authorized(r) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="pollen"`)
		b.writeError(w, refuse(http.StatusUnauthorized, `the request must have the header "Authorization: Bearer TOKEN" with the server's token`))
		return false
	}
	return true
}

// loopbackKey is the context key of a bool: whether the server listens on a loopback address.
type loopbackKey struct{}

func withLoopback(ctx context.Context, at net.Addr) context.Context {
	tcp, is := at.(*net.TCPAddr)
	return context.WithValue(ctx, loopbackKey{}, is && tcp.IP.IsLoopback())
}

// knows reports whether the request's Host is a name of this server, see Options.Hosts.
func (b *backend) knows(r *http.Request) bool {
	loopback, _ := r.Context().Value(loopbackKey{}).(bool)
	if !loopback && len(b.options.Hosts) == 0 {
		return true
	}
	name := strings.TrimSuffix((&url.URL{Host: r.Host}).Hostname(), ".")
	if ip := net.ParseIP(name); ip != nil {
		return !loopback || ip.IsLoopback()
	}
	same := func(other string) bool { return strings.EqualFold(name, other) }
	return same("localhost") || slices.ContainsFunc(b.options.Hosts, same)
}

// crossOrigin sets the headers that let the web pages of CORSOrigins read the answer. It reports
// whether the request is a preflight: a browser asks with it whether it may send another one.
func (b *backend) crossOrigin(w http.ResponseWriter, r *http.Request) (preflight bool) {
	if len(b.options.CORSOrigins) == 0 {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if origin == "" || !b.allows(origin) {
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
func (b *backend) allows(origin string) bool {
	return slices.Contains(b.options.CORSOrigins, "*") || slices.Contains(b.options.CORSOrigins, origin)
}

// foreign returns an error for a request that a web page of another origin sends. The page could
// not read the answer, but would take the server's time.
func (b *backend) foreign(r *http.Request) error {
	if origin := r.Header.Get("Origin"); origin != "" && b.allows(origin) {
		return nil
	}
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		origin := r.Header.Get("Origin")
		return refuse(http.StatusForbidden, "web pages of %.100q may not use this server; pollen serve --cors-origin admits them", origin)
	}
	return nil
}
