// The switch saves the callee-saved registers. On x86-64 these are seven words; elsewhere ucontext
// does it, more slowly, since it asks the kernel for the signal mask.
#include "fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace pollen {

namespace {
constexpr size_t stackBytes = 256 << 10, guardBytes = 16 << 10;
}

// MAP_NORESERVE: of a thousand stacks of 256 KiB only the pages that are touched take memory.
void* stacksMap(int count) {
  void* stacks = mmap(nullptr, count * stackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stacks == MAP_FAILED) abort();
  return stacks;
}

void stacksUnmap(void* stacks, int count) { munmap(stacks, count * stackBytes); }

// fiberCreate makes a page range below a stack of its own inaccessible, so that a thread that
// overflows its stack ends the process instead of changing another thread's variables.
Fiber* fiberCreate(int number, void (*entry)(), void* stacks) {
  Fiber* f = new Fiber{};
  f->own = !stacks;
  f->memory = stacks ? (char*)stacks + number * stackBytes : stacksMap(1);
  if (f->own) mprotect(f->memory, guardBytes, PROT_NONE);
  // Stacks begin at different offsets of a page; otherwise all would share the same few cache sets.
  f->top = (char*)f->memory + stackBytes - 64 - number % 61 * 320;
  fiberReset(f, entry);
  return f;
}

void fiberDestroy(Fiber* f) {
  if (f->own) stacksUnmap(f->memory, 1);
#if !defined(__x86_64__)
  delete (ucontext_t*)f->stack;
#endif
  delete f;
}

#if defined(__x86_64__)

void fiberReset(Fiber* f, void (*entry)()) {
  void** words = (void**)((uintptr_t)f->top & ~(uintptr_t)15) - 2;
  words[0] = (void*)entry;  // the switch returns to entry, with the stack as after a call
  words[1] = nullptr;
  f->stack = words - 6;
}

// Only the registers that a called function must preserve are saved: the compiler treats the
// switch as a call, and keeps nothing in the others. A barrier of 256 threads makes 256 switches,
// so a switch must take nanoseconds.
asm(R"(
.text
.p2align 4
.globl pollenSwitchStack
.hidden pollenSwitchStack
pollenSwitchStack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");
#else

void fiberReset(Fiber* f, void (*entry)()) {
  ucontext_t* c = (ucontext_t*)f->stack;
  if (!c) f->stack = c = new ucontext_t;
  getcontext(c);
  c->uc_stack.ss_sp = (char*)f->memory + guardBytes;
  c->uc_stack.ss_size = f->top - (char*)f->memory - guardBytes;
  c->uc_link = nullptr;
  makecontext(c, entry, 0);
}

void fiberSwitch(Fiber* from, Fiber* to) {
  if (!from->stack) from->stack = new ucontext_t;
  swapcontext((ucontext_t*)from->stack, (ucontext_t*)to->stack);
}

#endif

}  // namespace pollen
