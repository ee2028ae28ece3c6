#include "worker/cuda/cuda_doctor.hpp"

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <string>

#include "gpu/check.hpp"
#include "measure/cupti_api.hpp"
#include "measure/gemm.hpp"
#include "registry.hpp"

namespace rooflash {
namespace {

constexpr int kGemmSize = 8192;

std::string cublas_version() {
  int parts[3] = {};
  const libraryPropertyType names[3] = {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL};
  for (int i = 0; i < 3; ++i) {
    if (cublasGetProperty(names[i], &parts[i]) != CUBLAS_STATUS_SUCCESS) return {};
  }
  return fmt::format("{}.{}.{}", parts[0], parts[1], parts[2]);
}

CounterLibrary counter_library() {
  const CuptiApi api;
  return {api.path(), api.version(), CUPTI_API_VERSION};
}

Counters count_copy(CounterSession& counters, const std::function<void()>& flush,
                    cudaStream_t stream) {
  const auto bytes = static_cast<std::size_t>(kProofCopyBytes);
  const DeviceBuffer from(bytes);
  const DeviceBuffer to(bytes);
  ROOFLASH_CUDA(cudaMemsetAsync(from.get(), 1, bytes, stream));
  const auto copy = [&] {
    ROOFLASH_CUDA(cudaMemcpyAsync(to.get(), from.get(), bytes, cudaMemcpyDeviceToDevice, stream));
  };
  copy();  // the first use of memory is not typical
  ROOFLASH_CUDA(cudaStreamSynchronize(stream));
  // Zeros where bytes must be are no figure.
  return counters.measure(DType::bf16, flush, copy, {.min_hbm_read_bytes = 0.5 * kProofCopyBytes});
}

DoctorCheck prove_gemm(CounterSession& counters, const std::function<void()>& flush,
                       cudaStream_t stream) {
  const Gemm gemm(DType::bf16, kGemmSize, stream);
  gemm(stream);
  ROOFLASH_CUDA(cudaStreamSynchronize(stream));
  const Counters counted =
      counters.measure(DType::bf16, flush, [&] { gemm(stream); }, {.tensor_ops = true});
  return gemm_check(counted, gemm.flops(), fmt::format("{}^3 bf16", kGemmSize));
}

}  // namespace

VendorLibrary cudnn_library() {
  return find_kernel("cudnn")->library();
}

DeviceState software_state() {
  DeviceState state;
  ROOFLASH_CUDA(cudaDriverGetVersion(&state.driver_cuda));
  state.toolkit_cuda = CUDART_VERSION;
  state.cublas = cublas_version();
  state.cudnn = cudnn_library();
  return state;
}

std::vector<DoctorCheck> prove_counters(CounterSession& counters, const Timer& timer,
                                        cudaStream_t stream) {
  const auto flush = [&] { timer.flush(); };
  std::vector<DoctorCheck> checks;
  try {
    checks = copy_checks(counter_library(), count_copy(counters, flush, stream));
    if (checks.back().id != "counters") checks.push_back(prove_gemm(counters, flush, stream));
  } catch (const Error& error) {
    checks.push_back({checks.empty() ? "counters" : "counters.gemm", CheckStatus::fail,
                      error.what(),
                      "free memory of this GPU (the proof takes 4 GiB), and see that cuBLAS fits "
                      "the driver"});
  }
  return checks;
}

}  // namespace rooflash
