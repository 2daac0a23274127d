// Registration of kernels that are compiled from their sources.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "parameter.h"

namespace pollen {

template <class T>
constexpr Parameter parameterOf() {
  return {(int)sizeof(T), std::is_class<T>::value ? 'b' : std::is_floating_point<T>::value ? 'f' : 'i'};
}

// Adapter unpacks the driver's list of pointers to arguments.
template <auto kernel, class F = decltype(kernel)>
struct Adapter;

template <auto kernel, class... A>
struct Adapter<kernel, void (*)(A...)> {
  static void add(const char* name, unsigned maxThreads) {
    const Parameter parameters[] = {parameterOf<A>()...};
    addKernel(name, maxThreads, parameters, sizeof...(A), run, true);
  }
  static void run(void* const* arguments) { call(arguments, std::index_sequence_for<A...>()); }

 private:
  template <size_t... I>
  static void call(void* const* arguments, std::index_sequence<I...>) {
    kernel(*(A*)arguments[I]...);
  }
};

// Registered registers a kernel when the library is opened.
template <auto kernel>
struct Registered {
  Registered(const char* name, unsigned maxThreads) { Adapter<kernel>::add(name, maxThreads); }
};

}  // namespace pollen
