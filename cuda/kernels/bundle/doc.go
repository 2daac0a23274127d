// Package bundle keeps files of generated PTX in one compressed file.
//
// Nouns. A File is the PTX that command generate makes of a source. A bundle is, uncompressed, the
// concatenation of such files in order of their names: the first line of each names its source.
//
// Policy: a bundle with the same texts is not written again, since versions of Go may compress
// differently.
package bundle
