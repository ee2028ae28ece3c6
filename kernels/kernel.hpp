// The contract between rooflash and a kernel family. A family is one folder and one line in
// registry.cpp. Plain data and function pointers; CUDA-free, so that `rooflash list` answers
// anywhere.
//
// A kernel cannot set its own tolerance, FLOP count or inputs: those belong to verify/ and model/.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem.hpp"
#include "core/record.hpp"

struct CUstream_st;  // cudaStream_t without the CUDA headers

namespace rooflash {

class TwoLevelMemory;  // kernels/common/two_level_memory.hpp

// What goes with e4m3 tensors (core/fp8.hpp), fp32; null with those of other types.
struct Scales {
  const float* q = nullptr;       // [batch, heads_q, q_scale_blocks]
  const float* k = nullptr;       // [batch, heads_kv, kv_scale_blocks]
  const float* v = nullptr;       // [batch, heads_kv]
  const float* v_log2 = nullptr;  // [batch, heads_kv, kv_scale_blocks], whole numbers, at most 0
  const float* v_mean = nullptr;  // [batch, heads_kv, headdim_v]; null where V is not smoothed
};

// In one buffer of scale_elements(problem) floats, v_mean first; none where there are no elements.
Scales place_scales(const Problem& problem, const float* memory);

// Device pointers of one case. Shapes as in core/problem.hpp.
struct Tensors {
  const void* q = nullptr;    // [batch, seqlen_q, heads_q, headdim]
  const void* k = nullptr;    // [batch, seqlen_kv, heads_kv, headdim]
  const void* v = nullptr;    // [batch, seqlen_kv, heads_kv, headdim_v]
  void* o = nullptr;          // [batch, seqlen_q, heads_q, headdim_v]
  float* lse = nullptr;       // [batch, heads_q, seqlen_q], natural log
  void* workspace = nullptr;  // Kernel::workspace_bytes(problem) bytes, 256-byte aligned
  Scales scales = {};
};

// Host tensors of one case, same layout, every value already rounded to the problem's dtype.
struct HostTensors {
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
  float* o = nullptr;
  float* lse = nullptr;
  Scales scales = {};
};

struct DeviceLimits {
  int sm = 0;  // compute capability, 90 for 9.0
  int sm_count = 0;
  std::int64_t smem_per_block_bytes = 0;  // opt-in maximum
};

// A launch closure owns whatever it needs (tensor maps, attributes, handles) and only enqueues
// work.
using Launch = std::function<void(CUstream_st*)>;
struct Prepared {
  Launch launch;
  Resources resources;               // of the main kernel
  std::int64_t workspace_bytes = 0;  // that the closure holds besides Kernel::workspace_bytes
};

// Masks a variant handles, as bits.
enum MaskSet : unsigned {
  kMaskNone = 1,
  kMaskCausal = 2,  // bottom-right
  kMaskCausalTopLeft = 4,
  kMaskWindow = 8,  // both alignments
};

// One compiled instantiation. The table of a family is at once the instantiation list, the dispatch
// table and the answer to "is this supported?".
struct Variant {
  Pass pass;
  int headdim;  // also serves smaller head dims, padded in shared memory
  DType dtype;
  unsigned masks;  // MaskSet bits
  int sm_min;
  int sm_max;  // inclusive
};

// Builds the launch of one case. Runs on the worker, with the device current. Throws Error.
using PrepareFn = Prepared (*)(const Problem&, const Tensors&, const DeviceLimits&);

// Tile of the outer loops in rows: queries and keys per step.
struct Tile {
  std::int64_t block_q = 0;
  std::int64_t block_kv = 0;
};

// Bytes one tensor moves between the slow memory (L2 side) and SRAM (an SM).
struct Stream {
  std::string_view tensor;       // "q", "k", "v", "o", "lse", "scores", "weights", ...
  std::int64_t unique_bytes;     // footprint
  std::int64_t read_bytes;       // SRAM <- slow memory, over the whole run
  std::int64_t write_bytes;      // SRAM -> slow memory
  std::int64_t shared_by_tiles;  // query tiles that run side by side and read the same bytes (>= 1)
  // Its rows, and what one access takes of a row: they cost more where rows do not start with a
  // sector of 32 bytes. 0: no matter.
  std::int64_t row_bytes = 0;
  std::int64_t piece_bytes = 0;
};

enum class TensorPath { none, mma_sync, wgmma, cublas };

// What one launch of a run does, for the time model. Counts are of the whole launch.
struct Stage {
  std::string_view name;    // "forward", "scores", "softmax", ...
  double sm_l2_bytes = 0;   // its part of what the streams move
  double tensor_ops = 0;    // executed multiply-adds x 2, with tile padding and masked tiles
  double exp_ops = 0;       // exponentials executed
  double fp32_ops = 0;      // other fp32 instructions: scaling, maxima, sums, rescaling
  double smem_bytes = 0;    // that instructions of the warps read from shared memory (ldmatrix)
  double tiles = 0;         // independent units of work (CTAs)
  double tiles_per_sm = 1;  // that run side by side
  double largest_tile = 1;  // its work over that of the mean tile
  double latencies = 0;     // memory round trips of a tile that nothing else of it hides
  double lane_bytes = 16;   // that a lane moves with one instruction; alignment may leave fewer
  TensorPath path = TensorPath::none;
};

// What one run moves and computes: the closed form that `host` must match to the byte.
struct Traffic {
  std::vector<Stream> streams;
  std::vector<Stage> stages;  // in launch order; their sm_l2_bytes add up to the streams' bytes
  std::int64_t read_bytes() const {
    std::int64_t sum = 0;
    for (const Stream& s : streams) sum += s.read_bytes;
    return sum;
  }
  std::int64_t write_bytes() const {
    std::int64_t sum = 0;
    for (const Stream& s : streams) sum += s.write_bytes;
    return sum;
  }
};

// The shared library that a vendor's family runs from, as found on this machine.
struct VendorLibrary {
  std::string version;  // "9.19.0"
  std::string hash;     // of its files, 16 hex digits
  std::string folder;
  std::string missing;  // why it cannot be used; "" when fine
};

// One family: a kernel and its step of the ladder. One without `traffic` is closed: it has no
// `tile` and no `host` either, and runs on real GPUs alone.
struct Kernel {
  std::string_view name;
  std::string_view summary;  // one line
  std::string_view source;   // paper and section
  std::span<const Variant> variants;
  std::span<const std::string_view> options = {};  // names of Problem::options that it takes
  // Why this problem is outside the family beyond what the variant table says; "" when fine.
  std::string (*limits)(const Problem&) = nullptr;
  std::int64_t (*workspace_bytes)(const Problem&) = nullptr;
  // The tile used with `sram_bytes` of SRAM: the compiled one where it fits, else halved until it
  // does. Throws UsageError where not even the smallest fits.
  Tile (*tile)(const Problem&, std::int64_t sram_bytes) = nullptr;
  // The family's algorithm on the CPU over an instrumented two-level memory: same loop order,
  // rescaling and rounding points as the GPU kernel.
  void (*host)(const Problem&, const HostTensors&, Tile, TwoLevelMemory&) = nullptr;
  Traffic (*traffic)(const Problem&, Tile) = nullptr;
  // Which of its compiled tiles a problem takes, and why, for `rooflash list kernels --variants`;
  // null where the head dim alone decides.
  std::string (*choice)(const Problem&) = nullptr;
  bool hidden = false;  // test families: only with list --hidden or when named
  std::string_view provider = "builtin";
  // What the names of its GPU kernels hold, one of several with commas between them; "" for the
  // family's own namespace.
  std::string_view symbols = "";
  VendorLibrary (*library)() = nullptr;  // null where the kernels are in this binary
};

// Why simulated devices have nothing of a closed family; "" for the others.
std::string no_model(const Kernel& kernel);

// The variant that serves `problem` on `sm`, or nullptr with the reason in `*reason` ("fa2 has no
// e4m3 variant; compiled: fp16, bf16"). `sm` 0 asks whether any GPU could.
const Variant* find_variant(const Kernel& kernel, const Problem& problem, int sm,
                            std::string* reason);

// "sm_80+" or "sm_90-90".
std::string sm_range(const Variant& variant);

// "none", "causal", ... for messages and lists.
std::string mask_names(unsigned masks);

}  // namespace rooflash
