// The memory spaces. Addresses are checked before use; line is that of the instruction in the PTX.
#pragma once

#include "parameter.h"
#include "types.h"

namespace pollen {
namespace ptx {

// complain ends the block with a message about an access of some bytes at an address.
[[noreturn]] void complain(const char* what, U64 at, U64 bytes, int line);

template <U64 bytes>
static inline void aligned(U64 at, int line) {
  if (at % bytes) complain("misaligned", at, bytes, line);
}

// global checks an address in global memory, which is the machine's: the addresses of other spaces
// are far below these. It is not inlined: with its checks in thousands of places, kernels take a
// third longer to compile, and run no faster.
template <U64 bytes>
__attribute__((noinline)) static void* global(U64 at, int line) {
  aligned<bytes>(at, line);
  if (at < 1ull << 32 || at >= 1ull << 47) complain("outside global memory", at, bytes, line);
  if (here.early) complain("before the wait for the launch that the kernel follows", at, bytes, line);
  return (void*)at;
}

// A parameter's address is its number and, in the lower bits, an offset in it.
static constexpr U64 parameterAddress(int i) { return (U64)(i + 1) << 16; }

template <U64 bytes>
static inline void* parameter(void* const* arguments, const Parameter* of, U64 count, U64 at, int line) {
  aligned<bytes>(at, line);
  U64 i = (at >> 16) - 1, place = at & 0xffff;
  if (i >= count || place + bytes > (U64)of[i].size) complain("outside the parameters", at, bytes, line);
  return (char*)arguments[i] + place;
}

// Local is a thread's local memory.
template <int size>
struct Local {
  alignas(16) char memory[size ? size : 1];

  Local() { __builtin_memset(memory, 0xff, sizeof memory); }
  template <U64 bytes>
  void* at(U64 at, int line) {
    aligned<bytes>(at, line);
    U64 place = at - (1ull << 28);
    if (place > size || bytes > size - place) complain("outside local memory", at, bytes, line);
    return memory + place;
  }
};

struct Range {
  U64 begin, bytes;
};

// NoShared is the shared memory of a kernel that has none.
struct NoShared {};

// Shared is the block's shared memory: arrays at addresses from 1024 on.
template <int arrays>
struct Shared {
  Range array[arrays];
  Watched watched;

  Shared(const Range (&all)[arrays]) {
    for (int i = 0; i < arrays; i++) array[i] = all[i];
    watched = watchedShared(array[arrays - 1].begin + array[arrays - 1].bytes - 1024);
  }

  // check returns an offset in the memory.
  template <U64 bytes>
  U64 check(U64 at, int line) const {
    aligned<bytes>(at, line);
    for (int i = 0; i < arrays; i++)
      if (at >= array[i].begin && at + bytes <= array[i].begin + array[i].bytes) return at - 1024;
    complain("outside shared memory", at, bytes, line);
  }
  template <U64 bytes>
  void* reads(U64 at, int line) const {
    U64 place = check<bytes>(at, line);
    noteReads(watched.accesses + place / 4, bytes / 4);
    return watched.memory + place;
  }
  template <U64 bytes>
  void* writes(U64 at, int line) const {
    U64 place = check<bytes>(at, line);
    noteWrites(watched.accesses + place / 4, bytes / 4);
    return watched.memory + place;
  }
  // copy is cp.async: it happens when it is waited for. If the predicate is set, it writes zeros.
  template <U64 bytes>
  void copy(U64 to, U64 from, bool no, int line) const {
    U64 place = check<bytes>(to, line);
    copyLater(watched.memory + place, no ? nullptr : global<bytes>(from, line), no ? 0 : bytes, bytes);
  }
};

}  // namespace ptx
}  // namespace pollen
