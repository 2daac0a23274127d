package serve

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// Errors about images name the image and what is wrong with it, and no function of the server.
func TestErrorsForClients(t *testing.T) {
	s := newTest(t, Options{})
	cut := pngOf(theTest.Image(0))
	for body, want := range map[string]string{
		"hello":                     `{"error":"image 0: offset 0: must begin like an image (PNG, JPEG, GIF, BMP, WebP, TIFF, netpbm), got a text`,
		string(cut[:60]):            `{"error":"image 0: PNG: the file is truncated: unexpected EOF"}`,
		"P5 6000 5000 255\n":        `{"error":"image 0 must have at most 25000000 pixels (--max-pixels), got 6000x5000"}`,
		strings.Repeat("x", 17<<20): `{"error":"the body must have at most 16777216 bytes (--max-body), got 17825792"}`,
	} {
		if _, _, got := post(s, "/predict", "", strings.NewReader(body)); !strings.HasPrefix(got, want) {
			t.Errorf("%.20q: %s, want %s", body, got, want)
		}
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/nope", nil))
	if want := `{"error":"there is no \"/nope\"; GET /openapi.json describes all paths"}`; !strings.HasPrefix(w.Body.String(), want) {
		t.Errorf("%s, want %s", w.Body, want)
	}
}
