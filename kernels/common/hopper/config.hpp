// Tiles of the Hopper pipeline and what follows from them. CUDA-free: the traffic models read it.
#pragma once

namespace rooflash::hopper {

inline constexpr int kWarpgroupRows = 64;  // queries of a warpgroup

// Of H100 SXM, H200 and GH200. What is decided before a card is known is decided for so many; on
// others it is as right, and nearly as good.
inline constexpr int kSmCount = 132;

// O is hardly ever rescaled, and the result is the same: O and the sums hold the same maximum, and
// the division takes it out. Weights reach 2^8, which fp16 holds.
inline constexpr float kLagLog2 = 8;

// With `split`: parts that the keys of a query tile are cut into, and warps that add up a row of
// them, each every kCombineWarps-th.
inline constexpr int kMostSplits = 128;
inline constexpr int kCombineWarps = 4;

struct Config {
  int headdim;       // of Q K^T and of P V; smaller ones are padded with zeros
  int consumers;     // warpgroups that compute, kWarpgroupRows queries each
  int block_n;       // keys per step
  int stage_blocks;  // of them in a stage of K, and of V: 1 or 2
  int stages;
  bool early_release;  // one tile of Q, free from its last product on; O leaves another way
  bool q_in_registers = false;  // for Q K^T, so that shared memory is read less; so far in the lab
  // For short queries. The keys of a query tile are the work of several CTAs, whose results a
  // second kernel combines. And heads are packed: a tile's rows are (query, head) pairs of heads
  // that share a KV head, a query's heads after one another, so that K and V are read once for
  // them. How many heads, packed_heads in schedule.hpp says.
  bool split = false;
  // Clusters of two CTAs take pairs of query tiles of a head. Each CTA loads half of the keys for
  // both, so that L2 reads K and V half as often; what comes to an SM is the same. Not with
  // `split`.
  bool pair = false;

  constexpr int ctas() const { return pair ? 2 : 1; }  // of a cluster
  constexpr int block_m() const { return kWarpgroupRows * consumers; }
  // Of a cluster, whose CTAs take turns with the rows of a warpgroup: so they have about as much to
  // do where later rows see more keys.
  constexpr int cluster_rows() const { return block_m() * ctas(); }
  constexpr int warpgroup_step() const { return kWarpgroupRows * ctas(); }
  constexpr int threads() const { return 128 * (consumers + 1); }
  // Tiles lie in shared memory as columns of 64 elements.
  constexpr int columns() const { return (headdim + 63) / 64; }
  constexpr int q_slots() const { return early_release ? 1 : 2; }
  // Q's slot is free from the last product with it on, not once O has left from there.
  constexpr bool consumers_free_query() const { return early_release || split; }
  constexpr int q_bytes() const { return block_m() * columns() * 128; }
  constexpr int stage_keys() const { return block_n * stage_blocks; }
  constexpr int box_keys() const { return stage_keys() / ctas(); }  // that a CTA loads of them
  constexpr int kv_bytes() const { return stage_keys() * columns() * 128; }
  // Of O on its way out, which else lies where Q was: two columns of each warp's rows.
  constexpr int o_bytes() const { return early_release && !split ? block_m() * 2 * 128 : 0; }
  // The tiles begin at a multiple of 1024 bytes, which the launch cannot ask for; barriers and
  // notes come behind.
  constexpr int smem_bytes() const {
    return 1024 + q_slots() * q_bytes() + 2 * stages * kv_bytes() + o_bytes() + 1024;
  }
  // Rows of O that are stored at a time.
  constexpr int o_rows() const { return early_release ? 16 : 64; }
  // A thread's registers: the producer hands some of its own to the consumers.
  constexpr int producer_registers() const { return consumers == 2 ? 40 : 32; }
  constexpr int consumer_registers() const {
    return consumers == 2 ? 232 : consumers == 3 ? 160 : 112;
  }
};

}  // namespace rooflash::hopper
