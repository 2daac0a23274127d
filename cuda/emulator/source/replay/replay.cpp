// Runs launches from a file (../../recording.go writes it), each buffer in a separate allocation,
// so that the sanitizers see every access beyond one.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "kernel.h"

#if defined(POLLEN_ADDRESS_SANITIZER)
extern "C" void __asan_poison_memory_region(void const volatile*, size_t);
extern "C" void __asan_unpoison_memory_region(void const volatile*, size_t);
#else
static void __asan_poison_memory_region(void*, size_t) {}
static void __asan_unpoison_memory_region(void*, size_t) {}
#endif

using namespace pollen;

static FILE* file;

static void die(const std::string& what) {
  fprintf(stderr, "replay: %s\n", what.c_str());
  exit(1);
}

template <class T>
static T read() {
  T v;
  if (fread(&v, sizeof v, 1, file) != 1) die("the file ends too early");
  return v;
}

// Memory is a buffer: a copy for each chain, each followed by an inaccessible gap.
struct Memory {
  struct Address {
    uint64_t base, stride;
  } address;
  char* all;
  uint64_t bytes, chains;

  Memory(uint64_t copies, bool shared, uint64_t size) : bytes(size), chains(shared ? 1 : copies) {
    uint64_t apart = (bytes + 255) / 256 * 256 + 256;
    if (posix_memalign((void**)&all, 256, apart * chains)) die("no memory");
    address = {(uint64_t)all, shared ? 0 : apart};
    memset(all, 0xff, apart * chains);
    for (uint64_t c = 0; c < chains; c++) __asan_poison_memory_region(all + apart * c + bytes, apart - bytes);
  }
  void fill() {
    if (fread(all, 1, bytes, file) != bytes) die("the file ends too early");
    for (uint64_t c = 1; c < chains; c++) memcpy(all + address.stride * c, all, bytes);
  }
  void write(FILE* to) const {
    for (uint64_t c = 0; c < chains; c++)
      if (fwrite(all + address.stride * c, 1, bytes, to) != bytes) die("cannot write the results");
  }
  bool equals(FILE* other) const {
    std::vector<char> wanted(bytes);
    for (uint64_t c = 0; c < chains; c++) {
      if (fread(wanted.data(), 1, bytes, other) != bytes) die("the expected results end too early");
      if (memcmp(wanted.data(), all + address.stride * c, bytes)) return false;
    }
    return true;
  }
  void free() {
    __asan_unpoison_memory_region(all, ((bytes + 255) / 256 * 256 + 256) * chains);
    ::free(all);
  }
};

// rowsOf builds the single parameter of a kernel that takes rows (../../../kernels/rows.cuh).
static std::vector<char> rowsOf(const Kernel& kernel, const std::vector<int>& ends, const std::vector<void*>& arguments, const std::vector<size_t>& sizes) {
  const size_t most = 12, begin = most * sizeof(int), each = (kernel.parameters[0].size - begin) / most;
  std::vector<char> all(kernel.parameters[0].size, (char)0xff);
  memcpy(all.data(), ends.data(), ends.size() * sizeof(int));
  for (size_t row = 0, i = 0; row < ends.size(); row++) {
    size_t at = 0;
    for (size_t end = arguments.size() / ends.size() * (row + 1); i < end; i++) {
      size_t align = sizes[i] < 8 ? sizes[i] : 8;
      at = (at + align - 1) / align * align;
      if (at + sizes[i] > each) die(kernel.name + ": a row is too long");
      memcpy(all.data() + begin + row * each + at, arguments[i], sizes[i]);
      at += sizes[i];
    }
    if ((at + 7) / 8 * 8 != each) die(kernel.name + ": a row is too short");
  }
  return all;
}

static void call(std::vector<Memory>& memory, unsigned chains) {
  std::string symbol(read<uint32_t>(), ' ');
  if (fread(&symbol[0], 1, symbol.size(), file) != symbol.size()) die("the file ends too early");
  const Kernel* kernel = findKernel(symbol);
  if (!kernel) die("no kernel " + symbol);
  unsigned x = read<uint32_t>(), y = read<uint32_t>(), threads = read<uint32_t>(), dynamic = read<uint32_t>();
  std::vector<uint64_t> scalars(read<uint32_t>());
  std::vector<void*> arguments;
  std::vector<size_t> sizes;
  for (uint64_t& scalar : scalars) {
    bool buffer = read<uint8_t>();
    scalar = read<uint64_t>();
    arguments.push_back(buffer ? (void*)&memory[scalar].address : &scalar);
    uint32_t bytes = read<uint32_t>();
    sizes.push_back(buffer ? sizeof(Memory::Address) : bytes);
  }
  bool early = read<uint8_t>();
  std::vector<int> ends(read<uint32_t>());
  for (int& end : ends) end = read<uint32_t>();
  std::vector<char> rows;
  if (!ends.empty()) {
    rows = rowsOf(*kernel, ends, arguments, sizes);
    arguments = {rows.data()};
  }
  if (arguments.size() != kernel->parameters.size()) die(symbol + ": wrong number of arguments");
  // The sanitizers end the program in the middle of a kernel; this prints where.
  fprintf(stderr, "\r%s%*s", symbol.c_str(), 40, "");
  std::string wrong = runGrid(*kernel, {x, y, chains}, {threads, 1, 1}, dynamic, arguments.data(), early);
  if (!wrong.empty()) die(wrong);
}

// If a second name is given, the buffers' contents after the calls are written to that file, unless
// it is empty. If a third is given, that file has the expected contents of each launch's first
// buffer: the program ends with exit code 3 after the first launch whose buffer has others.
int main(int count, char** names) {
  file = fopen(names[1], "rb");
  if (!file) die(std::string("cannot read ") + names[1]);
  bool writes = count > 2 && *names[2];
  FILE* results = writes ? fopen(names[2], "wb") : nullptr;
  if (writes && !results) die(std::string("cannot write ") + names[2]);
  FILE* expected = count > 3 ? fopen(names[3], "rb") : nullptr;
  if (count > 3 && !expected) die(std::string("cannot read ") + names[3]);
  setMachineThreads(1);
  for (;;) {
    uint32_t chains;
    if (fread(&chains, sizeof chains, 1, file) != 1) break;
    std::vector<Memory> memory;
    for (uint32_t buffers = read<uint32_t>(); buffers > 0; buffers--) {
      bool shared = read<uint8_t>(), filled = read<uint8_t>();
      memory.emplace_back(chains, shared, read<uint64_t>());
      if (filled) memory.back().fill();
    }
    for (uint32_t calls = read<uint32_t>(); calls > 0; calls--) call(memory, chains);
    if (expected && !memory[0].equals(expected)) return 3;
    for (Memory& m : memory) {
      if (results) m.write(results);
      m.free();
    }
  }
  if (results && fclose(results)) die("cannot write the results");
  fprintf(stderr, "\rreplayed\n");
}
