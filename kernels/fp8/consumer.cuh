// The warpgroups of an fp8 kernel that compute.
#pragma once

#include <numbers>
#include <type_traits>

#include "common/element.cuh"
#include "common/ptx/convert.cuh"
#include "common/ptx/mma.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/special.cuh"
#include "common/ptx/tma.cuh"
#include "common/ptx/wgmma.cuh"
#include "fp8/smem.cuh"
#include "fp8/softmax.cuh"

namespace rooflash::fp8 {

// One warpgroup. Its warps run the same wgmma instructions, so what they branch on around these is
// the same for all four: the geometry of the tile, never the scores. Values that a warp shares are
// kept in uniform registers (ptx::uniform): wgmma takes its descriptors from there.
template <Config kConfig, class Softmax>
class Consumer {
 public:
  __device__ __forceinline__ Consumer(const Arguments& args, const Smem<kConfig>& smem)
      : args_(args),
        smem_(smem),
        k_(ptx::wgmma_descriptor<kRowBytes>(ptx::uniform(smem.k(0)))),
        v_(ptx::wgmma_descriptor<kTransposedRowBytes>(ptx::uniform(smem.v(0)))) {}

  __device__ __forceinline__ void run() {
#pragma unroll 1
    for (; begin(); ++tile_) {
      o_.clear();
      softmax_ = Softmax(args_);
      summed_ = 0;
      lag_[0] = lag_[1] = 1.0F;
      skip(before_);
      if (busy_) {
        attend();
      } else {
        release_query();
      }
      finish();
      skip(begin_block() - ptx::uniform(read_range().begin));
    }
    if (leads()) ptx::tma_store_wait_read();  // shared memory ends with the CTA
  }

 private:
  using Slots = Ring<kConfig.q_slots>;
  using KeyStages = Ring<kConfig.k_stages>;
  using Stages = Ring<kConfig.v_stages>;
  static constexpr int kBlockN = kConfig.block_n;
  static constexpr int kHeaddim = kConfig.headdim;
  static constexpr int kRowBytes = kConfig.row_bytes();
  static constexpr bool kPromotes = kConfig.promote_blocks > 0;
  static constexpr unsigned kPromoteBlocks = kConfig.promote_blocks;
  static constexpr unsigned kAhead = kPromoteBlocks / 2;
  static_assert(kPromoteBlocks % 2 == 0);
  static_assert(kScaleKeys % kBlockN == 0, "a block has one scale");
  static constexpr int kScaleBlocks = kScaleKeys / kBlockN;  // that have a scale in common

  const Arguments& args_;
  const Smem<kConfig>& smem_;
  const std::uint64_t k_, v_;  // descriptors of the first stages
  int tile_ = 0;               // number of the query tile
  int block_ = 0;              // of keys, whose scores come next or are in work
  int uses_ = 0;               // blocks that are done with, K and V
  std::uint32_t q_;            // where the warpgroup's rows of Q begin
  int before_ = 0;             // blocks of the tile that come before the warpgroup's own
  bool busy_ = false;          // the warpgroup's rows see keys
  unsigned summed_ = 0;        // blocks whose P V O and the promoted sums have taken in
  float lag_[2];               // what the promoted sums are still to be multiplied by
  float scales_;               // a lane's; see load_scales
  int scaled_ = 0;             // blocks still to come, the one in work too, that have its scales
  float scale_log2_;           // of the block in work: Q's, K's and softmax's
  ScaleOfV v_scale_;           // and V's
  Softmax softmax_{args_};
  Accumulators<1, kBlockN> s_;
  Accumulators<1, kHeaddim> o_;
  std::uint32_t weights_[kBlockN / 32][4];

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

  // Waits for the next query tile. False where none is left.
  __device__ __forceinline__ bool begin() {
    ptx::mbarrier_wait(smem_.q_full(Slots::at(tile_)), Slots::phase(tile_));
    const Place place = read_place();
    const Own own = read_own();
    const Range range = read_range();
    if (ptx::uniform(place.batch) < 0) return false;
    block_ = ptx::uniform(own.end - 1);
    busy_ = ptx::uniform(own.begin) <= block_;
    before_ = ptx::uniform(range.end) - (block_ + 1);
    if (busy_) {
      q_ = ptx::uniform(smem_.q(Slots::at(tile_), warpgroup()));
      scaled_ = 0;
      load_scales(place, block_ / kScaleBlocks);
    }
    return true;
  }
  __device__ __forceinline__ Place read_place() const {
    const int4 words = ptx::load_shared_int4(smem_.note(tile_, warpgroup()));
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
  __device__ __forceinline__ const Scales& scales() const {
    return args_.problem.tensors.scales;
  }
  // Each lane loads a scale, and hands it to all when it is used: what all lanes load alike is
  // waited for at once, on its way to a uniform register. The first lanes have K's of the scale
  // blocks that `at` is among, the next V's, then come that of the rows of Q and that of the head
  // of V.
  static constexpr int kHeld = 14;  // scale blocks
  static constexpr int kLaneOfV = kHeld;
  static constexpr int kLaneOfQuery = 2 * kHeld;
  static constexpr int kLaneOfHead = 2 * kHeld + 1;
  __device__ __forceinline__ void load_scales(const Place& place, int at) {
    const ForwardArguments& p = args_.problem;
    const int blocks = (p.seqlen_kv - 1) / kScaleKeys + 1;
    const int q_blocks = (p.seqlen_q - 1) / kWarpgroupRows + 1;
    const int own = at / kHeld * kHeld + lane() % kHeld;
    const float* source = lane() < kLaneOfV ? scales().k : scales().v_log2;
    int index = place.head_kv * blocks + min(own, blocks - 1);
    if (lane() == kLaneOfQuery) {
      source = scales().q;
      index = (place.batch * p.heads_q + place.head) * q_blocks + place.first_row / kWarpgroupRows;
    } else if (lane() > kLaneOfQuery) {
      source = scales().v;
      index = place.head_kv;
    }
    scales_ = source[index];
  }
  __device__ __forceinline__ float scale_of(int lane) const {
    return __shfl_sync(0xFFFFFFFFU, scales_, lane);
  }

  // Passes over blocks that others work on. K goes back before V has come: the producer may wait
  // for it before it loads V.
  __device__ __forceinline__ void skip(int blocks) {
#pragma unroll 1
    for (; blocks > 0; --blocks) {
      const int key_stage = KeyStages::at(uses_);
      ptx::mbarrier_wait(smem_.k_full(key_stage), KeyStages::phase(uses_));
      __syncwarp();
      release(smem_.k_empty(key_stage));
      const int stage = Stages::at(uses_);
      ptx::mbarrier_wait(smem_.v_full(stage), Stages::phase(uses_));
      __syncwarp();
      release(smem_.v_empty(stage));
      ++uses_;
    }
  }

  // All blocks of the tile.
  __device__ __forceinline__ void attend() {
    issue_scores(uses_);
    ptx::wgmma_wait<0>();
    ptx::pin(s_.at[0]);
    release(smem_.k_empty(KeyStages::at(uses_)));
    weigh();
    round_weights();
    // All rows have seen a key, which a lazy softmax waits for.
    bool referenced = !Softmax::kLazy || is_whole();
#pragma unroll 1
    while (block_ > begin_block()) {
      // Blocks all of which all rows see, in one go.
      const int whole = whole_blocks();
      if (whole == 0 || !referenced) {
        step(std::false_type{});
        referenced = referenced || whole > 0;
        continue;
      }
      const int end = block_ - whole;
#pragma unroll 1
      while (block_ > end) step(std::true_type{});
    }
    release_query();
    issue_weighted_sum();
    ptx::wgmma_wait<0>();
    ptx::pin(o_.at[0]);
    release(smem_.v_empty(Stages::at(uses_++)));
  }

  // Whether all rows see the block.
  __device__ __forceinline__ bool is_whole() const {
    const Own own = read_own();
    return ptx::uniform(block_ >= own.whole_begin && block_ < own.whole_end) != 0;
  }
  // How many blocks come next that all rows see.
  __device__ __forceinline__ int whole_blocks() const {
    const Own own = read_own();
    const int blocks = block_ - max(own.whole_begin, own.begin);
    return ptx::uniform(block_ <= own.whole_end && blocks > 0 ? blocks : 0);
  }

  // Weights of the next block while P V of the block before runs.
  template <class Whole>
  __device__ __forceinline__ void step(Whole) {
    constexpr bool kAgain = Whole::value && Softmax::kLazy;
    --block_;
    issue_scores(uses_ + 1);
    if constexpr (kPromotes) {
      if (summed_ % kPromoteBlocks == kAhead) promote();  // while the scores are made
      ++summed_;
    }
    issue_weighted_sum();
    ptx::wgmma_wait<1>();
    ptx::pin(s_.at[0]);
    if constexpr (!kAgain) release(smem_.k_empty(KeyStages::at(uses_ + 1)));
    if constexpr (Whole::value) {
      follow_scales();
      softmax_.weigh_whole(s_, scale_log2_, v_scale_, args_.lag, [&] { scores_again(); });
    } else {
      weigh();
    }
    if constexpr (kAgain) {
      __syncwarp();
      release(smem_.k_empty(KeyStages::at(uses_ + 1)));
    }
    ptx::wgmma_wait<0>();
    ptx::pin(o_.at[0]);
    release(smem_.v_empty(Stages::at(uses_++)));
    if (softmax_.moved) rescale();
    round_weights();
  }

  __device__ __forceinline__ void issue_scores(int use) {
    const int stage = KeyStages::at(use);
    ptx::mbarrier_wait(smem_.k_full(stage), KeyStages::phase(use));
    ptx::wgmma_fence();
    const std::uint64_t q = ptx::wgmma_descriptor<kRowBytes>(q_);
    const std::uint64_t k = k_ + static_cast<std::uint64_t>(stage * kConfig.kv_bytes() / 16);
#pragma unroll
    for (int step = 0; step < kHeaddim / 32; ++step) {
      const int column = step * 32 / kRowBytes;
      const int in_row = step * 32 % kRowBytes;
      const auto a =
          q + static_cast<std::uint64_t>((column * kWarpgroupRows * kRowBytes + in_row) / 16);
      const auto b = k + static_cast<std::uint64_t>((column * kBlockN * kRowBytes + in_row) / 16);
      if (step == 0) {
        ptx::wgmma_ss<ptx::WgmmaType::e4m3, kBlockN, false>(s_.at[0], a, b);
      } else {
        ptx::wgmma_ss<ptx::WgmmaType::e4m3, kBlockN>(s_.at[0], a, b);
      }
    }
    ptx::wgmma_commit();
  }
  __device__ __forceinline__ void issue_weighted_sum() {
    const int stage = Stages::at(uses_);
    ptx::mbarrier_wait(smem_.v_full(stage), Stages::phase(uses_));
    const std::uint64_t v = v_ + static_cast<std::uint64_t>(stage * kConfig.kv_bytes() / 16);
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < kBlockN / 32; ++step) {
      ptx::wgmma_rs<ptx::WgmmaType::e4m3, kHeaddim, false>(
          o_.at[0], weights_[step],
          v + static_cast<std::uint64_t>(step * kHeaddim * kTransposedRowBytes / 16));
    }
    ptx::wgmma_commit();
  }

  // Sets the scales of the block in work.
  __device__ __forceinline__ void follow_scales() {
    if (scaled_ == 0) {
      const int at = block_ / kScaleBlocks;
      if (at % kHeld == kHeld - 1) load_scales(read_place(), at);
      scale_log2_ = args_.problem.scale_log2 * scale_of(kLaneOfQuery) * scale_of(at % kHeld);
      v_scale_ = ScaleOfV(scale_of(kLaneOfV + at % kHeld));
      scaled_ = block_ - at * kScaleBlocks + 1;
    }
    --scaled_;
  }
  __device__ __forceinline__ void weigh() {
    if (!is_whole()) {
      const int first_row = read_place().first_row;
      const RowBand band{first_row + args_.band_first, first_row + args_.band_last + 1};
      apply_mask(s_, band, args_.problem.seqlen_kv, warp() * 16 + (lane() >> 2),
                 block_ * kBlockN + 2 * (lane() & 3));
    }
    follow_scales();
    softmax_.weigh(s_, scale_log2_, v_scale_, args_.lag);
  }
  // The scores of the warp's rows once more, by mma.sync.
  __device__ __forceinline__ void scores_again() {
#pragma unroll
    for (int n = 0; n < kBlockN / 8; ++n) {
      float(&sum)[4] = s_.at[0][n];
      sum[0] = sum[1] = sum[2] = sum[3] = 0;
#pragma unroll 1
      for (int step = 0; step < kHeaddim / 32; ++step) {
        std::uint32_t a[4];
        std::uint32_t b[2];
        ptx::ldmatrix_x4(a, q_ + a_offset(kRowBytes, kWarpgroupRows, lane(), warp() * 16, step));
        ptx::ldmatrix_x2(b, smem_.k(KeyStages::at(uses_ + 1)) +
                                b_offset(kRowBytes, kBlockN, lane(), n * 8, step));
        ptx::mma_m16n8k32_e4m3(sum, a, b[0], b[1]);
      }
    }
  }
  __device__ __forceinline__ void round_weights() {
    const auto weight = [&](int step, int reg, int byte) {
      const Accumulator at = weight_at(step, reg, byte);
      return s_.at[0][at.block][at.i];
    };
#pragma unroll
    for (int step = 0; step < kBlockN / 32; ++step) {
#pragma unroll
      for (int reg = 0; reg < 4; ++reg) {
        weights_[step][reg] = ptx::pack_e4m3(weight(step, reg, 0), weight(step, reg, 1),
                                             weight(step, reg, 2), weight(step, reg, 3));
      }
    }
  }
  __device__ __forceinline__ void rescale() {
#pragma unroll
    for (int n = 0; n < kHeaddim / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) o_.at[0][n][i] *= softmax_.factor[i / 2];
    }
    if constexpr (kPromotes) {
      lag_[0] *= softmax_.factor[0];
      lag_[1] *= softmax_.factor[1];
    }
  }

  // ---- promoted sums, each thread its own, in shared memory, rounded to bf16. What rounding
  // leaves stays in O: nothing is lost.

  // The thread's first 16 bytes; the next are 512 bytes on.
  __device__ __forceinline__ std::uint32_t promoted() const {
    return smem_.own(warpgroup(), warp()) + static_cast<std::uint32_t>(lane() * 16);
  }
  // O takes in what has been promoted.
  __device__ __forceinline__ void add_promoted() {
    const std::uint32_t at = promoted();
#pragma unroll
    for (int access = 0; access < kHeaddim / 16; ++access) {
      const uint4 sums = ptx::load_shared_16(at + static_cast<std::uint32_t>(access * 512));
      const std::uint32_t pairs[4] = {sums.x, sums.y, sums.z, sums.w};
#pragma unroll
      for (int pair = 0; pair < 4; ++pair) {
        const float2 sum = unpack_bf16(pairs[pair]);
        float* const o = o_.at[0][2 * access + pair / 2] + pair % 2 * 2;
        o[0] += sum.x * lag_[pair % 2];
        o[1] += sum.y * lag_[pair % 2];
      }
    }
  }
  // Moves O to the sums, and ahead of it half of what it will have grown by next time, if it grows
  // as it did: O goes on from below 0 and is small beside the products for twice as many of them.
  // Warps may come here by themselves.
  __device__ __forceinline__ void promote() {
    if (summed_ > kAhead) {
      add_promoted();
    } else {
      wait_for_own();
    }
    const float ahead = 1.0F + __fdividef(static_cast<float>(kAhead), static_cast<float>(summed_));
    const std::uint32_t at = promoted();
#pragma unroll
    for (int access = 0; access < kHeaddim / 16; ++access) {
      std::uint32_t pairs[4];
#pragma unroll
      for (int pair = 0; pair < 4; ++pair) {
        float* const o = o_.at[0][2 * access + pair / 2] + pair % 2 * 2;
        pairs[pair] = pack<__nv_bfloat16>(o[0] * ahead, o[1] * ahead);
        const float2 sum = unpack_bf16(pairs[pair]);
        o[0] -= sum.x;
        o[1] -= sum.y;
      }
      ptx::store_shared_uint4(at + static_cast<std::uint32_t>(access * 512),
                              {pairs[0], pairs[1], pairs[2], pairs[3]});
    }
    lag_[0] = lag_[1] = 1.0F;
  }
  // Until the last tile's O has left the warp's own memory.
  __device__ __forceinline__ void wait_for_own() const {
    if (leads()) ptx::tma_store_wait_read();
    __syncwarp();
  }

  // Q's last product is done.
  __device__ __forceinline__ void release_query() {
    __syncwarp();
    release(smem_.q_empty(Slots::at(tile_)));
  }

  // O of the thread's row r, channel 16 group + 4 (lane % 4) + i.
  __device__ __forceinline__ float& o(int group, int r, int i) {
    const Accumulator at = o_at(group, r, i);
    return o_.at[0][at.block][at.i];
  }
  __device__ __forceinline__ std::uint32_t packed(float low, float high) const {
    return args_.fp16_output ? pack<__half>(low, high) : pack<__nv_bfloat16>(low, high);
  }
  // V's mean, to rows that see a key.
  __device__ __forceinline__ void add_mean(int head_kv, const bool (&empty)[2]) {
    const int headdim = args_.problem.headdim;
    const float* const mean =
        scales().v_mean + static_cast<std::int64_t>(head_kv) * headdim + 4 * (lane() & 3);
#pragma unroll
    for (int group = 0; group < kHeaddim / 16; ++group) {
      if (16 * group >= headdim) break;
      const float4 four = *reinterpret_cast<const float4*>(mean + 16 * group);
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        if (empty[r]) continue;
        o(group, r, 0) += four.x;
        o(group, r, 1) += four.y;
        o(group, r, 2) += four.z;
        o(group, r, 3) += four.w;
      }
    }
  }

  // O divided by the row sums, and LSE; both stored.
  __device__ __forceinline__ void finish() {
    if (kPromotes && summed_ > kAhead) {
      add_promoted();
      __syncwarp();  // all lanes have read their sums, O may lie there
    } else {
      wait_for_own();
    }
    const ForwardArguments& p = args_.problem;
    const Place place = read_place();
    const int head = place.batch * p.heads_q + place.head;
    const float v_scale = scale_of(kLaneOfHead);
    bool empty[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float sum = softmax_.rows.sum[0][r];
      sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 1);
      sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 2);
      const int row = place.first_row + warp() * 16 + r * 8 + (lane() >> 2);
      if (lane() % 4 == 0 && row < p.seqlen_q) {
        p.tensors.lse[static_cast<std::int64_t>(head) * p.seqlen_q + row] =
            softmax_.lse_log2(r, sum) * std::numbers::ln2_v<float>;
      }
      empty[r] = sum == 0.0F;
      const float scale = empty[r] ? 0.0F : __fdividef(v_scale, sum);
#pragma unroll
      for (int n = 0; n < kHeaddim / 8; ++n) {
        o_.at[0][n][2 * r] *= scale;
        o_.at[0][n][2 * r + 1] *= scale;
      }
    }
    if (scales().v_mean != nullptr) add_mean(place.head_kv, empty);
    const std::uint32_t staged = smem_.own(warpgroup(), warp());
#pragma unroll
    for (int r = 0; r < 2; ++r) {
#pragma unroll
      for (int group = 0; group < kHeaddim / 16; ++group) {
        ptx::store_shared_8(
            staged + staged_offset(lane(), r, group),
            {packed(o(group, r, 0), o(group, r, 1)), packed(o(group, r, 2), o(group, r, 3))});
      }
    }
    ptx::fence_proxy_async();
    __syncwarp();
    if (leads()) {
#pragma unroll
      for (int column = 0; column < kHeaddim / 64; ++column) {
        ptx::tma_store(&args_.o,
                       {64 * column, place.head, place.first_row + warp() * 16, place.batch},
                       staged + static_cast<std::uint32_t>(column * 16 * kStagedRowBytes));
      }
      ptx::tma_store_commit();
    }
  }
};

}  // namespace rooflash::fp8
