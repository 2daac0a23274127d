// Package llckept keeps estimates of the local learning coefficient on disk, so that another one
// with the same settings continues after their descent and their step sizes.
//
// An estimate is a JSON file with a checksum, named by its settings, and a directory with the end
// of its descent. What cannot be read is estimated again.
package llckept
