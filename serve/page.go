package serve

import (
	"embed"
	"net/http"
)

//go:embed page
var pageFiles embed.FS

// addPage adds the routes of the web page and its two files. The page loads nothing from elsewhere,
// which its content security policy enforces.
func (s *Server) addPage() {
	for _, file := range []struct{ route, name, kind string }{
		{"GET /{$}", "page/page.html", "text/html; charset=utf-8"},
		{"GET /page.css", "page/page.css", "text/css; charset=utf-8"},
		{"GET /page.js", "page/page.js", "text/javascript; charset=utf-8"},
	} {
		content, err := pageFiles.ReadFile(file.name)
		if err != nil {
			panic(err) // the file is embedded
		}
		s.routes.HandleFunc(file.route, func(w http.ResponseWriter, _ *http.Request) {
			h := w.Header()
			h.Set("Content-Type", file.kind)
			h.Set("Cache-Control", "no-cache")
			h.Set("X-Content-Type-Options", "nosniff")
			h.Set("Referrer-Policy", "no-referrer")
			h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "+
				"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
			w.Write(content)
		})
	}
}
