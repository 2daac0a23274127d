// Kernels compiled for this machine, by name, and the execution of blocks and grids.
#pragma once

#include <string>
#include <vector>

#include "block.h"
#include "parameter.h"

namespace pollen {

struct Kernel {
  std::string name;
  unsigned maxThreads;
  std::vector<Parameter> parameters;
  void (*run)(void* const* arguments);
  bool fromSource;  // compiled from its source, not from PTX
};

// findKernel returns the kernel of that name, or null.
const Kernel* findKernel(const std::string& name);

// knowsPTX reports whether the kernels of a PTX text, its head and its entries, are those that were
// translated, or were compiled from their sources.
bool knowsPTX(const std::string& text);

// kernelsNotRun returns the names of the kernels that runGrid was never called for.
std::vector<std::string> kernelsNotRun();

// Work is a kernel with its arguments, which each thread calls.
struct Work {
  void (*run)(void* const* arguments);
  void* const* arguments;
  size_t dynamicBytes;
  bool early;  // it must not touch global memory before it has waited for its predecessor
};

// runBlock runs the block at the position here. It returns what went wrong, if anything: a fault of
// a thread, or threads that wait for others that never come.
std::string runBlock(const Work& work);

// endGrid tells the race detector that what follows comes after all blocks, which are not ordered
// among themselves.
void endGrid();

// runGrid runs a kernel's blocks on this machine's threads. It returns what went wrong: the kernel,
// the block, the thread. A kernel from PTX may begin early, in the worst case: nothing in global
// memory is valid until it waits.
std::string runGrid(const Kernel& kernel, Dim blocks, Dim threads, size_t dynamicBytes, void* const* arguments, bool early = false);

// setMachineThreads sets how many threads runGrid may use; 0 means as many as there are processors.
void setMachineThreads(int threads);

}  // namespace pollen
