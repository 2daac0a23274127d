// Package journal writes files of JSON lines that grow while a process runs, and that a kill may
// cut off anywhere.
//
// Each line of a journal is a JSON object whose last member, "crc", is the CRC-32C of the objects
// of all lines up to this one, so that a line that was changed, removed or inserted breaks the
// chain. A Writer appends lines, and a Tail is where the intact lines end.
//
// An incomplete end is not an error, since a killed process leaves one. Any other damage is.
package journal
