package cluster

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

func job() Job {
	return Job{
		Name: "flowers", Tasks: 8, Parallel: 4, CPUs: 2, GPUs: 1, Memory: 4096, Grace: 120,
		Command: []string{"/opt/pollen", "fit", "--config", "/home/me/my run.yaml", "--folder", "/scratch/flowers", "--task", "auto"},
		Slurm: SlurmOptions{
			Dir: "/home/me", Logs: "/scratch/flowers/logs", Time: "4:00:00", Partition: "spot", Extra: []string{"--account=me"},
		},
		Pods: PodOptions{
			Image: "registry.example/pollen:1", Namespace: "lab", Claim: "runs", Mount: "/runs", User: "65532:65532", Retries: 3,
			Files: map[string]string{"run.yaml": "method: sghmc\nchains: 8\n", "net.yaml": "- flatten\n"},
		},
	}
}

func TestRendered(t *testing.T) {
	for name, render := range map[string]func(Job) (string, error){"slurm.sh": Job.ForSlurm, "kubernetes.yaml": Job.ForKubernetes} {
		got, err := render(job())
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || got != string(want) {
			t.Errorf("%s is\n%s\n(%v), want\n%s", name, got, err, want)
		}
	}
}

// sbatch splits at blanks and reads % as a pattern's.
func TestSlurmLogs(t *testing.T) {
	for dir, want := range map[string]string{
		"/scratch/my flowers": `#SBATCH --output="/scratch/my flowers/%a.log"`,
		"/scratch/top%5":      "#SBATCH --output=/scratch/top%%5/%a.log",
	} {
		job := job()
		job.Slurm.Logs = dir
		if script, err := job.ForSlurm(); err != nil || !strings.Contains(script, want+"\n") {
			t.Errorf("logs in %s: %v, want %s in\n%s", dir, err, want, script)
		}
	}
	for _, dir := range []string{`/a"b`, `/a\b`} {
		job := job()
		job.Slurm.Logs = dir
		if _, err := job.ForSlurm(); err == nil {
			t.Errorf("logs in %s: no error", dir)
		}
	}
}

// Bash reads the script as it is meant, with as few options as there can be.
func TestScriptIsBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash: the script is not parsed")
	}
	small := Job{Name: "x", Tasks: 1, CPUs: 1, Grace: 1, Command: []string{"it's", "a b", ""}, Slurm: SlurmOptions{Dir: "/", Logs: "/"}}
	for _, j := range []Job{job(), small} {
		script, err := j.ForSlurm()
		if err != nil {
			t.Fatal(err)
		}
		check := exec.Command(bash, "-n")
		check.Stdin = strings.NewReader(script)
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%v: %s in\n%s", err, out, script)
		}
	}
	if got, want := quoted(small.Command), `'it'\''s' 'a b' ''`; got != want {
		t.Errorf("quoted as %s, want %s", got, want)
	}
}

// The files that a ConfigMap carries come out of it as they went in.
func TestFilesSurvive(t *testing.T) {
	j := job()
	j.Pods.Files["odd"] = "  begins with blanks\n\ttab: \"quote\" # no comment\n\n\nends without"
	text, err := j.ForKubernetes()
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(text, "---\n")
	var read struct{ Data map[string]string }
	if err := yaml.Unmarshal([]byte(first), &read); err != nil {
		t.Fatal(err)
	}
	for name, want := range j.Pods.Files {
		if read.Data[name] != want {
			t.Errorf("%s is %q, want %q", name, read.Data[name], want)
		}
	}
}

func TestJobRefuses(t *testing.T) {
	for want, change := range map[string]func(*Job){
		`got "A"`:                              func(j *Job) { j.Name = "A" },
		"Tasks must be":                        func(j *Job) { j.Tasks = 0 },
		"got -1, 1, 4096":                      func(j *Job) { j.Parallel = -1 },
		"CPUs must be":                         func(j *Job) { j.CPUs = 0 },
		"1 s, got 0":                           func(j *Job) { j.Grace = 0 },
		"Command must not":                     func(j *Job) { j.Command = nil },
		"must be single lines":                 func(j *Job) { j.Slurm.Extra = []string{"--a\nrm"} },
		"Image must not":                       func(j *Job) { j.Pods.Image = "" },
		"Claim must not":                       func(j *Job) { j.Pods.Claim = "" },
		"must be an absolute path":             func(j *Job) { j.Pods.Mount = "runs" },
		"path other than /config":              func(j *Job) { j.Pods.Mount = configDir + "/" },
		`got "0:1"`:                            func(j *Job) { j.Pods.User = "0:1" },
		`got "1000"`:                           func(j *Job) { j.Pods.User = "1000" },
		"Retries must not be negative, got -1": func(j *Job) { j.Pods.Retries = -1 },
	} {
		j := job()
		change(&j)
		_, slurm := j.ForSlurm()
		_, pods := j.ForKubernetes()
		found := false
		for _, err := range []error{slurm, pods} {
			found = found || err != nil && strings.Contains(err.Error(), want)
		}
		if !found {
			t.Errorf("errors %v and %v, want %q", slurm, pods, want)
		}
	}
}
