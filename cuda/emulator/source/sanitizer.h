// Informs the sanitizers about fibers and shared memory. Without a sanitizer these functions do
// nothing.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#if defined(POLLEN_THREAD_SANITIZER)
extern "C" {
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void __tsan_read_range(void* address, unsigned long size);
void __tsan_write_range(void* address, unsigned long size);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

namespace pollen {

// unwritten fills memory with the NaN that GPUs produce, in either precision: a read before the
// first write shows, also after a rounding of the bits.
inline void unwritten(void* memory, size_t bytes) {
  for (size_t i = 0; i + 4 <= bytes; i += 4) {
    uint32_t word = 0x7fffffff;
    memcpy((char*)memory + i, &word, 4);
  }
}

#if defined(POLLEN_THREAD_SANITIZER)

// ownStacks gives every thread a new stack: the detector would think that two threads on one stack
// share its variables. It takes long for each mapping that comes or goes, so that the stacks of a
// block are one, without guards between them: it reports a thread that overflows into the stack of
// another as a race.
constexpr bool ownStacks = true;

// SanitizerFiber is a CUDA thread for the race detector: two threads are ordered by barriers only,
// not by the order in which they run. It comes after everything that its creator has done, so no
// thread of a block may create another.
class SanitizerFiber {
 public:
  void here() { fiber = __tsan_get_current_fiber(); }
  void create() { fiber = __tsan_create_fiber(0); }
  void resume() { __tsan_switch_to_fiber(fiber, 1); }
  void end() {
    if (fiber) __tsan_destroy_fiber(fiber);
    fiber = nullptr;
  }

 private:
  void* fiber = nullptr;
};

class SanitizerSync {
 public:
  void release() { __tsan_release(this); }
  void acquire() { __tsan_acquire(this); }

 private:
  long unused = 0;
};

// SanitizerIgnore is alive while the emulator works for a thread: the detector sees the library
// functions that it calls.
struct SanitizerIgnore {
  SanitizerIgnore() {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~SanitizerIgnore() {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
};

inline void sanitizedCopy(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  __tsan_read_range((void*)from, bytes);
  __tsan_write_range(to, bytes);
  SanitizerIgnore ignore;
  memcpy(to, from, bytes);
}
inline void sanitizedRead(const void* from, size_t bytes) { __tsan_read_range((void*)from, bytes); }
inline void sanitizedFill(void* to, int value, size_t bytes) {
  if (bytes == 0) return;
  __tsan_write_range(to, bytes);
  SanitizerIgnore ignore;
  memset(to, value, bytes);
}
inline void sanitizedUnwritten(void* to, size_t bytes) {
  sanitizedFill(to, 0, bytes);
  SanitizerIgnore ignore;
  unwritten(to, bytes);
}

#else

constexpr bool ownStacks = false;

struct SanitizerFiber {
  void here() {}
  void create() {}
  void resume() {}
  void end() {}
};

struct SanitizerSync {
  void release() {}
  void acquire() {}
};

struct SanitizerIgnore {
  SanitizerIgnore() {}
};

#if defined(POLLEN_ADDRESS_SANITIZER)
extern "C" void* __asan_memcpy(void*, const void*, size_t);
extern "C" void* __asan_memset(void*, int, size_t);
extern "C" void __asan_loadN(void*, size_t);
inline void sanitizedRead(const void* from, size_t bytes) { __asan_loadN((void*)from, bytes); }
inline void sanitizedCopy(void* to, const void* from, size_t bytes) { __asan_memcpy(to, from, bytes); }
inline void sanitizedFill(void* to, int value, size_t bytes) { __asan_memset(to, value, bytes); }
inline void sanitizedUnwritten(void* to, size_t bytes) {
  sanitizedFill(to, 0, bytes);
  unwritten(to, bytes);
}
#else
inline void sanitizedRead(const void*, size_t) {}
inline void sanitizedCopy(void* to, const void* from, size_t bytes) { memcpy(to, from, bytes); }
inline void sanitizedFill(void* to, int value, size_t bytes) { memset(to, value, bytes); }
inline void sanitizedUnwritten(void* to, size_t bytes) { unwritten(to, bytes); }
#endif

#endif

#if defined(POLLEN_THREAD_SANITIZER) || defined(POLLEN_ADDRESS_SANITIZER)

// SharedMemory is a block's shared memory. Each array is a separate allocation, whose ends the
// address sanitizer guards. The race detector's allocations are never reused: another block's
// threads, which are not ordered after these, would seem to race for them.
class SharedMemory {
 public:
  void* take(size_t bytes) {
    void* m = aligned_alloc(128, (bytes + 127) / 128 * 128 + 128);
#if defined(POLLEN_ADDRESS_SANITIZER)
    free(m);
    if (posix_memalign(&m, 128, bytes ? bytes : 1)) abort();
#endif
    unwritten(m, bytes);
    taken.push_back(m);
    return m;
  }
  void clear() {
#if defined(POLLEN_ADDRESS_SANITIZER)
    for (void* m : taken) free(m);
#endif
    taken.clear();
  }

 private:
  std::vector<void*> taken;
};

#else

class SharedMemory {
 public:
  void* take(size_t bytes) {
    if (!memory && posix_memalign((void**)&memory, 4096, capacity)) abort();
    char* m = memory + used;
    unwritten(m, bytes);
    used += (bytes + 127) / 128 * 128;
    return m;
  }
  void clear() { used = 0; }

 private:
  static constexpr size_t capacity = 512 << 10;
  char* memory = nullptr;
  size_t used = 0;
};

#endif

}  // namespace pollen
