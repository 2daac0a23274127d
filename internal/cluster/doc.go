// Package cluster divides a run into the tasks of a Slurm array or a Kubernetes Job, and renders
// the batch script or manifest that submits them. It also lists the runs below a directory.
//
// A Plan numbers the tasks. Each task is one part of the chains in one cell of a grid of settings.
// Only its number determines its settings, chains and directory, so that it can be killed, moved
// and restarted anywhere: `pollen fit --task NUMBER` starts or resumes it, or reports that it is
// finished. Job.ForSlurm and Job.ForKubernetes render a Job for the two schedulers.
//
// The rendered text is meant to be read before it is submitted. It contains nothing that is not in
// the Job, and a Job that a scheduler would misunderstand is an error.
package cluster
