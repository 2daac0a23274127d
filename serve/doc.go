// Package serve answers for images over HTTP: what a run of package pollen says of them, in JSON,
// on a page, and in figures for monitoring.
//
// New loads a run's network and samples once and makes a Server, which is an http.Handler. Images
// of requests that come at the same time are answered for together: a queue holds them for a
// moment, or as long as the device is busy.
//
//	POST /predict   an image, a form with files, or {"images": ["base64", ...]}; the answer is
//	                {"answers": [...]}, a pollen.Answer for each image, in order
//	GET  /          a page to drop an image on
//	GET  /run       what was trained, on what, and how many samples answer
//	GET  /health    whether it is ready
//	GET  /metrics   requests, latencies, batches and the queue, in Prometheus's text format
//
// Images are of any size and of the formats of datasets.Decode. Answers have the probabilities of
// all classes where the request asks for them: /predict?probabilities=true, or "probabilities":
// true in JSON. Errors are {"error": "..."}: 400 what is not an image, 408 a body that does not
// arrive, 413 what is larger than Options allow, 500 a failure of ours, 503 with Retry-After what
// there is no room or no time for at present.
//
// Policy: what clients send costs a bounded amount of memory and time. Bodies, queue and pictures
// that are being decoded have limits over all requests together, a picture's size is read before
// any room is made for it, and a panic ends one request only. The package prints nothing and takes
// the time only to measure latencies (clock.go).
package serve
