// The gradient of a convolution's filter from packed copies in chunks, by wgmma (nhwcgroup.cuh).
//
// The depth of the product are pixels: sixteen neighbouring lines of the gradient's copy per wgmma,
// in which zeros of the border follow each row's pixels. In the image's copy these are sixteen
// neighbouring lines, too, at an offset for each tap; where the gradient's lines are border, they
// are multiplied by 0.
//
// Both operands have contiguous channels. The gradient (operand a) is loaded into registers by
// transposing ldmatrix, once for all taps of a warp. The image (operand b) is read from shared
// memory as an MN-major matrix.
#pragma once

#include "hopper.cuh"
#include "nhwc.cuh"

namespace pollen {

// GroupFilter is the shape of a block: 64 filters, 64 channels, and up to nine taps, shared by
// three warpgroups. A fourth warpgroup issues the copies: it needs few registers, and gives its
// others to the multiplying ones by setmaxnreg.
struct GroupFilter {
  static constexpr int rows = 64, channels = 64, each = 3, groups = 3, taps = each * groups, blocks = 1, step = 16;
  static constexpr int copying = 4, threads = 128 * groups + 32 * copying;  // copying is the number of warps that copy
  static constexpr int registers = 160, registersToCopy = 32;  // per thread; at launch all have 128
};

// Range is part i when n things are split into parts of almost equal size: the first n % parts have
// one more.
struct Range {
  int first, count;

  static INLINE Range split(unsigned n, unsigned parts, unsigned i) {
    unsigned each = n / parts, more = n % parts;
    return {(int)(each * i + (i < more ? i : more)), (int)(each + (i < more))};
  }
};

// GradientRows describes how a block goes through the gradient dout [blocks B height width], whose
// pixels begin at line first: a stage is some rows of one image.
struct GradientRows {
  Lines x, dout;
  int filters, first, steps, rows, each;  // steps of 16 lines per row, rows per stage, stages per slice
  int sizeX, sizeDout, depth;             // maximum lines of a stage in each copy, and the number of stages in shared memory

  INLINE int stagesOfImage() const { return (x.pixels.P + rows - 1) / rows; }

  // Stage is where a stage begins in both copies, and how many rows it has.
  struct Stage {
    int x, dout, rows;
  };
  INLINE Stage at(int n) const {
    int image = n / stagesOfImage(), p = n % stagesOfImage() * rows;
    return {(image * x.pixels.H + p) * x.pixels.W, (image * dout.pixels.H + p) * dout.pixels.W + first, minInt(rows, x.pixels.P - p)};
  }
  INLINE int total() const { return x.pixels.B * stagesOfImage(); }
  INLINE int shift(int tap) const { return tap / x.across * x.down + tap % x.across * x.right; }

  // lines returns how many lines a stage with the given rows covers in a copy with columns lines per
  // row.
  INLINE int lines(int rows, int columns) const { return (rows - 1) * columns + GroupFilter::step * steps; }
};

// Stages is a ring of stages in shared memory. Behind the stages lie the mbarriers: first one per
// stage that counts its bytes (filled), then one per stage that counts the warps that have read it
// (read).
struct Stages {
  unsigned* memory;
  int depth, size;  // words of a stage
  unsigned number = 0, odd = 0;

  INLINE unsigned begin() const { return number * size; }
  INLINE MBarrier* filled(unsigned number) const { return (MBarrier*)(memory + depth * size) + number; }
  INLINE MBarrier* read(unsigned number) const { return filled(number) + depth; }
  // sums is where a thread keeps a tap's sums of earlier slices: four for each thread of the
  // warpgroup, then the next four.
  INLINE Vector<float, 4>* sums(int tap) const {
    return (Vector<float, 4>*)(memory + depth * (size + 4)) + tap * (GroupFilter::rows * GroupFilter::channels / 4) + threadIdx.x % 128;
  }
  INLINE void advance() {
    if (++number == depth) number = 0, odd ^= 1;
  }
};

// produceStages runs in the producer warpgroup and copies the operands of all stages. Two warps
// copy the image's chunks, two the gradient's, one chunk by each of four lanes. The image's lines
// begin lowest lines after the pixels', and there are reach more of them.
INLINE void produceStages(Stages stages, const unsigned* dout, const unsigned* x, const GradientRows& c, int block, int row, int lowest, int reach) {
  constexpr int chunk = 4, chunks = lineWords / chunk, lanes = 2 * chunks / GroupFilter::copying;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, i = warp % 2 * lanes + lane % lanes, total = c.total();
  bool image = warp < 2;
  int size = image ? c.sizeX : c.sizeDout, columns = image ? c.x.pixels.W : c.dout.pixels.W, all = image ? c.x.all() : c.dout.all();
  const unsigned* from = image ? x + (block * chunks + i) * all * chunk : dout + (row * chunks + i) * all * chunk;
  unsigned* to = stages.memory + (image ? 0 : lineWords * c.sizeX) + i * chunk * size;
  if (!image) reach = 0;
  for (int slice = blockIdx.y; slice * c.each < total; slice += gridDim.y)
    for (int n = slice * c.each; n < minInt(total, (slice + 1) * c.each); n++) {
      auto s = c.at(n);
      int begin = image ? s.x + lowest : s.dout, count = minInt(c.lines(s.rows, columns) + reach, all - begin);
      MBarrier* filled = stages.filled(stages.number);
      mbarrierWait(stages.read(stages.number), stages.odd ^ 1);
      if (lane == 0) mbarrierArriveExpectTx(filled, 16 * lanes * count);
      if (lane < lanes) copyAsyncBulk(to + stages.begin(), from + begin * chunk, 16 * count, filled);
      stages.advance();
    }
}

// multiplyTaps runs in a warpgroup and accumulates the products of each taps, from tap first on.
// firstOfBlock is the block's first tap. Warpgroups wait only for their own products; meanwhile
// those of the other warpgroups keep the tensor cores busy. ptxas overlaps consecutive products
// only if no product in the loop is conditional, so the loop takes two steps at a time
// and an odd last step follows it.
template <int each>
INLINE void multiplyTaps(Stages stages, float* partial, const GradientRows& c, int block, int row, int lowest, int firstOfBlock, int first) {
  using Shape = GroupFilter;
  unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  unsigned right[each];
#pragma unroll
  for (int t = 0; t < each; t++) right[t] = 16 * (c.shift(first + t) - lowest);
  // The byte offset in a stage of the 16 bytes whose address this lane passes to ldmatrix.
  unsigned left = 16 * (c.sizeX * (lineWords / 4) + (lane % 8 + lane / 16 * 8) + (2 * warp + lane / 8 % 2) * c.sizeDout);
  int total = c.total();
  for (int slice = blockIdx.y; slice * c.each < total; slice += gridDim.y) {
    int rounds = minInt(c.each, total - slice * c.each), p = slice * c.each % c.stagesOfImage() * c.rows;
    float sums[each][Shape::channels / 2];
#pragma unroll
    for (auto& some : sums)
#pragma unroll
      for (float& v : some) v = 0;
    for (int round = 0; round < rounds; round++) {
      unsigned a[3][4], atX = 4 * stages.begin(), atDout = atX + left;
      int more = c.steps, steps = minInt(c.rows, c.x.pixels.P - p) * c.steps;
      p = p + c.rows < c.x.pixels.P ? p + c.rows : 0;
      auto multiply = [&](unsigned (&words)[4]) INLINED {
        ldmatrixX4Trans(words, stages.memory, atDout);
        wgmmaFence();
#pragma unroll
        for (int t = 0; t < each; t++) wgmma(sums[t], words, matrixDescriptor(stages.memory, atX + right[t], 128, 16 * c.sizeX));
        wgmmaCommit();
        atX += 16 * Shape::step, atDout += 16 * Shape::step;
        if (--more == 0) {
          more = c.steps;
          atX += 16 * (c.x.pixels.W - c.steps * Shape::step), atDout += 16 * (c.dout.pixels.W - c.steps * Shape::step);
        }
      };
      mbarrierWait(stages.filled(stages.number), stages.odd);
      for (int i = 1; i < steps; i += 2) {
        wgmmaWait<1>();  // the product that read these registers is done
        multiply(a[0]);
        wgmmaWait<1>();
        multiply(a[1]);
      }
      if (steps % 2) multiply(a[2]);
      wgmmaWait<0>();
      warpBarrier();
      if (lane == 0) mbarrierArrive(stages.read(stages.number));
      stages.advance();
    }
    if (gridDim.y == 1 && total > c.each) {
#pragma unroll
      for (int t = 0; t < each; t++)
#pragma unroll
        for (int i = 0; i < Shape::channels / 8; i++) {
          auto* at = stages.sums(first - firstOfBlock + t) + 128 * i;
          Vector<float, 4> v = {sums[t][4 * i], sums[t][4 * i + 1], sums[t][4 * i + 2], sums[t][4 * i + 3]};
          if (slice > 0) {
            auto before = *at;
#pragma unroll
            for (int j = 0; j < 4; j++) v.v[j] = sums[t][4 * i + j] = before.v[j] + v.v[j];
          }
          *at = v;
        }
      if ((slice + 1) * c.each < total) continue;
    }
    unsigned thread = opaque(threadIdx.x);  // recomputed here, so that it occupies no registers during the loop
    int channels = c.x.blocks * Shape::channels, filter = row * Shape::rows + thread / 32 % 4 * 16 + thread % 32 / 4;
    float* to = partial + (gridDim.y > 1 ? (long long)slice * c.filters * c.x.taps * channels : 0) + block * Shape::channels + thread % 4 * 2;
#pragma unroll
    for (int t = 0; t < each; t++)
#pragma unroll
      for (int half = 0; half < 2; half++) {
        if (filter + 8 * half >= c.filters) continue;
        float* neighbours = to + ((filter + 8 * half) * c.x.taps + first + t) * channels;
#pragma unroll
        for (int i = 0; i < Shape::channels / 8; i++)
          *(Vector<float, 2>*)(neighbours + 8 * i) = {sums[t][4 * i + 2 * half], sums[t][4 * i + 2 * half + 1]};
      }
  }
}

// convolveGroupFilter computes the slices of blockIdx.y of partial [slices filters taps channels],
// or the sum of all slices if gridDim.y is 1. The taps are split among groups blocks.
INLINE void convolveGroupFilter(float* partial, const unsigned* dout, const unsigned* x, const GradientRows& c, int groups, unsigned* memory) {
  using Shape = GroupFilter;
  int block = blockIdx.x / groups % c.x.blocks, row = blockIdx.x / groups / c.x.blocks;
  auto taps = Range::split(c.x.taps, groups, blockIdx.x % groups);
  int lowest = c.shift(taps.first), highest = lowest;
  for (int i = 1; i < taps.count; i++) {
    int at = c.shift(taps.first + i);
    lowest = minInt(lowest, at), highest = at > highest ? at : highest;
  }
  Stages stages = {memory, c.depth, lineWords * (c.sizeX + c.sizeDout)};
  // Memory behind the last lines of the copies is multiplied by zeros, and so must not hold NaN.
  if ((c.total() - 1) / c.each % gridDim.y == blockIdx.y)
    for (int i = threadIdx.x; i < c.depth * stages.size; i += blockDim.x) memory[i] = 0;
  if (threadIdx.x == 0)
    for (int i = 0; i < c.depth; i++) mbarrierInit(stages.filled(i), Shape::copying), mbarrierInit(stages.read(i), 4 * minInt(Shape::groups, taps.count));
  fenceProxyAsync();
  barrier();
  int group = threadIdx.x / 128;
  if (group == Shape::groups) {
    // Four warpgroups of 128 threads with 128 registers each have all 65536; after the exchange the
    // producer has 32 and the others 160 each.
    setMaxRegisters<Shape::registersToCopy, false>();
    produceStages(stages, dout, x, c, block, row, lowest, highest - lowest);
    return;
  }
  setMaxRegisters<Shape::registers, true>();
  // The number of taps is a template argument: accumulators must be registers with fixed names.
  auto own = Range::split(taps.count, Shape::groups, group);
  if (own.count == 3) multiplyTaps<3>(stages, partial, c, block, row, lowest, taps.first, taps.first + own.first);
  if (own.count == 2) multiplyTaps<2>(stages, partial, c, block, row, lowest, taps.first, taps.first + own.first);
  if (own.count == 1) multiplyTaps<1>(stages, partial, c, block, row, lowest, taps.first, taps.first + own.first);
}

}  // namespace pollen
