package cluster

import (
	"fmt"
	"path"
	"sort"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/pkg/errors"
)

// PodOptions are what only Kubernetes is told.
type PodOptions struct {
	Image     string            // with pollen as its entry point
	Namespace string            // empty is the context's
	Claim     string            // of the volume with the data and the runs
	Mount     string            // where the volume is in the containers; also their working folder's volume
	Files     map[string]string // small files by name, in the working folder, ConfigDir
	Retries   int               // of a task that fails; evictions do not count
}

// ConfigDir is where PodOptions.Files are in the containers, and where these start.
const ConfigDir = "/config"

type (
	object = yaml.MapSlice
	field  = yaml.MapItem
)

// ForKubernetes is a manifest for kubectl apply: an Indexed Job, and a ConfigMap with its files. A
// pod that is evicted or deleted stops by itself within the grace period, and its task goes on in
// another; only failures count against the task's retries.
func (j Job) ForKubernetes() (string, error) {
	if err := j.validate(); err != nil {
		return "", err
	}
	p := j.Pods
	switch {
	case p.Image == "":
		return "", errors.New("cluster: kubernetes: no image")
	case p.Claim == "":
		return "", errors.New("cluster: kubernetes: no claim: runs are kept in a volume that all pods see")
	case !path.IsAbs(p.Mount) || path.Clean(p.Mount) == ConfigDir:
		return "", errors.Errorf("cluster: kubernetes: mount %q, wants an absolute path that is not %s", p.Mount, ConfigDir)
	case p.Retries < 0:
		return "", errors.Errorf("cluster: kubernetes: %d retries, wants at least 0", p.Retries)
	}
	var documents []string
	for _, document := range []object{j.files(), j.indexed()} {
		text, err := yaml.MarshalWithOptions(document, yaml.UseLiteralStyleIfMultiline(j.plainFiles()), yaml.IndentSequence(true))
		if err != nil {
			return "", errors.Wrap(err, "cluster: kubernetes")
		}
		documents = append(documents, string(text))
	}
	return strings.Join(documents, "---\n"), nil
}

// plainFiles reports whether the files survive as YAML's literal blocks, which people can read.
func (j Job) plainFiles() bool {
	for _, content := range j.Pods.Files {
		if strings.ContainsAny(content, "\t\r") || strings.HasPrefix(content, " ") || strings.HasPrefix(content, "\n") || !strings.HasSuffix(content, "\n") ||
			strings.HasSuffix(content, "\n\n") || strings.Contains(content, " \n") {
			return false
		}
	}
	return true
}

func (j Job) metadata() field {
	m := object{{Key: "name", Value: j.Name}}
	if j.Pods.Namespace != "" {
		m = append(m, field{Key: "namespace", Value: j.Pods.Namespace})
	}
	return field{Key: "metadata", Value: m}
}

func (j Job) files() object {
	var names []string
	for name := range j.Pods.Files {
		names = append(names, name)
	}
	sort.Strings(names)
	data := object{}
	for _, name := range names {
		data = append(data, field{Key: name, Value: j.Pods.Files[name]})
	}
	return object{{Key: "apiVersion", Value: "v1"}, {Key: "kind", Value: "ConfigMap"}, j.metadata(), {Key: "data", Value: data}}
}

func (j Job) indexed() object {
	parallel := j.Parallel
	if parallel == 0 {
		parallel = j.Tasks
	}
	ignored := func(key string, value any) object {
		return object{{Key: "action", Value: "Ignore"}, {Key: key, Value: value}}
	}
	rules := []object{
		ignored("onPodConditions", []object{{{Key: "type", Value: "DisruptionTarget"}}}),
		ignored("onExitCodes", object{{Key: "containerName", Value: "pollen"}, {Key: "operator", Value: "In"}, {Key: "values", Value: InterruptedExitCodes}}),
	}
	return object{
		{Key: "apiVersion", Value: "batch/v1"}, {Key: "kind", Value: "Job"}, j.metadata(),
		{Key: "spec", Value: object{
			{Key: "completionMode", Value: "Indexed"},
			{Key: "completions", Value: j.Tasks},
			{Key: "parallelism", Value: parallel},
			{Key: "backoffLimitPerIndex", Value: j.Pods.Retries},
			{Key: "podFailurePolicy", Value: object{{Key: "rules", Value: rules}}},
			{Key: "template", Value: object{{Key: "spec", Value: j.pod()}}},
		}},
	}
}

func (j Job) pod() object {
	needs := object{{Key: "cpu", Value: fmt.Sprint(j.CPUs)}}
	if j.Memory > 0 {
		needs = append(needs, field{Key: "memory", Value: fmt.Sprintf("%dMi", j.Memory)})
	}
	limits := needs[1:]
	if j.GPUs > 0 {
		limits = append(append(object{}, limits...), field{Key: "nvidia.com/gpu", Value: fmt.Sprint(j.GPUs)})
	}
	resources := object{{Key: "requests", Value: needs}}
	if len(limits) > 0 {
		resources = append(resources, field{Key: "limits", Value: limits})
	}
	mount := func(name, at string) object {
		return object{{Key: "name", Value: name}, {Key: "mountPath", Value: at}}
	}
	container := object{
		{Key: "name", Value: "pollen"},
		{Key: "image", Value: j.Pods.Image},
		{Key: "workingDir", Value: ConfigDir},
		{Key: "args", Value: j.Command},
		{Key: "env", Value: []object{{{Key: "name", Value: "XDG_CACHE_HOME"}, {Key: "value", Value: path.Join(j.Pods.Mount, ".cache")}}}},
		{Key: "resources", Value: resources},
		{Key: "volumeMounts", Value: []object{mount("runs", j.Pods.Mount), mount("config", ConfigDir)}},
	}
	return object{
		{Key: "restartPolicy", Value: "Never"},
		{Key: "terminationGracePeriodSeconds", Value: j.Grace},
		{Key: "automountServiceAccountToken", Value: false},
		{Key: "enableServiceLinks", Value: false},
		{Key: "containers", Value: []object{container}},
		{Key: "volumes", Value: []object{
			{{Key: "name", Value: "runs"}, {Key: "persistentVolumeClaim", Value: object{{Key: "claimName", Value: j.Pods.Claim}}}},
			{{Key: "name", Value: "config"}, {Key: "configMap", Value: object{{Key: "name", Value: j.Name}}}},
		}},
	}
}
