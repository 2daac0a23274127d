// Package checksum puts a checksum into a file, where it survives copying, and checks it.
//
// The checksum is the JSON member "sha256": 64 hexadecimal digits, the SHA-256 of the whole file
// with zeros instead of these digits. It is the last member of a JSON file, and one of the metadata
// of a safetensors file. Every bit of the file counts, including the checksum's.
package checksum
