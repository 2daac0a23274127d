// Device memory, page-locked host memory, and copies between them.
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "driver.h"

namespace pollen {

namespace {

constexpr uint64_t page = 4096, alignment = 512;

uint64_t pages(uint64_t bytes) { return (bytes + page - 1) / page * page; }

// take allocates memory that ends, up to its alignment, right before an inaccessible page. Its bits
// are ones, NaN in every type.
//
// The memory begins as late as its alignment allows, because kernels overrun buffers at their end
// more often than they begin before them. What is read before it is written is NaN, and the test
// that compares with the host fails.
uint64_t take(uint64_t bytes) {
  uint64_t whole = pages(bytes + alignment);
  char* m = (char*)mmap(nullptr, whole + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (m == MAP_FAILED) return 0;
  if (mprotect(m + page, whole, PROT_READ | PROT_WRITE)) {
    munmap(m, whole + 2 * page);
    return 0;
  }
  uint64_t at = ((uint64_t)m + page + whole - bytes) / alignment * alignment;
  memset((void*)at, 0xff, bytes);
  return at;
}

// give unmaps memory and its guard pages. Addresses are computed from the end, as in take.
void give(uint64_t at, uint64_t bytes) {
  uint64_t whole = pages(bytes + alignment), end = pages(at + bytes);
  munmap((void*)(end - whole - page), whole + 2 * page);
}

// inside reports whether a range of bytes lies in one allocation, of a context if c is set.
bool inside(const std::map<uint64_t, Allocation>& all, uint64_t address, uint64_t bytes, const Context* c) {
  auto after = all.upper_bound(address);
  if (after == all.begin()) return false;
  auto& [begin, allocation] = *--after;
  return (!c || allocation.context == c) && address - begin <= allocation.bytes && bytes <= allocation.bytes - (address - begin);
}

}  // namespace

bool Driver::onDevice(Context* c, uint64_t address, uint64_t bytes) const { return inside(memory, address, bytes, c); }

bool Driver::onHost(const void* address, uint64_t bytes) const { return inside(host, (uint64_t)address, bytes, nullptr); }

uint64_t Driver::used(const Context* c) const {
  uint64_t sum = 0;
  for (auto& [_, a] : memory)
    if (a.context == c) sum += a.bytes;
  return sum;
}

template <class M>
static void forgetIn(M& all, const Context* c) {
  for (auto i = all.begin(); i != all.end();) i = i->second.context == c ? all.erase(i) : std::next(i);
}

void Driver::forget(Context* c) {
  for (auto* all : {&memory, &host})
    for (auto& [at, a] : *all)
      if (a.context == c) give(at, a.bytes);
  forgetIn(memory, c);
  forgetIn(host, c);
  forgetIn(streams, c);
  forgetIn(graphs, c);
  forgetIn(executables, c);
  for (auto& [_, m] : modules)
    if (m.context == c)
      for (Handle f : m.functions) functions.erase(f);
  forgetIn(modules, c);
}

}  // namespace pollen

using namespace pollen;

EXPORT Result cuMemGetInfo_v2(uint64_t* free, uint64_t* total) {
  Call c("cuMemGetInfo_v2", Call::Current);
  if (c.result) return c.result;
  *total = driver().settings.memory;
  *free = *total - driver().used(c.context);
  return success;
}

EXPORT Result cuMemAlloc_v2(uint64_t* address, uint64_t bytes) {
  Call c("cuMemAlloc_v2", Call::Current);
  if (c.result) return c.result;
  Driver& d = driver();
  if (bytes == 0) return invalidValue;
  if (bytes > d.settings.memory - d.used(c.context)) return outOfMemory;
  uint64_t m = take(bytes);
  if (!m) return outOfMemory;
  d.memory[m] = {c.context, bytes};
  *address = m;
  return success;
}

EXPORT Result cuMemFree_v2(uint64_t address) {
  Call c("cuMemFree_v2", Call::Current);
  if (c.result) return c.result;
  if (address == 0) return success;
  Driver& d = driver();
  auto found = d.memory.find(address);
  if (found == d.memory.end()) return invalidValue;
  Result waited = d.drainAll(found->second.context);
  give(address, found->second.bytes);
  d.memory.erase(found);
  return waited;
}

EXPORT Result cuMemAllocHost_v2(void** address, uint64_t bytes) {
  Call c("cuMemAllocHost_v2", Call::Current);
  if (c.result) return c.result;
  if (bytes == 0) return invalidValue;
  uint64_t m = take(bytes);
  if (!m) return outOfMemory;
  driver().host[m] = {c.context, bytes};
  *address = (void*)m;
  return success;
}

EXPORT Result cuMemFreeHost(void* address) {
  Call c("cuMemFreeHost", Call::Current);
  if (c.result) return c.result;
  if (!address) return success;
  Driver& d = driver();
  auto found = d.host.find((uint64_t)address);
  if (found == d.host.end()) return invalidValue;
  give((uint64_t)address, found->second.bytes);
  d.host.erase(found);
  return success;
}

// copy copies between a device and host memory. Page-locked memory is read and written when the
// stream gets there; pageable memory at once, after everything queued on the stream, as the driver
// does.
static Result copy(Call& c, uint64_t to, uint64_t from, uint64_t bytes, Handle stream, const void* host, uint64_t device) {
  Driver& d = driver();
  if (bytes == 0) return success;
  if (!host || !d.onDevice(c.context, device, bytes)) return invalidValue;
  Context* context = c.context;
  bool locked = d.onHost(host, bytes);
  auto operation = [=, &d] {
    if (!d.onDevice(context, device, bytes) || (locked && !d.onHost(host, bytes))) {
      d.fault = "an asynchronous copy whose memory was freed before it was waited for";
      return illegalAddress;
    }
    memcpy((void*)to, (void*)from, bytes);
    return success;
  };
  auto found = d.streams.find(stream);
  if (!locked && found != d.streams.end()) {
    if (Result r = enqueue(c, stream, operation)) return r;
    return d.drain(found->second);
  }
  return enqueue(c, stream, operation);
}

EXPORT Result cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, uint64_t bytes, Handle stream) {
  Call c("cuMemcpyHtoDAsync_v2", Call::Current);
  return c.result ? c.result : copy(c, to, (uint64_t)from, bytes, stream, from, to);
}

EXPORT Result cuMemcpyDtoHAsync_v2(void* to, uint64_t from, uint64_t bytes, Handle stream) {
  Call c("cuMemcpyDtoHAsync_v2", Call::Current);
  return c.result ? c.result : copy(c, (uint64_t)to, from, bytes, stream, to, from);
}

EXPORT Result cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, uint64_t bytes, Handle stream) {
  Call c("cuMemcpyDtoDAsync_v2", Call::Current);
  if (c.result) return c.result;
  Driver& d = driver();
  if (bytes == 0) return success;
  if (!d.onDevice(c.context, to, bytes) || !d.onDevice(c.context, from, bytes)) return invalidValue;
  Context* context = c.context;
  return enqueue(c, stream, [=, &d] {
    if (!d.onDevice(context, to, bytes) || !d.onDevice(context, from, bytes)) return illegalAddress;
    memmove((void*)to, (void*)from, bytes);
    return success;
  });
}

EXPORT Result cuMemsetD8Async(uint64_t address, unsigned char value, uint64_t bytes, Handle stream) {
  Call c("cuMemsetD8Async", Call::Current);
  if (c.result) return c.result;
  Driver& d = driver();
  if (bytes == 0) return success;
  if (!d.onDevice(c.context, address, bytes)) return invalidValue;
  Context* context = c.context;
  return enqueue(c, stream, [=, &d] {
    if (!d.onDevice(context, address, bytes)) return illegalAddress;
    memset((void*)address, value, bytes);
    return success;
  });
}
