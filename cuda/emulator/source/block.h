// A block of CUDA threads on one thread of the machine. Each CUDA thread is a fiber. It runs until it waits for others; a thread that
// never waits costs no switch: the next one runs on the same stack. The order is fixed: the same input, the same bits.
#pragma once

#include <cstddef>

namespace pollen {

struct Dim {
  unsigned x, y, z;
};

// Here is where the running CUDA thread is. Its time is the block's barriers so far, in units of timeUnit, and the thread's number: what has the same time
// apart from the number is ordered by no barrier.
struct Here {
  Dim thread, block, threads, blocks;
  unsigned long long time;
  bool early;  // it began before the launch that it follows had ended, and has not waited for that yet
};
constexpr unsigned long long timeUnit = 2048;

extern thread_local Here here __attribute__((tls_model("initial-exec")));

// Wait is what a thread waits for: all threads of its block, or those of its warp, in one of the ways that take the whole warp.
enum class Wait { None, Block, Warp, Shuffle, MultiplyTF32, MultiplyBF16, LoadMatrix, Phase, Product };
constexpr int waits = 9;

constexpr size_t laneBytes = 32;

// wait returns when every thread that has to take part waits for the same.
void wait(Wait kind);

// exchange waits for the warp and gives what each of its lanes brought, which stays until the exchange after the next.
typedef const char Brought[laneBytes];
Brought* exchange(Wait kind, const void* mine, size_t bytes);

// laneNumber is the running thread's place in its warp.
int laneNumber();

// shared is the block's array for a place in the source. It is NaN in every type until something is stored.
void* shared(const void* place, size_t bytes);
void* dynamicShared();

// dynamicBytes is what the launch asked for.
size_t dynamicBytes();

// Access is when a word of shared memory was last written to and read; several says of a time that other threads read then, too.
struct Access {
  unsigned long long write, read;
};
constexpr unsigned long long several = 1024;

// Watched is shared memory whose accesses translated PTX notes, with those of each word of four bytes.
struct Watched {
  char* memory;
  Access* accesses;
};
Watched watchedShared(size_t bytes);

// fault ends the block with what the running thread did wrong.
[[noreturn]] void fault(const char* what);

// noteReads and noteWrites note an access to some words by the running thread. One is an error if another thread wrote to a word since the last barrier of
// the block, and a write also if another thread read it.
inline void noteReads(Access* words, size_t count) {
  unsigned long long now = here.time, barrier = now / timeUnit * timeUnit;
  for (size_t i = 0; i < count; i++) {
    Access& a = words[i];
    if (a.write >= barrier && a.write != now) fault("reads a word of shared memory that another thread wrote to since the last barrier");
    if (a.read != now) a.read = a.read < barrier ? now : now | several;
  }
}
inline void noteWrites(Access* words, size_t count) {
  unsigned long long now = here.time, barrier = now / timeUnit * timeUnit;
  for (size_t i = 0; i < count; i++) {
    Access& a = words[i];
    if (a.write >= barrier && a.write != now) fault("writes a word of shared memory that another thread wrote to since the last barrier");
    if (a.read >= barrier && a.read != now) fault("writes a word of shared memory that another thread read since the last barrier");
    a.write = now;
  }
}

// waitForGrid is griddepcontrol.wait, and letNextBegin griddepcontrol.launch_dependents, which a thread that is early does not do.
void waitForGrid();
void letNextBegin();

// copyLater fills size bytes of shared memory with ones, and notes a copy of some bytes to there, with zeros up to size. copyCommit ends a group of
// copies. copyWait makes the copies of all groups but the newest few.
void copyLater(void* to, const void* from, int bytes, int size);
void copyCommit();
void copyWait(int groups);

// initPhase makes a barrier for copies of eight bytes of shared memory: each phase waits for so many arrivals. Copies know of it after orderPhases.
// arriveAtPhase arrives, and has the phase wait for so many bytes more. hasPassedPhase tells whether the phase of a parity has ended; it must be asked
// again. copyBulk leaves NaN, and notes a copy that counts in the barrier's phase.
void initPhase(const void* place, int arrivals);
void orderPhases();
void arriveAtPhase(const void* place, int bytes);
bool hasPassedPhase(const void* place, int odd);
void copyBulk(void* to, const void* from, size_t bytes, const void* place);

// meetGroup waits for the 128 threads of four warps, which bring the same operands. It is true for one of them, the first to go on, which has to compute the
// product, at most 64 x 256 numbers, for all of them: putProduct puts some where they belong.
bool meetGroup(const unsigned long long (&operands)[2]);
// bringLeft gives the thread's words of the left operand to the product for which the group meets next, and broughtLeft is what all threads gave.
void bringLeft(const unsigned* const (&words)[4]);
const unsigned (*broughtLeft())[4];
void putProduct(int at, const float* numbers, int count);

// addProduct adds the product's numbers at some places to a thread's sums, or puts them there, after commitProducts and waitProducts, which waits for all
// groups but the newest few; until then NaN is there. productReads notes that until then what it reads must stay what it is.
struct ProductReads {
  unsigned long long (*digest)(const ProductReads&);
  const void* memory;
  unsigned long long operands[2];
  int columns;
  const unsigned* words[4];  // of the left operand, if that is in registers
};
void addProduct(float* const* sums, const int* places, int count, bool keep);
void productReads(const ProductReads& reads);
void fenceProducts();
void commitProducts();
void waitProducts(int groups);

}  // namespace pollen
