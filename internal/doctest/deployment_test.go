package doctest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// deployment has the parts of a Deployment that depend on pollen, with their names in Kubernetes.
type deployment struct {
	Kind string
	Spec struct {
		Selector struct {
			MatchLabels map[string]string `yaml:"matchLabels"`
		}
		Template struct {
			Metadata struct {
				Labels, Annotations map[string]string
			}
			Spec podSpec
		}
	}
}

type podSpec struct {
	Automount       *bool `yaml:"automountServiceAccountToken"`
	Grace           int   `yaml:"terminationGracePeriodSeconds"`
	SecurityContext struct {
		RunAsNonRoot   bool                  `yaml:"runAsNonRoot"`
		RunAsUser      int                   `yaml:"runAsUser"`
		FSGroup        int                   `yaml:"fsGroup"`
		SeccompProfile struct{ Type string } `yaml:"seccompProfile"`
	} `yaml:"securityContext"`
	Containers []podContainer
	Volumes    []struct {
		Name   string
		Secret *struct {
			SecretName  string `yaml:"secretName"`
			DefaultMode int    `yaml:"defaultMode"`
		}
	}
}

type podContainer struct {
	Image string
	Args  []string
	Ports []struct {
		Name          string
		ContainerPort int `yaml:"containerPort"`
	}
	Startup         probe `yaml:"startupProbe"`
	Readiness       probe `yaml:"readinessProbe"`
	Liveness        probe `yaml:"livenessProbe"`
	SecurityContext struct {
		Escalation   *bool `yaml:"allowPrivilegeEscalation"`
		ReadOnly     bool  `yaml:"readOnlyRootFilesystem"`
		Capabilities struct{ Drop []string }
	} `yaml:"securityContext"`
	VolumeMounts []struct {
		Name      string
		MountPath string `yaml:"mountPath"`
	} `yaml:"volumeMounts"`
}

type probe struct {
	HTTPGet struct{ Path, Port, Scheme string } `yaml:"httpGet"`
}

// TestDeployment: the example of pollen serve on Kubernetes is YAML, its arguments are flags that
// exist, its ports, paths, volumes and secrets fit together, and its pods are restricted.
func TestDeployment(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, "docs", "serve.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(string(content), "\n---\n")
	if len(documents) != 2 {
		t.Fatalf("%d documents, want a Deployment and a Service", len(documents))
	}
	var d deployment
	if err := yaml.Unmarshal([]byte(documents[0]), &d); err != nil || d.Kind != "Deployment" || len(d.Spec.Template.Spec.Containers) != 1 {
		t.Fatalf("the Deployment is %+v (%v)", d, err)
	}
	var service struct {
		Kind string
		Spec struct {
			Selector map[string]string
			Ports    []struct {
				TargetPort string `yaml:"targetPort"`
			}
		}
	}
	if err := yaml.Unmarshal([]byte(documents[1]), &service); err != nil || service.Kind != "Service" || len(service.Spec.Ports) != 1 {
		t.Fatalf("the Service is %+v (%v)", service, err)
	}
	pod := d.Spec.Template.Spec
	c := pod.Containers[0]
	for _, labels := range []map[string]string{d.Spec.Selector.MatchLabels, service.Spec.Selector} {
		if labels["app"] == "" || labels["app"] != d.Spec.Template.Metadata.Labels["app"] {
			t.Errorf("%v does not select pods with %v", labels, d.Spec.Template.Metadata.Labels)
		}
	}

	// Flags are parsed before --help is heeded.
	parse := exec.Command(filepath.Join(pollen(t), "pollen"), append(slices.Clone(c.Args), "--help")...)
	if out, err := parse.CombinedOutput(); err != nil || !strings.Contains(string(out), "pollen serve [NAME[:VERSION]=]RUN...") {
		t.Errorf("pollen %v: %v\n%s", c.Args, err, out)
	}
	flag := func(name string) string {
		for _, argument := range c.Args {
			if value, is := strings.CutPrefix(argument, "--"+name+"="); is {
				return value
			}
		}
		t.Errorf("no --%s in %v", name, c.Args)
		return ""
	}
	if len(c.Ports) != 1 || flag("address") != ":8443" || c.Ports[0].ContainerPort != 8443 || service.Spec.Ports[0].TargetPort != c.Ports[0].Name ||
		d.Spec.Template.Metadata.Annotations["prometheus.io/port"] != "8443" {
		t.Errorf("ports %v and %v, for the address %s", c.Ports, service.Spec.Ports, flag("address"))
	}
	for _, p := range []probe{c.Startup, c.Readiness, c.Liveness} {
		if p.HTTPGet.Path != "/health" || p.HTTPGet.Port != c.Ports[0].Name || p.HTTPGet.Scheme != "HTTPS" {
			t.Errorf("a probe asks %+v", p.HTTPGet)
		}
	}
	for name, file := range map[string]string{"tls": flag("tls-cert"), "token": flag("token-file")} {
		mounted := false
		for _, m := range c.VolumeMounts {
			mounted = mounted || m.Name == name && strings.HasPrefix(file, m.MountPath+"/")
		}
		for _, v := range pod.Volumes {
			if v.Name == name && (v.Secret == nil || v.Secret.SecretName == "" || v.Secret.DefaultMode != 0o440 || pod.SecurityContext.FSGroup == 0) {
				t.Errorf("the volume %s is %+v", name, v)
			}
		}
		if !mounted {
			t.Errorf("%s is in no volume %s", file, name)
		}
	}
	if path := c.Args[1]; !strings.HasPrefix(path, "/runs/") || c.Args[0] != "serve" {
		t.Errorf("it serves %v", c.Args[:2])
	}
	s := pod.SecurityContext
	if !s.RunAsNonRoot || s.RunAsUser == 0 || s.SeccompProfile.Type != "RuntimeDefault" || pod.Automount == nil || *pod.Automount ||
		c.SecurityContext.Escalation == nil || *c.SecurityContext.Escalation || !c.SecurityContext.ReadOnly ||
		!slices.Equal(c.SecurityContext.Capabilities.Drop, []string{"ALL"}) {
		t.Errorf("pods are not restricted: %+v, %+v", s, c.SecurityContext)
	}
	// A Timeout for requests, half of one for a prediction, and some for the rest.
	if timeout := flag("timeout"); timeout != "20s" || pod.Grace < 40 {
		t.Errorf("%d s to end for a timeout of %s", pod.Grace, timeout)
	}
}
