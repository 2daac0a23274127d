// Package file writes files atomically: after a crash, on a full disk or after a loss of power, the
// file at a path has its old content or the new, and a reader never sees a part of it.
//
// Write replaces a file's content. Create begins a Pending file, which is written piece by piece
// and put at its path by Commit. Until then its content is in a temporary file in the same
// directory, named by the path's last element between "." and ".<process>-<number>.partial". A
// killed process leaves it there, and a later one removes it with Sweep. Append opens a file that
// grows, Open and Read read only regular files of bounded size, Free returns the free space of a
// disk, and Inject makes disks fail, for tests.
package file
