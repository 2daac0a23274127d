package cluster

import (
	"fmt"
	"strings"
	"text/template"

	"github.com/pkg/errors"
)

// SlurmOptions are the options of a Job that apply only to Slurm.
type SlurmOptions struct {
	Dir       string   // working directory of the tasks, absolute
	Logs      string   // directory of the tasks' logs, absolute; it must exist when they start
	Time      string   // time limit of each start, such as 4:00:00; "" is the partition's
	Partition string   // "" is the default partition
	Extra     []string // more options for sbatch, such as "--account=me"
}

// ForSlurm returns a batch script for sbatch that runs an array of tasks. A task that Slurm signals
// before its time limit stops, requeues itself and continues later. Slurm requeues tasks that it
// preempts or whose node fails. Cancelled and failed tasks are not requeued. It returns an error if
// the job is invalid.
func (j Job) ForSlurm() (string, error) {
	if err := j.validate(); err != nil {
		return "", err
	}
	for _, word := range append([]string{j.Slurm.Dir, j.Slurm.Logs, j.Slurm.Time, j.Slurm.Partition}, j.Slurm.Extra...) {
		if strings.ContainsAny(word, "\n\r") {
			return "", errors.Errorf("cluster: slurm: options must be single lines, got %q", word)
		}
	}
	if strings.ContainsAny(j.Slurm.Logs, "\"\\") {
		return "", errors.Errorf("cluster: slurm: Logs must be a directory without quotation marks and backslashes, got %q", j.Slurm.Logs)
	}
	array := fmt.Sprintf("0-%d", j.Tasks-1)
	if j.Parallel > 0 {
		array += fmt.Sprintf("%%%d", j.Parallel)
	}
	var script strings.Builder
	err := slurmScript.Execute(&script, struct {
		Job
		Array, Words string
		Warned       int
	}{j, array, quoted(j.Command), exitUSR1})
	return script.String(), errors.Wrap(err, "cluster: slurm")
}

// logPattern returns sbatch's file name pattern for the logs in dir.
func logPattern(dir string) string {
	pattern := strings.ReplaceAll(dir, "%", "%%") + "/%a.log"
	if strings.ContainsAny(pattern, " \t#'") {
		return `"` + pattern + `"`
	}
	return pattern
}

var slurmScript = template.Must(template.New("slurm").Funcs(template.FuncMap{"quote": quote, "pattern": logPattern}).Parse(`#!/bin/bash
#SBATCH --job-name={{.Name}}
#SBATCH --array={{.Array}}
#SBATCH --requeue
#SBATCH --signal=B:USR1@{{.Grace}}
#SBATCH --open-mode=append
#SBATCH --output={{pattern .Slurm.Logs}}
#SBATCH --cpus-per-task={{.CPUs}}
{{- if .Memory}}
#SBATCH --mem={{.Memory}}M
{{- end}}
{{- if .GPUs}}
#SBATCH --gpus-per-task={{.GPUs}}
#SBATCH --ntasks=1
{{- end}}
{{- if .Slurm.Time}}
#SBATCH --time={{.Slurm.Time}}
{{- end}}
{{- if .Slurm.Partition}}
#SBATCH --partition={{.Slurm.Partition}}
{{- end}}
{{- range .Slurm.Extra}}
#SBATCH {{.}}
{{- end}}

cd {{quote .Slurm.Dir}} || exit 1
{{.Words}} &
pollen=$!
# Slurm signals only this shell: forward the signal. The program then saves its state and exits.
trap 'kill -USR1 "$pollen"' USR1
trap 'kill -TERM "$pollen"' TERM
while wait "$pollen"; kill -0 "$pollen" 2>/dev/null; do :; done
wait "$pollen"
code=$?
# {{.Warned}}: the time limit is near. Slurm itself requeues a preempted task, and a cancelled task stays
# cancelled. On nodes without scontrol, RequeueExit={{.Warned}} in slurm.conf has the same effect.
if [ "$code" = {{.Warned}} ] && command -v scontrol >/dev/null; then
  scontrol requeue "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"
fi
exit "$code"
`))
