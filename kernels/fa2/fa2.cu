// FlashAttention-2 forward on mma.sync (sm_80 and up).
//
// Dao, "FlashAttention-2" (arXiv 2307.08691), section 3: queries in the outer loop, one CTA per
// (query block, head, batch item); keys in the inner loop; warps split the query rows, so they
// exchange nothing; O stays unnormalised in registers and is divided once at the end; key blocks
// above the diagonal are skipped. Left out: dropout, backward, split keys.
// Expected limit: the mma.sync rate, about 0.6 of what wgmma reaches on Hopper.
#include <cuda_runtime.h>

#include <cmath>
#include <numbers>

#include "common/element.cuh"
#include "common/launch.hpp"
#include "common/mask.cuh"
#include "common/ptx/cp_async.cuh"
#include "common/ptx/mma.cuh"
#include "config.hpp"
#include "prepare.hpp"
#include "variants.hpp"

namespace rooflash::fa2 {

struct Arguments {
  const void* q;  // [batch, seqlen_q, heads_q, headdim]
  const void* k;  // [batch, seqlen_kv, heads_kv, headdim]
  const void* v;  // [batch, seqlen_kv, heads_kv, headdim_v]
  void* o;        // [batch, seqlen_q, heads_q, headdim_v]
  float* lse;     // [batch, heads_q, seqlen_q]
  int heads_q, heads_kv, seqlen_q, seqlen_kv, headdim, headdim_v;
  int query_blocks;
  int diagonal;      // causal: query i sees keys j <= i + diagonal
  float scale_log2;  // softmax scale for exp2
};

// Shared-memory tiles are rows of kHeaddim 16-bit elements in 16-byte chunks; chunk c of row r lies
// at c ^ (r % 8), so that the 8 rows an ldmatrix touches fall into different banks. Rows start at
// multiples of their size, so moving by 2^n chunks is one XOR on the address.
template <int kHeaddim>
__device__ __forceinline__ std::uint32_t tile_offset(int row, int chunk) {
  return static_cast<std::uint32_t>(row * kHeaddim * 2 + ((chunk ^ (row & 7)) << 4));
}

// Starts the copy of `kRows` rows of one head into a tile; rows past `rows` and columns past
// `columns` become zeros. `stride` is the distance of two rows in elements.
template <class T, int kHeaddim, int kRows, int kThreads>
__device__ __forceinline__ void load_tile(std::uint32_t tile, const T* source, int stride, int rows,
                                          int columns) {
  constexpr int kChunks = kHeaddim / 8;
  constexpr int kRowStep = kThreads / kChunks;
  static_assert(kRowStep % 8 == 0, "a thread keeps its swizzle from row to row");
  const int first_row = static_cast<int>(threadIdx.x) / kChunks;
  const int chunk = static_cast<int>(threadIdx.x) % kChunks;
  std::uint32_t target = tile + tile_offset<kHeaddim>(first_row, chunk);
  const T* from = source + static_cast<std::int64_t>(first_row) * stride + chunk * 8;
  int rows_left = chunk * 8 < columns ? rows - first_row : 0;
  // Not unrolled: the copies are asynchronous anyway, and their addresses would cost registers that
  // the accumulators need.
#pragma unroll 1
  for (int i = 0; i < kRows / kRowStep; ++i) {
    ptx::cp_async_16(target, rows_left > 0 ? from : source, rows_left > 0 ? 16 : 0);
    target += kRowStep * kHeaddim * 2;
    from += kRowStep * stride;
    rows_left -= kRowStep;
  }
}

// What one warp keeps in registers between key blocks: 32 query rows as two m16 tiles.
// Row r of m-tile m: r = 0 is accumulator row lane / 4, r = 1 is lane / 4 + 8.
template <int kHeaddim>
struct State {
  float o[2][kHeaddim / 8][4];
  float row_max[2][2];  // of the scaled scores, in units of log2
  float row_sum[2][2];  // this lane's share; the quad adds up at the end
};

// S = Q K^T for the warp's 32 rows and kBlockN keys.
template <class T, int kHeaddim>
__device__ __forceinline__ void scores(float (&s)[2][Config<kHeaddim>::kBlockN / 8][4],
                                       std::uint32_t q_tile, std::uint32_t k_tile, int warp_row,
                                       int lane) {
  constexpr int kBlocks = Config<kHeaddim>::kBlockN / 8;
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int n = 0; n < kBlocks; ++n) s[m][n][0] = s[m][n][1] = s[m][n][2] = s[m][n][3] = 0.0F;
  }
  const std::uint32_t q_address = q_tile + tile_offset<kHeaddim>(warp_row + (lane & 15), lane >> 4);
  const std::uint32_t k_address =
      k_tile + tile_offset<kHeaddim>((lane & 7) + ((lane >> 4) << 3), (lane >> 3) & 1);
#pragma unroll
  for (int k = 0; k < kHeaddim / 16; ++k) {
    std::uint32_t a[2][4];
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      ptx::ldmatrix_x4(a[m], (q_address ^ (k << 5)) + m * 16 * kHeaddim * 2);
    }
#pragma unroll
    for (int n = 0; n < kBlocks; n += 2) {
      std::uint32_t b[4];
      ptx::ldmatrix_x4(b, (k_address ^ (k << 5)) + n * 8 * kHeaddim * 2);
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        ptx::mma_m16n8k16<T>(s[m][n], a[m], b[0], b[1]);
        ptx::mma_m16n8k16<T>(s[m][n + 1], a[m], b[2], b[3]);
      }
    }
  }
}

// Hides the keys a row does not see. Counted from this lane's first column of the block,
// `keys_left` keys exist and the lane's first row sees `row_keys` of them.
template <int kHeaddim>
__device__ __forceinline__ void apply_mask(float (&s)[2][Config<kHeaddim>::kBlockN / 8][4],
                                           int keys_left, int row_keys) {
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int n = 0; n < Config<kHeaddim>::kBlockN / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int visible = min(keys_left, row_keys + m * 16 + i / 2 * 8);
        if (n * 8 + i % 2 >= visible) s[m][n][i] = -INFINITY;
      }
    }
  }
}

// Online softmax: turns scores into unnormalised weights and rescales what was summed before.
template <int kHeaddim>
__device__ __forceinline__ void softmax(float (&s)[2][Config<kHeaddim>::kBlockN / 8][4],
                                        State<kHeaddim>& state, float scale_log2) {
  constexpr int kBlocks = Config<kHeaddim>::kBlockN / 8;
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float block_max = fmaxf(s[m][0][2 * r], s[m][0][2 * r + 1]);
#pragma unroll
      for (int n = 1; n < kBlocks; ++n) {
        block_max = fmaxf(block_max, fmaxf(s[m][n][2 * r], s[m][n][2 * r + 1]));
      }
      block_max = fmaxf(block_max, __shfl_xor_sync(0xFFFFFFFFU, block_max, 1));
      block_max = fmaxf(block_max, __shfl_xor_sync(0xFFFFFFFFU, block_max, 2));
      // The maximum is kept as it is subtracted, scaled and rounded: the factor is exactly 1 where
      // it stands, so that no rounding adds up over the blocks of a long row.
      const float old_max = state.row_max[m][r];
      const float new_max = fmaxf(old_max, block_max * scale_log2);
      state.row_max[m][r] = new_max;
      // A row with no key yet keeps -inf; 0 in its place avoids inf - inf.
      const float shift = new_max == -INFINITY ? 0.0F : new_max;
      const float rescale = ptx::ex2(old_max - shift);
      float sum = 0.0F;
#pragma unroll
      for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          const float weight = ptx::ex2(s[m][n][2 * r + c] * scale_log2 - shift);
          s[m][n][2 * r + c] = weight;
          sum += weight;
        }
      }
      state.row_sum[m][r] = state.row_sum[m][r] * rescale + sum;
#pragma unroll
      for (int n = 0; n < kHeaddim / 8; ++n) {
        state.o[m][n][2 * r] *= rescale;
        state.o[m][n][2 * r + 1] *= rescale;
      }
    }
  }
}

// O += P V, P taken from the accumulator registers of S.
template <class T, int kHeaddim>
__device__ __forceinline__ void weighted_sum(State<kHeaddim>& state,
                                             const float (&p)[2][Config<kHeaddim>::kBlockN / 8][4],
                                             std::uint32_t v_tile, int lane) {
  const std::uint32_t v_address = v_tile + tile_offset<kHeaddim>(lane & 15, lane >> 4);
#pragma unroll
  for (int k = 0; k < Config<kHeaddim>::kBlockN / 16; ++k) {
    std::uint32_t a[2][4];
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      a[m][0] = pack<T>(p[m][2 * k][0], p[m][2 * k][1]);
      a[m][1] = pack<T>(p[m][2 * k][2], p[m][2 * k][3]);
      a[m][2] = pack<T>(p[m][2 * k + 1][0], p[m][2 * k + 1][1]);
      a[m][3] = pack<T>(p[m][2 * k + 1][2], p[m][2 * k + 1][3]);
    }
#pragma unroll
    for (int n = 0; n < kHeaddim / 8; n += 2) {
      std::uint32_t b[4];
      ptx::ldmatrix_x4_trans(b, (v_address ^ (n << 4)) + k * 16 * kHeaddim * 2);
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        ptx::mma_m16n8k16<T>(state.o[m][n], a[m], b[0], b[1]);
        ptx::mma_m16n8k16<T>(state.o[m][n + 1], a[m], b[2], b[3]);
      }
    }
  }
}

// Divides by the row sums and writes O and LSE. O goes through the warp's own rows of the Q tile,
// so that global stores are 16 bytes wide.
template <class T, int kHeaddim>
__device__ __forceinline__ void epilogue(State<kHeaddim>& state, const Arguments& args,
                                         unsigned char* q_smem, T* o, float* lse, int warp_row,
                                         int first_row, int lane) {
  __syncwarp();  // the warp's last ldmatrix of Q is done
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float sum = state.row_sum[m][r];
      sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 1);
      sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 2);
      const int local = warp_row + m * 16 + r * 8 + (lane >> 2);
      const int row = first_row + m * 16 + r * 8 + (lane >> 2);
      const bool empty = sum == 0.0F;
      const float inverse = empty ? 0.0F : 1.0F / sum;
      if ((lane & 3) == 0 && row < args.seqlen_q) {
        lse[row] = empty ? -INFINITY : state.row_max[m][r] * std::numbers::ln2_v<float> + logf(sum);
      }
#pragma unroll
      for (int n = 0; n < kHeaddim / 8; ++n) {
        const std::uint32_t pair =
            pack<T>(state.o[m][n][2 * r] * inverse, state.o[m][n][2 * r + 1] * inverse);
        *reinterpret_cast<std::uint32_t*>(q_smem + tile_offset<kHeaddim>(local, n) +
                                          4 * (lane & 3)) = pair;
      }
    }
  }
  __syncwarp();
  constexpr int kChunks = kHeaddim / 8;
  const std::int64_t stride = static_cast<std::int64_t>(args.heads_q) * args.headdim_v;
#pragma unroll
  for (int i = 0; i < Config<kHeaddim>::kRowsPerWarp * kChunks / 32; ++i) {
    const int index = i * 32 + lane;
    const int row = index / kChunks;
    const int chunk = index % kChunks;
    if (first_row + row < args.seqlen_q && chunk * 8 < args.headdim_v) {
      *reinterpret_cast<uint4*>(o + (first_row + row) * stride + chunk * 8) =
          *reinterpret_cast<const uint4*>(q_smem + tile_offset<kHeaddim>(warp_row + row, chunk));
    }
  }
}

template <class T, int kHeaddim, bool kCausal>
__global__ void __launch_bounds__(Config<kHeaddim>::kThreads)
    rf_fa2_fwd(const __grid_constant__ Arguments args) {
  using C = Config<kHeaddim>;
  extern __shared__ __align__(128) unsigned char smem[];
  const std::uint32_t q_tile = ptx::smem_address(smem);
  const std::uint32_t k_tile = q_tile + C::kBlockM * kHeaddim * 2;
  const std::uint32_t v_tile = k_tile + C::kBlockN * kHeaddim * 2;

  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp_row = static_cast<int>(threadIdx.x) / 32 * C::kRowsPerWarp;
  // Query blocks of one head are neighbours, so that its K and V stay in L2; under a causal mask
  // the longest come first.
  const int head_index = static_cast<int>(blockIdx.x) / args.query_blocks;
  int query_block = static_cast<int>(blockIdx.x) % args.query_blocks;
  if constexpr (kCausal) query_block = args.query_blocks - 1 - query_block;
  const int batch = head_index / args.heads_q;
  const int head = head_index % args.heads_q;
  const int head_kv = head / (args.heads_q / args.heads_kv);
  const int first_query = query_block * C::kBlockM;

  const int q_stride = args.heads_q * args.headdim;
  const int k_stride = args.heads_kv * args.headdim;
  const int v_stride = args.heads_kv * args.headdim_v;
  const std::int64_t query_row = static_cast<std::int64_t>(batch) * args.seqlen_q;
  const std::int64_t key_row = static_cast<std::int64_t>(batch) * args.seqlen_kv;
  const T* q = static_cast<const T*>(args.q) + (query_row + first_query) * q_stride +
               static_cast<std::int64_t>(head) * args.headdim;
  const T* k = static_cast<const T*>(args.k) + key_row * k_stride +
               static_cast<std::int64_t>(head_kv) * args.headdim;
  const T* v = static_cast<const T*>(args.v) + key_row * v_stride +
               static_cast<std::int64_t>(head_kv) * args.headdim_v;
  const int diagonal = kCausal ? args.diagonal : args.seqlen_kv;
  // Keys any row of this block sees: [0, key_end).
  const int key_end =
      kCausal ? min(args.seqlen_kv, first_query + C::kBlockM + diagonal) : args.seqlen_kv;
  const int key_blocks = max(0, (key_end + C::kBlockN - 1) / C::kBlockN);
  // Blocks below this one need no mask: all their keys exist and every row sees them.
  const int whole_keys = kCausal ? min(args.seqlen_kv, first_query + diagonal + 1) : args.seqlen_kv;
  const int whole_blocks = max(0, whole_keys) / C::kBlockN;

  State<kHeaddim> state;
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int n = 0; n < kHeaddim / 8; ++n) {
      state.o[m][n][0] = state.o[m][n][1] = state.o[m][n][2] = state.o[m][n][3] = 0.0F;
    }
    state.row_max[m][0] = state.row_max[m][1] = -INFINITY;
    state.row_sum[m][0] = state.row_sum[m][1] = 0.0F;
  }

  const auto load_keys = [&](int block) {
    load_tile<T, kHeaddim, C::kBlockN, C::kThreads>(
        k_tile, k + static_cast<std::int64_t>(block) * C::kBlockN * k_stride, k_stride,
        args.seqlen_kv - block * C::kBlockN, args.headdim);
    ptx::cp_async_commit();
  };
  const auto load_values = [&](int block) {
    load_tile<T, kHeaddim, C::kBlockN, C::kThreads>(
        v_tile, v + static_cast<std::int64_t>(block) * C::kBlockN * v_stride, v_stride,
        args.seqlen_kv - block * C::kBlockN, args.headdim_v);
    ptx::cp_async_commit();
  };

  if (key_blocks > 0) {
    load_tile<T, kHeaddim, C::kBlockM, C::kThreads>(q_tile, q, q_stride,
                                                    args.seqlen_q - first_query, args.headdim);
    load_keys(key_blocks - 1);
  }
  // Key blocks from last to first, so that the masked ones come first. K is loaded while the block
  // before is in softmax and P V, V during Q K^T.
#pragma unroll 1
  for (int block = key_blocks - 1; block >= 0; --block) {
    ptx::cp_async_wait<0>();
    __syncthreads();  // K has arrived; every warp is done with the previous V
    load_values(block);
    float s[2][C::kBlockN / 8][4];
    scores<T, kHeaddim>(s, q_tile, k_tile, warp_row, lane);
    if (block >= whole_blocks) {
      const int first_column = block * C::kBlockN + 2 * (lane & 3);
      apply_mask<kHeaddim>(s, args.seqlen_kv - first_column,
                           first_query + warp_row + (lane >> 2) + diagonal + 1 - first_column);
    }
    ptx::cp_async_wait<0>();
    __syncthreads();  // V has arrived; every warp is done with K
    if (block > 0) load_keys(block - 1);
    softmax<kHeaddim>(s, state, args.scale_log2);
    weighted_sum<T, kHeaddim>(state, s, v_tile, lane);
  }

  T* o = static_cast<T*>(args.o) +
         (query_row * args.heads_q + head) * static_cast<std::int64_t>(args.headdim_v);
  float* lse = args.lse + static_cast<std::int64_t>(head_index) * args.seqlen_q;
  epilogue<T, kHeaddim>(state, args, smem, o, lse, warp_row, first_query + warp_row, lane);
}

template <std::size_t kIndex>
struct Prepare {
  static Prepared run(const Problem& p, const Tensors& t, const DeviceLimits& device) {
    constexpr Variant kVariant = kVariants[kIndex];
    using T = Element<kVariant.dtype>;
    using C = Config<kVariant.headdim>;
    Arguments args{};
    args.q = t.q;
    args.k = t.k;
    args.v = t.v;
    args.o = t.o;
    args.lse = t.lse;
    args.heads_q = static_cast<int>(p.heads_q);
    args.heads_kv = static_cast<int>(p.heads_kv);
    args.seqlen_q = static_cast<int>(p.seqlen_q);
    args.seqlen_kv = static_cast<int>(p.seqlen_kv);
    args.headdim = static_cast<int>(p.headdim);
    args.headdim_v = static_cast<int>(p.headdim_v);
    args.query_blocks = static_cast<int>((p.seqlen_q + C::kBlockM - 1) / C::kBlockM);
    args.diagonal = static_cast<int>(band_of(p).last);
    args.scale_log2 = static_cast<float>(softmax_scale(p) * std::numbers::log2e);
    const std::int64_t grid = p.batch * p.heads_q * args.query_blocks;
    const bool causal = p.mask.kind == MaskKind::causal;
    void (*kernel)(Arguments) =
        causal ? rf_fa2_fwd<T, kVariant.headdim, true> : rf_fa2_fwd<T, kVariant.headdim, false>;
    const Resources resources = prepare_kernel(reinterpret_cast<const void*>(kernel), C::kThreads,
                                               C::kSmemBytes, grid, device.sm_count);
    return {[kernel, args, grid](CUstream_st* stream) {
              kernel<<<static_cast<unsigned>(grid), C::kThreads, C::kSmemBytes, stream>>>(args);
              check_launch(cudaGetLastError(), "launching rf_fa2_fwd");
            },
            resources};
  }
};

constexpr auto kPrepareTable = bind_variants<kVariants, Prepare>();
extern const std::span<const PrepareFn> kPrepare;
const std::span<const PrepareFn> kPrepare = kPrepareTable;

}  // namespace rooflash::fa2
