// Fibers: stacks and the switch between them.
#pragma once

#include <cstddef>

namespace pollen {

struct Fiber {
  void* stack;   // stack pointer while it does not run; its registers are saved there
  void* memory;  // lowest address of its stack
  char* top;     // highest address, where the stack begins
  bool own;      // whether the stack has a mapping of its own
};

// fiberCreate makes a fiber that calls entry when it is first switched to. entry must not return. A
// Fiber of zeros stands for the thread's own stack. The stack is that of a number in stacks, or a
// mapping of its own if stacks is null.
Fiber* fiberCreate(int number, void (*entry)(), void* stacks);

// stacksMap maps a number of stacks, and stacksUnmap frees them. They have no guards.
void* stacksMap(int count);
void stacksUnmap(void* stacks, int count);

// fiberDestroy frees a fiber's stack. The fiber must not be running.
void fiberDestroy(Fiber* f);

// fiberReset makes a fiber that is not running start again with entry.
void fiberReset(Fiber* f, void (*entry)());

// fiberSwitch switches from the running fiber to another.
#if defined(__x86_64__)
extern "C" void pollenSwitchStack(void** save, void* next) __attribute__((visibility("hidden")));
inline void fiberSwitch(Fiber* from, Fiber* to) { pollenSwitchStack(&from->stack, to->stack); }
#else
void fiberSwitch(Fiber* from, Fiber* to);
#endif

}  // namespace pollen
