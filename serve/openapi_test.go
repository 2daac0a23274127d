package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// openAPI is the OpenAPI document, with the parts of it that the tests of this package have seen.
var openAPI = struct {
	document object
	mu       sync.Mutex
	seen     map[string]bool // "GET /run 200", "RunInfo.name"
}{document: parsed(openAPIDocument(endpoints())), seen: map[string]bool{}}

func parsed(content []byte) object {
	var value object
	check(json.Unmarshal(content, &value))
	return value
}

// at returns the value at a path of keys in the document.
func at(value any, keys ...string) any {
	for _, key := range keys {
		members, _ := value.(object)
		value = members[key]
	}
	return value
}

func saw(what string) {
	openAPI.mu.Lock()
	defer openAPI.mu.Unlock()
	openAPI.seen[what] = true
}

// conforms returns an error unless a JSON value conforms to a schema of the document. It handles
// the schemas that openAPIDocument writes.
func conforms(schema any, value any) error {
	s, _ := schema.(object)
	if name, is := strings.CutPrefix(fmt.Sprint(s["$ref"]), "#/components/schemas/"); is {
		return conformsTo(name, value)
	}
	if all, is := s["anyOf"].([]any); is {
		var failed []string
		for _, one := range all {
			err := conforms(one, value)
			if err == nil {
				return nil
			}
			failed = append(failed, err.Error())
		}
		return fmt.Errorf("none of: %s", strings.Join(failed, "; "))
	}
	kind := ""
	switch v := value.(type) {
	case string:
		kind = "string"
	case bool:
		kind = "boolean"
	case float64:
		if kind = "number"; s["type"] == "integer" && v == float64(int64(v)) {
			kind = "integer"
		}
	case []any:
		kind = "array"
		for i, element := range v {
			if err := conforms(s["items"], element); err != nil {
				return fmt.Errorf("[%d]: %w", i, err)
			}
		}
	case object:
		kind = "object"
	}
	if s["type"] != nil && s["type"] != kind {
		return fmt.Errorf("%v must be of type %v", value, s["type"])
	}
	return nil
}

// conformsTo is conforms for a component.
func conformsTo(name string, value any) error {
	s := at(openAPI.document, "components", "schemas", name)
	properties, _ := at(s, "properties").(object)
	members, is := value.(object)
	if !is || properties == nil {
		return fmt.Errorf("%v must be an object of %s", value, name)
	}
	required, _ := at(s, "required").([]any)
	for _, key := range required {
		if _, has := members[key.(string)]; !has {
			return fmt.Errorf("%s: no %v", name, key)
		}
	}
	for key, member := range members {
		if properties[key] == nil && at(s, "additionalProperties") == true {
			delete(members, key)
			continue
		}
		if properties[key] == nil {
			return fmt.Errorf("%s has no property %s", name, key)
		}
		if err := conforms(properties[key], member); err != nil {
			return fmt.Errorf("%s.%s: %w", name, key, err)
		}
	}
	for key := range members {
		saw(name + "." + key)
	}
	return nil
}

// record passes a request to a server and returns the response. It panics unless the document has
// the response: its status, content type and fields. All tests without a network use it.
func record(s *Server, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if err := documented(s, r, w); err != nil {
		panic(fmt.Sprintf("%s %s: %d %.500s: not as the OpenAPI document has it: %v", r.Method, r.URL.Path, w.Code, w.Body, err))
	}
	return w
}

func documented(s *Server, r *http.Request, w *httptest.ResponseRecorder) error {
	_, route := s.routes.Handler(r)
	method, path, _ := strings.Cut(strings.TrimSuffix(route, "{$}"), " ")
	switch {
	case w.Code == statusClientClosed, w.Code == http.StatusNoContent, w.Code == http.StatusTemporaryRedirect, r.Method == http.MethodHead, path == "/panic":
		return nil // nobody sees it; a preflight; a redirect; without a body; a test's route
	case route == "":
		return conformsTo("ErrorInfo", parsed(w.Body.Bytes()))
	}
	operation := at(openAPI.document, "paths", path, strings.ToLower(method))
	response := at(operation, "responses", strconv.Itoa(w.Code))
	kind := w.Header().Get("Content-Type")
	media := at(response, "content", kind)
	if media == nil {
		return fmt.Errorf("no status %d with content type %q", w.Code, kind)
	}
	headers, _ := at(response, "headers").(object)
	for _, name := range []string{requestIDHeader, digestHeader, inferHeader, "Retry-After"} {
		if value := w.Header().Get(name); value != "" {
			if headers[name] == nil {
				return fmt.Errorf("no header %s", name)
			}
			if _, err := strconv.Atoi(value); err != nil && at(headers[name], "schema", "type") == "integer" {
				return err
			}
		}
	}
	content := w.Body.Bytes()
	if length := w.Header().Get(inferHeader); length != "" { // the JSON of a binary answer
		n, err := strconv.Atoi(length)
		if err != nil {
			return err
		}
		content, kind = content[:n], jsonType
		media = at(response, "content", jsonType)
	}
	saw(fmt.Sprint(method, " ", path, " ", w.Code))
	saw(fmt.Sprint(method, " ", path, " ", w.Header().Get("Content-Type")))
	if kind != jsonType {
		return nil
	}
	return conforms(at(media, "schema"), parsed(content))
}

// documentedRequest panics unless a JSON body conforms to the document.
func documentedRequest(method, path string, body []byte) {
	schema := at(openAPI.document, "paths", path, strings.ToLower(method), "requestBody", "content", jsonType, "schema")
	if err := conforms(schema, parsed(body)); err != nil {
		panic(fmt.Sprintf("%s: %.300s: %v", path, body, err))
	}
}

// missing lists the parts of the document that the tests have not seen: statuses and content
// types of operations, and fields.
func missing() (all []string) {
	openAPI.mu.Lock()
	defer openAPI.mu.Unlock()
	check := func(what string) {
		if !openAPI.seen[what] {
			all = append(all, what)
		}
	}
	for path, operations := range openAPI.document["paths"].(object) {
		for method, operation := range operations.(object) {
			for code, response := range at(operation, "responses").(object) {
				check(strings.ToUpper(method) + " " + path + " " + code)
				for kind := range at(response, "content").(object) {
					check(strings.ToUpper(method) + " " + path + " " + kind)
				}
			}
		}
	}
	for name, schema := range at(openAPI.document, "components", "schemas").(object) {
		for key := range at(schema, "properties").(object) {
			check(name + "." + key)
		}
	}
	sort.Strings(all)
	return all
}

// TestOpenAPIRoutes: the document has the routes of the server, and no others.
func TestOpenAPIRoutes(t *testing.T) {
	s, _ := newFake(t, Options{}, ones)
	count := 0
	for path, operations := range openAPI.document["paths"].(object) {
		for method, operation := range operations.(object) {
			count++
			concrete := strings.NewReplacer("{name}", "fake", "{version}", "1").Replace(path)
			_, route := s.routes.Handler(httptest.NewRequest(strings.ToUpper(method), concrete, nil))
			if got := strings.TrimSuffix(route, "{$}"); got != strings.ToUpper(method)+" "+path {
				t.Errorf("%s %s has the route %q", method, path, route)
			}
			if at(operation, "operationId") == nil || at(operation, "summary") == nil {
				t.Errorf("%s %s has no name or summary", method, path)
			}
		}
	}
	if all := endpoints(); count != len(all) {
		t.Errorf("the document has %d operations, want %d", count, len(all))
	}
	var ids []string
	for _, e := range endpoints() {
		ids = append(ids, e.id)
	}
	slices.Sort(ids)
	if len(slices.Compact(ids)) != len(endpoints()) {
		t.Errorf("two operations have the same name: %v", ids)
	}
}

// Requests to the document's server go to the server that has the document.
func TestOpenAPIServers(t *testing.T) {
	servers, _ := openAPI.document["servers"].([]any)
	if len(servers) != 1 {
		t.Fatalf("the document has %d servers, want 1", len(servers))
	}
	place, err := url.Parse("https://proxy/flowers/openapi.json")
	check(err)
	base, err := place.Parse(at(servers[0], "url").(string))
	check(err)
	if got := base.JoinPath("/predict").String(); got != "https://proxy/flowers/predict" {
		t.Errorf("POST /predict goes to %s", got)
	}
}
