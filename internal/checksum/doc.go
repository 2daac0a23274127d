// Package checksum puts checksums into files, where they survive copying, and checks them.
//
// Nouns. A seal is the JSON member "sha256": 64 hexadecimal digits, the SHA-256 of the whole file
// with zeros in the place of these digits.
//
// Policy: every bit of a sealed file counts, those of the seal included.
package checksum
