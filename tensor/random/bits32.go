//go:build 386 || arm || mips || mipsle

package random

// Numbers of elements, steps and bytes are ints and exceed 32 bits. Without this error, a build for
// a 32-bit processor would fail at constants that overflow, and some packages would build.
var _ = pollen_needs_a_64_bit_processor_such_as_amd64_or_arm64
