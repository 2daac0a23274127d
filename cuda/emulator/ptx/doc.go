// Package ptx translates PTX to C++ that runs on the emulator's fibers, so that tests execute what
// a GPU's driver is given and not the sources that it was made of.
//
// A File's entries become functions, its registers variables, each instruction a statement with the
// meaning that NVIDIA's PTX ISA gives it; ../source/ptx has what the statements call. Accesses are
// checked for alignment, and in shared, local and parameter space for bounds; two threads that
// access a word of shared memory without a barrier between, one of them writing, are an error. A
// single-precision NaN is 0x7fffffff and a double-precision one 0xfff8000000000000, as on GPUs.
//
// Policy: what is not known is an error that names it, in the text of one line or in its meaning;
// nothing is skipped.
package ptx
