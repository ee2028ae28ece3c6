#include "common/hopper/arguments.cuh"

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <memory>
#include <string>

#include "common/launch.hpp"
#include "core/error.hpp"

namespace rooflash::hopper {
namespace {

using Encode = decltype(&cuTensorMapEncodeTiled);

Encode find_encode() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  check_launch(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                                cudaEnableDefault, &found),
               "cudaGetDriverEntryPointByVersion");
  if (found != cudaDriverEntryPointSuccess) {
    throw Error(ExitCode::incomplete, "the driver has no cuTensorMapEncodeTiled",
                "use a driver for CUDA 12.0 or newer");
  }
  return reinterpret_cast<Encode>(function);
}

// Sizes, box and steps in bytes of a tensor's dimensions, innermost first.
struct Dimension {
  std::int64_t size;
  std::int64_t stride_bytes;
  int box;
};

CUtensorMapDataType type_of(DType dtype) {
  if (dtype == DType::e4m3) return CU_TENSOR_MAP_DATA_TYPE_UINT8;
  return dtype == DType::fp16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
}

// Rows of a box are 128 or 64 bytes, with the swizzle of that width. What lies outside the tensor
// is read as zeros and not written.
template <std::size_t kRank>
CUtensorMap tensor_map(DType dtype, const void* data,
                       const std::array<Dimension, kRank>& dimensions) {
  static const Encode encode = find_encode();
  std::array<cuuint64_t, kRank> sizes{};
  std::array<cuuint64_t, kRank> strides_bytes{};  // the innermost is not asked for
  std::array<cuuint32_t, kRank> box{};
  std::array<cuuint32_t, kRank> steps{};
  std::string text;
  for (std::size_t i = 0; i < kRank; ++i) {
    sizes[i] = static_cast<cuuint64_t>(dimensions[i].size);
    strides_bytes[i] = static_cast<cuuint64_t>(dimensions[i].stride_bytes);
    box[i] = static_cast<cuuint32_t>(dimensions[i].box);
    steps[i] = 1;
    text = std::to_string(dimensions[i].size) + (i > 0 ? " x " + text : "");
  }
  CUtensorMap map{};
  const bool wide = dimensions[0].box * size_bytes(dtype) == 128;
  const CUresult result =
      encode(&map, type_of(dtype), kRank, const_cast<void*>(data), sizes.data(),
             strides_bytes.data() + 1, box.data(), steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE,
             wide ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    throw Error(ExitCode::incomplete, "cuTensorMapEncodeTiled refuses a tensor of " + text +
                                          ": error " + std::to_string(result));
  }
  return map;
}

}  // namespace

CUtensorMap rows_map(DType dtype, const void* data, std::int64_t batch, std::int64_t seqlen,
                     std::int64_t heads, std::int64_t width, int box_rows, int box_columns) {
  const std::int64_t bytes = size_bytes(dtype);
  return tensor_map<4>(dtype, data,
                       {{{width, bytes, box_columns},
                         {heads, width * bytes, 1},
                         {seqlen, heads * width * bytes, box_rows},
                         {batch, seqlen * heads * width * bytes, 1}}});
}

namespace {

// Of a [batch, seqlen, heads, width] tensor in boxes of `box_rows` rows of a query tile with
// packed heads, of which `group` are a query's: a box has those of some queries, or some of a
// query's.
CUtensorMap packed_map(DType dtype, const void* data, std::int64_t batch, std::int64_t seqlen,
                       std::int64_t heads, std::int64_t group, std::int64_t width, int box_rows) {
  const int members = static_cast<int>(std::min<std::int64_t>(group, box_rows));
  return tensor_map<5>(dtype, data,
                       {{{width, 2, 64},
                         {group, width * 2, members},
                         {heads / group, group * width * 2, 1},
                         {seqlen, heads * width * 2, box_rows / members},
                         {batch, seqlen * heads * width * 2, 1}}});
}

}  // namespace

std::shared_ptr<Counters> make_counters() {
  void* memory = nullptr;
  check_launch(cudaMalloc(&memory, sizeof(Counters)), "cudaMalloc");
  std::shared_ptr<Counters> counters(static_cast<Counters*>(memory),
                                     [](Counters* c) { cudaFree(c); });
  check_launch(cudaMemset(memory, 0, sizeof(Counters)), "cudaMemset");
  // Launches go to streams that do not wait for this one.
  check_launch(cudaStreamSynchronize(cudaStreamLegacy), "cudaMemset");
  return counters;
}

namespace {

// Tensor maps for `config`'s boxes and the order of the tiles.
Arguments make_arguments(const Problem& p, const Tensors& t, const Config& config,
                         Counters* counters, int sm_count) {
  const std::int64_t packed = packed_heads(p, config);
  const auto keys = [&](const void* data, std::int64_t width) {
    return rows_map(p.dtype, data, p.batch, p.seqlen_kv, p.heads_kv, width, config.box_keys());
  };
  const auto queries = [&](const void* data, std::int64_t width, int box_rows) {
    return config.split
               ? packed_map(p.dtype, data, p.batch, p.seqlen_q, p.heads_q, packed, width, box_rows)
               : rows_map(p.dtype, data, p.batch, p.seqlen_q, p.heads_q, width, box_rows);
  };
  Arguments args{};
  args.q = queries(t.q, p.headdim, kWarpgroupRows);
  args.k = keys(t.k, p.headdim);
  args.v = keys(t.v, p.headdim_v);
  args.o = queries(t.o, p.headdim_v, config.o_rows());
  args.group_log2 = std::countr_zero(static_cast<std::uint64_t>(packed));
  args.problem = forward_arguments(p, t);
  args.band_first = static_cast<int>(args.problem.band.first);
  args.band_last = static_cast<int>(args.problem.band.last);
  args.schedule = schedule_for(p, config.cluster_rows(), sm_count / config.ctas(), packed);
  args.counters = counters;
  return args;
}

void require_code() {
#ifndef ROOFLASH_SM90A
  throw NotBuiltError(
      "this build holds no code for sm_90a (configure with 90a among ROOFLASH_ARCHITECTURES)");
#endif
}

void launch(const void* kernel, int ctas, int threads, int smem_bytes, void* args,
            CUstream_st* stream, int cluster = 1) {
  cudaLaunchAttribute dimension{};
  dimension.id = cudaLaunchAttributeClusterDimension;
  dimension.val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(ctas));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = static_cast<std::size_t>(smem_bytes);
  config.stream = stream;
  config.attrs = &dimension;
  config.numAttrs = cluster > 1 ? 1 : 0;
  void* arguments[] = {args};
  check_launch(cudaLaunchKernelExC(&config, kernel, arguments),
               "launching a kernel of the Hopper pipeline");
}

}  // namespace

Prepared prepare(const void* kernel, const Config& config, const Problem& p, const Tensors& t,
                 const DeviceLimits& device, const Splitting& splitting) {
  require_code();
  const int splits = config.split ? splitting.count : 1;
  if (splits < 1 || splits > kMostSplits) {
    throw Error(ExitCode::incomplete, "keys are not cut into " + std::to_string(splits) +
                                          " parts, at most " + std::to_string(kMostSplits));
  }
  const std::shared_ptr<Counters> counters = make_counters();
  Arguments args = make_arguments(p, t, config, counters.get(), device.sm_count);
  const std::int64_t works = std::int64_t{args.schedule.tiles()} * splits;
  if (works > std::numeric_limits<int>::max()) {
    throw Error(ExitCode::incomplete, std::to_string(works) + " parts of query tiles are too many");
  }
  args.parts = {splits, lse_elements(p), nullptr, nullptr};
  if (config.split) {
    args.parts.o = static_cast<float*>(t.workspace);
    args.parts.lse = args.parts.o + splits * o_elements(p);
  }
  const int clusters =
      static_cast<int>(std::min<std::int64_t>(works, device.sm_count / config.ctas()));
  const int grid = clusters * config.ctas();
  // Rows beyond come to the same CTAs.
  const int combine_grid = static_cast<int>(std::min<std::int64_t>(args.parts.rows, 1 << 20));
  const Resources resources =
      prepare_kernel(kernel, config.threads(), config.smem_bytes(), grid, device.sm_count);
  return {.launch =
              [=, combine = splitting.combine, counters = counters](CUstream_st* stream) mutable {
                launch(kernel, grid, config.threads(), config.smem_bytes(), &args, stream,
                       config.ctas());
                if (config.split) {
                  launch(combine, combine_grid, 32 * kCombineWarps, 0, &args, stream);
                }
              },
          .resources = resources,
          .workspace_bytes = sizeof(Counters)};
}

Prepared prepare_persistent(const void* kernel, int threads, int smem_bytes, int tiles,
                            const DeviceLimits& device, std::shared_ptr<void> args,
                            std::shared_ptr<Counters> counters) {
  require_code();
  const int grid = std::min(tiles, device.sm_count);
  const Resources resources = prepare_kernel(kernel, threads, smem_bytes, grid, device.sm_count);
  return {.launch =
              [kernel, threads, smem_bytes, grid, args, counters](CUstream_st* stream) {
                launch(kernel, grid, threads, smem_bytes, args.get(), stream);
              },
          .resources = resources,
          .workspace_bytes = sizeof(Counters)};
}

}  // namespace rooflash::hopper
