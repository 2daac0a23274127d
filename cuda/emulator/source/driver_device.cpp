// Initialisation, devices, contexts.
#include "driver.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace pollen {

Driver& driver() {
  static Driver* one = [] {
    Driver* d = new Driver;
    auto number = [](const char* name, long long otherwise) {
      const char* text = getenv(name);
      return text && *text ? atoll(text) : otherwise;
    };
    d->settings.devices = number("POLLEN_EMULATOR_DEVICES", d->settings.devices);
    d->settings.capability = number("POLLEN_EMULATOR_CAPABILITY", d->settings.capability);
    d->settings.version = number("POLLEN_EMULATOR_VERSION", d->settings.version);
    d->settings.memory = number("POLLEN_EMULATOR_MEMORY", d->settings.memory);
    d->settings.multiprocessors = number("POLLEN_EMULATOR_MULTIPROCESSORS", d->settings.multiprocessors);
    setMachineThreads(number("POLLEN_EMULATOR_THREADS", 0));
    if (const char* fail = getenv("POLLEN_EMULATOR_FAIL")) {  // CALL:COUNT:RESULT; later calls fail, too
      char call[64];
      long long count;
      int result;
      if (sscanf(fail, "%63[^:]:%lld:%d", call, &count, &result) == 3) d->injected.push_back({call, count, (Result)result, true});
    }
    return d;
  }();
  return *one;
}

Handle& current() {
  static thread_local Handle h = 0;
  return h;
}

Context* contextOf(Handle h) {
  Driver& d = driver();
  if (h < 1 || h > d.contexts.size() || d.contexts[h - 1].retained == 0) return nullptr;
  return &d.contexts[h - 1];
}

Call::Call(const char* name, Needs needs) : lock(driver().mutex) {
  Driver& d = driver();
  for (Injected& i : d.injected) {
    if (!i.call.empty() && i.call != name) continue;
    if (--i.count == 0 || (i.lost && i.count < 0)) {
      result = i.result;
      return;
    }
  }
  if (needs != Nothing && !d.initialized) {
    result = notInitialized;
  } else if (needs == Current) {
    context = contextOf(current());
    result = !context ? invalidContext : (Result)context->lost;
  }
}

}  // namespace pollen

using namespace pollen;

EXPORT Result cuInit(unsigned flags) {
  Call c("cuInit", Call::Nothing);
  if (c.result) return c.result;
  if (flags) return invalidValue;
  Driver& d = driver();
  if (d.settings.devices == 0) return noDevice;
  if (!d.initialized) d.contexts.assign(d.settings.devices, Context{});
  for (size_t i = 0; i < d.contexts.size(); i++) d.contexts[i].device = i;
  d.initialized = true;
  return success;
}

EXPORT Result cuDriverGetVersion(int* version) {
  Call c("cuDriverGetVersion", Call::Nothing);
  if (c.result) return c.result;
  *version = driver().settings.version;
  return success;
}

EXPORT Result cuDeviceGetCount(int* count) {
  Call c("cuDeviceGetCount", Call::Init);
  if (c.result) return c.result;
  *count = driver().contexts.size();
  return success;
}

EXPORT Result cuDeviceGet(int* device, int ordinal) {
  Call c("cuDeviceGet", Call::Init);
  if (c.result) return c.result;
  if (ordinal < 0 || ordinal >= (int)driver().contexts.size()) return invalidDevice;
  *device = ordinal;
  return success;
}

static bool isDevice(int device) { return device >= 0 && device < (int)driver().contexts.size(); }

EXPORT Result cuDeviceGetName(char* name, int length, int device) {
  Call c("cuDeviceGetName", Call::Init);
  if (c.result) return c.result;
  if (!isDevice(device)) return invalidDevice;
  if (length < 1) return invalidValue;
  snprintf(name, length, "Emulated GPU");
  return success;
}

EXPORT Result cuDeviceTotalMem_v2(uint64_t* bytes, int device) {
  Call c("cuDeviceTotalMem_v2", Call::Init);
  if (c.result) return c.result;
  if (!isDevice(device)) return invalidDevice;
  *bytes = driver().settings.memory;
  return success;
}

// sharedLimit is the maximum shared memory of a block, from the CUDA C++ programming guide's table
// of technical specifications.
static int sharedLimit() {
  switch (driver().settings.capability) {
    case 70: return 96 << 10;
    case 75: return 64 << 10;
    case 80:
    case 87: return 163 << 10;
    case 86:
    case 89:
    case 120:
    case 121: return 99 << 10;
    default: return driver().settings.capability < 70 ? 48 << 10 : 227 << 10;
  }
}

EXPORT Result cuDeviceGetAttribute(int* value, int attribute, int device) {
  Call c("cuDeviceGetAttribute", Call::Init);
  if (c.result) return c.result;
  if (!isDevice(device)) return invalidDevice;
  int capability = driver().settings.capability;
  switch (attribute) {
    case 1: *value = 1024; break;        // threads of a block
    case 8: *value = 48 << 10; break;    // shared memory of a block
    case 10: *value = 32; break;         // threads of a warp
    case 12: *value = 65536; break;      // registers of a block
    case 16: *value = driver().settings.multiprocessors; break;
    case 75: *value = capability / 10; break;
    case 76: *value = capability % 10; break;
    case 97: *value = sharedLimit(); break;
    default: return invalidValue;
  }
  return success;
}

EXPORT Result cuDevicePrimaryCtxRetain(Handle* context, int device) {
  Call c("cuDevicePrimaryCtxRetain", Call::Init);
  if (c.result) return c.result;
  if (!isDevice(device)) return invalidDevice;
  driver().contexts[device].retained++;
  *context = device + 1;
  return success;
}

// A context that was lost takes everything it owns with it. Other contexts, which a program should
// leave empty, keep it for the report.
EXPORT Result cuDevicePrimaryCtxRelease_v2(int device) {
  Call c("cuDevicePrimaryCtxRelease_v2", Call::Init);
  if (c.result) return c.result;
  if (!isDevice(device)) return invalidDevice;
  Context& context = driver().contexts[device];
  if (context.retained == 0) return invalidContext;
  if (--context.retained == 0 && context.lost) {
    driver().forget(&context);
    context.lost = success;
  }
  return success;
}

EXPORT Result cuCtxSetCurrent(Handle context) {
  Call c("cuCtxSetCurrent", Call::Init);
  if (c.result) return c.result;
  if (context && !contextOf(context)) return invalidContext;
  current() = context;
  return success;
}

EXPORT Result cuCtxGetCurrent(Handle* context) {
  Call c("cuCtxGetCurrent", Call::Init);
  if (c.result) return c.result;
  *context = current();
  return success;
}

EXPORT Result cuCtxSynchronize() {
  Call c("cuCtxSynchronize", Call::Current);
  if (c.result) return c.result;
  return driver().drainAll(c.context);
}
