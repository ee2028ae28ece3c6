// The warpgroups of the Hopper pipeline that compute.
#pragma once

#include <cmath>
#include <numbers>
#include <type_traits>

#include "common/hopper/smem.cuh"
#include "common/mma_tile.cuh"
#include "common/online_softmax.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/special.cuh"
#include "common/ptx/tma.cuh"
#include "common/ptx/wgmma.cuh"

namespace rooflash::hopper {

template <class T>
constexpr ptx::WgmmaType kWgmmaType =
    std::is_same_v<T, __half> ? ptx::WgmmaType::fp16 : ptx::WgmmaType::bf16;

template <class T, Config kConfig>
__device__ __forceinline__ void issue_scores(Accumulators<1, kConfig.block_n>& s, std::uint64_t q,
                                             std::uint64_t k) {
#pragma unroll
  for (int step = 0; step < kConfig.headdim / 16; ++step) {
    const std::uint64_t a =
        q + static_cast<std::uint64_t>(step / 4 * (kWarpgroupRows * kRowBytes / 16) + step % 4 * 2);
    const std::uint64_t b =
        k + static_cast<std::uint64_t>(step / 4 * (kConfig.stage_keys() * kRowBytes / 16) +
                                       step % 4 * 2);
    if (step == 0) {
      ptx::wgmma_ss<kWgmmaType<T>, kConfig.block_n, false>(s.at[0], a, b);
    } else {
      ptx::wgmma_ss<kWgmmaType<T>, kConfig.block_n>(s.at[0], a, b);
    }
  }
}

// The same with Q as `load_query` leaves it.
template <class T, Config kConfig>
__device__ __forceinline__ void issue_scores(Accumulators<1, kConfig.block_n>& s,
                                             const std::uint32_t (&q)[kConfig.headdim / 16][4],
                                             std::uint64_t k) {
#pragma unroll
  for (int step = 0; step < kConfig.headdim / 16; ++step) {
    const std::uint64_t b =
        k + static_cast<std::uint64_t>(step / 4 * (kConfig.stage_keys() * kRowBytes / 16) +
                                       step % 4 * 2);
    if (step == 0) {
      ptx::wgmma_rs<kWgmmaType<T>, kConfig.block_n, false, false>(s.at[0], q[step], b);
    } else {
      ptx::wgmma_rs<kWgmmaType<T>, kConfig.block_n, false>(s.at[0], q[step], b);
    }
  }
}

template <class T, Config kConfig>
__device__ __forceinline__ void issue_weighted_sum(
    Accumulators<1, kConfig.headdim>& o, const std::uint32_t (&p)[kConfig.block_n / 16][1][4],
    std::uint64_t v) {
#pragma unroll
  for (int step = 0; step < kConfig.block_n / 16; ++step) {
    ptx::wgmma_rs<kWgmmaType<T>, kConfig.headdim, true>(
        o.at[0], p[step][0], v + static_cast<std::uint64_t>(step * 16 * kRowBytes / 16));
  }
}

// The scores of a warp's 16 rows once more, by mma.sync from the tiles in shared memory, for those
// of a thread's two rows that `wanted` names; the others stay. `q` is the warp's first row, in
// columns of kWarpgroupRows rows.
template <class T, Config kConfig>
__device__ __forceinline__ void scores_again(Accumulators<1, kConfig.block_n>& s,
                                             const bool (&wanted)[2], std::uint32_t q,
                                             std::uint32_t k, int lane) {
  using Layout = TileLayout<64>;
  const std::uint32_t q_lane = q + Layout::rows_first(lane, 0);
  const std::uint32_t k_lane = k + Layout::chunks_first(lane, 0);
#pragma unroll
  for (int n = 0; n < kConfig.block_n / 8; n += 2) {
    float sum[2][4] = {};
#pragma unroll 1
    for (int step = 0; step < kConfig.headdim / 16; ++step) {
      const auto column = static_cast<std::uint32_t>(step / 4);
      std::uint32_t a[4];
      std::uint32_t b[4];
      ptx::ldmatrix_x4(
          a, Layout::advance(q_lane, step % 4 * 2) + column * (kWarpgroupRows * kRowBytes));
      ptx::ldmatrix_x4(b, Layout::advance(k_lane, step % 4 * 2) +
                              column * (kConfig.stage_keys() * kRowBytes) +
                              static_cast<std::uint32_t>(n * 8 * kRowBytes));
      ptx::mma_m16n8k16<T>(sum[0], a, b[0], b[1]);
      ptx::mma_m16n8k16<T>(sum[1], a, b[2], b[3]);
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (wanted[i % 4 / 2]) s.at[0][n + i / 4][i % 4] = sum[i / 4][i % 4];
    }
  }
}

// One warpgroup. Its warps run the same wgmma instructions, so what they branch on around these is
// the same for all four: the geometry of the tile, never the scores. Values that a warp shares are
// kept in uniform registers (ptx::uniform): wgmma takes its descriptors from there, and would wait
// for each one to be moved.
template <class T, Config kConfig, class Softmax>
class Consumer {
 public:
  __device__ __forceinline__ Consumer(const Arguments& args, const Smem<kConfig>& smem)
      : args_(args),
        smem_(smem),
        k_(ptx::wgmma_descriptor(ptx::uniform(smem.k(0)))),
        v_(ptx::wgmma_descriptor_transposed(ptx::uniform(smem.v(0)), kColumnBytes)) {}

  __device__ __forceinline__ void run() {
#pragma unroll 1
    for (; begin(); ++tile_) {
      o_.clear();
      softmax_ = Softmax();
      // The last tile's O leaves while the first scores of this one are under way, but does not
      // wait for blocks that are passed over.
      const bool at_once = busy_ && before_ == 0;
      if (!at_once) {
        store_last<0>();
        store_last<1>();
        skip(before_);
      }
      if (busy_) {
        q_ = ptx::uniform(smem_.q(Slots::at(tile_), warpgroup()));
        if constexpr (kConfig.q_in_registers) load_query();
        issue_scores(uses_, block_ & kLast, false);
        if (at_once) store_last<0>();
        attend(at_once);
      } else {
        release_query();
      }
      normalise();
      const int begin = ptx::uniform(read_range().begin);
      skip(begin_block() / kConfig.stage_blocks - begin);
    }
    store_last<0>();
    store_last<1>();
    if constexpr (kConfig.early_release) {
      if (leads()) ptx::tma_store_wait_read();  // shared memory ends with the CTA
    }
  }

 private:
  using Slots = Ring<kConfig.q_slots()>;
  using Stages = Ring<kConfig.stages>;
  static constexpr int kBlockN = kConfig.block_n;
  static constexpr int kLast = kConfig.stage_blocks - 1;  // block of a stage: it comes first
  static constexpr int kColumnBytes = kConfig.stage_keys() * kRowBytes;  // of K and V in a stage

  const Arguments& args_;
  const Smem<kConfig>& smem_;
  const std::uint64_t k_, v_;  // descriptors of the first stages
  int tile_ = 0;               // number of the query tile
  int block_ = 0;              // of keys, whose scores come next or are in work
  int uses_ = 0;               // of stages that are done with, K and V
  std::uint32_t q_;            // where the warpgroup's rows of Q begin
  int before_ = 0;             // stages of the tile that come before the warpgroup's own
  bool busy_ = false;          // the warpgroup's rows see keys
  Softmax softmax_;
  Accumulators<1, kBlockN> s_;
  Accumulators<1, kConfig.headdim> o_;
  std::uint32_t weights_[kBlockN / 16][1][4];
  std::uint32_t query_[kConfig.headdim / 16][4];       // with q_in_registers
  std::uint32_t rounded_[kConfig.headdim / 16][1][4];  // O on its way out

  static __device__ __forceinline__ int warpgroup() {
    return ptx::uniform(static_cast<int>(threadIdx.x) / 128) - 1;
  }
  // Worked out anew at each use, with all that follows from them: registers are short.
  static __device__ __forceinline__ int lane() {
    return ptx::fresh(static_cast<int>(threadIdx.x)) % 32;
  }
  static __device__ __forceinline__ int warp() {
    return ptx::fresh(static_cast<int>(threadIdx.x)) / 32 % 4;
  }
  static __device__ __forceinline__ bool leads() {
    return threadIdx.x % 32 == 0;
  }
  __device__ __forceinline__ void release(std::uint32_t barrier) const {
    if (leads()) ptx::mbarrier_arrive(barrier);
  }
  // A stage of K or V is free when no warp needs it any more, with `pair` of either CTA.
  __device__ __forceinline__ void release_stage(std::uint32_t barrier) const {
    if constexpr (kConfig.pair) {
      const unsigned cta = threadIdx.x % 32;
      if (cta < kConfig.ctas()) ptx::mbarrier_arrive_at(barrier, cta);
    } else {
      release(barrier);
    }
  }
  // Where the warp's 16 rows of the tile's Q begin.
  __device__ __forceinline__ std::uint32_t own_rows(int tile) const {
    return smem_.q(Slots::at(tile), warpgroup()) +
           static_cast<std::uint32_t>(warp() * 16 * kRowBytes);
  }
  // Where a block's rows begin in its stage.
  static __device__ __forceinline__ std::uint32_t offset(int sub) {
    return static_cast<std::uint32_t>(sub * kBlockN * kRowBytes);
  }

  // Waits for the next query tile. False where none is left.
  __device__ __forceinline__ bool begin() {
    ptx::mbarrier_wait(smem_.q_full(Slots::at(tile_)), Slots::phase(tile_));
    const Place place = read_place(tile_);
    const Own own = read_own();
    const Range range = read_range();
    if (ptx::uniform(place.batch) < 0) return false;
    block_ = ptx::uniform(own.end - 1);
    busy_ = ptx::uniform(own.begin) <= block_;
    before_ = ptx::uniform(range.end) - (block_ + kConfig.stage_blocks) / kConfig.stage_blocks;
    return true;
  }
  __device__ __forceinline__ Place read_place(int tile) const {
    const int4 words = ptx::load_shared_int4(smem_.note(tile, warpgroup()));
    return {words.x, words.y, words.z, words.w};
  }
  __device__ __forceinline__ Own read_own() const {
    const int4 words = ptx::load_shared_int4(smem_.note(tile_, warpgroup()) + 16);
    return {words.x, words.y, words.z, words.w};
  }
  __device__ __forceinline__ Range read_range() const {
    const int4 words = ptx::load_shared_int4(smem_.note(tile_));
    return {words.z, words.w};
  }
  __device__ __forceinline__ int begin_block() const {
    return ptx::uniform(read_own().begin);
  }

  // Passes over stages that others work on.
  __device__ __forceinline__ void skip(int stages) {
#pragma unroll 1
    for (; stages > 0; --stages) {
      const int stage = Stages::at(uses_);
      ptx::mbarrier_wait(smem_.k_full(stage), Stages::phase(uses_));
      ptx::mbarrier_wait(smem_.v_full(stage), Stages::phase(uses_));
      __syncwarp();
      release_stage(smem_.k_empty(stage));
      release_stage(smem_.v_empty(stage));
      ++uses_;
    }
  }

  // All blocks of the tile, after the first scores have been issued.
  // `storing`: the last tile's O is still on its way out.
  __device__ __forceinline__ void attend(bool storing) {
    ptx::wgmma_wait<0>();
    ptx::pin(s_.at[0]);
    release_keys(uses_, block_ & kLast);
    exact_weights();
    round_weights();
    if (storing) store_last<1>();
#pragma unroll 1
    while (block_ > begin_block()) {
      // Stages of which all rows see all blocks, in one go.
      const int stages = whole_stages();
      if (stages == 0) {
        step(std::true_type{}, (block_ - 1) & kLast);
        continue;
      }
      const int end = block_ - stages * kConfig.stage_blocks;
      // The last block may have been the first of its stage that the warpgroup sees.
      if (kLast > 0) {
        ptx::mbarrier_wait(smem_.v_full(Stages::at(uses_)), Stages::phase(uses_));
      }
#pragma unroll 1
      while (block_ > end) {
#pragma unroll
        for (int sub = kLast; sub >= 0; --sub) step(std::false_type{}, sub);
      }
    }
    release_query();
    issue_weighted_sum(block_ & kLast, false);
    ptx::wgmma_wait<0>();
    ptx::pin(o_.at[0]);
    release_stage(smem_.v_empty(Stages::at(uses_++)));
  }

  // How many whole stages come next whose blocks all rows see.
  __device__ __forceinline__ int whole_stages() const {
    const Own own = read_own();
    const bool aligned = (block_ & kLast) == 0 && block_ <= own.whole_end;
    const int blocks = block_ - max(own.whole_begin, own.begin);
    return ptx::uniform(aligned && blocks > 0 ? blocks / kConfig.stage_blocks : 0);
  }

  // Weights of the next block, at place `sub` of its stage, while P V of the block before runs.
  // `exact` says how; without it the stage is a whole one.
  template <class Exact>
  __device__ __forceinline__ void step(Exact, int sub) {
    constexpr bool kExact = Exact::value;
    --block_;
    const int sub_before = sub == kLast ? 0 : sub + 1;
    // K's stage is V's or, with the first block of one, the next.
    const int use = sub == kLast ? uses_ + 1 : uses_;
    issue_scores(use, sub, !kExact && sub != kLast);
    issue_weighted_sum(sub_before, !kExact && sub_before != kLast);
    ptx::wgmma_wait<1>();
    ptx::pin(s_.at[0]);
    if constexpr (kExact) {
      release_keys(use, sub);
      exact_weights();
    } else {
      if constexpr (!Softmax::kKeepsKeys) release_whole_keys(use, sub);
      softmax_.fast(s_, args_.problem.scale_log2, [&](const bool(&rows)[2]) {
        scores_again<T, kConfig>(s_, rows, q_ + static_cast<std::uint32_t>(warp() * 16 * kRowBytes),
                                 smem_.k(Stages::at(use)) + offset(sub), lane());
      });
      if constexpr (Softmax::kKeepsKeys) {
        __syncwarp();
        release_whole_keys(use, sub);
      }
    }
    ptx::wgmma_wait<0>();
    ptx::pin(o_.at[0]);
    if (sub_before == 0) release_stage(smem_.v_empty(Stages::at(uses_++)));
    if (softmax_.moved) rescale();
    round_weights();
  }

  // K's stage is handed back with its last block, or with the last that this warpgroup sees.
  __device__ __forceinline__ void release_whole_keys(int use, int sub) const {
    if (sub == 0) release_stage(smem_.k_empty(Stages::at(use)));
  }
  __device__ __forceinline__ void release_keys(int use, int sub) const {
    if (sub == 0 || block_ == begin_block()) release_stage(smem_.k_empty(Stages::at(use)));
  }

  // The warp's rows of Q as A operands.
  __device__ __forceinline__ void load_query() {
    const std::uint32_t rows = q_ + static_cast<std::uint32_t>(warp() * 16 * kRowBytes) +
                               TileLayout<64>::rows_first(lane(), 0);
#pragma unroll
    for (int k = 0; k < kConfig.headdim / 16; ++k) {
      ptx::ldmatrix_x4(query_[k],
                       TileLayout<64>::advance(rows, k % 4 * 2) +
                           static_cast<std::uint32_t>(k / 4 * kWarpgroupRows * kRowBytes));
    }
  }

  // Descriptors of a block. With four warpgroups registers are too short to keep those that they
  // follow from.
  __device__ __forceinline__ std::uint64_t k_descriptor(int stage, int sub) const {
    if constexpr (kConfig.consumers == 4) {
      return ptx::wgmma_descriptor(ptx::uniform(smem_.k(stage)) + offset(sub));
    } else {
      return k_ + (stage * kConfig.kv_bytes() + offset(sub)) / 16;
    }
  }
  __device__ __forceinline__ std::uint64_t v_descriptor(int stage, int sub) const {
    if constexpr (kConfig.consumers == 4) {
      return ptx::wgmma_descriptor_transposed(ptx::uniform(smem_.v(stage)) + offset(sub),
                                              kColumnBytes);
    } else {
      return v_ + (stage * kConfig.kv_bytes() + offset(sub)) / 16;
    }
  }

  // `arrived`: the stage has been waited for before.
  __device__ __forceinline__ void issue_scores(int use, int sub, bool arrived) {
    const int stage = Stages::at(use);
    const std::uint64_t k = k_descriptor(stage, sub);
    if (!arrived) ptx::mbarrier_wait(smem_.k_full(stage), Stages::phase(use));
    ptx::wgmma_fence();
    if constexpr (kConfig.q_in_registers) {
      hopper::issue_scores<T, kConfig>(s_, query_, k);
    } else {
      hopper::issue_scores<T, kConfig>(s_, ptx::wgmma_descriptor(q_), k);
    }
    ptx::wgmma_commit();
  }
  __device__ __forceinline__ void issue_weighted_sum(int sub, bool arrived) {
    const int stage = Stages::at(uses_);
    if (!arrived) ptx::mbarrier_wait(smem_.v_full(stage), Stages::phase(uses_));
    ptx::wgmma_fence();
    hopper::issue_weighted_sum<T, kConfig>(o_, weights_, v_descriptor(stage, sub));
    ptx::wgmma_commit();
  }

  __device__ __forceinline__ void exact_weights() {
    const Own own = read_own();
    if (block_ < own.whole_begin || block_ >= own.whole_end) {
      const int first_row = read_place(tile_).first_row;
      if constexpr (kConfig.split) {
        hide_keys(first_row);
      } else {
        const RowBand band{first_row + args_.band_first, first_row + args_.band_last + 1};
        apply_mask(s_, band, args_.problem.seqlen_kv, warp() * 16 + (lane() >> 2),
                   block_ * kBlockN + 2 * (lane() & 3));
      }
    }
    softmax_.exact(s_, args_.problem.scale_log2);
  }
  // apply_mask with packed heads, where rows of a query are alike.
  __device__ __forceinline__ void hide_keys(int first_row) {
    const int key = block_ * kBlockN + 2 * (lane() & 3);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int query = (first_row + warp() * 16 + r * 8 + (lane() >> 2)) >> args_.group_log2;
      const int begin = query + args_.band_first - key;
      const int end = min(query + args_.band_last + 1, args_.problem.seqlen_kv) - key;
#pragma unroll
      for (int n = 0; n < kBlockN / 8; ++n) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          const int column = n * 8 + c;
          if (column < begin || column >= end) s_.at[0][n][2 * r + c] = -INFINITY;
        }
      }
    }
  }
  __device__ __forceinline__ void round_weights() {
#pragma unroll
    for (int k = 0; k < kBlockN / 16; ++k) pack_weights<T>(weights_[k], s_, k);
  }
  __device__ __forceinline__ void rescale() {
#pragma unroll
    for (int n = 0; n < kConfig.headdim / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) o_.at[0][n][i] *= softmax_.factor[i / 2];
    }
  }

  // Q's last product is done: with one slot it is loaded anew at once.
  __device__ __forceinline__ void release_query() {
    if constexpr (kConfig.consumers_free_query()) {
      __syncwarp();
      release(smem_.q_empty(Slots::at(tile_)));
    }
  }

  // O divided by the row sums, and LSE. With `split` both leave from here.
  __device__ __forceinline__ void normalise() {
    const ForwardArguments& p = args_.problem;
    const Place place = read_place(tile_);
    const int shift = row_shift<kConfig>(args_);
    const std::int64_t head =
        static_cast<std::int64_t>(place.batch) * p.heads_q + (place.head << shift);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float sum = softmax_.rows.sum[0][r];
      sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 1);
      sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 2);
      const int row = place.first_row + warp() * 16 + r * 8 + (lane() >> 2);
      const int query = row >> shift;
      const int member = row & ((1 << shift) - 1);
      float* const lse = kConfig.split ? part_of_lse(place) : p.tensors.lse;
      if (lane() % 4 == 0 && query < p.seqlen_q) {
        // Without keys the sum is 0 and its logarithm -inf.
        lse[(head + member) * p.seqlen_q + query] =
            (softmax_.rows.max[0][r] + __log2f(sum)) * std::numbers::ln2_v<float>;
      }
      const float inverse = sum == 0.0F ? 0.0F : __fdividef(1.0F, sum);
#pragma unroll
      for (int n = 0; n < kConfig.headdim / 8; ++n) {
        o_.at[0][n][2 * r] *= inverse;
        o_.at[0][n][2 * r + 1] *= inverse;
      }
      if constexpr (kConfig.split) {
        if (query < p.seqlen_q) store_row(r, place, (head + member) * p.seqlen_q + query);
      }
    }
    if constexpr (!kConfig.split) {
#pragma unroll
      for (int k = 0; k < kConfig.headdim / 16; ++k) pack_weights<T>(rounded_[k], o_, k);
    }
  }
  __device__ __forceinline__ float* part_of_lse(const Place& place) const {
    return args_.parts.lse + place.part * args_.parts.rows;
  }
  // What a thread has of O's row `row` of the part; each sector that a warp stores to it fills.
  __device__ __forceinline__ void store_row(int r, const Place& place, std::int64_t row) const {
    const int headdim = args_.problem.headdim_v;
    float* const target =
        args_.parts.o + (place.part * args_.parts.rows + row) * headdim + 2 * (lane() & 3);
#pragma unroll
    for (int n = 0; n < kConfig.headdim / 8; ++n) {
      if (8 * n >= headdim) break;
      *reinterpret_cast<float2*>(target + 8 * n) = {o_.at[0][n][2 * r], o_.at[0][n][2 * r + 1]};
    }
  }

  // Hands on O of the tile before. With early release in two parts of 128 columns, of which a
  // warp's shared memory holds one at a time; else there is the first alone.
  template <int kPart>
  __device__ __forceinline__ void store_last() {
    if (kConfig.split || tile_ == 0 || (!kConfig.early_release && kPart == 1)) return;
    const Place place = read_place(tile_ - 1);
    const int warp_row = place.first_row + warp() * 16;
    const std::uint32_t lane_offset = TileLayout<64>::rows_first(lane(), 0);
    if constexpr (kConfig.early_release) {
      static_assert(kConfig.headdim == 256);
      constexpr int kSteps = 128 / 16;
      const std::uint32_t staged = smem_.o(warpgroup(), warp());
      if (leads()) ptx::tma_store_wait_read();
      __syncwarp();
#pragma unroll
      for (int k = 0; k < kSteps; ++k) {
        ptx::stmatrix_x4(staged + static_cast<std::uint32_t>(k / 4 * 16 * kRowBytes) +
                             TileLayout<64>::advance(lane_offset, k % 4 * 2),
                         rounded_[kPart * kSteps + k][0]);
      }
      ptx::fence_proxy_async();
      __syncwarp();
      if (leads()) {
#pragma unroll
        for (int column = 0; column < 2; ++column) {
          ptx::tma_store(&args_.o,
                         corner<kConfig>(args_, place, warp_row, 64 * (2 * kPart + column)),
                         staged + static_cast<std::uint32_t>(column * 16 * kRowBytes));
        }
        ptx::tma_store_commit();
      }
    } else {
      // Over the warp's own rows of Q, which no other warp reads.
#pragma unroll
      for (int k = 0; k < kConfig.headdim / 16; ++k) {
        ptx::stmatrix_x4(own_rows(tile_ - 1) +
                             static_cast<std::uint32_t>(k / 4 * kWarpgroupRows * kRowBytes) +
                             TileLayout<64>::advance(lane_offset, k % 4 * 2),
                         rounded_[k][0]);
      }
      ptx::fence_proxy_async();
      __syncwarp();
      release(smem_.o_full(Slots::at(tile_ - 1)));
    }
  }
};

}  // namespace rooflash::hopper
