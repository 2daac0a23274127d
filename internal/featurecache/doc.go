// Package featurecache keeps the features of images on disk, so that a frozen network computes them
// once for several programs.
//
// A cache is a directory with a subdirectory for each network, and there files of rows: features
// with the keys of their images. A file is written whole and never changed. Files that are damaged
// have no rows, so that their features are computed again. All files together are bounded; the ones
// that were not used for the longest time are removed.
//
// The format of a file, with little-endian numbers:
//
//	magic
//	width and number of rows, 8 bytes each
//	the key of each row, 32 bytes
//	the SHA-256 of all of the above
//	each row: its float32 values, and the first 8 bytes of the SHA-256 of its key and values
package featurecache
