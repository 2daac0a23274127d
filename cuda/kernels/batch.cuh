// Which examples of a data set a step sees, as op.Batch has it.
#pragma once
#include "philox.cuh"

namespace pollen {

// exampleOf is the example in a row of the step's batch: the row's position in an endless sequence of epochs, each in an order of its own.
INLINE int exampleOf(Header header, int row, int size, int examples, bool shuffled) {
  Address chain = addressOf(header, 0);
  unsigned long long position = chain.step * size + row, epoch = position / examples, at = position % examples;
  return (int)(shuffled ? Order(examples, chain, epoch).at(at) : at);
}

}  // namespace pollen
