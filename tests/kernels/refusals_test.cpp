// What cannot run is refused with a reason, before any work and with no CUDA error left behind.
#include <memory>
#include <string>
#include <vector>

#include "harness.hpp"
#include "registry.hpp"
#include "worker/backend.hpp"

namespace rooflash {
namespace {

// Problems that families leave out, each in one property.
std::vector<Problem> unusual_problems() {
  Problem base;
  base.seqlen_q = base.seqlen_kv = 64;
  std::vector<Problem> problems;
  for (const DType dtype : {DType::fp32, DType::fp16, DType::e4m3}) {
    problems.push_back(base);
    problems.back().dtype = dtype;
  }
  for (const std::int64_t headdim : {1, 63, 100, 132, 264, 65528}) {
    problems.push_back(base);
    problems.back().headdim = problems.back().headdim_v = headdim;
  }
  for (const Mask& mask : {Mask{MaskKind::causal, Align::top_left},
                           Mask{MaskKind::window, Align::bottom_right, 16, 0}}) {
    problems.push_back(base);
    problems.back().mask = mask;
  }
  problems.push_back(base);
  problems.back().pass = Pass::bwd;
  return problems;
}

// Runs one case as the worker does, and expects it to end in its first phase.
Row refused_row(Backend& backend, const Kernel& kernel, const Problem& p) {
  CaseRequest request;
  request.kernel = kernel.name;
  request.problem = p;
  std::vector<std::string> phases;
  Row row = backend.run(request, [&](std::string_view phase) { phases.emplace_back(phase); });
  EXPECT_EQ(phases, std::vector<std::string>{"setup"});
  EXPECT_TRUE(row.kernels_run.empty());
  EXPECT_FALSE(row.time_us);
  EXPECT_FALSE(backend.lost());
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  return row;
}

TEST(Refusals, UnsupportedProblems) {
  const std::unique_ptr<Backend> backend = make_cuda_backend(0);
  for (const Kernel* kernel : kernels()) {
    if (kernel->hidden) continue;
    int refused = 0;
    for (const Problem& p : unusual_problems()) {
      std::string reason;
      if (find_variant(*kernel, p, gpu().limits.sm, &reason) != nullptr) continue;
      SCOPED_TRACE(case_id(kernel->name, p));
      const Row row = refused_row(*backend, *kernel, p);
      EXPECT_EQ(row.status, Status::unsupported);
      EXPECT_EQ(row.reason, reason);
      EXPECT_NE(row.reason, "");
      ++refused;
    }
    EXPECT_GT(refused, 0) << kernel->name;
  }
}

TEST(Refusals, WhatCannotFitIsNotTried) {
  const std::unique_ptr<Backend> backend = make_cuda_backend(0);
  for (const KernelVariant& kernel : forward_variants()) {
    if (!kernel.runs_here()) continue;
    Problem p = kernel.problem();
    p.batch = 1 << 18;
    p.heads_q = p.heads_kv = 16;
    p.seqlen_q = p.seqlen_kv = 4096;
    SCOPED_TRACE(case_id(kernel.kernel->name, p));
    const Row row = refused_row(*backend, *kernel.kernel, p);
    EXPECT_EQ(row.status, Status::oom) << row.reason;
    ASSERT_TRUE(row.memory.needed_bytes && row.memory.free_bytes);
    EXPECT_GE(*row.memory.needed_bytes, tensor_bytes(p));
    EXPECT_GT(*row.memory.needed_bytes, *row.memory.free_bytes);
  }
}

}  // namespace
}  // namespace rooflash
