// Modules, functions, launches.
#include <cstdio>
#include <cstring>

#include "driver.h"

using namespace pollen;

// newestPTX returns the newest PTX version, 10 major + minor, that a driver reads, by its CUDA
// version, 1000 major + 10 minor. CUDA 12.6 has no new one.
static int newestPTX(int cuda) {
  int major = cuda / 1000, minor = cuda % 1000 / 10;
  return major == 11 ? 70 + minor : major == 12 ? 80 + minor - (minor >= 6) : major == 13 ? 90 + minor : 60;
}

// The options of cuModuleLoadDataEx for the compiler's messages.
constexpr int errorLog = 5, errorLogBytes = 6;

EXPORT Result cuModuleLoadDataEx(Handle* module, const char* image, unsigned count, const int* options, void* const* values) {
  Call c("cuModuleLoadDataEx", Call::Current);
  if (c.result) return c.result;
  Driver& d = driver();
  char* log = nullptr;
  size_t room = 0;
  for (unsigned i = 0; i < count; i++) {
    if (options[i] == errorLog) log = (char*)values[i];
    if (options[i] == errorLogBytes) room = (size_t)values[i];
  }
  auto say = [&](const std::string& text, Result r) {
    if (log && room) snprintf(log, room, "%s", text.c_str());
    return r;
  };
  Module m{c.context, {}, {}};
  std::string wrong = parsePTX(image, m.ptx);
  if (!wrong.empty()) return say("ptxas fatal: " + wrong, invalidPTX);
  int capability = d.settings.capability;
  if (m.ptx.version > newestPTX(d.settings.version)) return say("the PTX is newer than the driver", unsupportedPTX);
  if (m.ptx.exact ? m.ptx.capability != capability : m.ptx.capability > capability) return say("the PTX is for another GPU", noBinary);
  if (!knowsPTX(image)) return say("this text of PTX is not the one that was translated", invalidPTX);
  *module = d.handle();
  d.modules[*module] = std::move(m);
  return success;
}

EXPORT Result cuModuleUnload(Handle module) {
  Call c("cuModuleUnload", Call::Current);
  if (c.result) return c.result;
  Driver& d = driver();
  auto found = d.modules.find(module);
  if (found == d.modules.end()) return invalidHandle;
  for (Handle f : found->second.functions) d.functions.erase(f);
  d.modules.erase(found);
  return success;
}

EXPORT Result cuModuleGetFunction(Handle* function, Handle module, const char* name) {
  Call c("cuModuleGetFunction", Call::Current);
  if (c.result) return c.result;
  Driver& d = driver();
  auto found = d.modules.find(module);
  if (found == d.modules.end()) return invalidHandle;
  auto& entries = found->second.ptx.entries;
  auto entry = entries.find(name);
  if (entry == entries.end()) return notFound;
  *function = d.handle();
  d.functions[*function] = {module, entry->second, 0};
  found->second.functions.push_back(*function);
  return success;
}

// The attributes of a function: maximum block size; bytes of static shared memory, of local memory,
// and of dynamic shared memory that a launch may request; registers.
constexpr int threadsAttribute = 0, sharedAttribute = 1, localAttribute = 3, registersAttribute = 4, dynamicAttribute = 8;
constexpr int withoutAsking = 48 << 10;

EXPORT Result cuDeviceGetAttribute(int* value, int attribute, int device);

EXPORT Result cuFuncSetAttribute(Handle function, int attribute, int value) {
  Call c("cuFuncSetAttribute", Call::Current);
  if (c.result) return c.result;
  Driver& d = driver();
  auto found = d.functions.find(function);
  if (found == d.functions.end()) return invalidHandle;
  int limit = 0;
  cuDeviceGetAttribute(&limit, 97, c.context->device);
  if (attribute != dynamicAttribute || value < 0 || value > limit - found->second.entry.shared) return invalidValue;
  found->second.dynamicBytes = value;
  return success;
}

EXPORT Result cuFuncGetAttribute(int* value, int attribute, Handle function) {
  Call c("cuFuncGetAttribute", Call::Current);
  if (c.result) return c.result;
  auto found = driver().functions.find(function);
  if (found == driver().functions.end()) return invalidHandle;
  const Function& f = found->second;
  switch (attribute) {
    case threadsAttribute: *value = (int)f.entry.maxThreads; return success;
    case sharedAttribute: *value = f.entry.shared; return success;
    case localAttribute:  // only an assembler could tell
    case registersAttribute: *value = 0; return success;
    case dynamicAttribute: *value = f.dynamicBytes; return success;
  }
  return invalidValue;
}

// Arguments holds a launch's arguments, copied when it is queued.
struct Arguments {
  std::vector<std::vector<char>> values;
  std::vector<void*> pointers;
};

Result pollen::prepare(Call& call, Handle function, Dim blocks, Dim threads, unsigned dynamic, void** parameters, void** extra, Operation& operation,
                       std::shared_ptr<bool> early) {
  Driver& d = driver();
  auto found = d.functions.find(function);
  if (found == d.functions.end()) return invalidHandle;
  const Function& f = found->second;
  if (extra || d.modules[f.module].context != call.context) return invalidValue;
  if (!blocks.x || !blocks.y || !blocks.z || blocks.x > 0x7fffffffu || blocks.y > 65535 || blocks.z > 65535) return invalidValue;
  if (!threads.x || !threads.y || !threads.z || threads.x > 1024 || threads.y > 1024 || threads.z > 64) return invalidValue;
  if (threads.x * threads.y * threads.z > f.entry.maxThreads) return invalidValue;
  if ((int)dynamic > std::max(withoutAsking - f.entry.shared, f.dynamicBytes)) return invalidValue;
  auto arguments = std::make_shared<Arguments>();
  for (size_t i = 0; i < f.entry.parameters.size(); i++) {
    if (!parameters || !parameters[i]) return invalidValue;
    const char* bytes = (const char*)parameters[i];
    arguments->values.emplace_back(bytes, bytes + f.entry.parameters[i].size);
  }
  for (auto& value : arguments->values) arguments->pointers.push_back(value.data());
  const Kernel* kernel = f.entry.kernel;
  bool waits = f.entry.waits;
  operation = [=, &d] {
    if (!d.functions.count(function)) {
      d.fault = kernel->name + " was unloaded before it ran";
      return illegalAddress;
    }
    std::string wrong = runGrid(*kernel, blocks, threads, dynamic, arguments->pointers.data(), *early);
    if (*early && !waits) wrong = kernel->name + " begins before the launch that it follows has ended, and never waits for it";
    if (wrong.empty()) return success;
    d.fault = wrong;
    fprintf(stderr, "emulator: %s\n", wrong.c_str());
    return launchFailed;
  };
  return success;
}

EXPORT Result cuLaunchKernel(Handle function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX, unsigned blockY, unsigned blockZ,
                             unsigned dynamic, Handle stream, void** parameters, void** extra) {
  Call c("cuLaunchKernel", Call::Current);
  if (c.result) return c.result;
  Operation operation;
  if (Result r = prepare(c, function, {gridX, gridY, gridZ}, {blockX, blockY, blockZ}, dynamic, parameters, extra, operation)) return r;
  return enqueue(c, stream, operation);
}
