// Package serve answers for images over HTTP: what a run of package pollen says of them, in JSON,
// on a page, and in figures for monitoring.
//
// New loads a run's network and samples once and makes a Server, which is an http.Handler. Images
// of simultaneous requests are answered together: a queue holds them for a moment, or as long as
// the device is busy.
//
//	POST /predict   an image, a form with files, or {"images": ["base64", ...]}; the answer is
//	                {"answers": [...]}, a pollen.Answer for each image, in order
//	GET  /          a page to drop an image on
//	GET  /run       what was trained, on what, and how many samples answer; "level" is of the
//	                answers' sets, "familiar" the share called so: not there where these are not
//	GET  /health    whether it is ready
//	GET  /metrics   requests, latencies, batches and the queue, in Prometheus's text format
//
// An answer has "set", which may be empty, if the run was calibrated on enough images for the
// level, and "familiar" if on enough for that; "calibrated" says that both are there.
//
// Images have any size and the formats of datasets.Decode. Answers have the probabilities of all
// classes if the request asks for them: /predict?probabilities=true, or "probabilities": true in
// JSON. Errors are {"error": "..."}: 400 for what is not an image, 408 for a body that does not
// arrive, 413 for more than Options allow, 500 for a failure of the server, 503 with Retry-After if
// there is no room or no time at present.
//
// Policy: what clients send costs a bounded amount of memory and time. Bodies, queue and pictures
// being decoded have limits over all requests together, a picture's size is read before any memory
// is allocated for it, and a panic ends one request only. The package prints nothing and reads the
// clock only to measure latencies (clock.go).
package serve
