// The state of a running block, for block.cpp and asynchronous.cpp.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "block.h"
#include "copies.h"
#include "fiber.h"
#include "kernel.h"
#include "phases.h"
#include "products.h"
#include "sanitizer.h"

namespace pollen {

constexpr int maxThreads = 1024, maxWarps = maxThreads / 32;
constexpr size_t sharedLimit = 228 << 10;  // the largest of any GPU, static and dynamic together

struct Thread {
  Fiber* fiber;  // null before it starts and after it has ended
  Wait waits;
  bool early;      // see Here
  unsigned round;  // number of exchanges; their memory alternates
  Copies copies;
  const void* phase;  // the mbarrier that it waits for, or last tested in vain
  unsigned long long passed;  // when it last passed an mbarrier
  Products products;
  SanitizerFiber sanitizer;
};

struct Warp {
  uint32_t lanes, ready;  // existing lanes, and lanes that can run
  int arrived;
  Wait kind;
  SanitizerSync sync[2];
  unsigned rounds;
  unsigned long long barriers;  // bar.warp.sync that all lanes have passed
  alignas(16) char exchanged[2][32][laneBytes];
};

constexpr int groupThreads = 128, maxProduct = 64 * 256;

// Group is a warpgroup.
struct Group {
  int arrived, last;
  unsigned long long operands[2];
  unsigned left[groupThreads][4];
  std::vector<float> product;
};

struct Array {
  const void* place;
  size_t bytes;
  void* memory;
};

class Block {
 public:
  Block() {
    // If these grew, they would move in the middle of a block, which the race detector would
    // attribute to the threads.
    all.reserve(maxThreads + 1);
    idle.reserve(maxThreads + 1);
  }
  std::string run(const Work& w);
  void wait(Wait kind);
  Exchanged* exchange(Wait kind, const void* mine, size_t bytes);
  void* shared(const void* place, size_t bytes);
  void* dynamic();
  size_t dynamicBytes() const { return work.dynamicBytes; }
  Watched watched(size_t bytes);
  void written(void* to, size_t bytes);
  void waitForGrid() { here.early = threads[current].early = false; }
  Thread& running() { return threads[current]; }
  void initPhase(const void* place, int arrivals);
  void fencePhases() { phases.makeKnown(); }
  void arrive(const void* place, int bytes);
  bool tryWait(const void* place, int odd);
  void copyBulk(void* to, const void* from, size_t bytes, const void* place);
  bool meetGroup(const unsigned long long (&operands)[2]);
  float* groupProduct();
  unsigned (*groupLeft())[4] { return groups[current / groupThreads].left; }
  void shareLeft(const unsigned* const (&words)[4]) {
    for (int i = 0; i < 4; i++) groupLeft()[current % groupThreads][i] = *words[i];
  }
  [[noreturn]] void fault(const char* what);
  void fail(const std::string& what);

 private:
  Work work;
  int count, warps, current, ended, arrived;
  unsigned rounds;  // number of barriers of the block
  SanitizerSync sync[2];
  uint32_t ready;  // warps with a ready thread
  std::string failure;
  Thread threads[maxThreads];
  Warp warp[maxWarps];
  Group groups[maxThreads / groupThreads];
  Phases phases;
  Fiber own{};
  std::vector<Fiber*> all, idle;
  void* stacks = nullptr;  // of all threads, if ownStacks
  std::vector<Array> arrays;
  SharedMemory memory;
  unsigned long long time = 0;  // barriers of all blocks so far
  Watched watch{};
  std::vector<Access> accesses;
  SanitizerFiber ownSanitizer;

  static void entry();
  void begin();
  int next() const;
  int nextOrCopy();
  Phases::Barrier& barrierAt(const void* place);
  void wake(const Phases::Barrier& b);
  void completeCopy();
  void go(int thread);
  void place(int thread);
  void setReady(int w, uint32_t lanes) {
    warp[w].ready |= lanes;
    if (warp[w].ready) ready |= 1u << w;
  }
  void clearReady(int thread) {
    Warp& w = warp[thread / 32];
    w.ready &= ~(1u << thread % 32);
    if (!w.ready) ready &= ~(1u << thread / 32);
  }
  void suspend();
  std::string stuck() const;
};

extern thread_local Block* block __attribute__((tls_model("initial-exec")));

// at describes a thread of the block, for messages.
std::string at(int thread);

}  // namespace pollen
