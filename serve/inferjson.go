package serve

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"strconv"

	"github.com/pkg/errors"
)

// Limits of lists in requests, whose elements take more memory than their text.
const (
	maxInputs  = 8
	maxOutputs = 64
	maxRank    = 8
)

// inferRequest is the JSON of POST /v2/models/{name}/infer.
type inferRequest struct {
	ID         string               `json:"id,omitempty" doc:"The response repeats it."`
	Parameters *inferParameters     `json:"parameters,omitempty"`
	Inputs     few[inferInput]      `json:"inputs" doc:"The input image, and no other."`
	Outputs    few[requestedOutput] `json:"outputs,omitempty" doc:"The outputs to return, in this order. Without any, all are returned."`
}

// inferParameters are the parameters of a request.
type inferParameters struct {
	BinaryDataOutput bool `json:"binary_data_output,omitempty" doc:"Return outputs as bytes after the JSON, unless binary_data of an output is false."`
}

// inferInput is an input tensor.
type inferInput struct {
	Name       string           `json:"name" doc:"image"`
	Datatype   string           `json:"datatype" doc:"UINT8: values from 0 to 255. FP32: values from 0 to 1. BYTES: image files, in JSON as base64."`
	Shape      few[int]         `json:"shape" doc:"[N C H W], [N H W C] or, of one channel, [N H W]; [N] or [N 1] for BYTES."`
	Parameters *inputParameters `json:"parameters,omitempty"`
	Data       json.RawMessage  `json:"data,omitempty" doc:"The values in row-major order, flat or nested. Absent if they follow the JSON as bytes."`
}

// inputParameters are the parameters of an input.
type inputParameters struct {
	BinaryDataSize *int `json:"binary_data_size,omitempty" doc:"The values are this number of bytes after the JSON."`
}

// requestedOutput is an output that a request selects.
type requestedOutput struct {
	Name       string            `json:"name"`
	Parameters *outputParameters `json:"parameters,omitempty"`
}

// outputParameters are the parameters of a requested output.
type outputParameters struct {
	BinaryData *bool `json:"binary_data,omitempty" doc:"Return the values as bytes after the JSON."`
}

// inferResponse is the JSON of the answer to POST /v2/models/{name}/infer.
type inferResponse struct {
	ModelName    string             `json:"model_name"`
	ModelVersion string             `json:"model_version"`
	ID           string             `json:"id,omitempty"`
	Parameters   responseParameters `json:"parameters"`
	Outputs      []outputTensor     `json:"outputs"`
}

// responseParameters are the parameters of a response.
type responseParameters struct {
	RunDigest string `json:"run_digest" doc:"The digest of the run that predicted."`
}

// outputTensor is an output of a response.
type outputTensor struct {
	Name       string            `json:"name"`
	Datatype   string            `json:"datatype"`
	Shape      []int             `json:"shape"`
	Parameters *tensorParameters `json:"parameters,omitempty"`
	Data       tensorValues      `json:"data,omitempty" doc:"The values in row-major order. Absent if they follow the JSON as bytes."`
}

// tensorValues are []float32, []int32, []bool or []string.
type tensorValues any

// tensorParameters are the parameters of an output that follows the JSON as bytes.
type tensorParameters struct {
	BinaryDataSize int `json:"binary_data_size"`
}

// refusedParameters are parameters that would change the answer. Triton has them as extensions. All
// other parameters that are not known are ignored, as KServe, MLServer and Triton do.
type refusedParameters struct {
	Classification json.RawMessage `json:"classification"`
	SharedMemory   json.RawMessage `json:"shared_memory_region"`
}

// check returns an error if a parameter is given.
func (p refusedParameters) check() error {
	switch {
	case p.Classification != nil:
		return refuse(http.StatusBadRequest, "the parameter classification (class_count in Triton's clients) is not supported; "+
			"request the output class, or probabilities")
	case p.SharedMemory != nil:
		return refuse(http.StatusBadRequest, "the parameter shared_memory_region is not supported: tensors must be in the request and in the response")
	}
	return nil
}

// unmarshalParameters reads parameters into a type without an UnmarshalJSON.
func unmarshalParameters(content []byte, into any) error {
	var refused refusedParameters
	return cmp.Or(json.Unmarshal(content, into), json.Unmarshal(content, &refused), refused.check())
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *inferParameters) UnmarshalJSON(content []byte) error {
	type plain inferParameters
	return unmarshalParameters(content, (*plain)(p))
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *inputParameters) UnmarshalJSON(content []byte) error {
	type plain inputParameters
	return unmarshalParameters(content, (*plain)(p))
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *outputParameters) UnmarshalJSON(content []byte) error {
	type plain outputParameters
	return unmarshalParameters(content, (*plain)(p))
}

// few is a JSON list with a limit on its elements: more are an error before they take memory.
type few[T any] []T

// limit returns the largest number of elements.
func (few[T]) limit() int {
	switch any(*new(T)).(type) {
	case inferInput:
		return maxInputs
	case requestedOutput:
		return maxOutputs
	}
	return maxRank
}

// UnmarshalJSON implements json.Unmarshaler. Clients that write all members, as MLServer's do, have
// null for outputs that they do not select.
func (f *few[T]) UnmarshalJSON(content []byte) error {
	if _, optional := any(f).(*few[requestedOutput]); optional && string(content) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	if err := expect(d, json.Delim('[')); err != nil {
		return err
	}
	*f = few[T]{}
	for d.More() {
		if len(*f) == f.limit() {
			return errors.Errorf("a list must have at most %d elements, got more", f.limit())
		}
		var element T
		if err := d.Decode(&element); err != nil {
			return err
		}
		*f = append(*f, element)
	}
	return nil
}

// parseInfer parses the JSON of a request. tail has the bytes that follow it.
func parseInfer(length string, body []byte, h *reservation) (q *inferRequest, tail []byte, err error) {
	wrong := func(format string, values ...any) (*inferRequest, []byte, error) {
		return nil, nil, refuse(http.StatusBadRequest, format, values...)
	}
	head := body
	if length != "" {
		n, err := strconv.Atoi(length)
		if err != nil || n < 1 || n > len(body) {
			return wrong("the header %s must be the length of the JSON, 1 to %d, got %.40q", inferHeader, len(body), length)
		}
		head, tail = body[:n], body[n:]
	}
	if err := h.reserve(5 * len(head)); err != nil { // the decoder's copies
		return nil, nil, err
	}
	q = &inferRequest{}
	d := json.NewDecoder(bytes.NewReader(head))
	d.DisallowUnknownFields()
	if err := d.Decode(q); err != nil {
		if errors.As(err, new(*statusError)) {
			return nil, nil, err
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return wrong(`JSON: %v; must be {"inputs": [{"name": "image", "datatype": ..., "shape": [...], "data": [...]}], "outputs": [{"name": ...}]}`, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return wrong("JSON: data after the object")
	}
	return q, tail, nil
}
