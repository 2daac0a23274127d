package serve

import (
	"encoding/json"
	"net/http"
)

// The content types of answers.
const (
	jsonType    = "application/json"
	binaryType  = "application/octet-stream"
	metricsType = "text/plain; version=0.0.4; charset=utf-8"
)

// Headers of answers.
const (
	requestIDHeader = "X-Request-Id"
	digestHeader    = "X-Run-Digest" // of the run that predicted
)

// inferHeader is the header of a request or response whose JSON is followed by the bytes of
// tensors: the length of the JSON.
const inferHeader = "Inference-Header-Content-Length"

// errorInfo is the JSON of an error.
type errorInfo struct {
	Error string `json:"error"`
}

// writeJSON writes a JSON response. It panics if value cannot be encoded.
func writeJSON(w http.ResponseWriter, code int, value any) {
	content, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	writeContent(w, code, jsonType, append(content, '\n'))
}

// writeContent writes a response that must not be cached.
func writeContent(w http.ResponseWriter, code int, kind string, content []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	w.Write(content) // an error means that the client is gone
}
