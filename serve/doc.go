// Package serve serves the posterior predictive of runs over HTTP: class, confidence, conformal
// prediction set and out-of-distribution decision for images, with a web page and metrics.
//
// New loads the networks and samples of one or more runs, the models, once and returns a Server,
// which is an http.Handler. A queue for each model batches the images of concurrent requests; the
// models predict one after another. Reload replaces, adds and removes models without losing a
// request.
//
//	POST /predict   body: an image, a form with files, or {"images": ["base64", ...]}
//	                answer: {"answers": [...]}, for each image, in order, a bayes.Answer, or
//	                {"file": "...", "error": "..."} if it cannot be decoded
//	GET  /          a web page for dropping images on
//	GET  /run       the network, its training data, number of samples and digest
//	GET  /health    {"status": "ready"}, or 503 and "closing" or "stuck"
//	GET  /metrics   requests, latencies, batches, the queue, predicted classes and in-distribution
//	                decisions, in Prometheus's text format
//	     /v2/...    the Open Inference Protocol, version 2, which KServe and Triton implement
//	GET  /openapi.json  an OpenAPI 3.1 document of all of these
//
// POST /predict and GET /run are about the first model; the parameters model and version select
// another one.
//
// An answer has "predictionSet" if the run is calibrated on enough images for the level,
// "inDistribution" if on enough for that rate, and "refer", whether a person should look at the
// image, if bayes.WithRisk asks for it. In /run, "level" and "inDistributionRate" are absent if
// the answers lack these, and "calibrated" is true if they have both. "setRule" is how sets are
// formed, "classThresholds" has the thresholds of class-conditional sets, "risk" the certified
// threshold of "refer", and "calibration" what the run was calibrated on. "selfTest" has how many
// strange images the run rejects; the page has a badge "in distribution" only if the run passed
// this test.
//
// Images can have any size and the formats of datasets.Decode. Files of arrays, see
// datasets.DecodeArrays, and Parquet files of images count as their images, and an answer's file
// has the index: "digits.npy[3]". CSV is recognised by the file's name, or as the body by the
// content type text/csv. Answers have the probabilities of all classes only on request:
// /predict?probabilities=true, or "probabilities": true in JSON. Other parameters and members are
// errors, as levels are options of the server. Every answer to POST /predict has the digest of the
// run that gave it, see bayes.Run.Digest, as "runDigest" and in the header X-Run-Digest. Every
// response has the X-Request-Id of its request, or a new one.
//
// Base64 may use either alphabet, with or without padding and line breaks, and be a data URI. As
// for TensorFlow Serving and KServe, images may be called instances, each be {"b64": "base64"}, and
// the answers are then called predictions. Bodies may be compressed (Content-Encoding: gzip).
//
// The paths of the protocol are /v2, /v2/health/live, /v2/health/ready, /v2/models,
// /v2/models/NAME, its /ready and its /infer, and the same with /versions/VERSION after the name. A
// model has one input, "image": UINT8 of values from 0 to 255 or FP32 of values from 0 to 1, of the
// network's size, [N C H W], [N H W C] or, of one channel, [N H W]; or BYTES, [N], files of images
// of any size, in base64 if they are in JSON. Values beyond these ranges are errors: they are not
// scaled by a guess. Its outputs are probabilities, class, index, confidence, entropy,
// mutual_information, prediction_set (whether each class is in it), in_distribution and p_value,
// the last three if the run is calibrated, and refer with bayes.WithRisk. Tensors of requests and
// responses may be bytes after the JSON (the extension binary_tensor_data). One image that cannot
// be decoded is the error of its request. Members and outputs that the server does not have are
// errors. Unknown parameters are ignored, except classification and shared_memory_region.
//
// Errors are {"error": "..."}, with status 400 for invalid input, 401 without the token, 403 for
// requests of foreign web pages, 404 and 405 for unknown paths, models and methods, 408 for a body
// that does not arrive in time, 413 for input beyond the limits of Options, 415 for another content
// encoding and for JSON without its content type, 421 for a Host that is not the server's, 500 for
// a failure of the server, and 503 with Retry-After if the server is busy. If all images of a
// request have errors, the status and the error are the first one's.
//
// Clients can use only a bounded amount of memory and time. Bodies, queue and images being decoded
// have limits over all requests together, which are reduced to half of the memory that is
// available when the server starts, and a panic ends only one request. The memory that
// decoding an image takes and the scans of a JPEG image are determined before it is decoded. Small
// images have their own workers, so that large ones do not delay them.
//
// A decoder stops soon after Options.DecodeTimeout, or when its client is gone. One that does not
// stop keeps its worker and memory; the others continue. After twice that time it is stuck, as is a
// prediction after two Timeouts. This is reported and counted in /metrics, and /health has the
// status "stuck", so that an orchestrator restarts the server. When Serve's context ends, requests
// have a Timeout to end, and Close waits half a Timeout for a prediction: with the default of 20 s
// a process ends within 30 s.
//
// Options has TLS, a bearer token, and which names and web pages may reach the server; Reload reads
// certificate, token and samples again. Without these options anyone who can connect can ask.
//
// The package prints nothing, reads the clock only to measure latencies (clock.go), and draws
// random numbers only for the IDs of requests.
package serve
