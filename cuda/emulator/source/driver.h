// The emulated driver's state. Handles are numbers that are never reused, so that a handle that was
// released is recognised.
//
// A stream's operations are queued and happen when somebody waits for them: a program that forgets
// to wait sees memory as it was before.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "kernel.h"

#define EXPORT extern "C" __attribute__((visibility("default"), used))

namespace pollen {

using Handle = uint64_t;

// The driver's results.
enum Result : int {
  success = 0,
  invalidValue = 1,
  outOfMemory = 2,
  notInitialized = 3,
  noDevice = 100,
  invalidDevice = 101,
  invalidContext = 201,
  noBinary = 209,
  invalidPTX = 218,
  unsupportedPTX = 222,
  invalidHandle = 400,
  notFound = 500,
  illegalAddress = 700,
  launchFailed = 719,
};

struct Entry {
  const Kernel* kernel;
  unsigned maxThreads;
  std::vector<Parameter> parameters;
  bool waits;  // it waits for the launch before it (griddepcontrol.wait), so that it may begin early
  int shared;  // bytes of its static shared memory
};

// parsePTX reads a file's target, version and entries. It returns what is wrong with it, or
// nothing.
struct PTX {
  int version = 0, capability = 0;  // 10 major + minor
  bool exact = false;               // the target is one capability only, as sm_90a
  std::map<std::string, Entry> entries;
};
std::string parsePTX(const std::string& text, PTX& into);

struct Context {
  int device, retained;
  int lost;  // the result of all calls after a fatal error
};

struct Allocation {
  Context* context;
  uint64_t bytes;
};

// Operation is a queued operation. A result other than success loses the context.
using Operation = std::function<Result()>;

struct Stream {
  Context* context;
  std::deque<Operation> queue;
};

struct Node {
  std::vector<size_t> follows;  // indices of the graph's nodes
  Operation operation;
  std::shared_ptr<bool> early;  // whether the operation begins before one of these has ended
};

// Graph is nodes, which each launch runs in another of the orders that the edges allow, the same
// orders in each process.
struct Graph {
  Context* context;
  std::vector<Node> nodes;
  std::map<Handle, size_t> numbers;
};

struct Module {
  Context* context;
  PTX ptx;
  std::vector<Handle> functions;
};

struct Function {
  Handle module;
  Entry entry;
  int dynamicBytes;
};

// Injected is a failure that a test requested: of the count-th call from then on, of that name or
// of any.
struct Injected {
  std::string call;
  long long count;
  Result result;
  bool lost;  // and of every call after it
};

struct Settings {
  int devices = 1, capability = 90, version = 13000, multiprocessors = 4;
  uint64_t memory = 1ull << 30;
};

struct Driver {
  std::recursive_mutex mutex;
  Settings settings;
  bool initialized = false;
  std::vector<Context> contexts;  // one per device, once initialised
  std::map<uint64_t, Allocation> memory, host;  // by address
  std::map<Handle, Stream> streams;
  std::map<Handle, Graph> graphs, executables;
  uint64_t graphsLaunched = 0;
  std::map<Handle, Module> modules;
  std::map<Handle, Function> functions;
  std::vector<Injected> injected;
  std::string fault;  // message of the last kernel that failed
  Handle last = 0x100;

  Handle handle() { return last += 0x10; }
  uint64_t used(const Context* c) const;
  // drain performs the stream's operations.
  Result drain(Stream& s);
  Result drainAll(Context* c);
  // forget releases everything that a context owns.
  void forget(Context* c);
  bool onDevice(Context* c, uint64_t address, uint64_t bytes) const;
  bool onHost(const void* address, uint64_t bytes) const;
};

Driver& driver();

// Call is the scope of a driver call: it holds the lock; result is set if something is wrong before
// it begins.
class Call {
 public:
  enum Needs { Nothing, Init, Current };
  Call(const char* name, Needs needs);
  Result result = success;
  Context* context = nullptr;

 private:
  std::lock_guard<std::recursive_mutex> lock;
};

// current is the thread's context, a handle: its device's number plus one.
Handle& current();

// contextOf returns a handle's context, or null.
Context* contextOf(Handle h);

// enqueue queues an operation on a stream.
Result enqueue(Call& call, Handle stream, Operation operation);

// prepare makes an operation of a kernel's launch, whose arguments it copies, unless something is
// wrong with it.
Result prepare(Call& call, Handle function, Dim blocks, Dim threads, unsigned dynamic, void** parameters, void** extra, Operation& operation,
               std::shared_ptr<bool> early = std::make_shared<bool>(false));

}  // namespace pollen
