package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/pollen-ml/pollen/bayes"
)

const (
	openAPIType = "application/vnd.oai.openapi+json;version=3.1"
	formType    = "multipart/form-data"
)

// imagesRequest is the JSON of POST /predict, which parseJSON reads.
type imagesRequest struct {
	Images        []string `json:"images,omitempty" doc:"Image files, Parquet files of images, or files of arrays, in base64."`
	Instances     []any    `json:"instances,omitempty" doc:"The images by the name that TensorFlow Serving uses: texts in base64, or objects {\"b64\": text}."`
	Probabilities bool     `json:"probabilities,omitempty" doc:"Return the probabilities of all classes."`
}

// formRequest is the form of POST /predict. All of its parts are images, whatever their names.
type formRequest struct {
	Images []formFile `json:"images"`
}

// formFile is a file of a form.
type formFile struct{}

// object is a JSON object of the document.
type object = map[string]any

// openAPI handles GET /openapi.json, which needs no token.
func (b *backend) openAPI(w http.ResponseWriter, _ *http.Request) error {
	writeContent(w, http.StatusOK, openAPIType, b.document())
	return nil
}

// openAPIDocument returns the OpenAPI document. It is generated from the endpoints, as the routes
// are, and from the types that the handlers write.
func openAPIDocument(all []endpoint) []byte {
	d := document{schemas: object{}}
	paths := object{}
	for _, e := range all {
		operations, _ := paths[e.template()].(object)
		if operations == nil {
			operations = object{}
			paths[e.template()] = operations
		}
		operations[strings.ToLower(e.method)] = d.operation(&e)
	}
	content, err := json.MarshalIndent(object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Pollen", "version": "1", "license": object{"name": "Apache 2.0", "identifier": "Apache-2.0"},
			"description": "Posterior predictive of Bayesian neural networks: classes, uncertainty, conformal prediction sets and in-distribution " +
				"decisions of images. Paths below /v2 follow the Open Inference Protocol of KServe and Triton.",
		},
		// Relative to the document, because the server may be behind a proxy or below another path.
		"servers": []object{{"url": "."}},
		"paths":   paths,
		"components": object{
			"schemas":         d.schemas,
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}},
		},
		"security": []object{{"token": []string{}}, {}},
	}, "", "  ")
	if err != nil {
		panic(err) // cannot happen: it has only strings, numbers, lists and maps
	}
	return append(content, '\n')
}

// document is an OpenAPI document that is being made.
type document struct{ schemas object }

var pathParameter = regexp.MustCompile(`\{(\w+)\}`)

// queryParameters are the parameters of queries, with their types and meanings.
var queryParameters = map[string][2]string{
	"probabilities": {"boolean", "Return the probabilities of all classes."},
	"model":         {"string", "The name of the model; without it the first one."},
	"version":       {"string", "The version of the model; without it the last one."},
}

// operation returns the Operation Object of an endpoint.
func (d *document) operation(e *endpoint) object {
	operation := object{"operationId": e.id, "summary": e.summary}
	if e.public {
		operation["security"] = []object{}
	}
	var parameters []object
	for _, name := range pathParameter.FindAllStringSubmatch(e.path, -1) {
		parameters = append(parameters, object{"name": name[1], "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for _, name := range e.query {
		kind, text := queryParameters[name][0], queryParameters[name][1]
		parameters = append(parameters, object{"name": name, "in": "query", "description": text, "schema": object{"type": kind}})
	}
	if len(e.body) > 0 {
		for _, c := range e.body {
			if c.header != "" {
				parameters = append(parameters, object{"name": c.header, "in": "header", "schema": object{"type": "integer"},
					"description": "The length of the JSON, if bytes of tensors follow it."})
			}
		}
		operation["requestBody"] = object{"required": true, "content": d.contents(e.body)}
	}
	if parameters != nil {
		operation["parameters"] = parameters
	}
	operation["responses"] = d.responses(e)
	return operation
}

// responses returns the Responses Object of an endpoint.
func (d *document) responses(e *endpoint) object {
	headers := func(names ...string) object {
		all := object{}
		for _, name := range append(names, requestIDHeader) {
			kind := "string"
			if name == inferHeader || name == "Retry-After" {
				kind = "integer"
			}
			all[name] = object{"schema": object{"type": kind}}
		}
		return all
	}
	var more []string
	if e.method == http.MethodPost {
		more = append(more, digestHeader)
	}
	for _, c := range e.answer {
		if c.header != "" {
			more = append(more, c.header)
		}
	}
	responses := object{"200": object{"description": http.StatusText(http.StatusOK), "headers": headers(more...), "content": d.contents(e.answer)}}
	for _, code := range e.failures() {
		var value any = errorInfo{}
		var names []string
		if e.path == "/predict" && (code == http.StatusBadRequest || code == http.StatusRequestEntityTooLarge) {
			value = eitherError{} // of a request, or of all of its images
			names = append(names, digestHeader)
		}
		if code == http.StatusServiceUnavailable && e.unavailable == nil {
			names = append(names, "Retry-After")
		}
		if code == http.StatusServiceUnavailable && e.unavailable != nil {
			value = e.unavailable
		}
		responses[strconv.Itoa(code)] = object{"description": http.StatusText(code), "headers": headers(names...), "content": d.contents(inJSON(value))}
	}
	return responses
}

// eitherError stands for an errorInfo or a predictResponse.
type eitherError struct{}

// contents returns the map of Media Type Objects of a body's alternatives.
func (d *document) contents(all []content) object {
	types := object{}
	for _, c := range all {
		schema := any(object{"type": "string"})
		switch {
		case c.value != nil:
			schema = d.schema(reflect.TypeOf(c.value))
		case c.kind == binaryType:
			schema = object{"type": "string", "format": "binary"}
		case c.kind == openAPIType:
			schema = object{"type": "object"}
		}
		types[c.kind] = object{"schema": schema}
	}
	return types
}

// schema returns the JSON Schema of a Go type. Structs are references to components.
func (d *document) schema(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[bayes.Answer]():
		return object{"anyOf": []object{d.component(t), d.component(reflect.TypeFor[failure]())}}
	case reflect.TypeFor[eitherError]():
		return object{"anyOf": []object{d.component(reflect.TypeFor[errorInfo]()), d.component(reflect.TypeFor[predictResponse]())}}
	case reflect.TypeFor[formFile]():
		return object{"type": "string", "format": "binary"}
	case reflect.TypeFor[json.RawMessage](), reflect.TypeFor[tensorValues]():
		return object{"type": "array", "items": object{}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return d.schema(t.Elem())
	case reflect.Struct:
		return d.component(t)
	case reflect.Slice:
		return object{"type": "array", "items": d.schema(t.Elem())}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Int:
		return object{"type": "integer"}
	case reflect.Interface:
		return object{}
	}
	panic(fmt.Sprintf("serve: no schema of %v", t))
}

// failure describes the answer for an image that could not be decoded, see bayes.Answer.
type failure struct {
	File  string `json:"file,omitempty" doc:"The name of the client's file."`
	Error string `json:"error" doc:"The reason why the image could not be decoded."`
}

// component adds the schema of a struct to the components, and returns a reference.
func (d *document) component(t reflect.Type) object {
	name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
	reference := object{"$ref": "#/components/schemas/" + name}
	if _, known := d.schemas[name]; known {
		return reference
	}
	properties, required := object{}, []string{}
	ignoresOthers := strings.HasSuffix(t.Name(), "Parameters") && reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
	d.schemas[name] = object{"type": "object", "properties": properties, "additionalProperties": ignoresOthers}
	for _, field := range fieldsOf(t) {
		key, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		isAnswer := t == reflect.TypeFor[bayes.Answer]()
		if !field.IsExported() || key == "-" || isAnswer && key == "error" {
			continue
		}
		s := d.schema(field.Type)
		text := field.Tag.Get("doc")
		if isAnswer {
			text = answerTexts[key]
		}
		if text != "" {
			s["description"] = text
		}
		if properties[key] = s; options == "" {
			required = append(required, key)
		}
	}
	if len(required) > 0 {
		d.schemas[name].(object)["required"] = required
	}
	return reference
}

// fieldsOf returns the fields of a struct, with embedded structs replaced by their fields, as in
// JSON.
func fieldsOf(t reflect.Type) (all []reflect.StructField) {
	for i := range t.NumField() {
		if field := t.Field(i); field.Anonymous {
			all = append(all, fieldsOf(field.Type)...)
		} else {
			all = append(all, field)
		}
	}
	return all
}

// answerTexts describe the fields of bayes.Answer.
var answerTexts = map[string]string{
	"file":              "The name of the client's file.",
	"id":                "The identifier of the image in the table that it is from.",
	"class":             "The most probable class.",
	"index":             "The number of the class.",
	"confidence":        "The probability of the class, scaled to fit the images that the run was calibrated on.",
	"entropy":           "The entropy of the average over the samples, in nats: the total uncertainty.",
	"mutualInformation": "The mutual information between class and weights, in nats: the part of the entropy that comes from samples that disagree.",
	"probabilities":     "The probabilities by class, scaled like the confidence, if they were asked for.",
	"marginalClasses":   "Classes that predictionSet does not cover with its probability, with a threshold for each class.",
	"refer":             "Whether a person should look at the image, if a risk was asked for.",
	"predictionSet":     "The conformal prediction set, the most probable class first, if the run was calibrated on enough images.",
	"inDistribution":    "Whether the image is like those trained on, if the run was calibrated on enough images.",
	"pValue":            "The conformal p-value from which inDistribution is decided.",
	"calibrated":        "Whether both predictionSet and inDistribution are given.",
}
