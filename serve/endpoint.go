package serve

import (
	"net/http"
	"slices"
	"strings"
)

// handler handles the requests of an endpoint. Its error becomes the response.
type handler func(b *backend, w http.ResponseWriter, r *http.Request) error

// endpoint is a method of a path. The routes and the OpenAPI document are generated from
// endpoints.
type endpoint struct {
	method, path string // as in http.ServeMux
	id, summary  string // of the operation
	handle       handler
	public       bool // needs no token
	query        []string
	body         []content // alternatives
	answer       []content // alternatives, with status 200
	unavailable  any       // a value of the JSON type of status 503, if it is not an error
	errors       []int     // other statuses, with an errorInfo, in addition to everyError
}

// content is the body of a request or response.
type content struct {
	kind   string // the content type
	value  any    // of the JSON type, or nil for text and bytes
	header string // a header that goes with it
}

// everyError has the error statuses of all endpoints. Those that are not public also have 401.
var everyError = []int{http.StatusMisdirectedRequest, http.StatusInternalServerError}

// failures returns the statuses of an endpoint other than 200.
func (e *endpoint) failures() []int {
	all := slices.Concat(e.errors, everyError)
	if !e.public {
		all = append(all, http.StatusUnauthorized)
	}
	if e.unavailable != nil {
		all = append(all, http.StatusServiceUnavailable)
	}
	return all
}

func (e *endpoint) route() string { return e.method + " " + e.path }

// template returns the path of an endpoint in OpenAPI.
func (e *endpoint) template() string { return strings.TrimSuffix(e.path, "{$}") }

func inJSON(value any) []content { return []content{{kind: jsonType, value: value}} }
