#include "kernel.h"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>

namespace pollen {

namespace {

// Functions instead of variables: registration happens before main, in no particular order of
// files.
std::map<std::string, Kernel>& kernels() {
  static std::map<std::string, Kernel> all;
  return all;
}

std::set<unsigned long long>& translated() {
  static std::set<unsigned long long> all;
  return all;
}

std::set<std::string> run;  // names of the kernels that were run

// Grid is a running grid: its threads claim block after block.
struct Grid {
  const Kernel* kernel;
  Dim blocks, threads;
  Work work;
  std::atomic<long long> next{0};
  long long count;
  std::mutex mutex;
  long long failed;  // the first block that failed
  std::string failure;
};

// runBlocks runs blocks until there are none left, or one fails. Of several failures the one of the
// lowest block counts, so that messages do not depend on timing.
//
// A grid's blocks are independent, so that they run on all processors. Threads of one block stay
// on one processor, since they switch stacks.
void runBlocks(Grid& g) {
  here.blocks = g.blocks;
  here.threads = g.threads;
  for (;;) {
    long long i = g.next.fetch_add(1);
    if (i >= g.count) return;
    here.block = {(unsigned)(i % g.blocks.x), (unsigned)(i / g.blocks.x % g.blocks.y), (unsigned)(i / g.blocks.x / g.blocks.y)};
    std::string failure = runBlock(g.work);
    if (failure.empty()) continue;
    std::lock_guard<std::mutex> lock(g.mutex);
    if (g.failure.empty() || i < g.failed) g.failure = failure, g.failed = i;
    g.next = g.count;
  }
}

// Pool is the threads next to the one that calls runGrid.
struct Pool {
  std::mutex mutex;
  std::condition_variable wake, done;
  Grid* grid = nullptr;
  unsigned long long round = 0;
  int threads = 0, working = 0, limit = 0;

  // grow starts threads. They block all signals, which belong to the program.
  void grow(int wanted) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; threads < wanted; threads++) std::thread([this] { loop(); }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void loop() {
    unsigned long long seen = 0;
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      wake.wait(lock, [&] { return round != seen; });
      seen = round;
      Grid* g = grid;
      if (!g) continue;
      working++;
      lock.unlock();
      runBlocks(*g);
      lock.lock();
      if (--working == 0) done.notify_all();
    }
  }

  // run executes a grid on the calling thread and, if it has more than one block, on the pool's
  // threads.
  void run(Grid& g) {
    int wanted = limit > 0 ? limit : (int)std::thread::hardware_concurrency();
    if (wanted > 1 && g.count > 1) {
      std::lock_guard<std::mutex> lock(mutex);
      grow(wanted - 1);
      grid = &g;
      round++;
      wake.notify_all();
    }
    runBlocks(g);
    std::unique_lock<std::mutex> lock(mutex);
    grid = nullptr;
    done.wait(lock, [&] { return working == 0; });
  }
};

Pool& pool() {
  static Pool* one = new Pool;  // its threads outlive main
  return *one;
}

}  // namespace

const Kernel* findKernel(const std::string& name) {
  auto found = kernels().find(name);
  return found == kernels().end() ? nullptr : &found->second;
}

bool addKernel(const char* name, unsigned maxThreads, const Parameter* parameters, int count, void (*run)(void* const* arguments), bool fromSource) {
  kernels()[name] = {name, maxThreads, {parameters, parameters + count}, run, fromSource};
  return true;
}

bool addPTX(unsigned long long digest) { return translated().insert(digest), true; }

// The text is compared entry by entry, by digest: a module that the device makes of one entry has
// the file's head and that entry only.
//
// This check keeps the tests honest: a module whose text differs from what was compiled for the
// CPU would otherwise run, with the kernels of another text.
bool knowsPTX(const std::string& text) {
  const std::string entry = "\n.visible .entry ";
  bool all = true;
  for (size_t from = 0, to;; from = to + entry.size()) {
    to = text.find(entry, from);
    std::string part = text.substr(from, to - from);
    const Kernel* kernel = from ? findKernel(part.substr(0, part.find('('))) : nullptr;
    if (kernel && kernel->fromSource) return true;
    unsigned long long digest = 0xcbf29ce484222325ull;
    for (unsigned char c : part) digest = (digest ^ c) * 0x100000001b3ull;
    all = all && translated().count(digest);
    if (to == std::string::npos) return all;
  }
}

std::vector<std::string> kernelsNotRun() {
  std::vector<std::string> all;
  for (auto& [name, kernel] : kernels())
    if (!run.count(name)) all.push_back(name);
  return all;
}

void setMachineThreads(int threads) { pool().limit = threads; }

// One grid runs at a time.
std::string runGrid(const Kernel& kernel, Dim blocks, Dim threads, size_t dynamicBytes, void* const* arguments, bool early) {
  static std::mutex one;
  std::lock_guard<std::mutex> lock(one);
  run.insert(kernel.name);
  Grid g;
  g.kernel = &kernel;
  g.blocks = blocks, g.threads = threads;
  g.work = {kernel.run, arguments, dynamicBytes, early && !kernel.fromSource};
  g.count = (long long)blocks.x * blocks.y * blocks.z;
  pool().run(g);
  endGrid();
  return g.failure.empty() ? "" : kernel.name + ": " + g.failure;
}

}  // namespace pollen
