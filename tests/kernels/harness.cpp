#include "harness.hpp"

#include <array>
#include <ostream>

#include "device_case.hpp"
#include "gpu/device.hpp"
#include "registry.hpp"

namespace rooflash {

const Gpu& gpu() {
  // Never destroyed: at exit the CUDA runtime may be gone first.
  static const Gpu* const instance =
      new Gpu{DeviceStream(0), device_limits(0), *describe_device(0).l2_bytes};
  return *instance;
}

bool KernelVariant::runs_here() const {
  const int sm = gpu().limits.sm;
  return variant->sm_min <= sm && sm <= variant->sm_max;
}

bool KernelVariant::serves(const Problem& problem) const {
  return find_variant(*kernel, problem, gpu().limits.sm, nullptr) == variant;
}

Problem KernelVariant::problem() const {
  Problem p;
  p.dtype = variant->dtype;
  for (const int headdim : {128, 64, variant->headdim}) {
    p.headdim = p.headdim_v = headdim;
    const std::vector<Mask> masks = this->masks(p, 0);
    if (masks.empty()) continue;
    p.mask = masks.front();
    return p;
  }
  throw UsageError(name(*this) + " serves no problem of its own head dim");
}

std::vector<Mask> KernelVariant::masks(Problem problem, std::size_t turn) const {
  constexpr std::array<std::array<std::int64_t, 2>, 7> kWindows = {
      {{16, 0}, {5, 9}, {0, 0}, {kUnbounded, 3}, {31, kUnbounded}, {300, 0}, {200, 130}}};
  const auto [left, right] = kWindows[turn % kWindows.size()];
  const Align align = turn % 2 == 0 ? Align::bottom_right : Align::top_left;
  std::vector<Mask> served;
  for (const Mask& mask :
       {Mask{}, Mask{MaskKind::causal, Align::bottom_right},
        Mask{MaskKind::causal, Align::top_left}, Mask{MaskKind::window, align, left, right}}) {
    problem.mask = mask;
    if (serves(problem)) served.push_back(mask);
  }
  return served;
}

std::vector<KernelVariant> forward_variants() {
  std::vector<KernelVariant> result;
  for (const Kernel* kernel : kernels()) {
    if (kernel->hidden || kernel->provider != "builtin") continue;
    for (const Variant& variant : kernel->variants) {
      if (variant.pass == Pass::fwd) result.push_back({kernel, &variant});
    }
  }
  return result;
}

std::string name(const KernelVariant& kernel) {
  return std::string(kernel.kernel->name) + "_" +
         std::to_string(kernel.variant - kernel.kernel->variants.data()) + "_" +
         std::string(to_string(kernel.variant->dtype)) + "_d" +
         std::to_string(kernel.variant->headdim);
}

void PrintTo(const KernelVariant& kernel, std::ostream* out) {
  *out << name(kernel);
}

void Kernels::SetUp() {
  const Variant& variant = *GetParam().variant;
  if (!GetParam().runs_here()) {
    GTEST_SKIP() << "for sm_" << variant.sm_min << " to sm_" << variant.sm_max
                 << ", and this GPU is sm_" << gpu().limits.sm;
  }
}

INSTANTIATE_TEST_SUITE_P(Forward, Kernels, testing::ValuesIn(forward_variants()),
                         [](const auto& test) { return name(test.param); });

testing::AssertionResult passed(const VerifyResult& result) {
  if (result.status == "passed") return testing::AssertionSuccess() << "passed";
  return testing::AssertionFailure() << result.status << ": " << result.worst;
}

Problem with_shape(Problem p, const Shape& shape) {
  p.batch = shape.batch;
  p.heads_q = shape.heads_q;
  p.heads_kv = shape.heads_kv;
  p.seqlen_q = shape.seqlen_q;
  p.seqlen_kv = shape.seqlen_kv;
  return p;
}

void expect_reference(const KernelVariant& kernel, const Problem& p) {
  SCOPED_TRACE(case_id(kernel.kernel->name, p));
  HostCase host = make_host_case(p, kSeed);
  DeviceCase device(kernel.kernel, p);
  device.upload_inputs(host);
  device.run();
  device.download_outputs(host);
  EXPECT_TRUE(passed(verify_on_host(p, host.tensors(), o_elements(p), kSeed)));
}

}  // namespace rooflash
