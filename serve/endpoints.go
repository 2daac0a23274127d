package serve

import (
	"net/http"
	"strings"
)

// handler handles the requests of an endpoint. Its error is the response's.
type handler func(s *Server, w http.ResponseWriter, r *http.Request) error

// endpoint is a method of a path. The routes and the OpenAPI document are made of endpoints.
type endpoint struct {
	method, path string // as in http.ServeMux
	id, summary  string // of the operation
	handle       handler
	public       bool // needs no token
	query        []string
	body         []content // alternatives
	answer       []content // alternatives, with status 200
	unavailable  any       // a value of the JSON type of status 503, if it is not an error
	errors       []int     // other statuses, with an errorInfo, except those of all endpoints
}

// content is the body of a request or response.
type content struct {
	kind   string // the content type
	value  any    // of the JSON type, or nil for text and bytes
	header string // a header that goes with it
}

// Statuses of predictions and of models.
var (
	predictErrors = []int{
		http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusServiceUnavailable,
	}
	modelErrors = []int{http.StatusNotFound}
	everyError  = []int{http.StatusMisdirectedRequest, http.StatusInternalServerError} // and 401, except of public endpoints
)

func inJSON(value any) []content { return []content{{kind: jsonType, value: value}} }

// endpoints returns all endpoints, in the order of the document.
func endpoints() []endpoint {
	all := []endpoint{
		{method: "POST", path: "/predict", id: "predict", summary: "Predict images of any size and format", handle: (*Server).predict,
			query: []string{"probabilities", "model", "version"}, errors: predictErrors, answer: inJSON(predictResponse{}),
			body: []content{{kind: binaryType}, {kind: jsonType, value: imagesRequest{}}, {kind: formType, value: formRequest{}}}},
		{method: "GET", path: "/run", id: "describeRun", summary: "Describe the run of a model and the limits of requests", handle: (*Server).run,
			query: []string{"model", "version"}, errors: []int{http.StatusBadRequest, http.StatusNotFound}, answer: inJSON(runInfo{})},
		{method: "GET", path: "/health", id: "health", summary: "Report whether the server is ready, closing or stuck", handle: (*Server).health,
			public: true, answer: inJSON(healthInfo{}), unavailable: healthInfo{}},
		{method: "GET", path: "/metrics", id: "metrics", summary: "Return metrics in Prometheus's text format", handle: (*Server).metrics,
			answer: []content{{kind: metricsType}}},
		{method: "GET", path: "/v2", id: "serverMetadata", summary: "Return the name, version and protocol extensions of the server",
			handle: (*Server).metadata, answer: inJSON(serverMetadata{})},
		{method: "GET", path: "/v2/health/live", id: "serverLive", summary: "Report whether the server answers requests", handle: (*Server).live,
			public: true, answer: inJSON(liveInfo{}), unavailable: liveInfo{}},
		{method: "GET", path: "/v2/health/ready", id: "serverReady", summary: "Report whether all models answer", handle: (*Server).ready,
			public: true, answer: inJSON(readyInfo{}), unavailable: readyInfo{}},
		{method: "GET", path: "/v2/models", id: "listModels", summary: "List the models", handle: (*Server).listModels, answer: inJSON(modelList{})},
	}
	for _, of := range []struct{ path, name, what string }{
		{"/v2/models/{name}", "Model", "the last version of a model"},
		{"/v2/models/{name}/versions/{version}", "Version", "a version of a model"},
	} {
		all = append(all,
			endpoint{method: "GET", path: of.path, id: "metadataOf" + of.name, summary: "Return the inputs and outputs of " + of.what,
				handle: (*Server).modelMetadata, errors: modelErrors, answer: inJSON(modelMetadata{})},
			endpoint{method: "GET", path: of.path + "/ready", id: "readinessOf" + of.name, summary: "Report whether " + of.what + " answers",
				handle: (*Server).modelReady, errors: modelErrors, answer: inJSON(modelReady{}), unavailable: modelReady{}},
			endpoint{method: "POST", path: of.path + "/infer", id: "inferBy" + of.name, summary: "Predict a tensor of images by " + of.what,
				handle: (*Server).infer, errors: predictErrors,
				body:   []content{{kind: jsonType, value: inferRequest{}}, {kind: binaryType, header: inferHeader}},
				answer: []content{{kind: jsonType, value: inferResponse{}}, {kind: binaryType, header: inferHeader}}})
	}
	return append(all,
		endpoint{method: "GET", path: "/openapi.json", id: "openAPI", summary: "Return this document", handle: (*Server).openAPI, public: true,
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

func (e *endpoint) route() string { return e.method + " " + e.path }

// addRoutes adds the routes of all endpoints.
func (s *Server) addRoutes() {
	for _, e := range endpoints() {
		s.routes.HandleFunc(e.route(), func(w http.ResponseWriter, r *http.Request) {
			if err := e.handle(s, w, r); err != nil {
				s.writeError(w, err)
			}
		})
	}
}

// isPublic reports whether a route needs no token: a probe has none, and a page must be there to
// ask for one. Public routes reveal nothing about the runs.
func isPublic(route string) bool { return publicRoutes[route] }

var publicRoutes = func() map[string]bool {
	all := map[string]bool{}
	for _, e := range endpoints() {
		all[e.route()] = e.public
	}
	return all
}()

// template returns the path of an endpoint in OpenAPI.
func (e *endpoint) template() string { return strings.TrimSuffix(e.path, "{$}") }
