// Package serve serves the posterior predictive of a run over HTTP: class, confidence, conformal
// prediction set and out-of-distribution decision for images, with a web page and metrics.
//
// New loads a run's network and samples once and returns a Server, which is an http.Handler. A
// queue batches the images of concurrent requests.
//
//	POST /predict   body: an image, a form with files, or {"images": ["base64", ...]}
//	                answer: {"answers": [...]}, a pollen.Answer for each image, in order
//	GET  /          a web page for dropping images on
//	GET  /run       the network, its training data and number of samples
//	GET  /health    whether the server is ready
//	GET  /metrics   requests, latencies, batches and the queue, in Prometheus's text format
//
// An answer has "predictionSet", which can be empty, if the run is calibrated on enough images for
// the level, and "inDistribution" if on enough for that rate. In /run, "level" and
// "inDistributionRate" are absent if the answers lack these, and "calibrated" is true if they have
// both.
//
// Images can have any size and the formats of datasets.Decode. Answers have the probabilities of
// all classes only on request: /predict?probabilities=true, or "probabilities": true in JSON.
// Errors are {"error": "..."}, with status 400 for invalid input, 408 for a body that does not
// arrive in time, 413 for input beyond the limits of Options, 500 for a failure of the server, and
// 503 with Retry-After if the server is busy.
//
// Clients can use only a bounded amount of memory and time. Bodies, queue and images being decoded
// have limits over all requests together, an image's size is read before memory is allocated for
// it, and a panic ends only one request. The package prints nothing and reads the clock only to
// measure latencies (clock.go).
package serve
