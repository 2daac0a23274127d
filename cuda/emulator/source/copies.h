// A thread's asynchronous copies (cp.async).
#pragma once

#include <vector>

#include "sanitizer.h"

namespace pollen {

// Copies holds the copies that have not been waited for.
class Copies {
 public:
  void clear() { all.clear(), group = 0; }

  // later records a copy of some bytes, with zeros up to size, and leaves NaN there, in the bit
  // pattern that a GPU produces.
  void later(void* to, const void* from, int bytes, int size) {
    sanitizedUnwritten(to, size);
    SanitizerIgnore ignore;
    all.emplace_back();
    Copy& c = all.back();  // stored field by field: to copy a whole one waits for its fields to be stored
    c.to = to, c.from = from, c.bytes = bytes, c.size = size, c.group = group;
  }

  // commit ends a group.
  void commit() { group++; }

  // wait performs the copies of all groups except the newest few. Before each it calls written with
  // the destination.
  template <class F>
  void wait(int groups, F written) {
    size_t done = 0;
    for (; done < all.size() && all[done].group < group - groups; done++) {
      Copy c = all[done];
      written(c.to, c.size);
      sanitizedCopy(c.to, c.from, c.bytes);
      if (c.bytes < c.size) sanitizedFill((char*)c.to + c.bytes, 0, c.size - c.bytes);
    }
    SanitizerIgnore ignore;
    all.erase(all.begin(), all.begin() + done);
  }

 private:
  struct Copy {
    void* to;
    const void* from;
    int bytes, size, group;
  };
  std::vector<Copy> all;
  int group = 0;
};

}  // namespace pollen
