#include "measure/launch_costs.hpp"

#include <chrono>
#include <functional>
#include <vector>

#include "gpu/check.hpp"
#include "measure/block_stream.hpp"
#include "measure/statistics.hpp"

namespace rooflash {
namespace {

constexpr int kSamples = 41;
constexpr int kKernels = 200;  // in a row

__global__ void empty() {}

void launch_empty(cudaStream_t stream) {
  empty<<<1, 32, 0, stream>>>();
  ROOFLASH_CUDA_LAUNCHED();
}

// Microseconds on the GPU from before to after what `queue` queues. The stream is held meanwhile,
// so the host's calls are not in it. Empty where the watchdog ended the hold.
OptDouble device_us(const std::function<void()>& queue, BlockStream& block, cudaStream_t stream) {
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  ROOFLASH_CUDA(cudaEventCreate(&begin));
  ROOFLASH_CUDA(cudaEventCreate(&end));
  std::vector<double> samples;
  for (int i = 0; i < kSamples; ++i) {
    block.block(stream);
    ROOFLASH_CUDA(cudaEventRecord(begin, stream));
    queue();
    ROOFLASH_CUDA(cudaEventRecord(end, stream));
    block.release();
    ROOFLASH_CUDA(cudaStreamSynchronize(stream));
    if (block.timed_out()) continue;
    float ms = 0;
    ROOFLASH_CUDA(cudaEventElapsedTime(&ms, begin, end));
    samples.push_back(1e3 * static_cast<double>(ms));
  }
  (void)cudaEventDestroy(begin);
  (void)cudaEventDestroy(end);
  if (samples.empty()) return std::nullopt;
  return median(samples);
}

// Of each kernel after the first.
OptDouble per_kernel(OptDouble many, OptDouble one) {
  if (!many || !one) return std::nullopt;
  return (*many - *one) / (kKernels - 1);
}

OptDouble graph_us(int kernels, BlockStream& block, cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  ROOFLASH_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < kernels; ++i) launch_empty(stream);
  ROOFLASH_CUDA(cudaStreamEndCapture(stream, &graph));
  ROOFLASH_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  ROOFLASH_CUDA(cudaGraphLaunch(executable, stream));  // the first one uploads it
  const OptDouble us =
      device_us([&] { ROOFLASH_CUDA(cudaGraphLaunch(executable, stream)); }, block, stream);
  ROOFLASH_CUDA(cudaGraphExecDestroy(executable));
  ROOFLASH_CUDA(cudaGraphDestroy(graph));
  return us;
}

double host_us(cudaStream_t stream) {
  std::vector<double> samples;
  for (int i = 0; i < kSamples; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    launch_empty(stream);
    ROOFLASH_CUDA(cudaStreamSynchronize(stream));
    samples.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
            .count());
  }
  return median(samples);
}

}  // namespace

LaunchCosts measure_launch_costs(cudaStream_t stream) {
  BlockStream block;
  launch_empty(stream);  // loads it
  ROOFLASH_CUDA(cudaStreamSynchronize(stream));
  LaunchCosts costs;
  costs.event_us = device_us([&] { launch_empty(stream); }, block, stream);
  const OptDouble many = device_us(
      [&] {
        for (int i = 0; i < kKernels; ++i) launch_empty(stream);
      },
      block, stream);
  costs.stream_us = per_kernel(many, costs.event_us);
  costs.graph_us = per_kernel(graph_us(kKernels, block, stream), graph_us(1, block, stream));
  costs.host_us = host_us(stream);
  return costs;
}

}  // namespace rooflash
