package serve

import (
	"fmt"
	"net/http"
	"runtime/debug"
)

// The health and metadata of the Open Inference Protocol, version 2, which KServe and Triton
// implement. See infer.go for predictions.

const (
	serverName = "pollen"
	modulePath = "github.com/pollen-ml/pollen"
)

// liveInfo is the JSON of GET /v2/health/live.
type liveInfo struct {
	Live bool `json:"live" doc:"The server answers requests. It is false, with status 503, when work is stuck: the server should be restarted."`
}

// readyInfo is the JSON of GET /v2/health/ready.
type readyInfo struct {
	Live  bool `json:"live"`
	Ready bool `json:"ready" doc:"All models answer. It is false, with status 503, when the server is closing or work is stuck."`
}

// serverMetadata is the JSON of GET /v2.
type serverMetadata struct {
	Name       string   `json:"name"`
	Version    string   `json:"version" doc:"The version of the program."`
	Extensions []string `json:"extensions" doc:"binary_tensor_data: tensors may follow the JSON as bytes."`
}

// modelList is the JSON of GET /v2/models.
type modelList struct {
	Models []ModelEntry `json:"models" doc:"Of a name the last one answers requests without a version; the first one answers /predict."`
}

// ModelEntry describes a model that a Server answers with. It is an element of modelList.
type ModelEntry struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Samples int    `json:"samples" doc:"Posterior samples averaged."`
	Digest  string `json:"digest" doc:"The digest of the run."`
}

// modelReady is the JSON of GET /v2/models/{name}/ready.
type modelReady struct {
	Name  string `json:"name"`
	Ready bool   `json:"ready"`
}

// modelMetadata is the JSON of GET /v2/models/{name}.
type modelMetadata struct {
	Name     string           `json:"name"`
	Versions []string         `json:"versions"`
	Platform string           `json:"platform"`
	Inputs   []tensorMetadata `json:"inputs"`
	Outputs  []tensorMetadata `json:"outputs"`
}

// tensorMetadata is an input or output of a model.
type tensorMetadata struct {
	Name     string `json:"name"`
	Datatype string `json:"datatype"`
	Shape    []int  `json:"shape" doc:"-1 is any number of images."`
}

// live handles GET /v2/health/live, which needs no token.
func (b *backend) live(w http.ResponseWriter, _ *http.Request) error {
	state, _ := b.state()
	if state == "stuck" {
		writeJSON(w, http.StatusServiceUnavailable, liveInfo{})
		return nil
	}
	writeJSON(w, http.StatusOK, liveInfo{true})
	return nil
}

// ready handles GET /v2/health/ready, which needs no token.
func (b *backend) ready(w http.ResponseWriter, _ *http.Request) error {
	state, code := b.state()
	writeJSON(w, code, readyInfo{state != "stuck", state == "ready"})
	return nil
}

// metadata handles GET /v2.
func (b *backend) metadata(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, serverMetadata{serverName, programVersion(), []string{"binary_tensor_data"}})
	return nil
}

// programVersion returns the version of this module in the program, if it is known.
func programVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == modulePath && m.Version != "" {
			return m.Version
		}
	}
	return "unknown"
}

// String returns a model in words, as in "birds version 2: 40 samples".
func (m ModelEntry) String() string {
	plural := "s"
	if m.Samples == 1 {
		plural = ""
	}
	return fmt.Sprintf("%s version %s: %d sample%s", m.Name, m.Version, m.Samples, plural)
}

// Models returns the models that the server answers with.
func (b *backend) Models() []ModelEntry {
	var all []ModelEntry
	for _, m := range b.models.list() {
		info := m.info()
		all = append(all, ModelEntry{m.name, m.version, info.Samples, info.Digest})
	}
	return all
}

// listModels handles GET /v2/models.
func (b *backend) listModels(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, modelList{b.Models()})
	return nil
}

// modelReady handles GET /v2/models/{name}/ready, also of a version.
func (b *backend) modelReady(w http.ResponseWriter, r *http.Request) error {
	m, err := b.models.acquire(r.PathValue("name"), r.PathValue("version"))
	if err != nil {
		return err
	}
	defer m.requests.Done()
	state, code := b.state()
	writeJSON(w, code, modelReady{m.name, state == "ready"})
	return nil
}

// modelMetadata handles GET /v2/models/{name}, also of a version.
func (b *backend) modelMetadata(w http.ResponseWriter, r *http.Request) error {
	name, version := r.PathValue("name"), r.PathValue("version")
	m, err := b.models.acquire(name, version)
	if err != nil {
		return err
	}
	defer m.requests.Done()
	d := modelMetadata{Name: m.name, Platform: serverName}
	for _, other := range b.models.list() {
		if other.name == m.name {
			d.Versions = append(d.Versions, other.version)
		}
	}
	d.Inputs = []tensorMetadata{{imageInput, typeUint8, []int{-1, m.data.Channels, m.data.Height, m.data.Width}}}
	info := m.info()
	for _, o := range outputs {
		if o.lacks(&info) == "" {
			shape := []int{-1}
			if o.byClass {
				shape = append(shape, m.data.Classes())
			}
			d.Outputs = append(d.Outputs, tensorMetadata{o.name, o.datatype, shape})
		}
	}
	writeJSON(w, http.StatusOK, d)
	return nil
}
