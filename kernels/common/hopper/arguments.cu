#include "common/hopper/arguments.cuh"

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
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

// Map of a [batch, seqlen, heads, width] tensor in boxes of 64 columns and `box_rows` rows of one
// head. What lies outside the tensor is read as zeros and not written.
CUtensorMap tensor_map(DType dtype, const void* data, std::int64_t batch, std::int64_t seqlen,
                       std::int64_t heads, std::int64_t width, int box_rows) {
  static const Encode encode = find_encode();
  const auto size = [](std::int64_t value) { return static_cast<cuuint64_t>(value); };
  const std::array<cuuint64_t, 4> sizes{size(width), size(heads), size(seqlen), size(batch)};
  const std::array<cuuint64_t, 3> strides_bytes{size(width * 2), size(heads * width * 2),
                                                size(seqlen * heads * width * 2)};
  const std::array<cuuint32_t, 4> box{64, 1, static_cast<cuuint32_t>(box_rows), 1};
  const std::array<cuuint32_t, 4> steps{1, 1, 1, 1};
  CUtensorMap map{};
  const CUresult result = encode(
      &map,
      dtype == DType::fp16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4,
      const_cast<void*>(data), sizes.data(), strides_bytes.data(), box.data(), steps.data(),
      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    throw Error(ExitCode::incomplete,
                "cuTensorMapEncodeTiled refuses a tensor of " + std::to_string(batch) + " x " +
                    std::to_string(seqlen) + " x " + std::to_string(heads) + " x " +
                    std::to_string(width) + ": error " + std::to_string(result));
  }
  return map;
}

// Counters of its own on the current device, at 0.
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

// Memory for the parts' O and LSE.
std::shared_ptr<float> make_parts(std::int64_t bytes) {
  void* memory = nullptr;
  if (cudaMalloc(&memory, static_cast<std::size_t>(bytes)) != cudaSuccess) {
    (void)cudaGetLastError();
    throw Error(ExitCode::incomplete, "no memory for O and LSE of parts of the keys, " +
                                          std::to_string(bytes) + " bytes");
  }
  return {static_cast<float*>(memory), [](float* parts) { cudaFree(parts); }};
}

// Tensor maps for `config`'s boxes and the order of the tiles.
Arguments make_arguments(const Problem& p, const Tensors& t, const Config& config,
                         Counters* counters, int sm_count) {
  const auto map = [&](const void* data, std::int64_t seqlen, std::int64_t heads,
                       std::int64_t width, int box_rows) {
    return tensor_map(p.dtype, data, p.batch, seqlen, heads, width, box_rows);
  };
  Arguments args{};
  args.q = map(t.q, p.seqlen_q, p.heads_q, p.headdim, 64);
  args.k = map(t.k, p.seqlen_kv, p.heads_kv, p.headdim, config.stage_keys());
  args.v = map(t.v, p.seqlen_kv, p.heads_kv, p.headdim_v, config.stage_keys());
  args.o = map(t.o, p.seqlen_q, p.heads_q, p.headdim_v, config.o_rows());
  args.problem = forward_arguments(p, t);
  args.band_first = static_cast<int>(args.problem.band.first);
  args.band_last = static_cast<int>(args.problem.band.last);
  args.schedule = schedule_for(p, config.block_m(), sm_count);
  args.counters = counters;
  return args;
}

void launch(const void* kernel, int ctas, int threads, int smem_bytes, Arguments& args,
            CUstream_st* stream) {
  void* arguments[] = {&args};
  check_launch(cudaLaunchKernel(kernel, dim3(static_cast<unsigned>(ctas)),
                                dim3(static_cast<unsigned>(threads)), arguments,
                                static_cast<std::size_t>(smem_bytes), stream),
               "launching a kernel of the Hopper pipeline");
}

}  // namespace

Prepared prepare(const void* kernel, const Config& config, const Problem& p, const Tensors& t,
                 const DeviceLimits& device, const Splitting& splitting) {
#ifndef ROOFLASH_SM90A
  throw NotBuiltError(
      "this build holds no code for sm_90a (configure with 90a among ROOFLASH_ARCHITECTURES)");
#endif
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
  std::int64_t parts_bytes = 0;
  std::shared_ptr<float> parts;
  args.parts = {splits, lse_elements(p), nullptr, nullptr};
  if (config.split) {
    const std::int64_t o_floats = splits * o_elements(p);
    parts_bytes = (o_floats + splits * lse_elements(p)) * 4;
    parts = make_parts(parts_bytes);
    args.parts.o = parts.get();
    args.parts.lse = parts.get() + o_floats;
  }
  const int grid = static_cast<int>(std::min<std::int64_t>(works, device.sm_count));
  // Rows beyond come to the same CTAs.
  const int combine_grid = static_cast<int>(std::min<std::int64_t>(args.parts.rows, 1 << 20));
  const Resources resources =
      prepare_kernel(kernel, config.threads(), config.smem_bytes(), grid, device.sm_count);
  return {.launch =
              [=, combine = splitting.combine, counters = counters,
               parts = parts](CUstream_st* stream) mutable {
                launch(kernel, grid, config.threads(), config.smem_bytes(), args, stream);
                if (config.split) {
                  launch(combine, combine_grid, 32 * kCombineWarps, 0, args, stream);
                }
              },
          .resources = resources,
          .workspace_bytes = parts_bytes + static_cast<std::int64_t>(sizeof(Counters))};
}

}  // namespace rooflash::hopper
