// The gradient of a convolution's filter from packed copies in chunks, by wgmma (nhwcgroup.cuh). Its depth are pixels, sixteen neighbouring lines of the
// gradient's copy at a time, in which the border's zeros come behind a row; of the image's copy these are the same number of lines for each tap. Both
// operands have channels side by side: the gradient's come through transposing ldmatrix into registers, for all taps of a warp, the image's lines are read
// from shared memory as they are.
#pragma once

#include "hopper.cuh"
#include "nhwc.cuh"

namespace pollen {

// GroupFilter is a block's share: 64 filters, 64 channels, and a few taps for each four warps.
struct GroupFilter {
  static constexpr int rows = 64, channels = 64, each = 2, groups = 4, taps = each * groups, threads = 128 * groups, blocks = 1, stages = 2, step = 16;
};

// GradientRows say how a block goes through the gradient dout [blocks B height width], whose pixels begin at line first, some rows of an image at a time.
struct GradientRows {
  Lines x, dout;
  int filters, first, steps, rows, each;  // steps of a row, rows of a stage, stages of a slice

  INLINE int stagesOfImage() const { return (x.pixels.P + rows - 1) / rows; }

  // Stage is where one begins in both copies, and its rows.
  struct Stage {
    int x, dout, rows;
  };
  INLINE Stage at(int n) const {
    int image = n / stagesOfImage(), p = n % stagesOfImage() * rows;
    return {(image * x.pixels.H + p) * x.pixels.W, (image * dout.pixels.H + p) * dout.pixels.W + first, lesser(rows, x.pixels.P - p)};
  }
  // lines are those that a stage's rows have in a copy of so many columns.
  INLINE int lines(int rows, int columns) const { return (rows - 1) * columns + GroupFilter::step * steps; }
};

// bringChunks copies lines of a block of channels from a packed copy of all lines to shared memory, size lines apart.
INLINE void bringChunks(unsigned* to, int size, const unsigned* from, int all, int block, int begin, int count, CopyBarrier* b) {
  constexpr int chunk = 4, chunks = line / chunk;
#pragma unroll 1
  for (int i = 0; i < chunks; i++) copyBulk(to + i * size * chunk, from + ((block * chunks + i) * all + begin) * chunk, 16 * count, b);
}

// convolveGroupFilter adds the slices of block blockIdx.y into partial [slices filters taps channels]. A stage has room for sizeX and sizeDout lines;
// behind the stages are the barriers.
INLINE void convolveGroupFilter(float* partial, const unsigned* dout, const unsigned* x, const GradientRows& c, int sizeX, int sizeDout, unsigned* memory) {
  using Shape = GroupFilter;
  int groups = (c.x.taps + Shape::taps - 1) / Shape::taps, firstTap = blockIdx.x % groups * Shape::taps;
  int block = blockIdx.x / groups % c.x.blocks, row = blockIdx.x / groups / c.x.blocks;
  auto shift = [&](int tap) INLINED { return tap / c.x.across * c.x.down + tap % c.x.across * c.x.right; };
  int lowest = shift(firstTap), highest = lowest;
  for (int i = 1; i < Shape::taps && firstTap + i < c.x.taps; i++) {
    int at = shift(firstTap + i);
    lowest = lesser(lowest, at), highest = at > highest ? at : highest;
  }
  int own = firstTap + threadIdx.x / 128 * Shape::each;  // of the four warps
  unsigned right[Shape::each];
#pragma unroll
  for (int t = 0; t < Shape::each; t++) right[t] = 16 * (shift(lesser(own + t, c.x.taps - 1)) - lowest);
  const int stage = line * (sizeX + sizeDout);  // words
  auto* barriers = (CopyBarrier*)(memory + Shape::stages * stage);
  // What lies behind the copies' last lines is multiplied by zeros, and must be numbers.
  for (int i = threadIdx.x; i < Shape::stages * stage; i += blockDim.x) memory[i] = 0;
  if (threadIdx.x == 0)
    for (int i = 0; i < Shape::stages; i++) initBarrier(barriers + i, 1);
  orderBarriers();
  barrier();
  int total = c.x.pixels.B * c.stagesOfImage();
  unsigned before = 0;  // stages of earlier slices
  unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  // The line and the chunk of a stage that the lane brings to a product's left operand.
  unsigned left = 16 * (sizeX * (line / 4) + (lane % 8 + lane / 16 * 8) + (2 * warp + lane / 8 % 2) * sizeDout);
  for (int slice = blockIdx.y; slice * c.each < total; slice += gridDim.y) {
    int from = slice * c.each, rounds = lesser(c.each, total - from);
    float sums[Shape::each][Shape::channels / 2];
#pragma unroll
    for (auto& some : sums)
#pragma unroll
      for (float& v : some) v = 0;
    auto bring = [&](int round) INLINED {
      if (threadIdx.x != 0 || round >= rounds) return;
      auto s = c.at(from + round);
      unsigned number = (before + round) % Shape::stages;
      CopyBarrier* b = barriers + number;
      unsigned* to = memory + number * stage;
      int countX = lesser(c.lines(s.rows, c.x.pixels.W) + highest - lowest, c.x.all() - s.x - lowest);
      int countDout = lesser(c.lines(s.rows, c.dout.pixels.W), c.dout.all() - s.dout);
      expectBytes(b, 4 * line * (countX + countDout));
      bringChunks(to, sizeX, x, c.x.all(), block, s.x + lowest, countX, b);
      bringChunks(to + line * sizeX, sizeDout, dout, c.dout.all(), row, s.dout, countDout, b);
    };
    for (int i = 0; i < Shape::stages; i++) bring(i);
    for (int round = 0; round < rounds; round++) {
      unsigned number = (before + round) % Shape::stages;
      int rows = c.at(from + round).rows;
      unsigned begin = 4 * stage * number, atX = begin, atDout = begin + left;
      waitFor(barriers + number, (before + round) / Shape::stages & 1);
      int more = c.steps, steps = rows * c.steps;
      unsigned a[2][4];
      auto multiply = [&](unsigned (&words)[4]) INLINED {
        groupWait<1>();  // the product that read the words
        loadMatricesTransposed(words, memory, atDout);
        groupFence();
#pragma unroll
        for (int t = 0; t < Shape::each; t++) multiplyGroup(sums[t], words, describe(memory, atX + right[t], 128, 16 * sizeX));
        groupCommit();
        atX += 16 * Shape::step, atDout += 16 * Shape::step;
        if (--more == 0) {
          more = c.steps;
          atX += 16 * (c.x.pixels.W - c.steps * Shape::step), atDout += 16 * (c.dout.pixels.W - c.steps * Shape::step);
        }
      };
      for (int i = 0; i < steps; i += 2) {
        multiply(a[0]);
        if (i + 1 < steps) multiply(a[1]);
      }
      groupWait<0>();
      barrier();
      bring(round + Shape::stages);
    }
    before += rounds;
    unsigned thread = unknown(threadIdx.x);  // where the sums go is found here, and kept in no registers
    int channels = c.x.blocks * Shape::channels, filter = row * Shape::rows + thread / 32 % 4 * 16 + thread % 32 / 4;
    float* to = partial + (gridDim.y > 1 ? (long long)slice * c.filters * c.x.taps * channels : 0) + block * Shape::channels + thread % 4 * 2;
    bool more = gridDim.y == 1 && slice > 0;
#pragma unroll
    for (int t = 0; t < Shape::each; t++)
#pragma unroll
      for (int half = 0; half < 2; half++) {
        if (own + t >= c.x.taps || filter + 8 * half >= c.filters) continue;
        float* neighbours = to + ((filter + 8 * half) * c.x.taps + own + t) * channels;
#pragma unroll
        for (int i = 0; i < Shape::channels / 8; i++) {
          auto* at = (Vector<float, 2>*)(neighbours + 8 * i);
          Vector<float, 2> v = {sums[t][4 * i + 2 * half], sums[t][4 * i + 2 * half + 1]};
          *at = more ? Vector<float, 2>{at->v[0] + v.v[0], at->v[1] + v.v[1]} : v;
        }
      }
  }
}

}  // namespace pollen
