// Tiles of 16-bit elements in shared memory, and what one warp makes of them with ldmatrix and
// mma.sync (sm_80 and up): S = Q K^T and O += P V for kMTiles x 16 query rows.
//
// The families that use it differ in the order of their loops and in what a warp owns, not here.
#pragma once

#include <cstdint>

#include "common/element.cuh"
#include "common/ptx/cp_async.cuh"
#include "common/ptx/mma.cuh"

namespace rooflash {

// A tile is rows of kWidth elements, one after another, in chunks of 16 bytes. The chunks of a row
// change places within groups, by the row, so that the 8 rows an ldmatrix touches fall into
// different banks: groups of eight where rows are whole 128 bytes, else of four, two rows alike.
// Tiles begin at multiples of 128 bytes.
template <int kWidth>
struct TileLayout {
  static_assert(kWidth % 32 == 0, "rows are whole groups of chunks");
  static constexpr int kRowBytes = kWidth * 2;
  static constexpr int kChunks = kWidth / 8;
  static constexpr int kGroup = kWidth % 64 == 0 ? 8 : 4;

  static __device__ __forceinline__ std::uint32_t offset(int row, int chunk) {
    return static_cast<std::uint32_t>(row * kRowBytes +
                                      ((chunk ^ (row / (8 / kGroup) % kGroup)) << 4));
  }
  // Where the lane's row of an ldmatrix lies that reads 16 rows of the chunks `chunk`, an even
  // number, and `chunk` + 1. Both rows of eight first, then the other chunk (what mma.sync takes as
  // A, and transposed as two B):
  static __device__ __forceinline__ std::uint32_t rows_first(int lane, int chunk) {
    return advance(offset(lane & 15, lane >> 4), chunk);
  }
  // Both chunks first, then the other rows of eight (as two B):
  static __device__ __forceinline__ std::uint32_t chunks_first(int lane, int chunk) {
    return advance(offset((lane & 7) + (lane >> 4) * 8, (lane >> 3) & 1), chunk);
  }

  // An address `chunks` chunks on, an even number, from one of the first two chunks of a tile.
  static __device__ __forceinline__ std::uint32_t advance(std::uint32_t address, int chunks) {
    return (address ^ static_cast<std::uint32_t>((chunks % kGroup) << 4)) +
           static_cast<std::uint32_t>((chunks / kGroup * kGroup) << 4);
  }
};

template <int kRows, int kWidth>
constexpr int kTileBytes = kRows* TileLayout<kWidth>::kRowBytes;

// Starts the copy of `kRows` rows of one head into a tile; rows past `rows` and columns past
// `columns` become zeros. `stride` is the distance of two rows in elements. kThreads threads share
// the work; `thread` is the caller's place among them.
template <class T, int kWidth, int kRows, int kThreads>
__device__ __forceinline__ void load_tile(std::uint32_t tile, const T* source, std::int64_t stride,
                                          int rows, int columns,
                                          int thread = static_cast<int>(threadIdx.x)) {
  using Layout = TileLayout<kWidth>;
  constexpr int kRowStep = kThreads / Layout::kGroup;
  static_assert(kRowStep % 8 == 0, "a thread keeps its swizzle from row to row");
  static_assert(kRows % kRowStep == 0);
  const int first_row = thread / Layout::kGroup;
  const int chunk = thread % Layout::kGroup;
  std::uint32_t target = tile + Layout::offset(first_row, chunk);
  const T* from = source + first_row * stride + chunk * 8;
  int rows_left = rows - first_row;
  // Not unrolled: the copies are asynchronous anyway, and their addresses would cost registers that
  // the accumulators need.
#pragma unroll 1
  for (int row = 0; row < kRows; row += kRowStep) {
#pragma unroll
    for (int group = 0; group < Layout::kChunks; group += Layout::kGroup) {
      const bool exists = rows_left > 0 && (group + chunk) * 8 < columns;
      ptx::cp_async_16(target + group * 16, from + group * 8, exists);
    }
    target += kRowStep * Layout::kRowBytes;
    from += kRowStep * stride;
    rows_left -= kRowStep;
  }
}

// The same, without checks where the whole tile exists, as nearly all do. More code, and registers.
template <class T, int kWidth, int kRows, int kThreads>
__device__ __forceinline__ void load_tile_fast(std::uint32_t tile, const T* source,
                                               std::int64_t stride, int rows, int columns) {
  using Layout = TileLayout<kWidth>;
  constexpr int kRowStep = kThreads / Layout::kGroup;
  // A thread's own offset is 32 bits, so that all threads share 64-bit addresses, in uniform
  // registers.
  constexpr std::int64_t kMostStride = (std::int64_t{1} << 31) / kRowStep - kWidth;
  if (rows < kRows || columns != kWidth || stride > kMostStride) {
    load_tile<T, kWidth, kRows, kThreads>(tile, source, stride, rows, columns);
    return;
  }
  const int first_row = static_cast<int>(threadIdx.x) / Layout::kGroup;
  const int chunk = static_cast<int>(threadIdx.x) % Layout::kGroup;
  const std::uint32_t target = tile + Layout::offset(first_row, chunk);
  const std::uint32_t own = (first_row * static_cast<std::uint32_t>(stride) + chunk * 8) * 2;
  const auto* from = reinterpret_cast<const unsigned char*>(source);
#pragma unroll
  for (int row = 0; row < kRows; row += kRowStep) {
#pragma unroll
    for (int group = 0; group < Layout::kChunks; group += Layout::kGroup) {
      ptx::cp_async_16(target + row * Layout::kRowBytes + group * 16, from + own + group * 16,
                       true);
    }
    from += kRowStep * stride * 2;
  }
}

// What one warp accumulates for kMTiles x 16 rows. Row r of m-tile m: r = 0 is row lane / 4 of the
// 16, r = 1 is lane / 4 + 8; at[m][n][2 r + c] is its column 8 n + 2 (lane % 4) + c.
template <int kMTiles, int kColumns>
struct Accumulators {
  static constexpr int kBlocks = kColumns / 8;
  float at[kMTiles][kBlocks][4];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int m = 0; m < kMTiles; ++m) {
#pragma unroll
      for (int n = 0; n < kBlocks; ++n) at[m][n][0] = at[m][n][1] = at[m][n][2] = at[m][n][3] = 0;
    }
  }
};

// S = Q K^T for the warp's query rows, the first of which lies at `q_rows`, and kKeys keys.
template <class T, int kWidth, int kMTiles, int kKeys>
__device__ __forceinline__ void scores(Accumulators<kMTiles, kKeys>& s, std::uint32_t q_rows,
                                       std::uint32_t k_tile, int lane) {
  using Layout = TileLayout<kWidth>;
  s.clear();
  const std::uint32_t q_lane = q_rows + Layout::rows_first(lane, 0);
  const std::uint32_t k_lane = k_tile + Layout::chunks_first(lane, 0);
#pragma unroll
  for (int k = 0; k < kWidth / 16; ++k) {
    std::uint32_t a[kMTiles][4];
#pragma unroll
    for (int m = 0; m < kMTiles; ++m) {
      ptx::ldmatrix_x4(a[m], Layout::advance(q_lane, 2 * k) + m * 16 * Layout::kRowBytes);
    }
#pragma unroll
    for (int n = 0; n < kKeys / 8; n += 2) {
      std::uint32_t b[4];
      ptx::ldmatrix_x4(b, Layout::advance(k_lane, 2 * k) + n * 8 * Layout::kRowBytes);
#pragma unroll
      for (int m = 0; m < kMTiles; ++m) {
        ptx::mma_m16n8k16<T>(s.at[m][n], a[m], b[0], b[1]);
        ptx::mma_m16n8k16<T>(s.at[m][n + 1], a[m], b[2], b[3]);
      }
    }
  }
}

// The weights of 16 keys as A operands of mma.sync, rounded to T: two neighbouring blocks of the
// accumulators of S are one operand.
template <class T, int kMTiles, int kKeys>
__device__ __forceinline__ void pack_weights(std::uint32_t (&a)[kMTiles][4],
                                             const Accumulators<kMTiles, kKeys>& p, int step) {
#pragma unroll
  for (int m = 0; m < kMTiles; ++m) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float(&pair)[4] = p.at[m][2 * step + i / 2];
      a[m][i] = pack<T>(pair[i % 2 * 2], pair[i % 2 * 2 + 1]);
    }
  }
}

// O += P V over kKeys keys. `weights(a, step)` gives the A operands of the step's 16 keys.
template <class T, int kKeys, int kMTiles, int kWidth, class Weights>
__device__ __forceinline__ void weighted_sum_of(Accumulators<kMTiles, kWidth>& o,
                                                const Weights& weights, std::uint32_t v_tile,
                                                int lane) {
  using Layout = TileLayout<kWidth>;
  const std::uint32_t v_lane = v_tile + Layout::rows_first(lane, 0);
#pragma unroll
  for (int k = 0; k < kKeys / 16; ++k) {
    std::uint32_t a[kMTiles][4];
    weights(a, k);
#pragma unroll
    for (int n = 0; n < kWidth / 8; n += 2) {
      std::uint32_t b[4];
      ptx::ldmatrix_x4_trans(b, Layout::advance(v_lane, n) + k * 16 * Layout::kRowBytes);
#pragma unroll
      for (int m = 0; m < kMTiles; ++m) {
        ptx::mma_m16n8k16<T>(o.at[m][n], a[m], b[0], b[1]);
        ptx::mma_m16n8k16<T>(o.at[m][n + 1], a[m], b[2], b[3]);
      }
    }
  }
}

// The same, P rounded to T straight from the accumulators of S.
template <class T, int kMTiles, int kKeys, int kWidth>
__device__ __forceinline__ void weighted_sum(Accumulators<kMTiles, kWidth>& o,
                                             const Accumulators<kMTiles, kKeys>& p,
                                             std::uint32_t v_tile, int lane) {
  const auto weights = [&](std::uint32_t(&a)[kMTiles][4], int k) { pack_weights<T>(a, p, k); };
  weighted_sum_of<T, kKeys>(o, weights, v_tile, lane);
}

// Writes the warp's rows of O as T, the first at `target`, through shared memory of its own
// (`smem`, as wide as a tile), so that global stores are 16 bytes wide. Rows past `rows` and
// columns past `columns` are left out.
template <class T, int kMTiles, int kWidth>
__device__ __forceinline__ void store_rows(const Accumulators<kMTiles, kWidth>& o,
                                           unsigned char* smem, T* target, std::int64_t stride,
                                           int rows, int columns, int lane) {
  using Layout = TileLayout<kWidth>;
#pragma unroll
  for (int m = 0; m < kMTiles; ++m) {
#pragma unroll
    for (int n = 0; n < kWidth / 8; ++n) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        unsigned char* const chunk = smem + Layout::offset(m * 16 + r * 8 + (lane >> 2), n);
        reinterpret_cast<std::uint32_t*>(chunk)[lane & 3] =
            pack<T>(o.at[m][n][2 * r], o.at[m][n][2 * r + 1]);
      }
    }
  }
  __syncwarp();
#pragma unroll
  for (int i = lane; i < kMTiles * 16 * Layout::kChunks; i += 32) {
    const int row = i / Layout::kChunks;
    const int chunk = i % Layout::kChunks;
    if (row < rows && chunk * 8 < columns) {
      *reinterpret_cast<uint4*>(target + row * stride + chunk * 8) =
          *reinterpret_cast<const uint4*>(smem + Layout::offset(row, chunk));
    }
  }
}

}  // namespace rooflash
