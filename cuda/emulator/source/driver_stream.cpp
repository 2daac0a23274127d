// Streams and CUDA graphs.
#include <cstddef>
#include <queue>
#include <random>

#include "driver.h"

namespace pollen {

// After an operation has failed, the context is lost as a real one is: the other operations of the
// stream are dropped, and every later call returns the same error.
Result Driver::drain(Stream& s) {
  while (!s.queue.empty() && !s.context->lost) {
    Operation operation = s.queue.front();
    s.queue.pop_front();
    if (Result r = operation()) s.context->lost = r;
  }
  s.queue.clear();
  return (Result)s.context->lost;
}

Result Driver::drainAll(Context* c) {
  for (auto& [_, s] : streams)
    if (s.context == c) drain(s);
  return (Result)c->lost;
}

// A stream only queues: the operations run in drain, when the program waits for the stream. A
// result that the program reads without waiting is therefore stale, in every run.
Result enqueue(Call& call, Handle stream, Operation operation) {
  Driver& d = driver();
  if (stream == 0) {
    // The default stream waits for all others, and they for it.
    if (Result r = d.drainAll(call.context)) return r;
    Result r = operation();
    if (r) call.context->lost = r;
    return r;
  }
  auto found = d.streams.find(stream);
  if (found == d.streams.end()) return invalidHandle;
  Stream& s = found->second;
  if (s.context != call.context) return invalidHandle;
  s.queue.push_back(std::move(operation));
  return success;
}

static Stream* streamOf(Handle h) {
  auto found = driver().streams.find(h);
  return found == driver().streams.end() ? nullptr : &found->second;
}

// anyOrder returns an order that a graph's edges allow: of the nodes that may begin, the one with
// the highest random number is next. So a node that depends on others without an edge comes before
// them in some order.
//
// The generator is seeded by the number of graphs launched so far: orders differ from launch to
// launch, and the same program sees the same ones again.
static std::vector<size_t> anyOrder(const Graph& g, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> drawn(g.nodes.size());
  std::vector<size_t> waits(g.nodes.size()), order;
  std::vector<std::vector<size_t>> then(g.nodes.size());
  std::priority_queue<std::pair<uint64_t, size_t>> ready;
  for (size_t i = 0; i < g.nodes.size(); i++) {
    drawn[i] = random();
    waits[i] = g.nodes[i].follows.size();
    for (size_t earlier : g.nodes[i].follows) then[earlier].push_back(i);
    if (!waits[i]) ready.push({drawn[i], i});
  }
  while (!ready.empty()) {
    size_t next = ready.top().second;
    ready.pop();
    order.push_back(next);
    for (size_t i : then[next])
      if (!--waits[i]) ready.push({drawn[i], i});
  }
  return order;
}

}  // namespace pollen

using namespace pollen;

EXPORT Result cuStreamCreate(Handle* stream, unsigned flags) {
  Call c("cuStreamCreate", Call::Current);
  if (c.result) return c.result;
  if (flags > 1) return invalidValue;
  *stream = driver().handle();
  driver().streams[*stream].context = c.context;
  return success;
}

EXPORT Result cuStreamDestroy_v2(Handle stream) {
  Call c("cuStreamDestroy_v2", Call::Current);
  if (c.result) return c.result;
  Stream* s = streamOf(stream);
  if (!s) return invalidHandle;
  Result waited = driver().drain(*s);
  driver().streams.erase(stream);
  return waited;
}

EXPORT Result cuStreamSynchronize(Handle stream) {
  Call c("cuStreamSynchronize", Call::Current);
  if (c.result) return c.result;
  if (stream == 0) return driver().drainAll(c.context);
  Stream* s = streamOf(stream);
  return s ? driver().drain(*s) : invalidHandle;
}

EXPORT Result cuGraphCreate(Handle* graph, unsigned flags) {
  Call c("cuGraphCreate", Call::Current);
  if (c.result) return c.result;
  if (flags) return invalidValue;
  *graph = driver().handle();
  driver().graphs[*graph].context = c.context;
  return success;
}

// KernelNode is a CUDA_KERNEL_NODE_PARAMS_v1.
struct KernelNode {
  Handle function;
  Dim grid, block;
  unsigned dynamic;
  void** parameters;
  void** extra;
};
static_assert(sizeof(KernelNode) == 56 && offsetof(KernelNode, parameters) == 40, "as in cuda.h");

EXPORT Result cuGraphAddKernelNode(Handle* node, Handle graph, const Handle* dependencies, size_t count, const KernelNode* kernel) {
  Call c("cuGraphAddKernelNode", Call::Current);
  if (c.result) return c.result;
  auto found = driver().graphs.find(graph);
  if (found == driver().graphs.end() || !kernel || (count && !dependencies)) return invalidValue;
  Graph& g = found->second;
  Node made;
  made.early = std::make_shared<bool>(false);
  for (size_t i = 0; i < count; i++) {
    auto earlier = g.numbers.find(dependencies[i]);
    if (earlier == g.numbers.end()) return invalidValue;
    for (size_t other : made.follows)
      if (other == earlier->second) return invalidValue;
    made.follows.push_back(earlier->second);
  }
  Result r = prepare(c, kernel->function, kernel->grid, kernel->block, kernel->dynamic, kernel->parameters, kernel->extra, made.operation, made.early);
  if (r) return r;
  *node = driver().handle();
  g.numbers[*node] = g.nodes.size();
  g.nodes.push_back(std::move(made));
  return success;
}

// EdgeData is a CUgraphEdgeData.
struct EdgeData {
  unsigned char from, to, kind, reserved[5];
};

// cuGraphAddDependencies_v2 accepts ordinary edges, and programmatic ones, by which a kernel may
// begin when all blocks of another have called launch_dependents.
EXPORT Result cuGraphAddDependencies_v2(Handle graph, const Handle* from, const Handle* to, const EdgeData* edges, size_t count) {
  Call c("cuGraphAddDependencies_v2", Call::Current);
  if (c.result) return c.result;
  auto found = driver().graphs.find(graph);
  if (found == driver().graphs.end() || !from || !to || !edges) return invalidValue;
  Graph& g = found->second;
  for (size_t i = 0; i < count; i++) {
    auto earlier = g.numbers.find(from[i]), later = g.numbers.find(to[i]);
    const EdgeData& e = edges[i];
    if (earlier == g.numbers.end() || later == g.numbers.end() || earlier->second >= later->second) return invalidValue;
    if (e.from > 1 || e.to || e.kind != e.from) return invalidValue;
    for (unsigned char r : e.reserved)
      if (r) return invalidValue;
    Node& node = g.nodes[later->second];
    for (size_t other : node.follows)
      if (other == earlier->second) return invalidValue;
    node.follows.push_back(earlier->second);
    *node.early = *node.early || e.kind == 1;
  }
  return success;
}

EXPORT Result cuGraphInstantiateWithFlags(Handle* executable, Handle graph, unsigned long long) {
  Call c("cuGraphInstantiateWithFlags", Call::Current);
  if (c.result) return c.result;
  auto found = driver().graphs.find(graph);
  if (found == driver().graphs.end()) return invalidValue;
  *executable = driver().handle();
  driver().executables[*executable] = found->second;
  return success;
}

EXPORT Result cuGraphLaunch(Handle executable, Handle stream) {
  Call c("cuGraphLaunch", Call::Current);
  if (c.result) return c.result;
  Driver& d = driver();
  auto found = d.executables.find(executable);
  if (found == d.executables.end() || found->second.context != c.context) return invalidValue;
  const Graph& g = found->second;
  for (size_t i : anyOrder(g, d.graphsLaunched++))
    if (Result r = enqueue(c, stream, g.nodes[i].operation)) return r;
  return success;
}

EXPORT Result cuGraphExecDestroy(Handle executable) {
  Call c("cuGraphExecDestroy", Call::Current);
  if (c.result) return c.result;
  return driver().executables.erase(executable) ? success : invalidValue;
}

EXPORT Result cuGraphDestroy(Handle graph) {
  Call c("cuGraphDestroy", Call::Current);
  if (c.result) return c.result;
  return driver().graphs.erase(graph) ? success : invalidValue;
}
