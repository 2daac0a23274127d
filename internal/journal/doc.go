// Package journal writes files of JSON lines that grow while a process runs, and may be cut off
// anywhere when it is killed.
//
// Nouns. A journal is a file of lines, each a JSON object whose last member, "crc", is the CRC-32C
// of all the lines up to this one: a line that was changed, removed or put in breaks the chain. A
// Writer appends lines. A Tail is where a journal's intact lines end.
//
// Policy: what is incomplete at the end is torn off, and no error; anything else is.
package journal
