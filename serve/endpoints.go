package serve

import (
	"net/http"
)

// Statuses of predictions and of models.
var (
	predictErrors = []int{
		http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusServiceUnavailable,
	}
	modelErrors = []int{http.StatusNotFound}
)

// endpoints returns all endpoints, in the order of the document.
func endpoints() []endpoint {
	all := []endpoint{
		{method: "POST", path: "/predict", id: "predict", summary: "Predict images of any size and format", handle: (*backend).predict,
			query: []string{"probabilities", "model", "version"}, errors: predictErrors, answer: inJSON(predictResponse{}),
			body: []content{{kind: binaryType}, {kind: jsonType, value: imagesRequest{}}, {kind: formType, value: formRequest{}}}},
		{method: "GET", path: "/run", id: "describeRun", summary: "Describe the run of a model and the limits of requests", handle: (*backend).run,
			query: []string{"model", "version"}, errors: []int{http.StatusBadRequest, http.StatusNotFound}, answer: inJSON(runInfo{})},
		{method: "GET", path: "/health", id: "health", summary: "Report whether the server is ready, closing or stuck", handle: (*backend).health,
			public: true, answer: inJSON(healthInfo{}), unavailable: healthInfo{}},
		{method: "GET", path: "/metrics", id: "metrics", summary: "Return metrics in Prometheus's text format", handle: (*backend).metrics,
			answer: []content{{kind: metricsType}}},
		{method: "GET", path: "/v2", id: "serverMetadata", summary: "Return the name, version and protocol extensions of the server",
			handle: (*backend).metadata, answer: inJSON(serverMetadata{})},
		{method: "GET", path: "/v2/health/live", id: "serverLive", summary: "Report whether the server answers requests", handle: (*backend).live,
			public: true, answer: inJSON(liveInfo{}), unavailable: liveInfo{}},
		{method: "GET", path: "/v2/health/ready", id: "serverReady", summary: "Report whether all models answer", handle: (*backend).ready,
			public: true, answer: inJSON(readyInfo{}), unavailable: readyInfo{}},
		{method: "GET", path: "/v2/models", id: "listModels", summary: "List the models", handle: (*backend).listModels, answer: inJSON(modelList{})},
	}
	for _, of := range []struct{ path, name, what string }{
		{"/v2/models/{name}", "Model", "the last version of a model"},
		{"/v2/models/{name}/versions/{version}", "Version", "a version of a model"},
	} {
		all = append(all,
			endpoint{method: "GET", path: of.path, id: "metadataOf" + of.name, summary: "Return the inputs and outputs of " + of.what,
				handle: (*backend).modelMetadata, errors: modelErrors, answer: inJSON(modelMetadata{})},
			endpoint{method: "GET", path: of.path + "/ready", id: "readinessOf" + of.name, summary: "Report whether " + of.what + " answers",
				handle: (*backend).modelReady, errors: modelErrors, answer: inJSON(modelReady{}), unavailable: modelReady{}},
			endpoint{method: "POST", path: of.path + "/infer", id: "inferBy" + of.name, summary: "Predict a tensor of images by " + of.what,
				handle: (*backend).infer, errors: predictErrors,
				body:   []content{{kind: jsonType, value: inferRequest{}}, {kind: binaryType, header: inferHeader}},
				answer: []content{{kind: jsonType, value: inferResponse{}}, {kind: binaryType, header: inferHeader}}})
	}
	return append(all,
		endpoint{method: "GET", path: "/openapi.json", id: "openAPI", summary: "Return this document", handle: (*backend).openAPI, public: true,
			answer: []content{{kind: openAPIType}}},
		pageFile("/{$}", "page", "page.html", "text/html"),
		pageFile("/page.css", "pageStyle", "page.css", "text/css"),
		pageFile("/page.js", "pageScript", "page.js", "text/javascript"))
}

func pageFile(path, id, file, kind string) endpoint {
	kind += "; charset=utf-8"
	return endpoint{method: "GET", path: path, id: id, summary: "Return " + file + " of the web page", handle: page("page/"+file, kind), public: true,
		answer: []content{{kind: kind}}}
}
