package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/pkg/errors"
)

// PodOptions are the options of a Job that apply only to Kubernetes.
type PodOptions struct {
	Image     string            // container image with pollen as its entry point
	Namespace string            // "" is the context's
	Claim     string            // persistent volume claim with data and runs
	Mount     string            // absolute mount path of the volume
	User      string            // UID:GID of the processes and of what they write, not root
	Files     map[string]string // small files by name, mounted in the working directory, configDir
	Retries   int               // retries of a task that fails; evictions do not count
}

// podUser matches PodOptions.User.
var podUser = regexp.MustCompile(`^([1-9]\d{0,8}):([1-9]\d{0,8})$`)

// configDir is the containers' working directory, where PodOptions.Files are mounted.
const configDir = "/config"

type (
	object = yaml.MapSlice
	field  = yaml.MapItem
)

// ForKubernetes returns a manifest for kubectl apply: an Indexed Job, and a ConfigMap with its
// files. A pod that is evicted or deleted stops within the grace period, and its task continues in
// another pod. Only failures count against the task's retries. It returns an error if the job is
// invalid.
func (j Job) ForKubernetes() (string, error) {
	if err := j.validate(); err != nil {
		return "", err
	}
	p := j.Pods
	switch {
	case p.Image == "":
		return "", errors.New("cluster: kubernetes: Image must not be empty")
	case p.Claim == "":
		return "", errors.New("cluster: kubernetes: Claim must not be empty: runs are kept in a volume that all pods share")
	case !path.IsAbs(p.Mount) || path.Clean(p.Mount) == configDir:
		return "", errors.Errorf("cluster: kubernetes: Mount must be an absolute path other than %s, got %q", configDir, p.Mount)
	case !podUser.MatchString(p.User):
		return "", errors.Errorf("cluster: kubernetes: User must be UID:GID, numbers and not root's, got %q", p.User)
	case p.Retries < 0:
		return "", errors.Errorf("cluster: kubernetes: Retries must not be negative, got %d", p.Retries)
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

// plainFiles reports whether YAML's literal blocks, which are readable, preserve the files exactly.
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
	data := object{}
	for _, name := range slices.Sorted(maps.Keys(j.Pods.Files)) {
		data = append(data, field{Key: name, Value: j.Pods.Files[name]})
	}
	return object{{Key: "apiVersion", Value: "v1"}, {Key: "kind", Value: "ConfigMap"}, j.metadata(), {Key: "data", Value: data}}
}

func (j Job) indexed() object {
	parallel := cmp.Or(j.Parallel, j.Tasks)
	ignored := func(key string, value any) object {
		return object{{Key: "action", Value: "Ignore"}, {Key: key, Value: value}}
	}
	rules := []object{
		ignored("onPodConditions", []object{{{Key: "type", Value: "DisruptionTarget"}}}),
		ignored("onExitCodes", object{{Key: "containerName", Value: "pollen"}, {Key: "operator", Value: "In"}, {Key: "values", Value: interruptedExitCodes}}),
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
	cache := path.Join(j.Pods.Mount, ".cache")
	environment := []object{
		{{Key: "name", Value: "XDG_CACHE_HOME"}, {Key: "value", Value: cache}},
		{{Key: "name", Value: "CUDA_CACHE_PATH"}, {Key: "value", Value: path.Join(cache, "cuda")}}, // of the GPU driver's compiler
	}
	container := object{
		{Key: "name", Value: "pollen"},
		{Key: "image", Value: j.Pods.Image},
		{Key: "workingDir", Value: configDir},
		{Key: "args", Value: j.Command},
		{Key: "env", Value: environment},
		{Key: "resources", Value: resources},
		{Key: "volumeMounts", Value: []object{mount("runs", j.Pods.Mount), mount("config", configDir), mount("tmp", "/tmp")}},
		{Key: "securityContext", Value: object{
			{Key: "allowPrivilegeEscalation", Value: false},
			{Key: "readOnlyRootFilesystem", Value: true},
			{Key: "capabilities", Value: object{{Key: "drop", Value: []string{"ALL"}}}},
		}},
	}
	return object{
		{Key: "restartPolicy", Value: "Never"},
		{Key: "terminationGracePeriodSeconds", Value: j.Grace},
		{Key: "automountServiceAccountToken", Value: false},
		{Key: "enableServiceLinks", Value: false},
		{Key: "securityContext", Value: j.podSecurity()},
		{Key: "containers", Value: []object{container}},
		{Key: "volumes", Value: []object{
			{{Key: "name", Value: "runs"}, {Key: "persistentVolumeClaim", Value: object{{Key: "claimName", Value: j.Pods.Claim}}}},
			{{Key: "name", Value: "config"}, {Key: "configMap", Value: object{{Key: "name", Value: j.Name}}}},
			{{Key: "name", Value: "tmp"}, {Key: "emptyDir", Value: object{}}},
		}},
	}
}

// podSecurity returns the security context of a pod, which together with its container's meets the
// restricted level of the pod security standards of Kubernetes. Where the kind of volume supports
// it, the group may write in the volume.
func (j Job) podSecurity() object {
	user := podUser.FindStringSubmatch(j.Pods.User)
	id := func(digits string) int {
		n, _ := strconv.Atoi(digits) // podUser matched
		return n
	}
	return object{
		{Key: "runAsNonRoot", Value: true},
		{Key: "runAsUser", Value: id(user[1])},
		{Key: "runAsGroup", Value: id(user[2])},
		{Key: "fsGroup", Value: id(user[2])},
		{Key: "fsGroupChangePolicy", Value: "OnRootMismatch"},
		{Key: "seccompProfile", Value: object{{Key: "type", Value: "RuntimeDefault"}}},
	}
}
