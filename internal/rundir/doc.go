// Package rundir reads and writes the directory of a run: its samples, states, checkpoints, metrics
// and JSON files, and the index that lists them. docs/formats.md describes the files.
//
// A Writer is the only writer of a directory. Begin makes a new run and Recover prepares an
// interrupted one to continue; then AddMetrics, Checkpoint, Draw and Write add to it. A Reader
// lists the samples of a run, which another process may be writing, and leaves damaged files out if
// it is told to. Verify checks all files, and Copy copies what is needed to predict.
//
// The package does not interpret a run. A manifest is bytes with a format number and a checksum, a
// checkpoint is the bytes of each chain and named lists of numbers.
//
// Policy: a file is on the disk before the index lists it, the index before the next checkpoint,
// and the checkpoint before a sample that it no longer needs is removed. A process may be killed
// between any two of these.
package rundir
