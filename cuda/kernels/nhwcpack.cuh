// Makes packed copies (nhwc.cuh) of NCHW planes, in whole lines or in chunks (nhwcgroup.cuh).
#pragma once

#include "nhwc.cuh"
#include "windows.cuh"

namespace pollen {

// PackTile transposes a part of the planes through shared memory: lines lines, from begin on, of
// one block of channels of one plane. Channels of pixel (h, w) are channelFrom apart, and go into
// line (h + top) columns + w + left of the plane. Lines outside the image are 0.
template <class Number>
struct PackTile {
  static constexpr int numbers = Numbers<Number>::word, some = lineWords * numbers, lines = 32;
  int begin, block, plane;
  float* tile;

  // The constructor loads the tile: lanes are lines, so that they read neighbouring pixels of a
  // plane; warps are channels. Rows of the tile are one word longer than their data, to avoid bank
  // conflicts.
  template <class From>
  INLINE PackTile(From from, int channels, int planeFrom, int channelFrom, int height, int width, int top, int left, int rows, int columns, int blocks) {
    SHARED(float, memory, lines * (some + 1));
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, tiles = (rows * columns + lines - 1) / lines;
    begin = blockIdx.x % tiles * lines, block = blockIdx.x / tiles % blocks, plane = blockIdx.x / tiles / blocks;
    int at = begin + lane, h = at / columns - top, w = at % columns - left;
    bool found = from.find(h, w), inside = found && (unsigned)h < (unsigned)height && (unsigned)w < (unsigned)width;
    int first = block * some + warp, there = inside ? channels - first : 0, channelStride = channelFrom / From::together;
    from.seek(plane * planeFrom + first * channelFrom, h, w);
#pragma unroll
    for (int i = 0; i < some; i += 8) memory[lane * (some + 1) + i + warp] = from(i < there, i * channelStride);
    barrier();
    tile = memory;
  }

  // sum writes the sums of the tile's lines by channel into the tile's row of table [planes tiles,
  // channels]: the gradient of a bias.
  INLINE void sum(Out<float> table, int channels, int tiles) const {
    // 256 threads are channels by parts of the tile's lines.
    constexpr int parts = 256 / some, each = lines / parts;
    SHARED(float, sums, parts * some);
    int channel = threadIdx.x % some;
    float total = 0;
#pragma unroll
    for (int i = 0; i < each; i++) total += tile[(threadIdx.x / some * each + i) * (some + 1) + channel];
    sums[threadIdx.x] = total;
    barrier();
    if ((int)threadIdx.x >= minInt(some, channels - block * some)) return;
#pragma unroll
    for (int i = 1; i < parts; i++) total += sums[i * some + channel];
    table.at()[(plane * tiles + begin / lines) * channels + block * some + channel] = total;
  }

  // word returns word i of line n.
  INLINE unsigned word(int n, int i) const {
    Vector<float, 4> v[2];
#pragma unroll
    for (int j = 0; j < numbers; j++) v[j].v[0] = tile[n * (some + 1) + i * numbers + j];
    return Number::word(v, 0, 0);
  }
};

// pack writes whole lines; planes are planeTo lines apart, blocks of channels blockTo. It also
// writes the tiles' sums if summed is set.
template <class Number, class From>
INLINE void pack(unsigned* to, From from, Out<float> sums, bool summed, int channels, int planeFrom, int channelFrom, int height, int width, int top,
                 int left, int rows, int columns, int blocks, int planeTo, int blockTo) {
  PackTile<Number> b(from, channels, planeFrom, channelFrom, height, width, top, left, rows, columns, blocks);
  if (summed) b.sum(sums, channels, (rows * columns + b.lines - 1) / b.lines);
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int i = 0; i < b.lines; i += 8) {
    int n = i + warp;
    if (b.begin + n >= rows * columns) return;
    to[(b.plane * planeTo + b.block * blockTo + b.begin + n) * lineWords + lane] = b.word(n, lane);
  }
}

// packChunks writes chunked lines, which are lineTo apart. In each run of run lines the first 16
// bytes of all are contiguous, then the next 16, and so on.
template <class Number, class From>
INLINE void packChunks(unsigned* to, From from, Out<float> sums, bool summed, int channels, int planeFrom, int channelFrom, int height, int width,
                       int top, int left, int rows, int columns, int blocks, int planeTo, int blockTo, int lineTo, int run) {
  PackTile<Number> b(from, channels, planeFrom, channelFrom, height, width, top, left, rows, columns, blocks);
  if (summed) b.sum(sums, channels, (rows * columns + b.lines - 1) / b.lines);
  constexpr int chunk = 4, chunks = lineWords / chunk;
  int n = threadIdx.x % 32, i = threadIdx.x / 32;
  if (b.begin + n >= rows * columns || i >= chunks) return;
  int at = b.plane * planeTo + b.block * blockTo + (b.begin + n) * lineTo;
  Vector<unsigned, chunk> words;
#pragma unroll
  for (int j = 0; j < chunk; j++) words.v[j] = b.word(n, chunk * i + j);
  ((Vector<unsigned, chunk>*)to)[(at / run * chunks + i) * run + at % run] = words;
}

// PackWindows unpools and packs in one pass: from the gradients of 2 x 2 pooling windows to a
// chunked packed copy of the gradient before pooling, in bf16. A block has 32 windows of a block of
// channels of one plane, and a part of the plane's lines outside the image. Each warp has one chunk
// (8 channels), its lanes neighbouring windows.
struct PackWindows {
  static constexpr int numbers = 8, chunks = 8, tile = 32;
  using Chunk = Vector<unsigned, 4>;

  Windows<float> from;
  Chunk* lines;  // the plane's lines, of this chunk
  int count, channelStride, height, width, top, left, rows, columns;

  // Window is a lane's window: gradient and argmax of each channel of the chunk.
  struct Window {
    float g[numbers];
    unsigned argmax[numbers];
  };

  INLINE Window load(int window, bool there) const {
    Window w;
#pragma unroll
    for (int c = 0; c < numbers; c++) {
      w.argmax[c] = loadIf(there & (c < count), from.argmax + c * channelStride + window);
      w.g[c] = loadIf(there & (c < count), from.dout + c * channelStride + window);
    }
    return w;
  }

  // unpool returns the chunk of one of the window's four elements: all, the packed gradients,
  // masked to the channels whose maximum is that element.
  static INLINE Chunk unpool(const Chunk& all, const Window& own, unsigned element) {
    Chunk chunk;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      unsigned low = own.argmax[2 * i] == element ? 0xffffu : 0, high = own.argmax[2 * i + 1] == element ? 0xffff0000u : 0;
      chunk.v[i] = all.v[i] & (low | high);
    }
    return chunk;
  }

  // store writes a window's elements. Neighbouring lanes exchange elements, so that together they
  // write the left and the right element of one window, which are neighbouring lines, and then
  // those of the other window.
  INLINE void store(const Window& own, int window, int windows) const {
    int across = width / 2, odd = window % 2, i = (window - odd) / across, j = window - odd - i * across;
    bool next = j + 1 == across;
    int lineOf[2] = {(2 * i + top) * columns + 2 * j + odd + left, 0}, row[2] = {2 * i + top, 2 * (i + next) + top};
    int column[2] = {2 * j + odd + left, 2 * (next ? 0 : j + 1) + odd + left};
    lineOf[1] = row[1] * columns + column[1];
    Chunk all;
#pragma unroll
    for (int k = 0; k < 4; k++) all.v[k] = packBF16(own.g[2 * k], own.g[2 * k + 1]);
#pragma unroll
    for (int down = 0; down < 2; down++) {
      Chunk elements[2] = {unpool(all, own, 2 * down), unpool(all, own, 2 * down + 1)}, mine, other;
#pragma unroll
      for (int k = 0; k < 4; k++) {
        mine.v[k] = odd ? elements[1].v[k] : elements[0].v[k];
        other.v[k] = shuffleXor((int)(odd ? elements[0].v[k] : elements[1].v[k]), 1);
      }
#pragma unroll
      for (int w = 0; w < 2; w++) {
        Chunk chunk;
#pragma unroll
        for (int k = 0; k < 4; k++) chunk.v[k] = odd == w ? mine.v[k] : other.v[k];
        bool inside = (unsigned)(row[w] + down) < (unsigned)rows & (unsigned)column[w] < (unsigned)columns;
        if (inside & (window - odd + w < windows)) lines[lineOf[w] + down * columns] = chunk;
      }
    }
  }

  // border zeroes the lines from first to last that are outside the image.
  INLINE void border(int first, int last) const {
    const unsigned zero = opaque(0);  // otherwise clang writes the 16 bytes in halves
    int at = first + threadIdx.x % 32, row = at / columns - top, column = at % columns - left, further = 32 % columns, down = 32 / columns;
    for (; at < last; at += 32) {
      if ((unsigned)row >= (unsigned)height | (unsigned)column >= (unsigned)width) lines[at] = {zero, zero, zero, zero};
      row += down, column += further;
      if (column >= columns - left) column -= columns, row++;
    }
  }

  // sum writes the sums of the block's windows by channel into row.
  static INLINE void sum(float (&total)[numbers], float* row, int count) {
    int lane = threadIdx.x % 32;
    // A reduce-scatter: lanes that differ in one bit split the channels between them until each has
    // one; then the lanes with the same channel add theirs.
#pragma unroll
    for (int half = numbers / 2, bit = 16; half > 0; half /= 2, bit /= 2)
#pragma unroll
      for (int c = 0; c < half; c++) {
        float other = shuffleXor(lane & bit ? total[c] : total[c + half], bit), own = lane & bit ? total[c + half] : total[c];
        total[c] = own + other;
      }
    total[0] += shuffleXor(total[0], 2);
    total[0] += shuffleXor(total[0], 1);
    if (lane % 4 == 0 && lane / 4 < count) row[lane / 4] = total[0];
  }
};

// packWindows writes the lines of a plane, and the sums of its windows if summed is set. Planes are
// planeTo lines apart, blocks of channels run.
INLINE void packWindows(unsigned* to, Windows<float> from, Out<float> sums, bool summed, int channels, int planeFrom, int channelFrom, int height,
                        int width, int top, int left, int rows, int columns, int blocks, int planeTo, int run) {
  using Pack = PackWindows;
  int windows = height / 2 * (width / 2), tiles = (windows + Pack::tile - 1) / Pack::tile, warp = threadIdx.x / 32;
  int part = blockIdx.x % tiles, block = blockIdx.x / tiles % blocks, plane = blockIdx.x / tiles / blocks;
  int channel = (block * Pack::chunks + warp) * Pack::numbers, begin = (plane * planeFrom + channel * channelFrom) / 4;
  int window = part * Pack::tile + threadIdx.x % 32;
  Pack b{{from.dout + begin, from.argmax + begin}, (Pack::Chunk*)to + (block * Pack::chunks + warp) * run + plane * planeTo, channels - channel,
         channelFrom / 4, height, width, top, left, rows, columns};
  const Pack::Window own = b.load(window, window < windows);
  int share = (rows * columns + tiles - 1) / tiles;
  b.border(part * share, minInt((part + 1) * share, rows * columns));
  b.store(own, window, windows);
  if (!summed) return;
  float total[Pack::numbers];
#pragma unroll
  for (int c = 0; c < Pack::numbers; c++) total[c] = own.argmax[c] == noMaximum ? 0 : 0 + own.g[c];  // adding 0 turns -0 into 0
  Pack::sum(total, sums.at() + (plane * tiles + part) * channels + channel, b.count);
}

// FromPlanes reads planes of width columns. FromSpread reads the same planes with zeros between
// their rows and columns: element (h, w) is element (h strideH, w strideW). FromWindows reads the same planes as unpooled from
// windows of together elements each.
struct FromPlanes {
  static constexpr int together = 1;
  const float* x;
  int width;

  INLINE bool find(int&, int&) const { return true; }
  INLINE void seek(int plane, int h, int w) { x += plane + h * width + w; }
  INLINE float operator()(bool there, int further) const { return loadIf(there, x + further); }
};
struct FromSpread : FromPlanes {
  int strideH, strideW;

  // find turns a place among the zeros into one of the planes, if it is one.
  INLINE bool find(int& h, int& w) const {
    int row = h / strideH, column = w / strideW;
    bool is = h >= 0 && w >= 0 && row * strideH == h && column * strideW == w;
    h = row, w = column;
    return is;
  }
};
struct FromWindows {
  static constexpr int together = 4;
  Windows<float> windows;
  int width;
  unsigned element;

  INLINE bool find(int&, int&) const { return true; }
  INLINE void seek(int plane, int h, int w) {
    int at = plane / together + h / 2 * (width / 2) + w / 2;
    windows.dout += at, windows.argmax += at;
    element = h % 2 * 2 + w % 2;
  }
  INLINE float operator()(bool there, int further) const {
    return loadIf(there & (loadIf(there, windows.argmax + further) == element), windows.dout + further);
  }
};

}  // namespace pollen
