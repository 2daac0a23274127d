// Registration of kernels, with what a driver needs to call them. Every file of kernels includes
// this, so it is kept small.
#pragma once

namespace pollen {

// Parameter is a kernel's parameter: its size in bytes, and its kind: 'b' for a buffer, 'i' for an
// integer, 'f' for a floating-point number.
struct Parameter {
  int size;
  char kind;
};

// addKernel registers a kernel. It is called before main, or while the library is opened, and
// returns true.
bool addKernel(const char* name, unsigned maxThreads, const Parameter* parameters, int count, void (*run)(void* const* arguments), bool fromSource);

// addPTX registers a PTX text that kernels were translated from, by its digest (64 bits of FNV-1a),
// and returns true. The driver then loads no other.
bool addPTX(unsigned long long digest);

}  // namespace pollen
