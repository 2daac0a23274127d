// Functions that tests call on the emulated driver, in addition to a driver's own, and the names of
// results.
#include <cstdio>
#include <cstring>

#include "driver.h"

using namespace pollen;

static const struct {
  Result code;
  const char *name, *text;
} results[] = {
    {success, "CUDA_SUCCESS", "no error"},
    {invalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {outOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {notInitialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {noDevice, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {invalidDevice, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {invalidContext, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {noBinary, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {(Result)214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
    {invalidPTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {unsupportedPTX, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the provided PTX was compiled with an unsupported toolchain."},
    {invalidHandle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {notFound, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {illegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {launchFailed, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {(Result)999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

EXPORT Result cuGetErrorName(Result code, const char** name) {
  *name = nullptr;
  for (auto& r : results)
    if (r.code == code) *name = r.name;
  return *name ? success : invalidValue;
}

EXPORT Result cuGetErrorString(Result code, const char** text) {
  *text = nullptr;
  for (auto& r : results)
    if (r.code == code) *text = r.text;
  return *text ? success : invalidValue;
}

// pollenReset releases everything and returns the driver to its state when the library was opened,
// with settings: number of devices, their capability (10 major + minor) and memory in bytes; the
// CUDA version, 1000 major + 10 minor; number of multiprocessors. 0 leaves a setting as it is, -1
// devices means none.
EXPORT void pollenReset(long long devices, long long capability, long long memory, long long version, long long multiprocessors) {
  Driver& d = driver();
  std::lock_guard<std::recursive_mutex> lock(d.mutex);
  for (Context& c : d.contexts) d.forget(&c);
  d.injected.clear();
  d.fault.clear();
  d.initialized = false;
  d.graphsLaunched = 0;
  d.contexts.clear();
  if (devices) d.settings.devices = devices < 0 ? 0 : devices;
  if (capability) d.settings.capability = capability;
  if (memory) d.settings.memory = memory;
  if (version) d.settings.version = version;
  if (multiprocessors) d.settings.multiprocessors = multiprocessors;
}

// pollenFail makes the count-th call of that name from now on, or of any if it is empty, return a
// result; with lost, also all calls after it.
EXPORT void pollenFail(const char* call, long long count, long long result, long long lost) {
  Driver& d = driver();
  std::lock_guard<std::recursive_mutex> lock(d.mutex);
  d.injected.push_back({call, count, (Result)result, lost != 0});
}

// pollenReport writes what is still held, one line for each kind, and the fault of the last kernel
// that failed. It returns the text's length.
EXPORT long long pollenReport(char* text, long long room) {
  Driver& d = driver();
  std::lock_guard<std::recursive_mutex> lock(d.mutex);
  std::string s;
  auto held = [&](const char* what, size_t count) {
    if (count) s += "held: " + std::to_string(count) + " " + what + "\n";
  };
  held("allocations of device memory", d.memory.size());
  held("allocations of page-locked host memory", d.host.size());
  held("streams", d.streams.size());
  held("graphs", d.graphs.size());
  held("executable graphs", d.executables.size());
  held("modules", d.modules.size());
  size_t contexts = 0;
  for (Context& c : d.contexts) contexts += c.retained;
  held("contexts", contexts);
  if (!d.fault.empty()) s += "fault: " + d.fault + "\n";
  snprintf(text, room, "%s", s.c_str());
  return s.size();
}

// pollenNotRun writes the names of the kernels that were not run since the library was opened, one
// per line, and returns the text's length.
EXPORT long long pollenNotRun(char* text, long long room) {
  std::string s;
  for (const std::string& name : kernelsNotRun()) s += name + "\n";
  snprintf(text, room, "%s", s.c_str());
  return s.size();
}
