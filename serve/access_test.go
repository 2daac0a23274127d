package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pkg/errors"
)

const testToken = "0123456789abcdef-a-token"

// ask passes a request with headers, in pairs, to a server. The header Host sets the request's.
func ask(s *Server, method, target string, headers ...string) *http.Response {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	return asked(s, r)
}

func asked(s *Server, r *http.Request) *http.Response {
	return record(s, r).Result()
}

// wantStatus fails the test unless a response has the status and, if it is an error, a JSON text.
func wantStatus(t *testing.T, what string, response *http.Response, code int) {
	t.Helper()
	var body struct{ Error string }
	err := json.NewDecoder(response.Body).Decode(&body)
	if response.StatusCode != code || code >= 400 && (err != nil || body.Error == "" || response.Header.Get("Content-Type") != "application/json") {
		t.Errorf("%s: status %d, %q (%v), want %d, with an error in JSON from 400 on", what, response.StatusCode, body.Error, err, code)
	}
}

func TestToken(t *testing.T) {
	s := newTest(t, Options{Token: testToken})
	for _, c := range []struct {
		target, header string
		code           int
	}{
		{"/run", "", 401}, {"/metrics", "", 401}, {"/predict", "", 401}, {"/nothing", "", 401},
		{"/v2", "", 401}, {"/v2/models", "", 401}, {"/v2/models/patterns", "", 401}, {"/v2/models/patterns/ready", "", 401},
		{"/v2/models/nothing", "", 401}, {inferTarget, "", 401}, {"/v2/health/live", "", 200}, {"/v2/health/ready", "", 200},
		{"/v2/models/patterns", "Bearer " + testToken, 200}, {"/v2/models/nothing", "Bearer " + testToken, 404},
		{"/v2/models/patterns", "Bearer " + testToken + "x", 401}, {"/openapi.json", "", 200},
		{"/health", "", 200}, {"/", "", 200}, {"/page.js", "", 200}, {"/page.css", "", 200},
		{"/run", "Bearer " + testToken, 200}, {"/run", "bearer " + testToken, 200}, {"/metrics", "Bearer " + testToken, 200},
		{"/nothing", "Bearer " + testToken, 404},
		{"/run", "Bearer " + testToken + "x", 401}, {"/run", "Bearer " + testToken[1:], 401}, {"/run", "Bearer", 401}, {"/run", "Bearer ", 401},
		{"/run", testToken, 401}, {"/run", "Basic " + testToken, 401},
	} {
		response := ask(s, "GET", c.target, "Authorization", c.header)
		if challenge := response.Header.Get("WWW-Authenticate"); (response.StatusCode == 401) != (challenge == `Bearer realm="pollen"`) {
			t.Errorf("%s with %q: status %d and challenge %q", c.target, c.header, response.StatusCode, challenge)
		}
		if c.target == "/page.js" || c.target == "/page.css" || c.target == "/" || c.target == "/metrics" && c.code == 200 {
			if response.StatusCode != c.code {
				t.Errorf("%s with %q: status %d, want %d", c.target, c.header, response.StatusCode, c.code)
			}
			continue
		}
		wantStatus(t, c.target+" with "+c.header, response, c.code)
	}
	if _, _, body := get(s, "/health"); body != "{\"status\":\"ready\"}\n" {
		t.Errorf("health without a token tells %s", body)
	}
}

// TestSecrets: invalid files of a certificate, key or token are errors that name the option.
func TestSecrets(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		check(os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	cert, key := writeCertificate(t, dir, "localhost")
	_, otherKey := writeCertificate(t, t.TempDir(), "localhost")
	for words, o := range map[string]Options{
		"TLSKey: must be given together with the certificate": {TLSCert: cert},
		"TLSCert: must be given together with the key":        {TLSKey: key},
		"TLSCert: stat": {TLSCert: filepath.Join(dir, "none"), TLSKey: key},
		"TLSKey: " + dir + " must be a regular file":         {TLSCert: cert, TLSKey: dir},
		"must be a certificate and its key":                  {TLSCert: cert, TLSKey: otherKey},
		"TokenFile: must not be given together with a token": {Token: testToken, TokenFile: cert},
		"TokenFile: stat":                                      {TokenFile: filepath.Join(dir, "none")},
		"must have a token, is empty":                          {TokenFile: file("empty", "\n")},
		"TokenFile: must be a token of at least 16 letters":    {TokenFile: file("short", "short\n")},
		"Token: must be a token of at least 16 letters":        {Token: "a token with blanks in it"},
		"must have at most 1048576 bytes, got 1048577":         {TokenFile: file("long", strings.Repeat("x", 1<<20+1))},
		`Hosts: must be a name without scheme and port`:        {Hosts: []string{"http://flowers.example.org"}},
		`CORSOrigins: must be an origin such as`:               {CORSOrigins: []string{"viewer.example.org"}},
		`or "*", got "https://viewer.example.org/"`:            {CORSOrigins: []string{"https://viewer.example.org/"}},
		`must be an origin such as https://viewer.example.org`: {CORSOrigins: []string{"null"}},
	} {
		_, err := New([]Model{{Run: theRun}}, o)
		if !errors.As(err, new(*OptionError)) || !strings.Contains(err.Error(), words) {
			t.Errorf("error %v, want an OptionError with %q", err, words)
		}
	}
	s := newTest(t, Options{TokenFile: file("token", " "+testToken+"\r\n")})
	wantStatus(t, "a token from a file", ask(s, "GET", "/run", "Authorization", "Bearer "+testToken), 200)
}

// TestHost: names that a foreign web page may have resolved to this server are refused.
func TestHost(t *testing.T) {
	loopback := withLoopback(context.Background(), &net.TCPAddr{IP: net.IPv6loopback})
	everywhere := withLoopback(context.Background(), &net.TCPAddr{IP: net.IPv4zero})
	open, named := newTest(t, Options{}), newTest(t, Options{Hosts: []string{"Flowers.example.org"}})
	for _, c := range []struct {
		host                                 string
		loopback, everywhere, named, nowhere int
	}{
		{"localhost", 200, 200, 200, 200},
		{"LOCALHOST:8080", 200, 200, 200, 200},
		{"localhost.:8080", 200, 200, 200, 200},
		{"127.0.0.1:8080", 200, 200, 200, 200},
		{"127.9.9.9", 200, 200, 200, 200},
		{"[::1]:8080", 200, 200, 200, 200},
		{"10.1.2.3:8080", 421, 200, 421, 200},
		{"evil.example", 421, 200, 421, 200},
		{"evil.example:8080", 421, 200, 421, 200},
		{"localhost.evil.example", 421, 200, 421, 200},
		{"127.0.0.1.evil.example", 421, 200, 421, 200},
		{"flowers.example.org", 421, 200, 200, 200},
		{"flowers.EXAMPLE.org:443", 421, 200, 200, 200},
		{"", 421, 200, 421, 200},
	} {
		for what, served := range map[string]struct {
			*Server
			context.Context
			code int
		}{
			"on a loopback address":            {open, loopback, c.loopback},
			"on all addresses":                 {open, everywhere, c.everywhere},
			"on a loopback address, named":     {named, loopback, c.named},
			"as a handler of another server":   {open, context.Background(), c.nowhere},
			"on all addresses, named, by name": {named, everywhere, map[bool]int{true: 200, false: c.named}[c.host == "10.1.2.3:8080"]},
		} {
			for _, target := range []string{"/run", "/v2/models/patterns"} {
				r := httptest.NewRequest("GET", target, nil).WithContext(served.Context)
				r.Host = c.host
				wantStatus(t, what+": "+c.host+target, asked(served.Server, r), served.code)
			}
		}
	}
}

// TestCORS: pages of the given origins can ask, send and read; others get no answer.
func TestCORS(t *testing.T) {
	const viewer, evil = "https://viewer.example.org", "https://evil.example"
	s, closed, all := newTest(t, Options{CORSOrigins: []string{viewer}, Token: testToken}), newTest(t, Options{}), newTest(t, Options{CORSOrigins: []string{"*"}})
	preflight := func(s *Server, origin string) *http.Response {
		return ask(s, "OPTIONS", "/predict", "Origin", origin, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization")
	}
	if r := preflight(s, viewer); r.StatusCode != 204 || r.Header.Get("Access-Control-Allow-Origin") != viewer ||
		!strings.Contains(r.Header.Get("Access-Control-Allow-Headers"), "Authorization") ||
		!strings.Contains(r.Header.Get("Access-Control-Allow-Headers"), inferHeader) || r.Header.Get("Access-Control-Allow-Methods") != "GET, POST" {
		t.Errorf("a preflight is answered by %d %v", r.StatusCode, r.Header)
	}
	if r := preflight(all, evil); r.StatusCode != 204 || r.Header.Get("Access-Control-Allow-Origin") != evil {
		t.Errorf("a preflight where any origin may ask is answered by %d %v", r.StatusCode, r.Header)
	}
	asEvil, asNull := ask(s, "GET", "/health", "Origin", evil), ask(s, "GET", "/health", "Origin", "null")
	for _, r := range []*http.Response{preflight(s, evil), preflight(closed, viewer), asEvil, asNull} {
		if allowed := r.Header.Get("Access-Control-Allow-Origin"); allowed != "" || r.StatusCode == 204 {
			t.Errorf("a foreign page may read: %d, for %q", r.StatusCode, allowed)
		}
	}
	// A page can read why it is refused.
	r := ask(s, "GET", "/run", "Origin", viewer)
	if r.Header.Get("Access-Control-Allow-Origin") != viewer || r.Header.Get("Vary") != "Origin" {
		t.Errorf("the answer's header is %v", r.Header)
	}
	wantStatus(t, "without a token", r, 401)
	wantStatus(t, "a foreign page's image", ask(closed, "POST", "/predict", "Origin", evil), 403)
	wantStatus(t, "a foreign page's image", ask(closed, "POST", "/predict", "Sec-Fetch-Site", "cross-site"), 403)
	wantStatus(t, "the own page's image", ask(closed, "POST", "/predict", "Sec-Fetch-Site", "same-origin", "Origin", "http://behind.a.proxy"), 400)
	wantStatus(t, "the own page's image", ask(closed, "POST", "/predict", "Host", "localhost:8080", "Origin", "http://localhost:8080"), 400)
	wantStatus(t, "a known page's image", ask(s, "POST", "/predict", "Origin", viewer, "Sec-Fetch-Site", "cross-site", "Authorization", "Bearer "+testToken), 400)
	wantStatus(t, "a program's image", ask(closed, "POST", "/predict"), 400)
	wantStatus(t, "a foreign page's tensor", ask(closed, "POST", inferTarget, "Origin", evil), 403)
	wantStatus(t, "a foreign page's tensor", ask(closed, "POST", inferTarget, "Sec-Fetch-Site", "cross-site"), 403)
	wantStatus(t, "a known page's tensor", ask(s, "POST", inferTarget, "Origin", viewer, "Authorization", "Bearer "+testToken), 400)
	if exposed := ask(s, "GET", "/run", "Origin", viewer).Header.Get("Access-Control-Expose-Headers"); !strings.Contains(exposed, inferHeader) {
		t.Errorf("a known page may read %s, want the length of the JSON among it", exposed)
	}
}

// TestRoutes: unknown paths and methods are errors in JSON, with the methods that there are.
func TestRoutes(t *testing.T) {
	s := newTest(t, Options{})
	for _, c := range []struct {
		method, target string
		code           int
		allow          string
	}{
		{"GET", "/nothing", 404, ""}, {"GET", "/run/", 404, ""}, {"POST", "/../../etc/passwd", 404, ""}, {"GET", "/manifest.json", 404, ""},
		{"GET", "/predict", 405, "POST"}, {"DELETE", "/run", 405, "GET, HEAD"}, {"TRACE", "/", 405, "GET, HEAD"}, {"OPTIONS", "/predict", 405, "POST"},
		{"GET", inferTarget, 405, "POST"}, {"POST", "/v2", 405, "GET, HEAD"}, {"POST", "/v2/models/patterns", 405, "GET, HEAD"},
		{"GET", "/v2/models/patterns/versions", 404, ""}, {"GET", "/v2/models/nothing", 404, ""}, {"GET", "/v2/models//infer", 404, ""},
		{"GET", "/v2/models/patterns/versions/2", 404, ""}, {"GET", "/v2/models/%2e%2e%2frun", 404, ""}, {"POST", "/openapi.json", 405, "GET, HEAD"},
	} {
		response := ask(s, c.method, c.target)
		if response.StatusCode == 307 { // to the path without dots
			response = ask(s, c.method, response.Header.Get("Location"))
		}
		if allow := response.Header.Get("Allow"); allow != c.allow {
			t.Errorf("%s %s allows %q, want %q", c.method, c.target, allow, c.allow)
		}
		wantStatus(t, c.method+" "+c.target, response, c.code)
	}
	for _, target := range []string{"/", "/health", "/run", "/metrics", "/v2", "/v2/models/patterns", "/v2/health/ready", "/openapi.json"} {
		if response := ask(s, "HEAD", target); response.StatusCode != 200 {
			t.Errorf("HEAD %s: %d", target, response.StatusCode)
		}
	}
}

// TestRequestID: an answer and the access log have the request's ID, or a new one. The log has what
// an operator needs, and a client's text cannot forge a record.
func TestRequestID(t *testing.T) {
	var log bytes.Buffer
	s := newTest(t, Options{AccessLog: slog.New(slog.NewJSONHandler(&log, nil))})
	type record struct {
		ID, Client, Method, Host, Path, UserAgent, RunDigest string
		Status, Bytes                                        int
		Seconds                                              float64
	}
	logged := func() (r record) {
		t.Helper()
		if lines := strings.Count(log.String(), "\n"); lines != 1 {
			t.Errorf("%d records of one request: %s", lines, log.String())
		}
		check(json.Unmarshal(log.Bytes(), &r))
		log.Reset()
		return r
	}
	if got := ask(s, "GET", "/run", "X-Request-Id", "scan-17/a").Header.Get("X-Request-Id"); got != "scan-17/a" || logged().ID != got {
		t.Errorf("the ID of a request with one is %q", got)
	}
	seen := map[string]bool{}
	for _, id := range []string{"", "", "a b", "x\"y", strings.Repeat("x", 129), "é"} {
		got := ask(s, "GET", "/run", "X-Request-Id", id).Header.Get("X-Request-Id")
		if seen[got] || len(got) < 20 || got == id || logged().ID != got {
			t.Errorf("the ID of a request with %q is %q", id, got)
		}
		seen[got] = true
	}
	r := httptest.NewRequest("POST", "/predict", bytes.NewReader(pngOf(theTest.Image(0))))
	r.Header.Set("User-Agent", "x\n{\"forged\":true}")
	r.RemoteAddr = "[2001:db8::1]:1234"
	response := asked(s, r)
	want, err := theRun.Digest()
	check(err)
	got := logged()
	if got.Client != "2001:db8::1" || got.Method != "POST" || got.Path != "/predict" || got.Status != 200 || got.Bytes < 100 || got.Seconds <= 0 ||
		got.UserAgent != "x\n{\"forged\":true}" || got.Host != "example.com" || got.RunDigest != want {
		t.Errorf("the record is %+v", got)
	}
	var body struct{ RunDigest string }
	check(json.NewDecoder(response.Body).Decode(&body))
	if header := response.Header.Get("X-Run-Digest"); header != want || body.RunDigest != want {
		t.Errorf("an answer has the digests %q and %q, want %q", header, body.RunDigest, want)
	}
	if code, _, text := get(s, "/run"); code != 200 || !strings.Contains(text, `"digest":"`+want+`"`) {
		t.Errorf("/run: %s", text)
	}
	log.Reset()
	ask(s, "GET", "/"+strings.Repeat("x", 10_000))
	if len(logged().Path) != 200 {
		t.Error("the record of a long path is long")
	}
}
