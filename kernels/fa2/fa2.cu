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
#include "config.hpp"
#include "prepare.hpp"
#include "variants.hpp"

namespace rooflash::fa2 {

template <int kHeaddim>
inline constexpr Config kConfig = config_of(kHeaddim);

// `kMasked`: some row may not see every key.
template <class T, int kHeaddim, bool kMasked>
__global__ void __launch_bounds__(kConfig<kHeaddim>.threads(), kConfig<kHeaddim>.ctas_per_sm)
    rf_fa2_fwd(const __grid_constant__ ForwardArguments args, int query_blocks) {
  constexpr int kThreads = kConfig<kHeaddim>.threads();
  constexpr int kBlockM = kConfig<kHeaddim>.block_m;
  constexpr int kBlockN = kConfig<kHeaddim>.block_n;
  constexpr int kRowsPerWarp = kConfig<kHeaddim>.rows_per_warp();
  constexpr int kMTiles = kRowsPerWarp / 16;
  extern __shared__ __align__(128) unsigned char smem[];
  const std::uint32_t q_tile = ptx::smem_address(smem);
  const std::uint32_t k_tile = q_tile + kTileBytes<kBlockM, kHeaddim>;
  const std::uint32_t v_tile = k_tile + kTileBytes<kBlockN, kHeaddim>;

  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp_row =
      __shfl_sync(0xFFFFFFFFU, static_cast<int>(threadIdx.x) / 32, 0) * kRowsPerWarp;
  // Query blocks of one head are neighbours, so that its K and V stay in L2; under a mask the last
  // come first, which are the longest of a causal one.
  const int head_index = static_cast<int>(blockIdx.x) / query_blocks;
  int query_block = static_cast<int>(blockIdx.x) % query_blocks;
  if constexpr (kMasked) query_block = query_blocks - 1 - query_block;
  const int first_query = query_block * kBlockM;
  const int rows = min(kBlockM, args.seqlen_q - first_query);
  const Head<T> head = head_of<T>(args, head_index);
  const Band band = kMasked ? args.band : Band{-args.seqlen_q, args.seqlen_kv};
  const KeyBlocks blocks = key_blocks(band, first_query, rows, args.seqlen_kv, kBlockN);
  const RowBand visible = row_band(band, first_query, kBlockM, args.seqlen_kv);

  Accumulators<kMTiles, kHeaddim> o;
  RowState<kMTiles> state;
  o.clear();
  state.clear();

  const auto load_keys = [&](int block) {
    const int key = block * kBlockN;
    load_tile<T, kHeaddim, kBlockN, kThreads>(k_tile, head.k + key * head.k_stride, head.k_stride,
                                              args.seqlen_kv - key, args.headdim);
    ptx::cp_async_commit();
  };
  const auto load_values = [&](int block) {
    const int key = block * kBlockN;
    load_tile<T, kHeaddim, kBlockN, kThreads>(v_tile, head.v + key * head.v_stride, head.v_stride,
                                              args.seqlen_kv - key, args.headdim_v);
    ptx::cp_async_commit();
  };

  const auto begin = static_cast<int>(blocks.begin);
  const auto end = static_cast<int>(blocks.end);
  const auto whole_begin = static_cast<int>(blocks.whole_begin);
  const auto whole_end = static_cast<int>(blocks.whole_end);
  if (begin < end) {
    load_tile<T, kHeaddim, kBlockM, kThreads>(q_tile, head.q + first_query * head.q_stride,
                                              head.q_stride, rows, args.headdim);
    load_keys(end - 1);
  }
  // Key blocks from last to first, so that the masked ones of a causal mask come first. K is loaded
  // while the block before is in softmax and P V, V during Q K^T.
#pragma unroll 1
  for (int block = end - 1; block >= begin; --block) {
    ptx::cp_async_wait<0>();
    __syncthreads();  // K has arrived; every warp is done with the previous V
    load_values(block);
    Accumulators<kMTiles, kBlockN> s;
    scores<T, kHeaddim>(s, q_tile + warp_row * kHeaddim * 2, k_tile, lane);
    if (block >= whole_end || (kMasked && block < whole_begin)) {
      apply_mask(s, visible, args.seqlen_kv, warp_row + (lane >> 2),
                 block * kBlockN + 2 * (lane & 3));
    }
    ptx::cp_async_wait<0>();
    __syncthreads();  // V has arrived; every warp is done with K
    if (block > begin) load_keys(block - 1);
    online_softmax(s, state, o, args.scale_log2);
    weighted_sum<T>(o, s, v_tile, lane);
  }

  const std::int64_t first_row = first_query + warp_row;
  normalise(o, state, head.lse + first_row, rows - warp_row, lane);
  __syncwarp();  // the warp's last ldmatrix of its rows of Q is done
  store_rows(o, smem + warp_row * kHeaddim * 2, head.o + first_row * head.o_stride, head.o_stride,
             rows - warp_row, args.headdim_v, lane);
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
    auto* const kernel = p.mask.kind == MaskKind::none ? rf_fa2_fwd<T, kVariant.headdim, false>
                                                       : rf_fa2_fwd<T, kVariant.headdim, true>;
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
