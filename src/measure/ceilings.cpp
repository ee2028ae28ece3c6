#include "measure/ceilings.hpp"

#include <algorithm>

#include "gpu/check.hpp"
#include "measure/gemm.hpp"
#include "measure/hbm_roofs.hpp"
#include "measure/launch_costs.hpp"
#include "measure/roof_timer.hpp"
#include "measure/unit_roofs.hpp"

namespace rooflash {
namespace {

constexpr DType kGemmTypes[] = {DType::bf16, DType::fp16, DType::fp32, DType::e4m3};
constexpr int kGemmSizes[] = {4096, 8192};

// Calls `use(gemm)` unless the card has no such product: no roof then, rather than another type's.
template <class Use>
void with_gemm(DType dtype, int size, cudaStream_t stream, const Use& use) {
  try {
    const Gemm gemm(dtype, size, stream);
    use(gemm);
  } catch (const CudaError&) {
    throw;
  } catch (const Error&) {
  }
}

void keep_best(std::map<std::string, double>& rates, std::map<std::string, double>& clocks,
               const std::string& type, const std::string& clock_name, double rate,
               const RoofTime& time) {
  if (rate <= rates[type]) return;
  rates[type] = rate;
  if (time.clock_mhz) clocks[clock_name] = *time.clock_mhz;
}

void measure_units(const RoofDevice& device, RoofTimer& timer, UnitRoofs& units) {
  for (const TensorLoop& loop : tensor_loops(device.sm, device.sm_count, timer.stream())) {
    const RoofTime time = timer.burst(loop.run);
    const double tflops = loop.ops / time.seconds * 1e-12;
    if (!loop.warpgroup) units.mma_sync_tflops[loop.type] = tflops;
    keep_best(units.tensor_tflops, units.clock_mhz, loop.type, "tensor." + loop.type, tflops, time);
  }
  const auto rate = [&](const UnitLoop& loop, double scale) {
    return loop.work / timer.burst(loop.run).seconds * scale;
  };
  units.exp_gops = rate(exp_loop(device.sm_count, timer.stream()), 1e-9);
  units.fp32_tflops = rate(fp32_loop(device.sm_count, timer.stream()), 1e-12);
  units.smem_read_gbps = rate(smem_loop(device.sm_count, timer.stream()), 1e-9);
  units.l2_read_gbps = rate(l2_read_loop(device.l2_bytes, device.sm_count, timer.stream()), 1e-9);
}

}  // namespace

Ceilings measure_ceilings(const RoofDevice& device, cudaStream_t stream) {
  Ceilings ceilings;
  ceilings.device = device.device;
  ceilings.source = "measured";
  RoofTimer timer(stream, device.sm_count);
  measure_hbm(ceilings, device.sm_count, timer);
  UnitRoofs units;
  for (const DType dtype : kGemmTypes) {
    for (const int size : kGemmSizes) {
      with_gemm(dtype, size, stream, [&](const Gemm& gemm) {
        const RoofTime time = timer.burst([&] { gemm(stream); });
        const std::string type(to_string(dtype));
        keep_best(ceilings.gemm_tflops, units.clock_mhz, type, "gemm." + type,
                  gemm.flops() / time.seconds * 1e-12, time);
      });
    }
  }
  measure_units(device, timer, units);
  ceilings.units = units;
  ceilings.launch = measure_launch_costs(stream);
  return ceilings;
}

SustainedRoofs measure_sustained(const RoofDevice& device, cudaStream_t stream,
                                 const std::function<OptDouble()>& power_w) {
  SustainedRoofs roofs;
  RoofTimer timer(stream, device.sm_count);
  const auto measure = [&](const std::string& name, const std::function<void()>& run) {
    const RoofTime time = timer.sustained(run, [&] {
      if (const OptDouble watts = power_w()) roofs.power_w[name] = *watts;
    });
    if (time.clock_mhz) roofs.clock_mhz[name] = *time.clock_mhz;
    return time.seconds;
  };
  {
    const UnitLoop copy = hbm_copy_loop(device.sm_count, timer);
    roofs.hbm_copy_gbps = copy.work / measure("hbm_copy", copy.run) * 1e-9;
  }
  for (const DType dtype : {DType::bf16, DType::fp16, DType::e4m3}) {
    with_gemm(dtype, 8192, stream, [&](const Gemm& gemm) {
      const std::string type(to_string(dtype));
      const double seconds = measure("gemm." + type, [&] { gemm(stream); });
      roofs.gemm_tflops[type] = gemm.flops() / seconds * 1e-12;
    });
  }
  for (const TensorLoop& loop : tensor_loops(device.sm, device.sm_count, stream)) {
    if (roofs.tensor_tflops.contains(loop.type)) continue;  // the fastest instructions come first
    roofs.tensor_tflops[loop.type] = loop.ops / measure("tensor." + loop.type, loop.run) * 1e-12;
  }
  return roofs;
}

}  // namespace rooflash
