// Package file writes files that are whole, whatever happens: after a crash, a full disk or a loss of power, the file at a path has
// its old content or the new one, and a reader never sees half of it.
//
// Write replaces a file by some bytes; Create begins a Pending file, whose content is written piece by piece and takes its place with
// Commit. Until then the content is in a temporary file beside the path, named by the path's last element between "." and
// ".<process>-<number>.partial". A process that is killed leaves it there, and a later one removes it with Sweep.
package file
