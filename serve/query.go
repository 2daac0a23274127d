package serve

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// query has the query parameters of a request.
type query struct {
	model, version string // "" is the first model, and the last version
	probabilities  *bool  // nil if it is not given
}

// readQuery reads the query parameters of a request. Parameters other than the allowed ones are
// errors: the answer would not be what the client asked for.
func readQuery(r *http.Request, allowed ...string) (q query, err error) {
	parameters, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return q, refuse(http.StatusBadRequest, "query: %v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		known := "the only parameters are " + strings.Join(allowed, ", ")
		switch value := parameters.Get(name); {
		case name == "level" || name == "in-distribution-rate":
			return q, refuse(http.StatusBadRequest, "unknown parameter %q: the server's option --%[1]s sets it for all requests; %s", name, known)
		case !slices.Contains(allowed, name):
			return q, refuse(http.StatusBadRequest, "unknown parameter %.40q; %s", name, known)
		case len(parameters[name]) > 1:
			return q, refuse(http.StatusBadRequest, "%s must be given once, got %d times", name, len(parameters[name]))
		case name == "model":
			q.model = value
		case name == "version":
			q.version = value
		case value == "true" || value == "1" || value == "false" || value == "0":
			wants := value == "true" || value == "1"
			q.probabilities = &wants
		case value != "":
			return q, refuse(http.StatusBadRequest, "%s must be true or false, got %.40q", name, value)
		}
	}
	return q, nil
}
