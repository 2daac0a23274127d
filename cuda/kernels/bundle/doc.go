// Package bundle keeps files of generated PTX in one compressed file.
//
// Nouns. A File is the PTX that command generate makes of a source. A bundle is, uncompressed, the
// texts of such files one after the other, in the order of their names: the first line of each
// names its source.
//
// Policy: a bundle that has the same texts is not written again, as other versions of Go may
// compress them differently.
package bundle
