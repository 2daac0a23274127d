#include "running.h"

namespace pollen {

thread_local Here here __attribute__((tls_model("initial-exec")));
thread_local Block* block __attribute__((tls_model("initial-exec")));

namespace {

SanitizerSync gridEnd;

const char* const names[] = {"nothing", "barrier", "warpBarrier", "a shuffle", "mmaTF32_16x8x8", "mmaBF16_16x8x16", "ldmatrix", "an mbarrier", "wgmma"};

}  // namespace

std::string at(int thread) {
  Dim b = here.block, t = here.threads;
  return "block (" + std::to_string(b.x) + ", " + std::to_string(b.y) + ", " + std::to_string(b.z) + "), thread (" + std::to_string(thread % t.x) +
         ", " + std::to_string(thread / t.x % t.y) + ", " + std::to_string(thread / t.x / t.y) + ")";
}

// run executes one block. All threads are ready at first; a fiber is made for a thread only when
// another fiber is suspended in the middle of a thread, so a kernel without barriers needs a single
// fiber.
std::string Block::run(const Work& w) {
  work = w;
  count = here.threads.x * here.threads.y * here.threads.z;
  warps = (count + 31) / 32;
  current = ended = arrived = 0;
  rounds = 0;
  time += timeUnit;
  watch = {};
  ready = 0;
  failure.clear();
  arrays.clear();
  memory.clear();
  phases.clear();
  for (Group& g : groups) g.arrived = 0;
  for (int i = 0; i < count; i++) {
    Thread& t = threads[i];
    t.fiber = nullptr, t.waits = Wait::None, t.early = work.early, t.round = 0;
    t.phase = nullptr, t.passed = 0;
    t.copies.clear();
    t.products.clear();
    t.sanitizer.create();
  }
  for (int i = 0; i < warps; i++) {
    int lanes = count - 32 * i;
    warp[i].lanes = lanes >= 32 ? ~0u : (1u << lanes) - 1;
    warp[i].ready = 0, warp[i].arrived = 0, warp[i].kind = Wait::None, warp[i].rounds = 0, warp[i].barriers = 0;
    setReady(i, warp[i].lanes);
  }
  ownSanitizer.here();
  if (ownStacks) {
    SanitizerIgnore ignore;
    stacks = stacksMap(count);
  }
  begin();
  fiberSwitch(&own, idle.back());
  if (!failure.empty() || ended < count) {
    // Threads that will never end leave their stacks as they are.
    for (Fiber* f : all) fiberReset(f, entry);
    idle = all;
  }
  for (int i = 0; i < count; i++) threads[i].sanitizer.end();
  if (ownStacks) {
    SanitizerIgnore ignore;
    for (Fiber* f : all) fiberDestroy(f);
    stacksUnmap(stacks, count);
    all.clear();
    idle.clear();
  }
  return failure;
}

// begin makes sure that there is an idle fiber.
void Block::begin() {
  if (!idle.empty()) return;
  SanitizerIgnore ignore;
  all.push_back(fiberCreate(all.size(), entry, stacks));
  idle.push_back(all.back());
}

// entry is a fiber's function: it removes itself from the idle fibers, and runs threads until the
// next ready thread has its own fiber.
void Block::entry() {
  Block& b = *block;
  for (;;) {
    Fiber* me = b.idle.back();
    b.idle.pop_back();
    int thread = b.nextOrCopy();
    for (;;) {
      b.place(thread);
      b.running().fiber = me;
      b.running().sanitizer.resume();
      b.work.run(b.work.arguments);
      gridEnd.release();
      b.running().fiber = nullptr;
      if (here.early && b.failure.empty()) b.failure = at(b.current) + " began before the launch that it follows had ended, and ends without waiting for it";
      b.ended++;
      b.clearReady(thread);
      thread = b.nextOrCopy();
      if (thread < 0 || b.threads[thread].fiber || ownStacks) break;
    }
    if (!ownStacks) b.idle.push_back(me);
    if (thread >= 0 && !b.threads[thread].fiber) {
      b.begin();
      fiberSwitch(me, b.idle.back());
    } else if (thread < 0) {
      if (b.ended < b.count && b.failure.empty()) b.failure = b.stuck();
      if (b.failure.empty() && b.phases.underWay()) b.failure = "block ends while copies to it are under way";
      b.ownSanitizer.resume();
      fiberSwitch(me, &b.own);
    } else {
      b.place(thread);
      b.running().sanitizer.resume();
      fiberSwitch(me, b.threads[thread].fiber);
    }
  }
}

// place makes a thread the running one.
void Block::place(int thread) {
  current = thread;
  here.time = time + warp[thread / 32].barriers * warpUnit + thread;
  here.early = threads[thread].early;
  unsigned x = here.threads.x, y = here.threads.y, t = thread;
  here.thread = y == 1 && here.threads.z == 1 ? Dim{t, 0, 0} : Dim{t % x, t / x % y, t / x / y};
}

// next returns the next thread to run: another of the same warp, or of a later warp.
//
// The order is that of lanes, then of warps, always the same: a run of the emulator can be
// repeated exactly. Races are found by the sanitizers, not by trying orders.
int Block::next() const {
  int w = current / 32;
  uint32_t lanes = warp[w].ready;
  if (!lanes) {
    if (!ready) return -1;
    uint32_t later = ready & ~((2u << w) - 1);
    w = __builtin_ctz(later ? later : ready);
    return 32 * w + __builtin_ctz(warp[w].ready);
  }
  uint32_t later = lanes & ~((2u << current % 32) - 1);
  return 32 * w + __builtin_ctz(later ? later : lanes);
}

// suspend runs other threads until the running one is ready again.
void Block::suspend() {
  int me = current;
  clearReady(me);
  Fiber* from = threads[me].fiber;
  int thread = nextOrCopy();
  if (thread < 0 || !failure.empty()) {
    if (failure.empty()) failure = stuck();
    ownSanitizer.resume();
    fiberSwitch(from, &own);
  } else if (threads[thread].fiber) {
    place(thread);
    running().sanitizer.resume();
    fiberSwitch(from, threads[thread].fiber);
  } else {
    begin();
    fiberSwitch(from, idle.back());
  }
  // The thread that switched here has called place for this one.
}

void Block::wait(Wait kind) {
  int me = current, w = me / 32;
  Thread& t = threads[me];
  t.waits = kind;
  // The last thread to arrive makes all others ready and continues. Two synchronisation objects
  // alternate, since threads may arrive at the next barrier before all have left this one.
  if (kind == Wait::Block) {
    SanitizerSync& s = sync[rounds % 2];
    s.release();
    if (++arrived < count) {
      suspend();
    } else {
      arrived = 0;
      rounds++;
      time += timeUnit;
      here.time = time + warp[w].barriers * warpUnit + me;
      for (int i = 0; i < warps; i++) setReady(i, warp[i].lanes);
    }
    s.acquire();
  } else {
    Warp& lanes = warp[w];
    if (lanes.arrived == 0) {
      lanes.kind = kind;
    } else if (lanes.kind != kind) {
      fail(at(me) + " waits in " + names[(int)kind] + " while others of its warp wait in " + names[(int)lanes.kind]);
    }
    SanitizerSync& s = lanes.sync[lanes.rounds % 2];
    if (kind == Wait::Warp) s.release();
    if (++lanes.arrived < __builtin_popcount(lanes.lanes)) {
      suspend();
    } else {
      lanes.arrived = 0;
      lanes.rounds++;
      if (kind == Wait::Warp) lanes.barriers++, here.time += warpUnit;
      setReady(w, lanes.lanes);
    }
    if (kind == Wait::Warp) s.acquire();
  }
  t.waits = Wait::None;
}

// fail ends the block with a message. It does not return.
//
// The fiber of the failed thread is left in the middle of the kernel; run resets it before the
// next block.
void Block::fail(const std::string& what) {
  if (failure.empty()) failure = what;
  ownSanitizer.resume();
  fiberSwitch(running().fiber, &own);
}

void Block::fault(const char* what) {
  fail(at(current) + " " + what);
  abort();  // the block does not come back here
}

// Contributions alternate between two arrays: a lane may begin the next exchange while others still
// read this one.
Exchanged* Block::exchange(Wait kind, const void* mine, size_t bytes) {
  int me = current;
  Warp& w = warp[me / 32];
  auto& exchanged = w.exchanged[threads[me].round++ % 2];
  if (bytes == 4)
    memcpy(exchanged[me % 32], mine, 4);  // a shuffle, without a call
  else
    memcpy(exchanged[me % 32], mine, bytes);
  wait(kind);
  return (Exchanged*)exchanged;
}

// stuck describes which threads wait for what when none can run.
//
// On a GPU a barrier that some threads do not reach hangs, or is passed by accident. Here nothing
// can run any more, which is detected at once and reported with the threads and what they wait
// for.
std::string Block::stuck() const {
  int first = -1;
  for (int i = count - 1; i >= 0; i--)
    if (threads[i].waits != Wait::None) first = i;
  std::string s = at(first) + " waits in " + names[(int)threads[first].waits] + " for others that do not come: ";
  int waiting[waits] = {};
  for (int i = 0; i < count; i++) waiting[(int)threads[i].waits]++;
  s += "of " + std::to_string(count) + " threads " + std::to_string(ended) + " have ended";
  for (int kind = 1; kind < waits; kind++)
    if (waiting[kind]) s += ", " + std::to_string(waiting[kind]) + " wait in " + names[kind];
  return s;
}

// An array is allocated when the first thread gets to its declaration.
void* Block::shared(const void* place, size_t bytes) {
  size_t total = bytes;
  for (Array& a : arrays) {
    if (a.place == place) return a.memory;
    total += a.bytes;
  }
  if (total > sharedLimit) fail(at(current) + ": " + std::to_string(total) + " bytes of shared memory");
  void* m = memory.take(bytes);
  arrays.push_back({place, bytes, m});
  return m;
}

void* Block::dynamic() { return shared(&work, work.dynamicBytes); }

Watched Block::watched(size_t bytes) {
  if (!watch.memory) {
    watch.memory = (char*)shared(&watch, bytes);
    // Times of earlier blocks are before all times of this one.
    if (accesses.size() < bytes / 4 + 1) accesses.resize(bytes / 4 + 1);
    watch.accesses = accesses.data();
  }
  return watch;
}

// written records what the emulator writes on behalf of the running thread.
void Block::written(void* to, size_t bytes) {
  if (!watch.memory) return;
  noteWrites(watch.accesses + ((char*)to - watch.memory) / 4, bytes / 4);
}

void wait(Wait kind) {
  SanitizerIgnore ignore;
  block->wait(kind);
}

Exchanged* exchange(Wait kind, const void* mine, size_t bytes) {
  SanitizerIgnore ignore;
  return block->exchange(kind, mine, bytes);
}

void* shared(const void* place, size_t bytes) {
  SanitizerIgnore ignore;
  return block->shared(place, bytes);
}

void* dynamicShared() {
  SanitizerIgnore ignore;
  return block->dynamic();
}

size_t dynamicBytes() { return block->dynamicBytes(); }

Watched watchedShared(size_t bytes) { return block->watched(bytes); }

void waitForGrid() { block->waitForGrid(); }

void letNextBegin() {
  if (here.early) fault("lets the next launch begin before it has waited itself");
}

void fault(const char* what) { block->fault(what); }

void copyLater(void* to, const void* from, int bytes, int size) {
  if ((uintptr_t)to % size || (bytes && (uintptr_t)from % size)) {
    SanitizerIgnore ignore;
    block->fail("an asynchronous copy of " + std::to_string(size) + " bytes is not aligned to them");
  }
  block->written(to, size);
  block->running().copies.later(to, from, bytes, size);
}

void copyCommit() { block->running().copies.commit(); }

void copyWait(int groups) {
  block->running().copies.wait(groups, [](void* to, size_t bytes) { block->written(to, bytes); });
}

void endGrid() { gridEnd.acquire(); }

std::string runBlock(const Work& work) {
  if (!block) block = new Block;
  return block->run(work);
}

}  // namespace pollen
