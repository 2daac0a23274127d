// Barriers that lie in shared memory and count copies: mbarrier, and what cp.async.bulk copies.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sanitizer.h"

namespace pollen {

// Phases are a block's barriers for copies, and the copies that are under way. A copy is made as late as can be, when no thread can run without, and the
// copies in random order; until then its place holds NaN.
class Phases {
 public:
  struct Barrier {
    const void* place;
    int arrivals, pending;  // of each phase, and that are still to come in this one
    long long bytes;        // that are still to come
    unsigned phase;
    bool known;  // to the copies
    SanitizerSync sync;
  };
  struct Copy {
    void* to;
    const void* from;
    size_t bytes;
    size_t barrier;
  };

  void clear() { all.clear(), copies.clear(), random = 1; }
  bool underWay() const { return !copies.empty(); }

  // find is the barrier at a place, or null.
  Barrier* find(const void* place) {
    for (Barrier& b : all)
      if (b.place == place) return &b;
    return nullptr;
  }
  void add(const void* place, int arrivals) { all.push_back({place, arrivals, arrivals, 0, 0, false, {}}); }
  void makeKnown() {
    for (Barrier& b : all) b.known = true;
  }
  void later(void* to, const void* from, size_t bytes, Barrier* b) { copies.push_back({to, from, bytes, (size_t)(b - all.data())}); }

  // ended begins the next phase if this one waits for nothing any more.
  static bool ended(Barrier& b) {
    if (b.pending > 0 || b.bytes != 0) return false;
    b.pending = b.arrivals;
    b.phase++;
    return true;
  }

  // take is one of the copies, which is under way no more.
  Copy take() {
    random = random * 6364136223846793005ull + 1442695040888963407ull;
    size_t i = (random >> 33) % copies.size();
    Copy c = copies[i];
    copies[i] = copies.back();
    copies.pop_back();
    return c;
  }
  Barrier& of(const Copy& c) { return all[c.barrier]; }

 private:
  std::vector<Barrier> all;
  std::vector<Copy> copies;
  uint64_t random = 1;
};

}  // namespace pollen
