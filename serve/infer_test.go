package serve

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
)

// tensorRequest is the JSON of a request for predictions.
func tensorRequest(datatype string, shape []int, data any, more ...any) []byte {
	r := object{"inputs": []object{{"name": "image", "datatype": datatype, "shape": shape, "data": data}}}
	for i := 0; i < len(more); i += 2 {
		r[more[i].(string)] = more[i+1]
	}
	content, err := json.Marshal(r)
	check(err)
	return content
}

// binaryRequest is a request whose tensor follows the JSON.
func binaryRequest(target, datatype string, shape []int, tensor []byte, more ...any) *http.Request {
	r := object{"inputs": []object{{"name": "image", "datatype": datatype, "shape": shape, "parameters": object{"binary_data_size": len(tensor)}}}}
	for i := 0; i < len(more); i += 2 {
		r[more[i].(string)] = more[i+1]
	}
	content, err := json.Marshal(r)
	check(err)
	documentedRequest("POST", "/v2/models/{name}/infer", content)
	request := httptest.NewRequest("POST", target, bytes.NewReader(slices.Concat(content, tensor)))
	request.Header.Set(inferHeader, fmt.Sprint(len(content)))
	return request
}

const inferTarget = "/v2/models/patterns/infer"

// tensorsOf returns the outputs of a response by name, with their values as numbers or texts.
func tensorsOf(t testing.TB, w *httptest.ResponseRecorder) map[string][]any {
	t.Helper()
	content, tail := w.Body.Bytes(), []byte(nil)
	if length := w.Header().Get(inferHeader); length != "" {
		var n int
		_, err := fmt.Sscan(length, &n)
		check(err)
		content, tail = content[:n], content[n:]
	}
	var response struct {
		Outputs []struct {
			Name, Datatype string
			Shape          []int
			Data           []any
			Parameters     struct {
				Size *int `json:"binary_data_size"`
			}
		}
	}
	if err := json.Unmarshal(content, &response); err != nil || w.Code != 200 {
		t.Fatalf("%d %s: %v", w.Code, content, err)
	}
	all := map[string][]any{}
	for _, o := range response.Outputs {
		values := o.Data
		if o.Parameters.Size != nil {
			part := tail[:*o.Parameters.Size]
			tail = tail[*o.Parameters.Size:]
			for len(part) > 0 {
				switch o.Datatype {
				case typeFP32:
					values = append(values, float64(math.Float32frombits(binary.LittleEndian.Uint32(part))))
					part = part[4:]
				case typeInt32:
					values = append(values, float64(int32(binary.LittleEndian.Uint32(part))))
					part = part[4:]
				case typeBool:
					values = append(values, part[0] == 1)
					part = part[1:]
				case typeBytes:
					end := 4 + binary.LittleEndian.Uint32(part)
					values = append(values, string(part[4:end]))
					part = part[end:]
				}
			}
		}
		count := 1
		for _, n := range o.Shape {
			count *= n
		}
		if len(values) != count {
			t.Errorf("output %s: %d values of shape %v", o.Name, len(values), o.Shape)
		}
		all[o.Name] = values
	}
	if len(tail) != 0 {
		t.Errorf("%d bytes after the outputs", len(tail))
	}
	return all
}

// sameTensors compares outputs with answers, to the bit of a float32.
func sameTensors(t testing.TB, what string, got map[string][]any, want []bayes.Answer, names ...string) {
	t.Helper()
	if len(got) != len(names) {
		t.Errorf("%s: outputs %v, want %v", what, got, names)
	}
	classNames := theRun.Manifest().Data.ClassNames
	for _, name := range names {
		var values []any
		for _, a := range want {
			switch name {
			case "probabilities":
				for _, p := range a.Probabilities {
					values = append(values, p)
				}
			case "prediction_set":
				for _, class := range classNames {
					values = append(values, slices.Contains(a.PredictionSet, class))
				}
			default:
				values = append(values, map[string]any{"class": a.Class, "index": float64(a.Index), "confidence": a.Confidence, "entropy": a.Entropy,
					"mutual_information": a.MutualInformation, "in_distribution": *a.InDistribution, "p_value": *a.PValue}[name])
			}
		}
		if len(values) != len(got[name]) {
			t.Errorf("%s: output %s is %v, want %v", what, name, got[name], values)
			continue
		}
		for i, value := range values {
			other := got[name][i]
			if number, is := value.(float64); is {
				value, other = float32(number), float32(other.(float64))
			}
			if value != other {
				t.Errorf("%s: output %s[%d] is %v, want %v", what, name, i, other, value)
			}
		}
	}
}

var allOutputs = []string{"probabilities", "class", "index", "confidence", "entropy", "mutual_information", "prediction_set", "in_distribution", "p_value"}

// forms returns the images as tensors of each type, in JSON: bytes, floats, and files.
func forms(images int) map[string][]byte {
	var flat []int
	var nested [][][][]float64
	var files []string
	for i := range images {
		image := theTest.Image(i)
		rows := make([][][]float64, side)
		for y := range side {
			for x := range side {
				flat = append(flat, int(image[y*side+x]))
				rows[y] = append(rows[y], []float64{float64(image[y*side+x]) / 255})
			}
		}
		nested = append(nested, rows)
		files = append(files, base64.StdEncoding.EncodeToString(pngOf(image)))
	}
	return map[string][]byte{
		"UINT8":        tensorRequest("UINT8", []int{images, 1, side, side}, flat),
		"FP32, nested": tensorRequest("FP32", []int{images, side, side, 1}, nested),
		"BYTES":        tensorRequest("BYTES", []int{images}, files),
	}
}

// TestInfer asks with each type of tensor, in JSON and as bytes, and compares all outputs with
// Run.Predict.
func TestInfer(t *testing.T) {
	s := newTest(t, Options{})
	const images = 8
	want := expected(t, 8)[:images]
	for name, body := range forms(images) {
		documentedRequest("POST", "/v2/models/{name}/infer", body)
		for _, target := range []string{inferTarget, "/v2/models/patterns/versions/1/infer"} {
			w := record(s, httptest.NewRequest("POST", target, bytes.NewReader(body)))
			sameTensors(t, name, tensorsOf(t, w), want, allOutputs...)
		}
	}
	var bytes8, floats, files []byte
	for i := range images {
		bytes8 = append(bytes8, theTest.Image(i)...)
		file := pngOf(theTest.Image(i))
		files = append(binary.LittleEndian.AppendUint32(files, uint32(len(file))), file...)
	}
	for _, v := range bytes8 {
		floats = binary.LittleEndian.AppendUint32(floats, math.Float32bits(float32(v)/255))
	}
	for datatype, c := range map[string]struct {
		shape  []int
		tensor []byte
	}{"UINT8": {[]int{images, side, side}, bytes8}, "FP32": {[]int{images, 1, side, side}, floats}, "BYTES": {[]int{images, 1}, files}} {
		all := object{"binary_data_output": true}
		w := record(s, binaryRequest(inferTarget, datatype, c.shape, c.tensor, "parameters", all))
		sameTensors(t, datatype+" as bytes", tensorsOf(t, w), want, allOutputs...)
		// Some outputs, some of them as bytes.
		selected := []object{{"name": "confidence", "parameters": object{"binary_data": true}}, {"name": "class"}}
		w = record(s, binaryRequest(inferTarget, datatype, c.shape, c.tensor, "outputs", selected, "id", "a-7"))
		sameTensors(t, datatype+", selected", tensorsOf(t, w), want, "confidence", "class")
		digest, err := theRun.Digest()
		check(err)
		head := `{"model_name":"patterns","model_version":"1","id":"a-7","parameters":{"run_digest":"` + digest + `"},"outputs":[{"name":"confidence"`
		if body := w.Body.String(); !strings.HasPrefix(body, head) || w.Header().Get(digestHeader) != digest {
			t.Errorf("the response begins %.300s, want %s", body, head)
		}
		// In JSON, although bytes are the request's default.
		selected = []object{{"name": "index", "parameters": object{"binary_data": false}}}
		w = record(s, binaryRequest(inferTarget, datatype, c.shape, c.tensor, "outputs", selected, "parameters", all))
		sameTensors(t, datatype+", in JSON", tensorsOf(t, w), want, "index")
		if w.Header().Get(inferHeader) != "" || w.Header().Get("Content-Type") != jsonType {
			t.Errorf("a response without bytes has the header %v", w.Header())
		}
	}
	if used := s.memory.used.Load(); used != 0 {
		t.Errorf("%d bytes of the budget are not given back", used)
	}
}

// hostileInfer are requests that are refused: status and words of the error.
func hostileInfer() map[string]struct {
	request *http.Request
	code    int
	words   string
} {
	const pixels = side * side
	plain := func(body string) *http.Request {
		return httptest.NewRequest("POST", inferTarget, strings.NewReader(body))
	}
	input := func(more string) *http.Request {
		return plain(`{"inputs":[{"name":"image",` + more + `}]}`)
	}
	zeros := "[" + strings.Repeat("0,", pixels-1) + "0]"
	headed := func(length, body string) *http.Request {
		r := plain(body)
		r.Header.Set(inferHeader, length)
		return r
	}
	encoded := func(encoding, body string) *http.Request {
		r := plain(body)
		r.Header.Set("Content-Encoding", encoding)
		return r
	}
	file := func(content []byte) []byte {
		return append(binary.LittleEndian.AppendUint32(nil, uint32(len(content))), content...)
	}
	long := binary.LittleEndian.AppendUint32(nil, math.MaxUint32)
	nan := make([]byte, 4*pixels)
	binary.LittleEndian.PutUint32(nan[40:], math.Float32bits(float32(math.NaN())))
	one := []int{1, 1, side, side}
	outputs := func(list string) *http.Request {
		return plain(`{"inputs":[{"name":"image","datatype":"UINT8","shape":[1,28,28],"data":` + zeros + `}],"outputs":` + list + `}`)
	}
	return map[string]struct {
		request *http.Request
		code    int
		words   string
	}{
		"empty":          {plain(""), 400, "JSON: unexpected EOF"},
		"cut":            {plain(`{"inputs":[{"name":"image"`), 400, "JSON: unexpected EOF"},
		"no object":      {plain(`[]`), 400, "JSON: json: cannot unmarshal array"},
		"no inputs":      {plain(`{}`), 400, `the inputs must be one, "image", got 0`},
		"null":           {plain(`null`), 400, `the inputs must be one, "image", got 0`},
		"null inputs":    {plain(`{"inputs":null}`), 400, "expected [, got null"},
		"and more":       {plain(`{} {}`), 400, "JSON: data after the object"},
		"unknown member": {plain(`{"input":[]}`), 400, `unknown field "input"`},
		"classification": {outputs(`[{"name":"class","parameters":{"classification":3}}]`), 400, "the parameter classification (class_count"},
		"shared output":  {outputs(`[{"name":"class","parameters":{"shared_memory_region":"a"}}]`), 400, "the parameter shared_memory_region is not"},
		"shared input": {plain(`{"inputs":[{"name":"image","parameters":{"shared_memory_region":"a"}}]}`), 400,
			"the parameter shared_memory_region is not"},
		"wrong parameter":   {plain(`{"inputs":[],"parameters":{"binary_data_output":1}}`), 400, "cannot unmarshal number"},
		"two inputs":        {plain(`{"inputs":[{"name":"image"},{"name":"image"}]}`), 400, `got 2, ["image" "image"]`},
		"other input":       {plain(`{"inputs":[{"name":"input0"}]}`), 400, `got 1, ["input0"]`},
		"many inputs":       {plain(`{"inputs":[` + strings.Repeat(`{},`, 50_000) + `{}]}`), 400, "at most 8 elements"},
		"many outputs":      {outputs(`[` + strings.Repeat(`{"name":"class"},`, 100) + `{}]`), 400, "at most 64 elements"},
		"many dimensions":   {input(`"shape":[` + strings.Repeat("1,", 1000) + `1]`), 400, "at most 8 elements"},
		"no data":           {input(`"datatype":"UINT8","shape":[1,28,28]`), 400, "must have data or binary_data_size, got neither"},
		"null data":         {input(`"datatype":"UINT8","shape":[1,28,28],"data":null`), 400, "data must be 784 values"},
		"data object":       {input(`"datatype":"UINT8","shape":[1,28,28],"data":{"0":1}`), 400, "data must be 784 values"},
		"data of objects":   {input(`"datatype":"UINT8","shape":[1,28,28],"data":[{"0":1}]`), 400, "data must be 784 values"},
		"no type":           {input(`"shape":[1,28,28],"data":` + zeros), 400, "the datatype must be UINT8, FP32 or BYTES, got \"\""},
		"FP64":              {input(`"datatype":"FP64","shape":[1,28,28],"data":` + zeros), 400, `got "FP64"`},
		"no shape":          {input(`"datatype":"UINT8","data":` + zeros), 400, "the shape must be [N 1 28 28], [N 28 28 1] or [N 28 28], got []"},
		"other shape":       {input(`"datatype":"UINT8","shape":[1,27,28],"data":` + zeros), 400, "got [1 27 28]"},
		"negative":          {input(`"datatype":"UINT8","shape":[-1,28,28],"data":[]`), 400, "got [-1 28 28]"},
		"overflow":          {input(`"datatype":"UINT8","shape":[4611686018427387904,28,28],"data":[]`), 413, "at most 64 images"},
		"too large a shape": {input(`"datatype":"UINT8","shape":[99999999999999999999,28,28],"data":[]`), 400, "cannot unmarshal number"},
		"fraction of shape": {input(`"datatype":"UINT8","shape":[1.5,28,28],"data":[]`), 400, "cannot unmarshal number"},
		"few values":        {input(`"datatype":"UINT8","shape":[2,28,28],"data":` + zeros), 400, "data must be 1568 values"},
		"many values":       {input(`"datatype":"UINT8","shape":[1,28,28],"data":[0,` + zeros[1:]), 400, "data must be 784 values"},
		"nested wrongly":    {input(`"datatype":"UINT8","shape":[1,28,28],"data":[` + zeros + `]`), 400, "nested like the shape"},
		"nested and flat":   {input(`"datatype":"UINT8","shape":[1,28,28],"data":[0,[]]`), 400, "nested like the shape"},
		"nested deep": {input(`"datatype":"UINT8","shape":[1,28,28],"data":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000)), 400,
			"nested like the shape"},
		"nested deeper": {input(`"datatype":"UINT8","shape":[1,28,28],"data":` + strings.Repeat("[", 2_000_000)), 400, "exceeded max depth"},
		"256": {input(`"datatype":"UINT8","shape":[1,28,28],"data":[256,` + zeros[3:]), 400,
			"value 0: UINT8 must be an integer from 0 to 255, got 256"},
		"float as UINT8": {input(`"datatype":"UINT8","shape":[1,28,28],"data":[0.5,` + zeros[3:]), 400, "for values from 0 to 1 use FP32"},
		"byte as FP32": {input(`"datatype":"FP32","shape":[1,28,28],"data":[0,17,` + zeros[5:]), 400,
			"value 1: FP32 must be from 0 to 1, got 17; for values from 0 to 255 use UINT8"},
		"text as UINT8":    {input(`"datatype":"UINT8","shape":[1,28,28],"data":["7",` + zeros[3:]), 400, `value 0 must be a number, got "7"`},
		"huge number":      {input(`"datatype":"FP32","shape":[1,28,28],"data":[1e999,` + zeros[3:]), 400, "must be a number, got 1e999"},
		"NaN as bytes":     {binaryRequest(inferTarget, "FP32", one, nan), 400, "value 10: FP32 must be from 0 to 1, got NaN"},
		"65 images":        {input(`"datatype":"UINT8","shape":[65,28,28],"data":[]`), 413, "at most 64 images"},
		"65 files":         {input(`"datatype":"BYTES","shape":[65],"data":[]`), 413, "at most 64 images"},
		"few bytes":        {binaryRequest(inferTarget, "UINT8", one, make([]byte, 7)), 400, "must have 784 bytes, got 7"},
		"bytes not floats": {binaryRequest(inferTarget, "FP32", one, make([]byte, pixels)), 400, "must have 3136 bytes, got 784"},
		"both":             {plain(`{"inputs":[{"name":"image","datatype":"UINT8","shape":[1],"data":[0],"parameters":{"binary_data_size":1}}]}`), 400, "got both"},
		"bytes left": {headed("80", `{"inputs":[{"name":"image","datatype":"UINT8","shape":[1,28,28],"data":[0]}]}`+strings.Repeat(" ", 20)), 400,
			"bytes follow the JSON"},
		"size of nobody": {plain(`{"inputs":[{"name":"image","datatype":"UINT8","shape":[1],"parameters":{"binary_data_size":1}}]}`), 400,
			"bytes after the JSON, 0, got 1"},
		"negative size":   {plain(`{"inputs":[{"name":"image","datatype":"UINT8","shape":[1],"parameters":{"binary_data_size":-1}}]}`), 400, "got -1"},
		"header":          {headed("x", `{}`), 400, "must be the length of the JSON, 1 to 2, got \"x\""},
		"header 0":        {headed("0", `{}`), 400, "got \"0\""},
		"header 3":        {headed("3", `{}`), 400, "got \"3\""},
		"header -1":       {headed("-1", `{}`), 400, "got \"-1\""},
		"other output":    {outputs(`[{"name":"logits"}]`), 400, `there is no output "logits"`},
		"output twice":    {outputs(`[{"name":"class"},{"name":"class"}]`), 400, "must be selected once"},
		"garbage file":    {input(`"datatype":"BYTES","shape":[1],"data":["AAAA"]`), 400, "image 0: offset 0: must begin like an image"},
		"not base64":      {input(`"datatype":"BYTES","shape":[1],"data":["%"]`), 400, "element 0: illegal base64"},
		"file as number":  {input(`"datatype":"BYTES","shape":[1],"data":[7]`), 400, "element 0: must be base64 text, got a number"},
		"BYTES of rank 2": {input(`"datatype":"BYTES","shape":[1,2],"data":["AAAA","AAAA"]`), 400, "the shape of BYTES must be [N] or [N 1]"},
		"bomb":            {binaryRequest(inferTarget, "BYTES", []int{1}, file(bomb(10_000, 10_000))), 413, "image 0 must have at most 1000000 pixels"},
		"larger bomb":     {binaryRequest(inferTarget, "BYTES", []int{1}, file(bomb(1<<30, 1<<30))), 400, "image 0: PNG"},
		"file of 4 GiB":   {binaryRequest(inferTarget, "BYTES", []int{1}, long), 400, "a length in 4 bytes and that number of bytes"},
		"cut length":      {binaryRequest(inferTarget, "BYTES", []int{1}, long[:2]), 400, "a length in 4 bytes"},
		"file too many":   {binaryRequest(inferTarget, "BYTES", []int{1}, slices.Concat(file(nil), file(nil))), 400, "must be 1 times a length"},
		"file too few":    {binaryRequest(inferTarget, "BYTES", []int{2}, file(nil)), 400, "must have 2 elements, got 1"},
		"large body":      {plain(strings.Repeat(" ", 200_001)), 413, "at most 200000 bytes (--max-body), got 200001"},
		"gzip bomb":       {encoded("gzip", string(zipped(make([]byte, 50<<20)))), 413, "at most 200000 bytes (--max-body), got more"},
		"not gzip":        {encoded("gzip", strings.Repeat("{}", 10)), 400, "the body must be gzip"},
		"br":              {encoded("br", "{}"), 415, `must be gzip or none, got "br"`},
		"parameter":       {httptest.NewRequest("POST", inferTarget+"?model=x", strings.NewReader("{}")), 400, `unknown parameter "model"`},
		"other model":     {httptest.NewRequest("POST", "/v2/models/nothing/infer", strings.NewReader("{}")), 404, `there is no model "nothing"`},
		"other version": {httptest.NewRequest("POST", "/v2/models/patterns/versions/2/infer", strings.NewReader("{}")), 404,
			`there is no version "2" of model "patterns"`},
		"dots":       {httptest.NewRequest("POST", "/v2/models/..%2f..%2fetc/infer", strings.NewReader("{}")), 404, `there is no model`},
		"GET":        {httptest.NewRequest("GET", inferTarget, nil), 405, "has the methods POST"},
		"stop":       {httptest.NewRequest("POST", "/v2/models/patterns/unload", nil), 404, "there is no"},
		"repository": {httptest.NewRequest("POST", "/v2/repository/index", nil), 404, "there is no"},
	}
}

// TestInferRefuses: each request gets an error of the protocol that names the cause, and no
// memory stays reserved.
func TestInferRefuses(t *testing.T) {
	s := newTest(t, Options{MaxBody: 200_000, MaxPixels: 1_000_000})
	for name, c := range hostileInfer() {
		t.Run(name, func(t *testing.T) {
			w := record(s, c.request)
			if c.words == "exceeded max depth" { // the body is larger than this server's limit
				w = record(newTest(t, Options{}), httptest.NewRequest("POST", inferTarget, c.request.Body))
			}
			refused(t, name, w.Code, w.Body.String(), c.code, c.words)
			if w.Body.Len() > 1000 {
				t.Errorf("an error of %d bytes", w.Body.Len())
			}
		})
	}
	if used := s.memory.used.Load(); used != 0 || !s.pool.idle() {
		t.Errorf("%d bytes of the budget or workers of the pool are not given back", used)
	}
}

// A body of the new routes takes its memory from the same budget, arrives in the same time, and
// waits in the same queue.
func TestInferLimits(t *testing.T) {
	body := forms(1)["UINT8"]
	s, _ := newFake(t, Options{Memory: 1 << 20, MaxBody: 1 << 20, Queue: 64}, ones)
	target := "/v2/models/fake/infer"
	s.memory.reserve(1<<20 - 1<<17)
	code, _, text := post(s, target, "", bytes.NewReader(bytes.Repeat([]byte(" "), 100_000)))
	refused(t, "no memory", code, text, 503, "not enough memory")
	s.memory.release(1<<20 - 1<<17)
	s.shared.waiting.Add(64)
	code, header, text := post(s, target, "", bytes.NewReader(body))
	refused(t, "queue", code, text, 503, "the queue must have at most 64 images")
	if header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	s.shared.waiting.Add(-64)
	code, _, text = post(s, target, "", lateBody{})
	refused(t, "late", code, text, 408, "the body did not arrive in time")
	if used := s.memory.used.Load(); used != 0 {
		t.Errorf("%d bytes of the budget are not given back", used)
	}
}

// lateBody is a body that does not arrive before the deadline.
type lateBody struct{}

// Read implements io.Reader.
func (lateBody) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

// TestScanData: data are flat or nested as the shape is, in every notation of JSON.
func TestScanData(t *testing.T) {
	for _, c := range []struct {
		data  string
		shape []int
		want  string
	}{
		{"[1,2,3,4]", []int{2, 2}, "1 2 3 4"},
		{" [ 1 , 2\n,\t3,\r4 ] ", []int{2, 2}, "1 2 3 4"},
		{"[[1,2],[3,4]]", []int{2, 2}, "1 2 3 4"},
		{"[[[1],[2]]]", []int{1, 2, 1}, "1 2"},
		{"[1e0,-2.5]", []int{2}, "1e0 -2.5"},
		{`["a","b\"],["]`, []int{2}, `"a" "b\"],["`},
		{"[7]", []int{1}, "7"},
		{"[[7]]", []int{1, 1}, "7"},
		{"[[1,2,3],[4]]", []int{2, 2}, ""},
		{"[[1,2]]", []int{2, 2}, ""},
		{"[[1,2],[3,4],[]]", []int{2, 2}, ""},
		{"[1,[]]", []int{1, 1}, ""},
		{"[[],1]", []int{1, 1}, ""},
		{"[[1],2]", []int{2, 1}, ""},
		{"[]", []int{1}, ""},
		{"7", []int{1}, ""},
		{"[[[1]]]", []int{1, 1}, ""},
		{"[[1],[2]]", []int{1, 2, 1}, ""},
	} {
		var got []string
		err := scanData([]byte(c.data), c.shape, func(token []byte) error {
			got = append(got, string(token))
			return nil
		})
		if text := strings.Join(got, " "); (err == nil) != (c.want != "") || err == nil && text != c.want {
			t.Errorf("%s of shape %v: %q (%v), want %q", c.data, c.shape, text, err, c.want)
		}
	}
}

// FuzzInfer: no body makes the server fail, whatever its header says.
func FuzzInfer(f *testing.F) {
	for _, body := range forms(1) {
		f.Add("", body)
	}
	f.Add("100", append(forms(1)["UINT8"], 1, 2, 3))
	f.Add("", []byte(`{"inputs":[{"name":"image","datatype":"BYTES","shape":[1],"data":[[["x"]]]}]}`))
	s, _ := newFake(f, Options{MaxImages: 4, MaxBody: 100_000, MaxPixels: 10_000, Report: func(err error) { f.Errorf("reported: %v", err) }}, ones)
	f.Fuzz(func(t *testing.T, length string, body []byte) {
		r := httptest.NewRequest("POST", "/v2/models/fake/infer", bytes.NewReader(body))
		r.Header.Set(inferHeader, length)
		if w := record(s, r); w.Code == 500 {
			t.Errorf("%s", w.Body)
		}
		if used := s.memory.used.Load(); used != 0 {
			t.Errorf("%d bytes are not given back", used)
		}
	})
}

// Parameters that are not known, such as MLServer's and those of Triton's clients, are ignored.
func TestInferIgnoresParameters(t *testing.T) {
	s := newTest(t, Options{})
	pixels := theTest.Image(0)
	values := make([]int, len(pixels))
	for i, p := range pixels {
		values[i] = int(p)
	}
	content, err := json.Marshal(object{
		"inputs":     []object{{"name": "image", "datatype": "UINT8", "shape": []int{1, side, side}, "data": values, "parameters": object{"content_type": "np"}}},
		"outputs":    []object{{"name": "class", "parameters": object{"content_type": "str", "binary_data": false}}},
		"parameters": object{"content_type": "np", "priority": 1, "timeout": 1000, "sequence_id": 7, "headers": object{"a": "b"}},
	})
	check(err)
	documentedRequest("POST", "/v2/models/{name}/infer", content)
	w := record(s, httptest.NewRequest("POST", inferTarget, bytes.NewReader(content)))
	if got := tensorsOf(t, w)["class"]; len(got) != 1 || got[0] != expected(t, 8)[0].Class {
		t.Errorf("classes %v, want %s", got, expected(t, 8)[0].Class)
	}
}

// MLServer's requests have null for all members that are not given.
func TestInferNulls(t *testing.T) {
	s := newTest(t, Options{})
	image := base64.StdEncoding.EncodeToString(pngOf(theTest.Image(0)))
	content := `{"id":null,"parameters":null,"outputs":null,
		"inputs":[{"name":"image","shape":[1,1],"datatype":"BYTES","parameters":null,"data":["` + image + `"]}]}`
	w := record(s, httptest.NewRequest("POST", inferTarget, strings.NewReader(content)))
	sameTensors(t, "nulls", tensorsOf(t, w), expected(t, 8)[:1], allOutputs...)
}
