package serve

import (
	"embed"
	"net/http"
)

//go:embed page
var pageFiles embed.FS

// page returns the handler of a file of the web page. The page loads nothing from elsewhere, which
// its content security policy enforces.
func page(name, kind string) handler {
	content, err := pageFiles.ReadFile(name)
	if err != nil {
		panic(err) // the file is embedded
	}
	return func(_ *backend, w http.ResponseWriter, _ *http.Request) error {
		h := w.Header()
		h.Set("Content-Type", kind)
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "+
			"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		w.Write(content)
		return nil
	}
}
