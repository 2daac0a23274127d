//go:build linux

package cluster_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pkg/errors"
)

// builtKubernetes is the program of internal/tools/kubernetes, which is built once for its sources.
func builtKubernetes(t *testing.T) string {
	t.Helper()
	sources := sha256.New()
	fmt.Fprintln(sources, runtime.Version())
	for _, name := range []string{"go.mod", "go.sum", "main.go"} {
		content, err := os.ReadFile(filepath.Join("../tools/kubernetes", name))
		check(t, err)
		fmt.Fprintf(sources, "%s %d\n%s", name, len(content), content)
	}
	cache, err := os.UserCacheDir()
	check(t, err)
	program := filepath.Join(cache, "pollen", fmt.Sprintf("kubernetes-%x", sources.Sum(nil)[:8]))
	if _, err := os.Stat(program); err == nil {
		return program
	}
	begun := time.Now()
	t.Logf("building %s", program)
	check(t, os.MkdirAll(filepath.Dir(program), 0o755))
	output(t, "go", "build", "-C", "../tools/kubernetes", "-ldflags", "-s -w -X k8s.io/component-base/version.gitVersion=v1.33.0", "-o", program+".new", ".")
	check(t, os.Rename(program+".new", program))
	t.Logf("built Kubernetes in %v", time.Since(begun).Round(time.Second))
	return program
}

// node is a kubelet with a container runtime of its own.
type node struct {
	place
	name string
}

// startNodes starts nodes, and a network for all of them that only gives pods an address.
func (k *kubernetes) startNodes(count int) {
	k.t.Helper()
	for _, plugin := range []string{"single", "loopback"} {
		k.write("network/"+plugin, networkPlugin, 0o755)
	}
	k.write("network/1.conflist", `{"cniVersion": "0.4.0", "name": "single", "plugins": [{"type": "single"}]}`, 0o644)
	pause := k.path("pause")
	output(k.t, "go", "build", "-C", "../tools/kubernetes", "-o", pause, "./pause")
	for i := range count {
		n := &node{place{k.t, k.path(fmt.Sprintf("node-%d", i))}, fmt.Sprintf("node-%d", i)}
		k.nodes = append(k.nodes, n)
		check(k.t, os.MkdirAll(n.path("log"), 0o755))
		n.daemon("containerd", "containerd", "--config", n.write("containerd.toml", containerdConfiguration, 0o644))
		n.until(time.Minute, "containerd", func() bool { _, err := n.ctr("version"); return err == nil })
	}
	k.load(pause, "docker.io/library/pause:1")
	for _, n := range k.nodes {
		n.daemon("kubelet", "kubelet", "--kubeconfig="+k.path("config"), "--root-dir="+n.path("kubelet"), "--cert-dir="+n.path("certificates"),
			"--hostname-override="+n.name, "--config="+n.write("kubelet.yaml", kubeletConfiguration+"port: "+n.port()+"\n", 0o644))
	}
	k.t.Cleanup(k.clear)
}

// networkPlugin gives the same address to all: nothing is sent to it.
const networkPlugin = `#!/bin/sh
case "$CNI_COMMAND" in
ADD) echo '{"cniVersion": "0.4.0", "interfaces": [{"name": "'"$CNI_IFNAME"'", "sandbox": "'"$CNI_NETNS"'"}],
  "ips": [{"version": "4", "address": "10.1.0.1/32", "interface": 0}]}' ;;
VERSION) echo '{"cniVersion": "0.4.0", "supportedVersions": ["0.3.1", "0.4.0"]}' ;;
esac
`

const containerdConfiguration = `version = 2
root = "@DIR@/containers"
state = "@DIR@/state"
[grpc]
address = "@DIR@/socket"
[plugins."io.containerd.internal.v1.opt"]
path = "@DIR@/opt"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "docker.io/library/pause:1"
netns_mounts_under_state_dir = true
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "native"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "@DIR@/../network"
conf_dir = "@DIR@/../network"
`

const kubeletConfiguration = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: "unix://@DIR@/socket"
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
failSwapOn: false
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
evictionHard: {memory.available: 50Mi}
localStorageCapacityIsolation: false
resolvConf: ""
podLogsDir: "@DIR@/logs"
volumePluginDir: "@DIR@/plugins"
healthzPort: 0
`

func (n *node) ctr(arguments ...string) (string, error) {
	return tried(exec.Command("ctr", append([]string{"--address", n.path("socket"), "--namespace", "k8s.io"}, arguments...)...))
}

// load gives all nodes an image of a program.
func (k *kubernetes) load(program, name string) {
	k.t.Helper()
	archive := program + ".tar"
	output(k.t, "go", "run", "-C", "../tools", "./image", program, name, archive)
	for _, n := range k.nodes {
		_, err := n.ctr("images", "import", "--snapshotter", "native", archive)
		check(k.t, err)
	}
}

// signal sends a signal to the process of a pod's container.
func (k *kubernetes) signal(p pod, signal string) error {
	for _, n := range k.nodes {
		if n.name == p.node {
			_, err := n.ctr("tasks", "kill", "--signal", signal, p.container)
			return err
		}
	}
	return errors.Errorf("there is no node %s", p.node)
}

// clear ends all pods while there are still programs that can, so that no process and no mount
// outlives the test.
func (k *kubernetes) clear() {
	if err := k.asked("delete", "jobs,pods", "--all", "--grace-period=1", "--timeout=1m"); err != nil {
		k.t.Error(err)
	}
	for _, n := range k.nodes {
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Second) {
			left, err := n.ctr("tasks", "list", "--quiet")
			if err == nil && strings.TrimSpace(left) == "" {
				break
			}
			if time.Now().After(end) {
				k.t.Errorf("containers of %s outlive the test: %s (%v)", n.name, left, err)
				break
			}
		}
	}
}
