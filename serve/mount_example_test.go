package serve_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/serve"
)

// A Server is part of a larger one: below a path, next to other handlers, and behind middleware that
// checks who asks. Its page and its answers use paths relative to that.
func ExampleServer_ServeHTTP() {
	dir, err := os.MkdirTemp("", "mount")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	run, err := trainShades(filepath.Join(dir, "run"))
	if err != nil {
		fmt.Println(err)
		return
	}
	server, err := serve.New([]serve.Model{{Name: "shades", Run: run}}, serve.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close() // after the http.Server has ended

	mux := http.NewServeMux()
	mux.Handle("/shades/", forUsers(http.StripPrefix("/shades", server)))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "this program's own page") })

	var photo bytes.Buffer
	if err := png.Encode(&photo, image.NewGray(image.Rect(0, 0, 50, 40))); err != nil {
		fmt.Println(err)
		return
	}
	for _, user := range []string{"", "ada"} {
		request := httptest.NewRequest(http.MethodPost, "/shades/predict", bytes.NewReader(photo.Bytes()))
		request.SetBasicAuth(user, "")
		response := httptest.NewRecorder()
		mux.ServeHTTP(response, request)
		fmt.Println(response.Code, strings.Contains(response.Body.String(), `"class":"dark"`))
	}
	// Output:
	// 401 false
	// 200 true
}

// forUsers is the middleware of this program.
func forUsers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, _, _ := r.BasicAuth(); user == "" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// trainShades trains a run that distinguishes dark images from bright ones.
func trainShades(dir string) (*bayes.Run, error) {
	pixels, labels := make([]byte, 40*8*8), make([]int32, 40)
	for i := range pixels {
		labels[i/64] = int32(i / 64 % 2)
		pixels[i] = byte(200*(i/64%2) + i*i%50)
	}
	images, err := datasets.New("shades", pixels, labels, 1, 8, 8, []string{"dark", "bright"})
	if err != nil {
		return nil, err
	}
	spec := bayes.Spec{Network: "mlp-16", Method: langevin.SGLD{}, Epochs: 20, Samples: 5}
	return bayes.Fit(context.Background(), spec, &datasets.Splits{Train: images}, dir)
}
