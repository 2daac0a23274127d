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
    Sums* s = nullptr;
    for (Sums& one : sums)
      for (float* v : one.to)
        if (v == to[0]) s = &one;
    if (!s) {
      if (!fenced) return "multiplies without a fence between what else its sums' registers were used for and the product";
      sums.push_back({{to, to + count}, {}, group});
      s = &sums.back();
      for (int i = 0; i < count; i++) s->values.push_back(*to[i]), *to[i] = nothing();
    }
    if (s->to != std::vector<float*>(to, to + count)) return "adds to sums under way by another shape, or in another order";
    if (const char* wrong = touched(*s)) return wrong;
    for (int i = 0; i < count; i++) s->values[i] = keep ? s->values[i] + product[places[i]] : product[places[i]];
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

  static float nothing() {
    unsigned bits = 0x7fffffff;
    float v;
    memcpy(&v, &bits, 4);
    return v;
  }
  static const char* touched(const Sums& s) {
    float none = nothing();
    for (float* v : s.to)
      if (memcmp(v, &none, 4) != 0) return "changes a sum that a product is adding to";
    return nullptr;
  }

  std::vector<Sums> sums;
  std::vector<Operands> operands;
  int group = 0;
  bool fenced = false;   // there was a fence since sums were waited for
  bool ordered = false;  // there was a fence since products were committed
};

}  // namespace pollen
