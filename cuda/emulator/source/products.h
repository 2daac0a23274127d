// A thread's accumulators in asynchronous products of a warpgroup (wgmma).
#pragma once

#include <cstring>
#include <vector>

#include "block.h"

namespace pollen {

// Products are the pending products. Their sums are kept here, and the accumulators hold NaN
// meanwhile: a thread that reads them too early gets NaN, and one that writes to them is detected.
class Products {
 public:
  void clear() { sums.clear(), operands.clear(), group = 0, fenced = ordered = false; }
  void fence() { fenced = ordered = true; }
  void commit() { group++, ordered = false; }

  // add adds a product's numbers to sums, or replaces these. It returns what is wrong, or null.
  const char* add(float* const* to, const float* product, const int* places, int count, bool keep) {
    Sums* s = find(to[0]);
    if (!s) {
      if (!fenced) return "multiplies without a fence between what else its sums' registers were used for and the product";
      sums.push_back({{to, to + count}, {}, group});
      s = &sums.back();
      for (int i = 0; i < count; i++) s->values.push_back(*to[i]), *to[i] = nothing();
    }
    if (s->to.size() != (size_t)count || memcmp(s->to.data(), to, count * sizeof *to) != 0)
      return "adds to sums under way by another shape, or in another order";
    if (const char* wrong = touched(*s)) return wrong;
    float* values = s->values.data();
    if (!keep)
      for (int i = 0; i < count; i++) values[i] = product[places[i]];
    else
      for (int i = 0; i < count; i++) values[i] += product[places[i]];
    s->group = group;
    return nullptr;
  }

  // reads records that a product of this group reads shared memory or registers until it is waited
  // for: their digest must not change. Each group of products of registers needs a fence after the
  // registers were written.
  const char* reads(const ProductReads& r) {
    if (r.words[0] && !ordered) return "multiplies registers without a fence since the products before";
    operands.push_back({group, r.digest(r), r});
    return nullptr;
  }

  // wait completes all groups except the newest few.
  const char* wait(int groups) {
    for (size_t i = 0; i < operands.size();) {
      Operands& o = operands[i];
      if (o.group >= group - groups) {
        i++;
        continue;
      }
      if (o.reads.digest(o.reads) != o.before) return "finds that shared memory or registers have changed while a product read them";
      operands.erase(operands.begin() + i);
    }
    for (size_t i = 0; i < sums.size();) {
      Sums& s = sums[i];
      if (s.group >= group - groups) {
        i++;
        continue;
      }
      if (const char* wrong = touched(s)) return wrong;
      for (size_t j = 0; j < s.to.size(); j++) *s.to[j] = s.values[j];
      sums.erase(sums.begin() + i);
      fenced = false;
    }
    return nullptr;
  }

 private:
  struct Sums {
    std::vector<float*> to;
    std::vector<float> values;
    int group;
  };
  struct Operands {
    int group;
    unsigned long long before;
    ProductReads reads;
  };

  // find returns the sums that begin at a place, or else any that include it.
  Sums* find(float* first) {
    for (Sums& one : sums)
      if (one.to[0] == first) return &one;
    Sums* other = nullptr;
    for (Sums& one : sums)
      for (float* v : one.to)
        if (v == first) other = &one;
    return other;
  }

  static float nothing() {
    unsigned bits = 0x7fffffff;
    float v;
    memcpy(&v, &bits, 4);
    return v;
  }
  static const char* touched(const Sums& s) {
    float none = nothing();
    unsigned expected, found;
    memcpy(&expected, &none, 4);
    for (float *const *v = s.to.data(), *const* end = v + s.to.size(); v != end; v++)
      if (memcpy(&found, *v, 4); found != expected) return "changes a sum that a product is adding to";
    return nullptr;
  }

  std::vector<Sums> sums;
  std::vector<Operands> operands;
  int group = 0;
  bool fenced = false;   // there was a fence since sums were waited for
  bool ordered = false;  // there was a fence since products were committed
};

}  // namespace pollen
