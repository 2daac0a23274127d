// Which examples of a data set a step uses, as op.Batch defines it.
#pragma once
#include "philox.cuh"

namespace pollen {

// exampleOf returns the example in a row of the step's batch. Rows are positions in an endless
// sequence of epochs: row 3 of step 10 with batch size 32 is position 323. Within an epoch the
// examples come in the data's order (order 0), in a pseudo-random order of their own (order 1), or
// so that every second epoch repeats the one before it backwards (order 2). Order 3 has no epochs:
// each step has the first rows of a pseudo-random order of its own.
INLINE int exampleOf(Header header, int row, int size, int examples, int order) {
  Address chain = addressOf(header, 0);
  unsigned long long position = chain.step * size + row, epoch = position / examples, at = position % examples;
  if (order == 3) {
    epoch = chain.step;
    at = row;
  }
  if (order == 2 && epoch % 2 == 1) {
    epoch--;
    at = examples - 1 - at;
  }
  return (int)(order ? Order(examples, chain, epoch).at(at) : at);
}

}  // namespace pollen
