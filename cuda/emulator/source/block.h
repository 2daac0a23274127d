// A block of CUDA threads on one thread of the machine. Each CUDA thread is a fiber. It runs until it waits for others; a thread that
// never waits costs no switch: the next one runs on the same stack. The order is fixed: the same input, the same bits.
#pragma once

#include <cstddef>

namespace pollen {

struct Dim {
  unsigned x, y, z;
};

// Here is where the running CUDA thread is.
struct Here {
  Dim thread, block, threads, blocks;
};

extern thread_local Here here __attribute__((tls_model("initial-exec")));

// Wait is what a thread waits for: all threads of its block, or those of its warp, in one of the ways that take the whole warp.
enum class Wait { None, Block, Warp, Shuffle, MultiplyTF32, MultiplyBF16 };

constexpr size_t laneBytes = 32;

// wait returns when every thread that has to take part waits for the same.
void wait(Wait kind);

// exchange waits for the warp and gives what each of its lanes brought, which stays until the exchange after the next.
typedef const char Brought[laneBytes];
Brought* exchange(Wait kind, const void* mine, size_t bytes);

// laneNumber is the running thread's place in its warp.
int laneNumber();

// shared is the block's array for a place in the source. Its bits are ones, which is NaN in every type, until something is stored.
void* shared(const void* place, size_t bytes);
void* dynamicShared();

// copyLater fills size bytes of shared memory with ones, and notes a copy of some bytes to there, with zeros up to size. copyCommit ends a group of
// copies. copyWait makes the copies of all groups but the newest few.
void copyLater(void* to, const void* from, int bytes, int size);
void copyCommit();
void copyWait(int groups);

}  // namespace pollen
