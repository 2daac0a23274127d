// Fibers: stacks and the switch between them.
#pragma once

#include <cstddef>

namespace pollen {

struct Fiber {
  void* stack;   // where its registers lie while it does not run
  void* memory;  // its stack's lowest address
  char* top;     // and where the stack begins
};

// fiberCreate makes a fiber that calls entry when it is switched to first. entry must not return. A Fiber of zeros stands for the thread's own stack.
Fiber* fiberCreate(int number, void (*entry)());

// fiberDestroy gives a fiber's stack back. The fiber must not run.
void fiberDestroy(Fiber* f);

// fiberReset makes a fiber that does not run begin again with entry.
void fiberReset(Fiber* f, void (*entry)());

// fiberSwitch leaves the running fiber, from, and goes on with to.
void fiberSwitch(Fiber* from, Fiber* to);

}  // namespace pollen
