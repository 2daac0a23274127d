// Package decode decodes image files into bytes, in bounded memory and time, whatever they contain.
//
// A Decoder reads the header of an image (Probe), checks the whole content and bounds the memory
// that decoding takes (Inspect), and decodes and scales it (Decode). A program that shares memory
// among decoders calls Inspect and DecodeInspected, and waits in between. The functions Decode
// and Inspect use a decoder from a pool.
//
// Content is untrusted: an image that promises more pixels than it can have, or work without end,
// is an error before anything of that size is allocated, and a panic of a decoder is an error as
// well. The caller adds the file's name to errors.
//
// # Files
//
// Each format has a file with its rules: how its decoder is bounded (inspectPNG and the like), and
// what it reads that the standard decoder does not. formats.go lists them; to add one, write such a
// file and a row there. decoder.go calls them, turns images upright (exif.go) and scales them row
// by row (rows.go, resize.go, in 16 bits by deep.go).
package decode
