// Package cluster divides a run over the tasks of a Slurm array or a Kubernetes Job, and writes
// what these are submitted by.
//
// Nouns. A Plan numbers the tasks: each is one cell of a grid of settings, and in it one part of
// the run's chains. A task knows its settings, its chains and its folder by nothing but its
// number, so that it can be killed, moved and started again anywhere: `pollen fit --task NUMBER`
// starts, goes on, or says that all is done. ForSlurm and ForKubernetes render a Job for the two
// schedulers.
//
// Policy: what is rendered is read before it is submitted. It says nothing that is not in the Job,
// and a Job that a scheduler would misunderstand is refused here.
package cluster
