// Which examples of a data set a step sees, as op.Batch has it.
#pragma once
#include "philox.cuh"

namespace pollen {

// exampleOf is the example in a row of the step's batch: the row's position in an endless sequence of epochs. With order 0 each is in the data's order,
// with 1 in one of its own, and with 2 every second one is the one before, backwards.
INLINE int exampleOf(Header header, int row, int size, int examples, int order) {
  Address chain = addressOf(header, 0);
  unsigned long long position = chain.step * size + row, epoch = position / examples, at = position % examples;
  if (order == 2 && epoch % 2 == 1) {
    epoch--;
    at = examples - 1 - at;
  }
  return (int)(order ? Order(examples, chain, epoch).at(at) : at);
}

}  // namespace pollen
