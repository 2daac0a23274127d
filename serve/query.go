package serve

import (
	"net/http"
	"net/url"
	"slices"
)

// readQuery reads the query parameters of POST /predict. A parameter that it does not have is an
// error: the answer would not be what the client asked for.
func (q *predictRequest) readQuery(r *http.Request) error {
	parameters, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return refuse(http.StatusBadRequest, "query: %v", err)
	}
	const known = "probabilities"
	var names []string
	for name := range parameters {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		switch {
		case name == "level" || name == "in-distribution-rate":
			return refuse(http.StatusBadRequest, "unknown parameter %q: the server's option --%[1]s sets it for all requests; the only parameter is %s", name, known)
		case name != known:
			return refuse(http.StatusBadRequest, "unknown parameter %.40q; the only parameter is %s", name, known)
		case len(parameters[name]) > 1:
			return refuse(http.StatusBadRequest, "%s must be given once, got %d times", name, len(parameters[name]))
		}
	}
	switch value := parameters.Get(known); value {
	case "":
	case "true", "1":
		q.probabilities = true
	case "false", "0":
		q.probabilities = false
	default:
		return refuse(http.StatusBadRequest, "%s must be true or false, got %.40q", known, value)
	}
	return nil
}
