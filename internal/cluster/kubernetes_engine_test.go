//go:build linux

package cluster_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// requireKubernetes is the environment variable that requests a Kubernetes on this machine.
const requireKubernetes = "POLLEN_REQUIRE_KUBERNETES"

// kubernetes is a control plane and two nodes, on this machine.
type kubernetes struct {
	place
	nodes []*node
}

// startKubernetes starts a Kubernetes for a test, which is skipped unless it is requested.
func startKubernetes(t *testing.T) *kubernetes {
	t.Helper()
	if os.Getenv(requireKubernetes) == "" {
		t.Skipf("%s is not set: tasks are not run by Kubernetes; docs/clusters.md has the command", requireKubernetes)
	}
	for _, program := range []string{"etcd", "containerd", "ctr", "runc"} {
		if _, err := exec.LookPath(program); err != nil || os.Getuid() != 0 {
			t.Fatalf("Kubernetes needs root and %s (Debian's packages etcd-server, containerd and runc): %v", program, err)
		}
	}
	program := builtKubernetes(t)
	k := &kubernetes{place: newPlace(t, "kubernetes")}
	port, etcd := k.port(), "http://127.0.0.1:"+k.port()
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl"} {
		check(t, os.MkdirAll(k.path("bin"), 0o755))
		check(t, os.Symlink(program, k.path("bin/"+name)))
	}
	t.Setenv("PATH", k.path("bin")+":"+os.Getenv("PATH"))
	t.Setenv("KUBECONFIG", k.write("config", strings.ReplaceAll(kubernetesConfiguration, "@PORT@", port), 0o600))
	t.Setenv("PATIENCE", "1s")
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	check(t, err)
	k.write("key", string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})), 0o600)
	k.write("tokens", "token,admin,1,system:masters\n", 0o600)

	k.daemon("etcd", "etcd", "--data-dir", k.path("etcd"), "--listen-client-urls", etcd, "--advertise-client-urls", etcd,
		"--listen-peer-urls", "http://127.0.0.1:"+k.port())
	k.daemon("apiserver", "kube-apiserver", "--etcd-servers="+etcd, "--bind-address=127.0.0.1", "--secure-port="+port,
		"--cert-dir="+k.path("certificates"), "--token-auth-file="+k.path("tokens"), "--authorization-mode=AlwaysAllow",
		"--service-cluster-ip-range=10.0.0.0/24", "--service-account-issuer=https://test", "--service-account-key-file="+k.path("key"),
		"--service-account-signing-key-file="+k.path("key"))
	k.until(2*time.Minute, "the API server", func() bool { return k.asked("get", "--raw=/readyz") == nil })
	k.daemon("controllers", "kube-controller-manager", "--kubeconfig="+k.path("config"), "--leader-elect=false", "--secure-port=0", "--controllers="+
		"job-controller,node-lifecycle-controller,taint-eviction-controller,pod-garbage-collector-controller,namespace-controller,"+
		"serviceaccount-controller,persistentvolume-binder-controller")
	k.daemon("scheduler", "kube-scheduler", "--kubeconfig="+k.path("config"), "--leader-elect=false", "--secure-port=0")
	k.startNodes(2)
	k.until(2*time.Minute, "the nodes", func() bool {
		ready := k.kubectl("get", "nodes", "-o", `jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}`)
		return strings.Count(ready, "True") == len(k.nodes)
	})
	check(t, os.Mkdir(k.path("runs"), 0o755))
	check(t, os.Chown(k.path("runs"), podUser, podUser))
	output(t, "kubectl", "apply", "-f", k.write("volume.yaml", volume, 0o644))
	return k
}

// podUser is the user and group that pods run as, by the default of --user.
const podUser = 65532

const kubernetesConfiguration = `apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: "https://127.0.0.1:@PORT@", insecure-skip-tls-verify: true}}]
users: [{name: admin, user: {token: token}}]
contexts: [{name: test, context: {cluster: test, user: admin}}]
current-context: test
`

// volume is the claim that the tasks' runs are in.
const volume = `apiVersion: v1
kind: PersistentVolume
metadata: {name: runs}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteMany]
  storageClassName: ""
  hostPath: {path: "@DIR@/runs"}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: runs}
spec:
  accessModes: [ReadWriteMany]
  storageClassName: ""
  resources: {requests: {storage: 1Gi}}
`

func (k *kubernetes) kubectl(arguments ...string) string {
	k.t.Helper()
	return output(k.t, "kubectl", arguments...)
}

// asked runs a kubectl that may fail.
func (k *kubernetes) asked(arguments ...string) error {
	_, err := tried(exec.Command("kubectl", arguments...))
	return err
}

// pod is a running pod.
type pod struct{ name, node, container string }

// running returns the pods whose containers run, and that have not been asked to end.
func (k *kubernetes) running() (pods []pod) {
	k.t.Helper()
	var list struct {
		Items []struct {
			Metadata struct{ Name, DeletionTimestamp string }
			Spec     struct{ NodeName string }
			Status   struct {
				ContainerStatuses []struct {
					ContainerID string
					State       struct{ Running *struct{} }
				}
			}
		}
	}
	check(k.t, json.Unmarshal([]byte(k.kubectl("get", "pods", "-o", "json")), &list))
	for _, item := range list.Items {
		if states := item.Status.ContainerStatuses; len(states) == 1 && states[0].State.Running != nil && item.Metadata.DeletionTimestamp == "" {
			pods = append(pods, pod{item.Metadata.Name, item.Spec.NodeName, strings.TrimPrefix(states[0].ContainerID, "containerd://")})
		}
	}
	return pods
}

// ended reports whether all tasks are done; a failed job ends the test.
func (k *kubernetes) ended() bool {
	k.t.Helper()
	conditions := k.kubectl("get", "job", "array", "-o", `jsonpath={range .status.conditions[?(@.status=="True")]}{.type} {.message}{"\n"}{end}`)
	if strings.Contains(conditions, "Fail") {
		k.t.Fatalf("the job failed: %s\n%s\n%s", conditions, k.kubectl("get", "pods", "-o", "wide"), k.kubectl("get", "events"))
	}
	return strings.Contains(conditions, "Complete ")
}

// TestKubernetes gives Kubernetes an Indexed Job of 8 tasks as `pollen submit` writes it, and
// removes the pods at random: by deleting them with and without a grace period, by the eviction
// API, by draining a node, by killing the process, by the signal of a time limit. All tasks
// finish without intervention, and have the samples of one uninterrupted process, to the bit.
func TestKubernetes(t *testing.T) {
	k := startKubernetes(t)
	e := newEvictions(t)
	d := k.divide(e)
	k.load(d.program, "docker.io/library/pollen:1")
	// A process that is killed cannot say that it may be resumed: this counts as a failure.
	output(t, d.program, "submit", "kubernetes", d.tasks, "--folder", "/runs/array", "--claim", "runs", "--image", "pollen:1",
		"--cpus", "1", "--grace", "20", "--retries", fmt.Sprint(2*e.least), "--send")
	begun := time.Now()
	gone := map[string]bool{} // a pod is taken away once
	for !k.ended() {
		if time.Since(begun) > e.patience() {
			t.Fatalf("tasks do not end: %s\n%s", k.kubectl("get", "pods", "-o", "wide"), k.kubectl("get", "events"))
		}
		time.Sleep(time.Duration(e.random(1500)) * time.Millisecond)
		pods := slices.DeleteFunc(k.running(), func(p pod) bool { return gone[p.name] })
		if len(pods) == 0 || e.total() >= e.least+few {
			continue
		}
		p := pods[e.random(len(pods))]
		how := []string{"deleted", "deleted without grace", "evicted", "drained", "killed", "warned"}[e.random(6)]
		switch how {
		case "deleted":
			k.kubectl("delete", "pod", p.name, "--wait=false")
		case "deleted without grace":
			k.kubectl("delete", "pod", p.name, "--wait=false", "--force", "--grace-period=0")
		case "evicted":
			request := k.write("eviction.json", fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":%q}}`, p.name), 0o644)
			k.kubectl("create", "--raw=/api/v1/namespaces/default/pods/"+p.name+"/eviction", "-f", request)
		case "drained":
			for _, moved := range pods {
				if moved.node == p.node {
					gone[moved.name] = true
					e.survived[how]++
				}
			}
			k.kubectl("drain", p.node, "--timeout=2m")
			k.kubectl("uncordon", p.node)
			continue
		case "killed", "warned":
			if k.signal(p, map[string]string{"killed": "SIGKILL", "warned": "SIGUSR1"}[how]) != nil {
				continue // it has just ended
			}
		}
		gone[p.name] = true
		e.survived[how]++
	}
	t.Logf("the job: %v", time.Since(begun).Round(time.Second))
	d.compare(e)
}
