// Command kubernetes is Kubernetes v1.33, except etcd and the container runtime: called as
// kube-apiserver, kube-controller-manager, kube-scheduler, kubelet or kubectl it is that program.
// TestKubernetes in package internal/cluster builds it once, and runs a run's tasks on it. It is a
// separate module, since it requires some hundred others.
//
// It differs from the release in one respect. The release replaces a Job's pod 10 s after it is
// gone, then after 20 s, and so on up to ten minutes, and evictions count as well. For a test
// that evicts a hundred times, the environment variable PATIENCE, a duration, replaces these
// delays.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
	_ "time/tzdata"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
	"k8s.io/kubernetes/pkg/controller/job"
)

func main() {
	if text := os.Getenv("PATIENCE"); text != "" {
		patience, err := time.ParseDuration(text)
		if err != nil {
			fmt.Fprintln(os.Stderr, "PATIENCE:", err)
			os.Exit(2)
		}
		job.DefaultJobPodFailureBackOff, job.MaxJobPodFailureBackOff = patience, patience
	}
	var program *cobra.Command
	switch name := filepath.Base(os.Args[0]); name {
	case "kube-apiserver":
		program = apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		program = controllers.NewControllerManagerCommand()
	case "kube-scheduler":
		program = scheduler.NewSchedulerCommand()
	case "kubelet":
		program = kubelet.NewKubeletCommand()
	case "kubectl":
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			util.CheckErr(err) // prints the error and exits
		}
		return
	default:
		fmt.Fprintf(os.Stderr, "%s: the program must be called kube-apiserver, kube-controller-manager, kube-scheduler, kubelet or kubectl\n", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(program))
}
