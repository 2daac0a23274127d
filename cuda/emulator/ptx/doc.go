// Package ptx translates PTX to C++ that runs on the emulator's fibers, so that tests execute the
// text that a GPU's driver receives instead of the sources.
//
// A file's entries become functions, its registers variables, and each instruction a statement with
// the meaning that NVIDIA's PTX ISA gives it; ../source/ptx has the functions that the statements
// call. Example: "add.rn.f32 %f3, %f1, %f2;" becomes "v_f3 = canonical(v_f1 + v_f2);".
//
// Accesses are checked for alignment, and in shared, local and parameter space for bounds. Two
// threads that access a word of shared memory without a barrier between them, one of them writing,
// are an error. A single-precision NaN is 0x7fffffff and a double-precision one 0xfff8000000000000,
// as on GPUs.
//
// Policy: unknown text is an error that names it; nothing is skipped.
package ptx
