// Package file writes whole files, whatever happens: after a crash, a full disk or a loss of power,
// the file at a path has its old content or the new, and a reader never sees half of it.
//
// Write replaces a file's content; Create begins a Pending file, whose content is written piece by
// piece and takes its place with Commit. Until then the content is in a temporary file beside the
// path, named by the path's last element between "." and ".<process>-<number>.partial". A process
// that is killed leaves it there, and a later one removes it with Sweep. Append opens a file that
// grows instead; Free says how much room a disk has; Inject makes disks fail, for tests.
package file
