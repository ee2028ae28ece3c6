#include "common/hopper/arguments.cuh"

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
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

CUtensorMapDataType type_of(DType dtype) {
  if (dtype == DType::e4m3) return CU_TENSOR_MAP_DATA_TYPE_UINT8;
  return dtype == DType::fp16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
}

}  // namespace

CUtensorMap tensor_map(DType dtype, const void* data, std::int64_t batch, std::int64_t seqlen,
                       std::int64_t heads, std::int64_t width, Box box) {
  static const Encode encode = find_encode();
  const auto size = [](std::int64_t value) { return static_cast<cuuint64_t>(value); };
  const std::array<cuuint64_t, 4> sizes{size(width), size(heads), size(seqlen), size(batch)};
  const std::int64_t row_bytes = width * size_bytes(dtype);
  const std::array<cuuint64_t, 3> strides_bytes{size(row_bytes), size(heads * row_bytes),
                                                size(seqlen * heads * row_bytes)};
  const std::array<cuuint32_t, 4> sizes_of_box{static_cast<cuuint32_t>(box.columns), 1,
                                               static_cast<cuuint32_t>(box.rows), 1};
  const bool wide = box.columns * size_bytes(dtype) == 128;
  const std::array<cuuint32_t, 4> steps{1, 1, 1, 1};
  CUtensorMap map{};
  const CUresult result =
      encode(&map, type_of(dtype), 4, const_cast<void*>(data), sizes.data(), strides_bytes.data(),
             sizes_of_box.data(), steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE,
             wide ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    throw Error(ExitCode::incomplete,
                "cuTensorMapEncodeTiled refuses a tensor of " + std::to_string(batch) + " x " +
                    std::to_string(seqlen) + " x " + std::to_string(heads) + " x " +
                    std::to_string(width) + ": error " + std::to_string(result));
  }
  return map;
}

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
  const auto map = [&](const void* data, std::int64_t seqlen, std::int64_t heads,
                       std::int64_t width, int box_rows) {
    return tensor_map(p.dtype, data, p.batch, seqlen, heads, width, Box{64, box_rows});
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

}  // namespace

Prepared prepare_persistent(const void* kernel, int threads, std::int64_t smem_bytes, int tiles,
                            const DeviceLimits& device, std::shared_ptr<void> args,
                            std::shared_ptr<Counters> counters) {
#ifndef ROOFLASH_SM90A
  throw NotBuiltError(
      "this build holds no code for sm_90a (configure with 90a among ROOFLASH_ARCHITECTURES)");
#endif
  const int grid = std::min(tiles, device.sm_count);
  const Resources resources = prepare_kernel(kernel, threads, smem_bytes, grid, device.sm_count);
  return {.launch =
              [kernel, threads, smem_bytes, grid, args, counters](CUstream_st* stream) {
                void* arguments[] = {args.get()};
                check_launch(cudaLaunchKernel(kernel, dim3(static_cast<unsigned>(grid)),
                                              dim3(static_cast<unsigned>(threads)), arguments,
                                              static_cast<std::size_t>(smem_bytes), stream),
                             "launching a kernel of the Hopper pipeline");
              },
          .resources = resources,
          .workspace_bytes = sizeof(Counters)};
}

Prepared prepare(const void* kernel, const Config& config, const Problem& p, const Tensors& t,
                 const DeviceLimits& device) {
  const std::shared_ptr<Counters> counters = make_counters();
  const auto args =
      std::make_shared<Arguments>(make_arguments(p, t, config, counters.get(), device.sm_count));
  return prepare_persistent(kernel, config.threads(), config.smem_bytes(), args->schedule.tiles(),
                            device, args, counters);
}

}  // namespace rooflash::hopper
