// A block of CUDA threads on one thread of the machine. Each CUDA thread is a fiber, which runs
// until it waits for others. A thread that never waits costs no switch: the next one runs on the
// same stack. The order is fixed: the same input gives the same bits.
#pragma once

#include <cstddef>

namespace pollen {

struct Dim {
  unsigned x, y, z;
};

// Here is the position of the running CUDA thread. Its time is the number of the block's barriers
// so far, in units of timeUnit, plus the number of its warp's barriers, in units of warpUnit, plus
// the thread's number. A barrier of the block orders all accesses before and after it, one of a warp
// those of its threads.
struct Here {
  Dim thread, block, threads, blocks;
  unsigned long long time;
  bool early;  // it began before its predecessor had ended, and has not waited for that yet
};
constexpr unsigned long long warpUnit = 2048, timeUnit = warpUnit << 20;

extern thread_local Here here __attribute__((tls_model("initial-exec")));

// Wait is what a thread waits for: all threads of its block, or those of its warp, in one of the
// operations of a whole warp.
enum class Wait { None, Block, Warp, Shuffle, MultiplyTF32, MultiplyBF16, LoadMatrix, Phase, Product };
constexpr int waits = 9;

constexpr size_t laneBytes = 32;

// wait returns when every thread that must take part waits for the same.
void wait(Wait kind);

// exchange waits for the warp and returns each lane's contribution, which stays valid until the
// exchange after the next.
typedef const char Exchanged[laneBytes];
Exchanged* exchange(Wait kind, const void* mine, size_t bytes);

// laneNumber returns the running thread's lane in its warp.
inline int laneNumber() { return here.time % 32; }

// shared returns the block's array for a place in the source. It is NaN in every type until
// something is stored.
void* shared(const void* place, size_t bytes);
void* dynamicShared();

// dynamicBytes returns the launch's dynamic shared memory.
size_t dynamicBytes();

// Access has the times of the last write to and the last read of a word of shared memory. The bit
// several means that other threads read then, too.
struct Access {
  unsigned long long write, read;
};
constexpr unsigned long long several = 1024;

// Watched is shared memory whose accesses translated PTX records, an Access for each word of four
// bytes.
struct Watched {
  char* memory;
  Access* accesses;
};
Watched watchedShared(size_t bytes);

// fault ends the block with a message about what the running thread did wrong.
[[noreturn]] void fault(const char* what);

// unordered reports whether no barrier comes between an access and the present time.
inline bool unordered(unsigned long long access, unsigned long long now) {
  if (access < now / timeUnit * timeUnit) return false;
  constexpr unsigned long long warp = several - 32;
  return access & several || (access ^ now) & warp || (access / warpUnit == now / warpUnit && access != now);
}

// noteReads and noteWrites record an access by the running thread. An access is an error if another
// thread has written to a word without a barrier in between; a write is an error, too, if another
// thread has read it.
inline void noteReads(Access* words, size_t count) {
  unsigned long long now = here.time;
  for (size_t i = 0; i < count; i++) {
    Access& a = words[i];
    if (unordered(a.write, now)) fault("reads a word of shared memory that another thread wrote to since the last barrier");
    a.read = unordered(a.read, now) ? now | several : now;
  }
}
inline void noteWrites(Access* words, size_t count) {
  unsigned long long now = here.time;
  for (size_t i = 0; i < count; i++) {
    Access& a = words[i];
    if (unordered(a.write, now)) fault("writes a word of shared memory that another thread wrote to since the last barrier");
    if (unordered(a.read, now)) fault("writes a word of shared memory that another thread read since the last barrier");
    a.write = now;
  }
}

// waitForGrid is griddepcontrol.wait, letNextBegin griddepcontrol.launch_dependents. A thread must
// not call letNextBegin while it is early.
void waitForGrid();
void letNextBegin();

// copyLater is cp.async: it fills size bytes of shared memory with ones, and records a copy of
// bytes bytes to there, with zeros up to size. copyCommit ends a group of copies. copyWait performs
// the copies of all groups except the newest few.
void copyLater(void* to, const void* from, int bytes, int size);
void copyCommit();
void copyWait(int groups);

// initPhase initialises an mbarrier in eight bytes of shared memory, whose phases need arrivals
// arrivals. Bulk copies may use it after fencePhases. arriveAtPhase arrives and adds bytes to what
// the phase waits for. tryWaitPhase reports whether the phase of a parity has ended; false means
// ask again. copyBulk leaves NaN, and records a copy that counts in the mbarrier's phase.
void initPhase(const void* place, int arrivals);
void fencePhases();
void arriveAtPhase(const void* place, int bytes);
bool tryWaitPhase(const void* place, int odd);
void copyBulk(void* to, const void* from, size_t bytes, const void* place);

// meetGroup waits for the 128 threads of a warpgroup, which must pass the same operands. It returns
// true in one of them, the first to continue, which must compute the product, at most 64 x 256
// numbers, for all of them and store it by putProduct.
bool meetGroup(const unsigned long long (&operands)[2]);
// shareLeft passes the thread's words of the left operand to the product for which the warpgroup
// meets next; sharedLeft returns those of all threads.
void shareLeft(const unsigned* const (&words)[4]);
const unsigned (*sharedLeft())[4];
void putProduct(int at, const float* numbers, int count);

// addProduct adds the product's numbers at some places to a thread's sums, or, unless keep is set,
// replaces these. The sums are NaN until commitProducts and waitProducts, which waits for all
// groups except the newest few. productReads records what a product reads, which must not change
// until then.
struct ProductReads {
  unsigned long long (*digest)(const ProductReads&);
  const void* memory;
  unsigned long long operands[2];
  int columns;
  const unsigned* words[4];  // of the left operand, if it is in registers
};
void addProduct(float* const* sums, const int* places, int count, bool keep);
void productReads(const ProductReads& reads);
void fenceProducts();
void commitProducts();
void waitProducts(int groups);

}  // namespace pollen
