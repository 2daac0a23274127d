// mbarriers, and the bulk copies (cp.async.bulk) that they count.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sanitizer.h"

namespace pollen {

// Phases are a block's mbarriers and pending bulk copies. Copies are performed as late as possible,
// when no thread can run without them, in random order; until then the destination holds NaN.
class Phases {
 public:
  struct Barrier {
    const void* place;
    int arrivals, pending;  // arrivals of each phase, and those missing in the present one
    long long bytes;        // bytes still expected
    unsigned phase;
    bool known;  // fenced, so that copies may use it
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

  // find returns the mbarrier at an address, or null.
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

  // ended begins the next phase if the present one is complete, and reports that.
  static bool ended(Barrier& b) {
    if (b.pending > 0 || b.bytes != 0) return false;
    b.pending = b.arrivals;
    b.phase++;
    return true;
  }

  // take removes and returns one of the pending copies, chosen at random.
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
