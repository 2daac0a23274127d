package serve

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pkg/errors"
)

// exchange sends a raw request and returns the status and the rest of the answer. The answer ends
// with the connection: the request must ask to close it, or be refused.
func exchange(t *testing.T, address, request string) (status int, answer string) {
	t.Helper()
	connection, err := net.Dial("tcp", address)
	check(err)
	defer connection.Close()
	check(connection.SetDeadline(time.Now().Add(10 * time.Second)))
	go io.WriteString(connection, request) // the server may answer and close before it has read all
	content, err := io.ReadAll(connection)
	answer = string(content)
	answer = strings.TrimPrefix(answer, "HTTP/1.1 100 Continue\r\n\r\n")
	if _, scanned := fmt.Sscanf(answer, "HTTP/1.1 %d", &status); scanned != nil {
		t.Errorf("the answer to %.60q is %.60q (%v)", request, answer, err)
	}
	return status, answer
}

// line is a request without a body.
func line(method, target string, headers ...string) string {
	return method + " " + target + " HTTP/1.1\r\n" + strings.Join(append([]string{"Host: localhost", "Connection: close"}, headers...), "\r\n") + "\r\n\r\n"
}

// sent is a POST of a body to /predict.
func sent(target, kind, body string, headers ...string) string {
	return line("POST", target, append(headers, "Content-Type: "+kind, fmt.Sprint("Content-Length: ", len(body)))...) + body
}

// form is the body of a form with the boundary B: of each part the header and the content.
func form(parts ...string) string {
	var body strings.Builder
	for i := 0; i < len(parts); i += 2 {
		fmt.Fprintf(&body, "--B\r\n%s\r\n\r\n%s\r\n", parts[i], parts[i+1])
	}
	return body.String() + "--B--\r\n"
}

// hostile are requests as strangers send them: status and words of the answer.
func hostile(img string) map[string]struct {
	request string
	code    int
	words   string
} {
	const asForm, asJSON, noImage = "multipart/form-data; boundary=B", "application/json", "must begin like an image"
	file := func(name string) string {
		return `Content-Disposition: form-data; name="images"; filename="` + name + `"`
	}
	encoded := `"` + base64.StdEncoding.EncodeToString([]byte(img)) + `"`
	images := func(n int) string { return `{"images":[` + strings.Repeat(encoded+",", n-1) + encoded + "]}" }
	var headers strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&headers, "X%d: y\r\n", i)
	}
	return map[string]struct {
		request string
		code    int
		words   string
	}{
		"host evil":     {"GET /run HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", 421, "must name this server"},
		"host empty":    {"GET /run HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n", 421, "must name this server"},
		"no host":       {"GET /run HTTP/1.1\r\n\r\n", 400, "missing required Host"},
		"two hosts":     {"GET /run HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, ""},
		"origin evil":   {line("GET", "/run", "Origin: http://evil.example"), 200, `"name"`},
		"preflight":     {line("OPTIONS", "/predict", "Origin: http://e", "Access-Control-Request-Method: POST"), 405, "has the methods POST"},
		"dots":          {line("GET", "/../../etc/passwd"), 307, "Location: /etc/passwd"},
		"page.html":     {line("GET", "/page.html"), 404, "there is no"},
		"page dots":     {line("GET", "/page/../../manifest.json"), 307, "Location: /manifest.json"},
		"two slashes":   {line("GET", "//etc/passwd"), 307, "Location: /etc/passwd"},
		"escaped dots":  {line("GET", "/%2e%2e/%2e%2e/etc/passwd"), 404, "there is no"},
		"manifest":      {line("GET", "/manifest.json"), 404, "there is no"},
		"pprof":         {line("GET", "/debug/pprof/"), 404, "there is no"},
		"run/":          {line("GET", "/run/"), 404, "there is no"},
		"GET predict":   {line("GET", "/predict"), 405, "Allow: POST"},
		"git":           {line("GET", "/.git/config"), 404, "there is no"},
		"script":        {line("GET", "/page.js?x=<script>"), 200, "use strict"},
		"HEAD":          {line("HEAD", "/"), 200, "Content-Type: text/html"},
		"HEAD health":   {line("HEAD", "/health"), 200, "Content-Type: application/json"},
		"TRACE":         {line("TRACE", "/"), 405, "Allow: GET, HEAD"},
		"DELETE":        {line("DELETE", "/run"), 405, "Allow: GET, HEAD"},
		"range":         {line("GET", "/page.js", "Range: bytes=0-10"), 200, "use strict"},
		"long URL":      {line("GET", "/"+strings.Repeat("a", 40_000)), 431, ""},
		"shorter URL":   {line("GET", "/"+strings.Repeat("a", 20_000)), 404, "there is no"},
		"long header":   {line("GET", "/", "X: "+strings.Repeat("a", 60_000)), 431, ""},
		"HTTP/2":        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 421, "must name this server"},
		"h2c upgrade":   {line("GET", "/", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"), 200, "<!doctype html>"},
		"PNG":           {sent("/predict", "image/png", img), 200, `"confidence"`},
		"PNG as text":   {sent("/predict", "text/plain", img), 200, `"confidence"`},
		"bad type":      {sent("/predict", ";;;", img), 200, `"confidence"`},
		"gzip":          {sent("/predict", "image/png", img, "Content-Encoding: gzip"), 400, "the body must be gzip"},
		"expect":        {sent("/predict", "image/png", img, "Expect: 100-continue"), 200, `"confidence"`},
		"length -5":     {line("POST", "/predict", "Content-Length: -5"), 400, ""},
		"huge length":   {line("POST", "/predict", "Content-Length: 99999999999"), 413, "got 99999999999"},
		"two lengths":   {line("POST", "/predict", "Content-Length: 4", "Transfer-Encoding: chunked") + "1\r\nA\r\n0\r\n\r\n", 400, noImage},
		"bad chunk":     {line("POST", "/predict", "Transfer-Encoding: chunked") + "ZZ\r\n", 400, "the body is incomplete"},
		"huge chunk":    {line("POST", "/predict", "Transfer-Encoding: chunked") + "FFFFFFFFFFFFFFFF1\r\n", 400, "the body is incomplete"},
		"JSON deep":     {sent("/predict", asJSON, strings.Repeat("[", 100_000)), 400, "JSON: expected {, got ["},
		"JSON deeper":   {sent("/predict", asJSON, `{"probabilities":`+strings.Repeat("[", 2_000_000)), 400, "exceeded max depth"},
		"JSON twice":    {sent("/predict", asJSON, `{"images":[],"images":[]}`), 400, `unknown member`},
		"JSON null":     {sent("/predict", asJSON, `{"images":null}`), 400, "JSON: expected [, got null"},
		"JSON nulls":    {sent("/predict", asJSON, `{"images":[null,null]}`), 400, "must be base64 text, got null"},
		"JSON of 65":    {sent("/predict", asJSON, images(65)), 413, "at most 64 images"},
		"JSON of 64":    {sent("/predict", asJSON, images(64)), 200, `"confidence"`},
		"JSON URL":      {sent("/predict", asJSON, `{"images":["http://127.0.0.1:22/"]}`), 400, "image 0"},
		"form":          {sent("/predict", asForm, form(file("a.png"), img)), 200, `"file":"a.png","class"`},
		"form of HTML":  {sent("/predict", asForm, form(file("<img src=x onerror=alert(1)>.png"), img)), 200, `"file":"\u003cimg src=x`},
		"form dots":     {sent("/predict", asForm, form(file("../../etc/passwd"), img)), 200, `"file":"passwd"`},
		"form CR LF":    {sent("/predict", asForm, form(file("a%0d%0aSet-Cookie: x=1"), img)), 200, `"file":"a%0d%0aSet-Cookie: x=1"`},
		"form NUL":      {sent("/predict", asForm, form(file("\x00\xff\xfe\u202e"), "no")), 400, "malformed MIME header"},
		"form name":     {sent("/predict", asForm, form(file(strings.Repeat("n", 1_000_000)), img)), 400, "must have at most 1024 bytes, got 1000000"},
		"form headers":  {sent("/predict", asForm, form(strings.TrimSuffix(headers.String(), "\r\n"), img)), 400, "form: part 0: "},
		"form cut":      {sent("/predict", asForm, strings.TrimSuffix(form(file("a"), img), "\r\n--B--\r\n")), 400, "form: part 0: "},
		"no boundary":   {sent("/predict", "multipart/form-data", "x"), 400, "must have a boundary"},
		"empty parts":   {sent("/predict", asForm, form(strings.Split(strings.Repeat("A: b||", 100), "|")[:200]...)), 413, "at most 64 images"},
		"long boundary": {sent("/predict", "multipart/form-data; boundary="+strings.Repeat("b", 2000), "x"), 400, "form: part 0: "},
		"text field":    {sent("/predict", asForm, form(`Content-Disposition: form-data; name="note"`, "hello", file("a.png"), img)), 200, noImage},
		"bad option":    {sent("/predict?probabilities=maybe", "image/png", img), 400, "must be true or false"},
		"empty":         {sent("/predict", "image/png", ""), 400, "got an empty one"},
		"tensor":        {sent(inferTarget, asJSON, string(tensorRequest("BYTES", []int{1}, [][]byte{[]byte(img)}))), 200, `"model_name":"patterns"`},
		"tensor, dots":  {sent("/v2/models/../../run/infer", asJSON, "{}"), 307, "Location: /run/infer"},
		"tensor, host":  {"GET /v2/models/patterns HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", 421, "must name this server"},
		"tensor, evil":  {sent(inferTarget, asJSON, "{}", "Origin: http://evil.example"), 403, "may not use this server"},
		"tensor, huge":  {line("POST", inferTarget, "Content-Length: 99999999999"), 413, "got 99999999999"},
		"tensor, chunk": {line("POST", inferTarget, "Transfer-Encoding: chunked") + "ZZ\r\n", 400, "the body is incomplete"},
		"tensor, deep":  {sent(inferTarget, asJSON, `{"id":`+strings.Repeat("[", 2_000_000)), 400, "exceeded max depth"},
		"two headers":   {sent(inferTarget, asJSON, "{}", inferHeader+": 1", inferHeader+": 2"), 400, ""},
		"tensor, name":  {line("GET", "/v2/models/"+strings.Repeat("n", 20_000)), 404, "there is no model"},
		"PNG cut":       {sent("/predict", "image/png", img[:50]), 400, "image 0: PNG"},
		"PNM 2^32":      {sent("/predict", "", "P5 65536 65536 255\n"), 400, "got 4294967296"},
		"PNM":           {sent("/predict", "", "P5 5000 5000 255\n"), 400, "unexpected EOF"},
	}
}

// TestHostileRequests: each gets its answer or an error that names the cause, and the server
// continues.
func TestHostileRequests(t *testing.T) {
	address := serving(t, newTest(t, Options{}))
	for name, c := range hostile(string(pngOf(theTest.Image(0)))) {
		t.Run(name, func(t *testing.T) {
			code, answer := exchange(t, address, c.request)
			if code != c.code || !strings.Contains(answer, c.words) {
				t.Errorf("%d, want %d and %q, in\n%.2000s", code, c.code, c.words, answer)
			}
			if strings.Contains(answer, "Access-Control-Allow") || strings.Contains(answer, "\r\nSet-Cookie") {
				t.Errorf("a foreign page may read, or sets headers of, the answer\n%.2000s", answer)
			}
			if _, body, _ := strings.Cut(answer, "\r\n\r\n"); code >= 400 && strings.Contains(answer, "Content-Type: application/json") {
				var e struct{ Error string }
				if err := json.Unmarshal([]byte(body), &e); err != nil || e.Error == "" || len(body) > 4000 {
					t.Errorf("an error of %d bytes: %.2000s (%v)", len(body), body, err)
				}
			}
		})
	}
	if code, answer := exchange(t, address, line("GET", "/health")); code != 200 || !strings.Contains(answer, "ready") {
		t.Errorf("afterwards: %d %s", code, answer)
	}
}

// TestSlowClients: connections on which nothing comes, a header comes byte by byte, or a body, are
// closed in time, while others are answered.
func TestSlowClients(t *testing.T) {
	const timeout = 200 * time.Millisecond
	address := serving(t, newTest(t, Options{Timeout: timeout}))
	begun := time.Now()
	type outcome struct {
		what, answer string
		after        time.Duration
	}
	const each = 20
	outcomes := make(chan outcome)
	for what, first := range map[string]string{
		"idle":   "",
		"header": "POST /predict HTTP/1.1\r\nHost: localhost\r\nX-",
		"body":   "POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 16000000\r\n\r\n",
		"again":  "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
	} {
		for range each {
			go func() {
				connection, err := net.Dial("tcp", address)
				check(err)
				defer connection.Close()
				check(connection.SetDeadline(time.Now().Add(10 * time.Second)))
				io.WriteString(connection, first)
				for stop := time.After(10 * timeout); what == "header" || what == "body"; {
					if _, err := io.WriteString(connection, "X"); err != nil {
						break
					}
					select {
					case <-time.After(timeout / 10):
						continue
					case <-stop:
					}
					break
				}
				content, err := io.ReadAll(connection)
				var timed net.Error
				if errors.As(err, &timed) && timed.Timeout() {
					content = []byte("not closed")
				}
				outcomes <- outcome{what, string(content), time.Since(begun)}
			}()
		}
	}
	for range 5 {
		response, err := http.Get("http://" + address + "/health")
		if err != nil || response.StatusCode != 200 {
			t.Fatalf("meanwhile: %v (%v)", response, err)
		}
		response.Body.Close()
	}
	for range 4 * each {
		o := <-outcomes
		if o.answer == "not closed" || o.what == "again" && !strings.HasPrefix(o.answer, "HTTP/1.1 200") ||
			o.what == "again" && o.after < 5*timeout { // a connection may be used again for 6 timeouts
			t.Errorf("%s: after %v %.100q", o.what, o.after, o.answer)
		}
	}
}

// TestRequestBeyondMemory: a request that would not fit into the memory of an idle server is too
// large, since it would be refused again and again.
func TestRequestBeyondMemory(t *testing.T) {
	s := newTest(t, Options{MaxBody: 1 << 20, Memory: 2 << 20})
	body := `{"images": [` + strings.Repeat(" ", 700_000) + `]}`
	code, header, answer := post(s, "/predict", "application/json", strings.NewReader(body))
	refused(t, "JSON", code, answer, 413, "the request must take at most 1835008 bytes of memory, got ")
	if header.Get("Retry-After") != "" {
		t.Errorf("to be retried after %s", header.Get("Retry-After"))
	}
	if !s.memory.reserve(1 << 20) {
		t.Fatal("an idle server has no memory")
	}
	code, _, answer = post(s, "/predict", "application/json", strings.NewReader(body[:200_000]))
	refused(t, "a busy server", code, answer, 503, "the server is busy")
}
