// Packed copies (nhwc.cuh) of planes of channels: whole lines, or in chunks (nhwcgroup.cuh).
#pragma once

#include "nhwc.cuh"
#include "windows.cuh"

namespace pollen {

// PackTile is a block's part of planes of channels on its way through shared memory: some lines, from begin on, of a block of channels of a plane. Of pixel
// (h, w) of a plane, which from seeks, channels are channelFrom apart, and are parts of the plane's line (h + top) columns + w + left. Lines outside of the
// image are 0.
template <class Number>
struct PackTile {
  static constexpr int numbers = Numbers<Number>::word, some = line * numbers, lines = 32;
  int begin, block, plane;
  float* tile;

  template <class From>
  INLINE PackTile(From from, int channels, int planeFrom, int channelFrom, int height, int width, int top, int left, int rows, int columns, int blocks) {
    SHARED(float, memory, lines * (some + 1));
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, tiles = (rows * columns + lines - 1) / lines;
    begin = blockIdx.x % tiles * lines, block = blockIdx.x / tiles % blocks, plane = blockIdx.x / tiles / blocks;
    int at = begin + lane, h = at / columns - top, w = at % columns - left;
    bool inside = (unsigned)h < (unsigned)height & (unsigned)w < (unsigned)width;
    int first = block * some + warp, there = inside ? channels - first : 0, apart = channelFrom / From::together;
    from.seek(plane * planeFrom + first * channelFrom, h, w);
#pragma unroll
    for (int i = 0; i < some; i += 8) memory[lane * (some + 1) + i + warp] = from(i < there, i * apart);
    barrier();
    tile = memory;
  }

  // sum leaves the sums of the lines by channel in the block's row of a table [planes tiles, channels].
  INLINE void sum(Out<float> table, int channels, int tiles) const {
    constexpr int parts = 256 / some, each = lines / parts;
    SHARED(float, sums, parts * some);
    int channel = threadIdx.x % some;
    float total = 0;
#pragma unroll
    for (int i = 0; i < each; i++) total += tile[(threadIdx.x / some * each + i) * (some + 1) + channel];
    sums[threadIdx.x] = total;
    barrier();
    if ((int)threadIdx.x >= lesser(some, channels - block * some)) return;
#pragma unroll
    for (int i = 1; i < parts; i++) total += sums[i * some + channel];
    table.at()[(plane * tiles + begin / lines) * channels + block * some + channel] = total;
  }

  // word is a line's.
  INLINE unsigned word(int n, int i) const {
    Vector<float, 4> v[2];
#pragma unroll
    for (int j = 0; j < numbers; j++) v[j].v[0] = tile[n * (some + 1) + i * numbers + j];
    return Number::word(v, 0, 0);
  }
};

// pack writes lines, those of planes and blocks of channels planeTo and blockTo lines apart, and the tiles' sums if asked for.
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
    to[(b.plane * planeTo + b.block * blockTo + b.begin + n) * line + lane] = b.word(n, lane);
  }
}

// packChunks does so in chunks, lines being lineTo apart: of each run of so many lines the first 16 bytes are side by side, then the next ones.
template <class Number, class From>
INLINE void packChunks(unsigned* to, From from, Out<float> sums, bool summed, int channels, int planeFrom, int channelFrom, int height, int width,
                       int top, int left, int rows, int columns, int blocks, int planeTo, int blockTo, int lineTo, int run) {
  PackTile<Number> b(from, channels, planeFrom, channelFrom, height, width, top, left, rows, columns, blocks);
  if (summed) b.sum(sums, channels, (rows * columns + b.lines - 1) / b.lines);
  constexpr int chunk = 4, chunks = line / chunk;
  int n = threadIdx.x % 32, i = threadIdx.x / 32;
  if (b.begin + n >= rows * columns || i >= chunks) return;
  int at = b.plane * planeTo + b.block * blockTo + (b.begin + n) * lineTo;
  Vector<unsigned, chunk> words;
#pragma unroll
  for (int j = 0; j < chunk; j++) words.v[j] = b.word(n, chunk * i + j);
  ((Vector<unsigned, chunk>*)to)[(at / run * chunks + i) * run + at % run] = words;
}

// FromPlanes are planes of width columns; FromWindows those that windows' gradients make, which has together elements in one.
struct FromPlanes {
  static constexpr int together = 1;
  const float* x;
  int width;

  INLINE void seek(int plane, int h, int w) { x += plane + h * width + w; }
  INLINE float operator()(bool there, int further) const { return loadIf(there, x + further); }
};
struct FromWindows {
  static constexpr int together = 4;
  Windows<float> windows;
  int width;
  unsigned element;

  INLINE void seek(int plane, int h, int w) {
    int at = plane / together + h / 2 * (width / 2) + w / 2;
    windows.dout += at, windows.which += at;
    element = h % 2 * 2 + w % 2;
  }
  INLINE float operator()(bool there, int further) const {
    return loadIf(there & (loadIf(there, windows.which + further) == element), windows.dout + further);
  }
};

}  // namespace pollen
