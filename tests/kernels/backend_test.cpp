// Whole cases as the worker runs them: rows that every reader takes, with a reason for every empty
// figure.
#include <memory>
#include <string>

#include "harness.hpp"
#include "record/check.hpp"
#include "support/unexplained.hpp"
#include "worker/backend.hpp"

namespace rooflash {
namespace {

const PhaseSink kNoPhases = [](std::string_view) {};

CaseRequest request_of(const KernelVariant& kernel) {
  CaseRequest request;
  request.kernel = kernel.kernel->name;
  request.problem = kernel.problem();
  request.seed = kSeed;
  return request;
}

Row checked_row(const CaseRequest& request) {
  const std::unique_ptr<Backend> backend = make_cuda_backend(0);
  Row row = backend->run(request, kNoPhases);
  EXPECT_EQ(row.status, Status::ok) << row.reason;
  EXPECT_NO_THROW(check_row(row, "row"));
  for (const std::string& path : unexplained_nulls(row)) ADD_FAILURE() << path << " has no reason";
  return row;
}

TEST_P(Kernels, MakeWholeRows) {
  const Row row = checked_row(request_of(GetParam()));
  ASSERT_TRUE(row.time_us);
  EXPECT_GE(row.time_us->warmup_launches.value_or(0), 1);
  EXPECT_GT(row.resources.code_bytes.value_or(0), 0);
  EXPECT_EQ(row.kernels_run.empty(), row.missing.contains("kernels_run"));
  const bool quantized = row.problem.dtype == DType::e4m3;
  EXPECT_EQ(row.time_with_quantize_us.has_value(), quantized);
  EXPECT_EQ(row.saturated_elements, quantized ? OptInt(0) : OptInt());
}

TEST_P(Kernels, MakeRowsWithoutTimesOrCounters) {
  CaseRequest request = request_of(GetParam());
  request.options.verify = "only";
  EXPECT_FALSE(checked_row(request).time_us);
  request.options.verify = "off";
  request.options.counters = "none";
  EXPECT_EQ(checked_row(request).verify.status, "skipped");
}

}  // namespace
}  // namespace rooflash
