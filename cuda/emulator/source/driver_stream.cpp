// Streams, their capture, and CUDA graphs.
#include "driver.h"

namespace pollen {

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

// The modes of a capture: 0 forbids calls that may wait to all threads, 1 to the thread that captures, 2 to none.
bool Driver::unsafe() {
  bool spoiled = false;
  for (auto& [_, s] : streams) {
    if (!s.capturing || s.mode == 2 || (s.mode == 1 && s.thread != std::this_thread::get_id())) continue;
    s.invalidated = spoiled = true;
  }
  return spoiled;
}

Result enqueue(Call& call, Handle stream, Operation operation) {
  Driver& d = driver();
  if (stream == 0) {
    // The default stream waits for all others, and they for it.
    if (d.unsafe()) return captureUnsupported;
    if (Result r = d.drainAll(call.context)) return r;
    Result r = operation();
    if (r) call.context->lost = r;
    return r;
  }
  auto found = d.streams.find(stream);
  if (found == d.streams.end()) return invalidHandle;
  Stream& s = found->second;
  if (s.context != call.context) return invalidHandle;
  if (!s.capturing) {
    s.queue.push_back(std::move(operation));
  } else if (s.invalidated) {
    return captureInvalidated;
  } else {
    s.captured.push_back(std::move(operation));
  }
  return success;
}

static Stream* streamOf(Handle h) {
  auto found = driver().streams.find(h);
  return found == driver().streams.end() ? nullptr : &found->second;
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
  if (s->capturing) return captureUnsupported;
  Result waited = driver().drain(*s);
  driver().streams.erase(stream);
  return waited;
}

EXPORT Result cuStreamSynchronize(Handle stream) {
  Call c("cuStreamSynchronize", Call::Current);
  if (c.result) return c.result;
  if (driver().unsafe()) return captureUnsupported;
  if (stream == 0) return driver().drainAll(c.context);
  Stream* s = streamOf(stream);
  if (!s) return invalidHandle;
  if (s->capturing) {
    s->invalidated = true;
    return captureUnsupported;
  }
  return driver().drain(*s);
}

EXPORT Result cuStreamBeginCapture_v2(Handle stream, unsigned mode) {
  Call c("cuStreamBeginCapture_v2", Call::Current);
  if (c.result) return c.result;
  Stream* s = streamOf(stream);
  if (!s) return stream == 0 ? captureUnsupported : invalidHandle;
  if (mode > 2) return invalidValue;
  if (s->capturing) return captureUnsupported;
  s->capturing = true, s->invalidated = false, s->mode = mode, s->thread = std::this_thread::get_id();
  s->captured.clear();
  return success;
}

EXPORT Result cuStreamEndCapture(Handle stream, Handle* graph) {
  Call c("cuStreamEndCapture", Call::Current);
  if (c.result) return c.result;
  *graph = 0;
  Stream* s = streamOf(stream);
  if (!s) return invalidHandle;
  if (!s->capturing) return captureUnmatched;
  if (s->mode != 2 && s->thread != std::this_thread::get_id()) return captureWrongThread;
  s->capturing = false;
  if (s->invalidated) return captureInvalidated;
  *graph = driver().handle();
  driver().graphs[*graph] = {s->context, std::move(s->captured)};
  s->captured.clear();
  return success;
}

EXPORT Result cuGraphInstantiateWithFlags(Handle* executable, Handle graph, unsigned long long) {
  Call c("cuGraphInstantiateWithFlags", Call::Current);
  if (c.result) return c.result;
  auto found = driver().graphs.find(graph);
  if (found == driver().graphs.end()) return invalidValue;
  if (driver().unsafe()) return captureUnsupported;
  *executable = driver().handle();
  driver().executables[*executable] = found->second;
  return success;
}

EXPORT Result cuGraphLaunch(Handle executable, Handle stream) {
  Call c("cuGraphLaunch", Call::Current);
  if (c.result) return c.result;
  auto found = driver().executables.find(executable);
  if (found == driver().executables.end() || found->second.context != c.context) return invalidValue;
  for (const Operation& operation : found->second.operations)
    if (Result r = enqueue(c, stream, operation)) return r;
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
