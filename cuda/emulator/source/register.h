// How a kernel becomes known by its name, with what a driver needs to call it. Every file of kernels includes this: it is kept small.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace pollen {

// Parameter is a kernel's parameter: its size in bytes, and whether it is a buffer 'b', an integer 'i' or a floating-point number 'f'.
struct Parameter {
  int size;
  char kind;
};

// addKernel makes a kernel known. It is called before main, or while the library is opened.
void addKernel(const char* name, unsigned maxThreads, const Parameter* parameters, int count, void (*run)(void* const* arguments));

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
    addKernel(name, maxThreads, parameters, sizeof...(A), run);
  }
  static void run(void* const* arguments) { call(arguments, std::index_sequence_for<A...>()); }

 private:
  template <size_t... I>
  static void call(void* const* arguments, std::index_sequence<I...>) {
    kernel(*(A*)arguments[I]...);
  }
};

// Registered adds a kernel when the library is opened.
template <auto kernel>
struct Registered {
  Registered(const char* name, unsigned maxThreads) { Adapter<kernel>::add(name, maxThreads); }
};

}  // namespace pollen
