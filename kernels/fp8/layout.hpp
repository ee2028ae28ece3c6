// Where elements of 8 bits lie in shared memory and in registers: every index that the fp8 kernels
// work out. CUDA-free, so that a test on the CPU can follow the elements through them; nvcc
// compiles the constexpr functions for the device too.
//
// wgmma multiplies elements of 8 bits in K-major form alone, so that V, whose keys are its K, has
// to be transposed. That is done by 16-bit instructions (ldmatrix, stmatrix), which move channels
// in pairs: two byte permutes part a pair. Two orders follow from it, and cost nothing:
//   keys      inside each 16, in the order in which the accumulators of Q K^T give them as weights
//   channels  inside each 16, the even ones first; undone when O is stored
#pragma once

#include <cstdint>

namespace rooflash::fp8 {

// Rows of 32, 64 or 128 bytes with the swizzle of that width, as TMA writes and wgmma reads them:
// chunks of 16 bytes change places by the row, such that eight rows of one chunk fall into
// different banks. Tiles begin at multiples of 8 rows.
constexpr std::uint32_t chunk_offset(int row_bytes, int row, int chunk) {
  const int moved = chunk ^ (row / (128 / row_bytes) % (row_bytes / 16));
  return static_cast<std::uint32_t>(row * row_bytes + moved * 16);
}

// A tile of Q, K or V as it is loaded: columns of `row_bytes`, each of `rows` rows. Where 16 bytes
// of a row lie.
constexpr std::uint32_t tile_offset(int row_bytes, int rows, int row, int chunk) {
  const int chunks = row_bytes / 16;
  return static_cast<std::uint32_t>(chunk / chunks * rows * row_bytes) +
         chunk_offset(row_bytes, row, chunk % chunks);
}

// ---- Q and K as operands of mma.sync

// The lane's row for an ldmatrix of 32 bytes, from 32 step on, of 16 rows as A, of 8 as B.
constexpr std::uint32_t a_offset(int row_bytes, int rows, int lane, int first_row, int step) {
  return tile_offset(row_bytes, rows, first_row + lane % 16, 2 * step + lane / 16);
}
constexpr std::uint32_t b_offset(int row_bytes, int rows, int lane, int first_row, int step) {
  return tile_offset(row_bytes, rows, first_row + lane % 8, 2 * step + lane / 8 % 2);
}

// ---- keys

// Key of the 16 that is at `place` along the K of P V.
constexpr int key_at(int place) {
  return place % 4 / 2 * 8 + place / 4 * 2 + place % 2;
}

// What a thread of a warp holds of S, as wgmma leaves it: at[block][i].
struct Accumulator {
  int block, i;
};
// The weight in byte `byte` of register `reg` of the A operand of keys 32 step ...
constexpr Accumulator weight_at(int step, int reg, int byte) {
  return {4 * step + reg / 2 * 2 + byte / 2, reg % 2 * 2 + byte % 2};
}

// ---- V

// The lane's row for an ldmatrix of keys 32 step ... and channels 16 chunk ...
constexpr std::uint32_t loaded_offset(int row_bytes, int keys, int lane, int step, int chunk) {
  return tile_offset(row_bytes, keys, step * 32 + lane, chunk);
}

// What it gives, transposed: register m holds of keys 8 m + 2 (lane % 4) and the next the channels
// 2 (lane / 4) and the next. Bytes of registers m and m + 1 that become one:
inline constexpr unsigned kEvenChannels = 0x6420;
inline constexpr unsigned kOddChannels = 0x7531;

// The tile transposed: for every 32 keys as many rows of 32 bytes as channels. The lane's row for
// an stmatrix of even and odd channels of the first 16 keys, then of the others.
constexpr int kTransposedRowBytes = 32;
constexpr std::uint32_t transposed_offset(int headdim, int lane, int step, int chunk) {
  const int row = chunk * 16 + lane / 8 % 2 * 8 + lane % 8;
  return static_cast<std::uint32_t>(step * headdim * kTransposedRowBytes) +
         chunk_offset(kTransposedRowBytes, row, lane / 16);
}

// Channel of row `row` of the transposed tile, which is a column of O's accumulators.
constexpr int channel_of(int row) {
  return row / 16 * 16 + row % 8 * 2 + row % 16 / 8;
}

// ---- O

// Of a warp's 16 rows in 16 bits, in columns of 64 channels. A thread holds four neighbouring
// channels of every 16: O's channels 16 group + 4 (lane % 4) + i of its row r lie in
// at[o_at(group, r, i).block][...], and go to this place.
constexpr Accumulator o_at(int group, int r, int i) {
  return {2 * group + i % 2, 2 * r + i / 2};
}
constexpr int kStagedRowBytes = 128;
constexpr std::uint32_t staged_offset(int lane, int r, int group) {
  const int quarter = lane % 4;  // 8 bytes
  return static_cast<std::uint32_t>(group / 4 * 16 * kStagedRowBytes + quarter % 2 * 8) +
         chunk_offset(kStagedRowBytes, lane / 4 + 8 * r, group % 4 * 2 + quarter / 2);
}

}  // namespace rooflash::fp8
