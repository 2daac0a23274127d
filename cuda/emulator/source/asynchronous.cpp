// The asynchronous features of compute capability 9.0: bulk copies that mbarriers count, and
// products of warpgroups.
#include <cstdint>

#include "running.h"

namespace pollen {

// barrierAt returns the mbarrier at an address, which must have been initialised.
Phases::Barrier& Block::barrierAt(const void* place) {
  Phases::Barrier* b = phases.find(place);
  if (!b) fault("uses an mbarrier that was not initialised");
  return *b;
}

void Block::initPhase(const void* place, int arrivals) {
  if ((uintptr_t)place % 8) fault("initialises an mbarrier that is not aligned");
  if (phases.find(place)) fault("initialises an mbarrier twice");
  phases.add(place, arrivals);
}

// wake makes the threads that wait for an mbarrier ready.
void Block::wake(const Phases::Barrier& b) {
  for (int i = 0; i < count; i++)
    if (threads[i].waits == Wait::Phase && threads[i].phase == b.place) setReady(i / 32, 1u << i % 32);
}

void Block::arrive(const void* place, int bytes) {
  Phases::Barrier& b = barrierAt(place);
  b.sync.release();
  b.bytes += bytes;
  b.pending--;
  if (b.pending < 0) fault("arrives at an mbarrier once too often");
  if (Phases::ended(b)) wake(b);
}

// tryWait may return false although the phase will end soon: a thread must ask again.
//
// Hardware suspends a waiting thread for some time and then lets it ask again. Here it waits until
// the phase has ended, so that an endless wait is found as a deadlock.
bool Block::tryWait(const void* place, int odd) {
  Thread& t = running();
  auto passed = [&] { return (int)(barrierAt(place).phase & 1) != odd; };
  if (!passed() && t.phase != place) {
    t.phase = place;
    return false;
  }
  // The second call for the same phase waits. The first one returned false, as hardware may, so
  // that a kernel that does not ask again is found.
  while (!passed()) {
    t.phase = place;
    t.waits = Wait::Phase;
    suspend();
    t.waits = Wait::None;
  }
  t.phase = nullptr, t.passed = here.time;
  barrierAt(place).sync.acquire();
  return true;
}

// The destination is filled with NaN and the copy is performed later, at random among those under
// way: a kernel that reads without waiting, or overwrites the source too early, computes NaN or
// wrong numbers in every run.
void Block::copyBulk(void* to, const void* from, size_t bytes, const void* place) {
  Phases::Barrier& b = barrierAt(place);
  if (!b.known) fault("copies with an mbarrier that copies may not see: there was no fence after it was initialised");
  if ((uintptr_t)to % 16 || (uintptr_t)from % 16 || bytes % 16) fault("copies what is not aligned to 16 bytes");
  // A thread that has passed an mbarrier may know from its arrivals that others have finished
  // reading. If they have not, they read NaN.
  if (watch.memory && running().passed / timeUnit == here.time / timeUnit) {
    Access* words = watch.accesses + ((char*)to - watch.memory) / 4;
    for (size_t i = 0; i < bytes / 4; i++) words[i].read = 0;
  }
  written(to, bytes);
  sanitizedUnwritten(to, bytes);
  sanitizedRead(from, bytes);
  b.sync.release();
  phases.later(to, from, bytes, &b);
}

// completeCopy performs one of the copies.
void Block::completeCopy() {
  Phases::Copy c = phases.take();
  memcpy(c.to, c.from, c.bytes);
  if (watch.memory) {
    // For the race detector, what comes after the mbarrier comes after the copy, too.
    Access* words = watch.accesses + ((char*)c.to - watch.memory) / 4;
    for (size_t i = 0; i < c.bytes / 4; i++) words[i].write = 0;
  }
  Phases::Barrier& b = phases.of(c);
  b.bytes -= c.bytes;
  if (Phases::ended(b)) wake(b);
}

// nextOrCopy returns the next thread to run, after performing copies if none can run without.
int Block::nextOrCopy() {
  int thread = next();
  while (thread < 0 && ended < count && failure.empty() && phases.underWay()) {
    completeCopy();
    thread = next();
  }
  return thread;
}

// meetGroup waits for the 128 threads of a warpgroup, which must pass the same operands, and
// returns true in the first one to continue.
bool Block::meetGroup(const unsigned long long (&operands)[2]) {
  int me = current, number = me / groupThreads;
  if (count < (number + 1) * groupThreads) fault("multiplies by four warps, which there are not");
  Group& g = groups[number];
  if (g.arrived == 0)
    memcpy(g.operands, operands, sizeof operands);
  else if (memcmp(g.operands, operands, sizeof operands) != 0)
    fault("describes other operands of a product than others of its four warps");
  Thread& t = threads[me];
  t.waits = Wait::Product;
  if (++g.arrived < groupThreads) {
    suspend();
  } else {
    g.arrived = 0;
    g.last = me;
    for (int i = 0; i < groupThreads / 32; i++) setReady(number * (groupThreads / 32) + i, ~0u);
  }
  t.waits = Wait::None;
  return g.last == me;
}

float* Block::groupProduct() {
  std::vector<float>& room = groups[current / groupThreads].product;
  if (room.empty()) room.resize(maxProduct);
  return room.data();
}

void initPhase(const void* place, int arrivals) {
  SanitizerIgnore ignore;
  block->initPhase(place, arrivals);
}
void fencePhases() { block->fencePhases(); }
void arriveAtPhase(const void* place, int bytes) {
  SanitizerIgnore ignore;
  block->arrive(place, bytes);
}
bool tryWaitPhase(const void* place, int odd) {
  SanitizerIgnore ignore;
  return block->tryWait(place, odd);
}
void copyBulk(void* to, const void* from, size_t bytes, const void* place) { block->copyBulk(to, from, bytes, place); }

bool meetGroup(const unsigned long long (&operands)[2]) {
  SanitizerIgnore ignore;
  return block->meetGroup(operands);
}
void shareLeft(const unsigned* const (&words)[4]) { block->shareLeft(words); }
const unsigned (*sharedLeft())[4] { return block->groupLeft(); }
void putProduct(int at, const float* numbers, int count) {
  SanitizerIgnore ignore;
  memcpy(block->groupProduct() + at, numbers, 4 * count);
}
void addProduct(float* const* sums, const int* places, int count, bool keep) {
  SanitizerIgnore ignore;
  if (const char* wrong = block->running().products.add(sums, block->groupProduct(), places, count, keep)) block->fault(wrong);
}
void productReads(const ProductReads& reads) {
  if (const char* wrong = block->running().products.reads(reads)) block->fault(wrong);
}
void fenceProducts() { block->running().products.fence(); }
void commitProducts() { block->running().products.commit(); }
void waitProducts(int groups) {
  if (const char* wrong = block->running().products.wait(groups)) block->fault(wrong);
}

}  // namespace pollen
