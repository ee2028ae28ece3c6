// FlashAttention-2 forward on mma.sync (sm_80 and up).
//
// Dao, "FlashAttention-2" (arXiv 2307.08691), section 3: queries in the outer loop, one CTA per
// (query block, head, batch item); keys in the inner loop; warps split the query rows, so they
// exchange nothing; O stays unnormalised in registers and is divided once at the end; key blocks
// that no row sees are skipped. Left out: dropout, backward, split keys.
// Expected limit: the mma.sync rate, about 0.6 of what wgmma reaches on Hopper.
#include <cuda_runtime.h>

#include "common/forward_arguments.cuh"
#include "common/launch.hpp"
#include "common/mma_tile.cuh"
#include "common/online_softmax.cuh"
#include "common/ptx/special.cuh"
#include "config.hpp"
#include "prepare.hpp"
#include "variants.hpp"

namespace rooflash::fa2 {

template <int kHeaddim>
inline constexpr Config kConfig = config_of(kHeaddim);

// What a CTA works on: `rows` query rows of one head, from `first_query` on.
template <class T>
struct Work {
  Head<T> head;
  int first_query;
  int rows;
};

// Query blocks of one head are neighbours, so that its K and V stay in L2; the last come first,
// which are the longest under a causal mask.
template <class T, int kBlockM>
__device__ __forceinline__ Work<T> work_of(const ForwardArguments& args, int query_blocks) {
  const int index = ptx::block_index();
  const int first_query = (query_blocks - 1 - index % query_blocks) * kBlockM;
  return {head_of<T>(args, index / query_blocks), first_query,
          min(kBlockM, args.seqlen_q - first_query)};
}

template <class T, int kHeaddim>
__global__ void __launch_bounds__(kConfig<kHeaddim>.threads(), kConfig<kHeaddim>.ctas_per_sm)
    rf_fa2_fwd(const __grid_constant__ ForwardArguments args, int query_blocks) {
  constexpr int kThreads = kConfig<kHeaddim>.threads();
  constexpr int kBlockM = kConfig<kHeaddim>.block_m;
  constexpr int kBlockN = kConfig<kHeaddim>.block_n;
  constexpr bool kTwoStages = kConfig<kHeaddim>.stages == 2;
  constexpr int kRowsPerWarp = kConfig<kHeaddim>.rows_per_warp();
  constexpr int kMTiles = kRowsPerWarp / 16;
  constexpr int kStageBytes = 2 * kTileBytes<kBlockN, kHeaddim>;
  extern __shared__ __align__(128) unsigned char smem[];
  const std::uint32_t q_tile = ptx::smem_address(smem);
  const std::uint32_t k_tiles = q_tile + kTileBytes<kBlockM, kHeaddim>;
  const std::uint32_t v_tiles = k_tiles + kTileBytes<kBlockN, kHeaddim>;

  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp_row =
      __shfl_sync(0xFFFFFFFFU, static_cast<int>(threadIdx.x) / 32, 0) * kRowsPerWarp;
  const auto [head, first_query, rows] = work_of<T, kBlockM>(args, query_blocks);
  const KeyBlocks blocks = key_blocks(args.band, first_query, rows, args.seqlen_kv, kBlockN);
  const RowBand visible = row_band(args.band, first_query, kBlockM, args.seqlen_kv);

  Accumulators<kMTiles, kHeaddim> o;
  RowState<kMTiles> state;
  o.clear();
  state.clear();

  const auto load_keys = [&](int block, int stage) {
    const int key = block * kBlockN;
    load_tile_fast<T, kHeaddim, kBlockN, kThreads>(k_tiles + stage * kStageBytes,
                                                   head.k + key * head.k_stride, head.k_stride,
                                                   args.seqlen_kv - key, args.headdim);
  };
  const auto load_values = [&](int block, int stage) {
    const int key = block * kBlockN;
    load_tile_fast<T, kHeaddim, kBlockN, kThreads>(v_tiles + stage * kStageBytes,
                                                   head.v + key * head.v_stride, head.v_stride,
                                                   args.seqlen_kv - key, args.headdim_v);
  };

  const auto begin = static_cast<int>(blocks.begin);
  const auto end = static_cast<int>(blocks.end);
  const auto whole_begin = static_cast<int>(blocks.whole_begin);
  const auto whole_end = static_cast<int>(blocks.whole_end);
  if (begin < end) {
    load_tile_fast<T, kHeaddim, kBlockM, kThreads>(q_tile, head.q + first_query * head.q_stride,
                                                   head.q_stride, rows, args.headdim);
    load_keys(end - 1, 0);
    if constexpr (kTwoStages) load_values(end - 1, 0);
    ptx::cp_async_commit();
  }
  // Key blocks from last to first, so that the masked ones of a causal mask come first. With two
  // stages K and V of the next block are loaded during the whole step; with one, K is during
  // softmax and P V, V during Q K^T.
  int stage = 0;
#pragma unroll 1
  for (int block = end - 1; block >= begin; --block) {
    ptx::cp_async_wait<0>();
    __syncthreads();  // the block has arrived; every warp is done with the one before
    if constexpr (!kTwoStages) {
      load_values(block, 0);
    } else if (block > begin) {
      load_keys(block - 1, stage ^ 1);
      load_values(block - 1, stage ^ 1);
    }
    ptx::cp_async_commit();
    Accumulators<kMTiles, kBlockN> s;
    scores<T, kHeaddim>(s, q_tile + warp_row * kHeaddim * 2, k_tiles + stage * kStageBytes, lane);
    if (block >= whole_end || block < whole_begin) {
      apply_mask(s, visible, args.seqlen_kv, warp_row + (lane >> 2),
                 block * kBlockN + 2 * (lane & 3));
    }
    if constexpr (!kTwoStages) {
      ptx::cp_async_wait<0>();
      __syncthreads();  // V has arrived; every warp is done with K
      if (block > begin) load_keys(block - 1, 0);
      ptx::cp_async_commit();
    }
    online_softmax(s, state, o, args.scale_log2, kLagLog2);
    weighted_sum<T>(o, s, v_tiles + stage * kStageBytes, lane);
    if constexpr (kTwoStages) stage ^= 1;
  }

  // Found again rather than kept: the loop needs every register.
  const Work<T> work = work_of<T, kBlockM>(args, query_blocks);
  const std::int64_t first_row = work.first_query + warp_row;
  const int warp_rows = work.rows - warp_row;
  normalise(o, state, work.head.lse + first_row, warp_rows, lane);
  __syncwarp();  // the warp's last ldmatrix of its rows of Q is done
  store_rows(o, smem + warp_row * kHeaddim * 2, work.head.o + first_row * work.head.o_stride,
             work.head.o_stride, warp_rows, args.headdim_v, lane);
}

template <std::size_t kIndex>
struct Prepare {
  static Prepared run(const Problem& p, const Tensors& t, const DeviceLimits& device) {
    constexpr Variant kVariant = kVariants[kIndex];
    using T = Element<kVariant.dtype>;
    constexpr int kThreads = kConfig<kVariant.headdim>.threads();
    constexpr int kSmemBytes = kConfig<kVariant.headdim>.smem_bytes();
    constexpr int kBlockM = kConfig<kVariant.headdim>.block_m;
    const ForwardArguments args = forward_arguments(p, t);
    const auto query_blocks = static_cast<int>((p.seqlen_q + kBlockM - 1) / kBlockM);
    const std::int64_t grid = p.batch * p.heads_q * query_blocks;
    auto* const kernel = rf_fa2_fwd<T, kVariant.headdim>;
    const Resources resources = prepare_kernel(reinterpret_cast<const void*>(kernel), kThreads,
                                               kSmemBytes, grid, device.sm_count);
    return {[kernel, args, query_blocks, grid](CUstream_st* stream) {
              kernel<<<static_cast<unsigned>(grid), kThreads, kSmemBytes, stream>>>(args,
                                                                                    query_blocks);
              check_launch(cudaGetLastError(), "launching rf_fa2_fwd");
            },
            resources};
  }
};

constexpr auto kPrepareTable = bind_variants<kVariants, Prepare>();
extern const std::span<const PrepareFn> kPrepare;
const std::span<const PrepareFn> kPrepare = kPrepareTable;

}  // namespace rooflash::fa2
