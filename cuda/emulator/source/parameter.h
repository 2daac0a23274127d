// How a kernel becomes known by its name, with what a driver needs to call it. Every file of kernels includes this: it is kept small.
#pragma once

namespace pollen {

// Parameter is a kernel's parameter: its size in bytes, and whether it is a buffer 'b', an integer 'i' or a floating-point number 'f'.
struct Parameter {
  int size;
  char kind;
};

// addKernel makes a kernel known. It is called before main, or while the library is opened, and returns true.
bool addKernel(const char* name, unsigned maxThreads, const Parameter* parameters, int count, void (*run)(void* const* arguments), bool fromSource);

// addPTX says that kernels were translated from a text of PTX, by its digest (64 bits of FNV-1a), and returns true. The driver then loads no other.
bool addPTX(unsigned long long digest);

}  // namespace pollen
