package cluster

import (
	"fmt"
	"strings"
	"text/template"

	"github.com/pkg/errors"
)

// SlurmOptions are what only Slurm is told.
type SlurmOptions struct {
	Dir       string   // where the tasks run, absolute
	Logs      string   // folder of a log for each task, absolute; it must exist when they begin
	Time      string   // limit of each start, as 4:00:00; empty is the partition's
	Partition string   // empty is the default one
	Extra     []string // further options for sbatch, as "--account=me"
}

// ForSlurm is a batch script for sbatch: an array of tasks. A task that Slurm warns of its time
// limit stops by itself, puts itself back into the queue and goes on later; one that is preempted,
// or whose node fails, is put back by Slurm; one that is cancelled or fails is not.
func (j Job) ForSlurm() (string, error) {
	if err := j.validate(); err != nil {
		return "", err
	}
	for _, word := range append([]string{j.Slurm.Dir, j.Slurm.Logs, j.Slurm.Time, j.Slurm.Partition}, j.Slurm.Extra...) {
		if strings.ContainsAny(word, "\n\r") {
			return "", errors.Errorf("cluster: slurm: %q, wants one line", word)
		}
	}
	if strings.ContainsAny(j.Slurm.Logs, "\"\\") {
		return "", errors.Errorf("cluster: slurm: logs in %q, wants a folder without quotation marks and backslashes", j.Slurm.Logs)
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

// logPattern is sbatch's pattern of the logs in a folder.
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
# Warnings reach this shell only: pass them on. The program then keeps all it has and ends.
trap 'kill -USR1 "$pollen"' USR1
trap 'kill -TERM "$pollen"' TERM
while wait "$pollen"; kill -0 "$pollen" 2>/dev/null; do :; done
wait "$pollen"
code=$?
# {{.Warned}}: the time was nearly over. After a preemption Slurm itself puts the task back, and a task
# that was cancelled stays so. Without scontrol on the nodes, RequeueExit={{.Warned}} in slurm.conf does it.
if [ "$code" = {{.Warned}} ] && command -v scontrol >/dev/null; then
  scontrol requeue "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"
fi
exit "$code"
`))
