// Kernels compiled for this machine, by name, and the blocks and grids they run in.
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
  bool fromSource;  // not from PTX
};

// findKernel is the kernel of that name, or null.
const Kernel* findKernel(const std::string& name);

// knowsPTX reports whether a text of PTX has only what kernels were translated from, a file's head and its entries, or these were made of their sources.
bool knowsPTX(const std::string& text);

// kernelsNotRun are the names of the kernels that runGrid was never called for.
std::vector<std::string> kernelsNotRun();

// Work is a kernel with its arguments, which each thread calls.
struct Work {
  void (*run)(void* const* arguments);
  void* const* arguments;
  size_t dynamicBytes;
  bool early;  // it may touch no memory before it has waited for the launch before
};

// runBlock runs the block that here says. It returns what the threads did wrong, or nothing: a thread that waits for others that do not come.
std::string runBlock(const Work& work);

// endGrid tells the race detector that what comes next comes after all blocks, which nothing orders among themselves.
void endGrid();

// runGrid runs a kernel's blocks on this machine's threads. It returns what went wrong: the kernel, the block, the thread. One of PTX may begin early: so
// early that of what is in memory nothing is as it should be until it waits.
std::string runGrid(const Kernel& kernel, Dim blocks, Dim threads, size_t dynamicBytes, void* const* arguments, bool early = false);

// setMachineThreads says how many threads runGrid may use; 0 is as many as there are processors.
void setMachineThreads(int threads);

}  // namespace pollen
