#include "sweep/plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/error.hpp"
#include "registry.hpp"

namespace rooflash {
namespace {

const std::vector<PlanDevice> kOneDevice = {{"sim:h200", 90}};

Axes axes_with(const std::vector<std::pair<std::string, std::string>>& settings) {
  Axes axes;
  for (const auto& [name, text] : settings) set_axis(axes, name, text, name);
  return axes;
}

std::vector<Case> plan_of(const Axes& axes, std::uint64_t seed = 1, Order order = Order::shuffle,
                          int rounds = 1, const std::vector<PlanDevice>& devices = kOneDevice,
                          const Filter& filter = {}) {
  return make_plan({&axes, 1}, filter, devices, rounds, seed, order);
}

std::vector<std::string> ids(const std::vector<Case>& plan) {
  std::vector<std::string> result;
  for (const Case& c : plan) result.push_back(case_id(c.kernel, c.problem));
  return result;
}

TEST(MakePlan, DefaultsRunEveryVisibleKernelThatSupportsTheProblem) {
  const std::vector<Case> plan = plan_of(Axes{});
  std::map<std::string, int> per_kernel;
  for (const Case& c : plan) {
    ++per_kernel[c.kernel];
    EXPECT_EQ(c.unsupported_reason, "");
    EXPECT_EQ(c.device, "sim:h200");
    EXPECT_FALSE(find_kernel(c.kernel)->hidden);
  }
  EXPECT_EQ(per_kernel["naive"], 12);
  EXPECT_EQ(per_kernel["fa2"], 12);
}

TEST(MakePlan, ShuffleKeepsTheCasesAndTheKernelsOfAProblemTogether) {
  const Axes axes = axes_with({{"kernel", "naive,fa2"}, {"headdim", "64,128"}});
  const std::vector<Case> shuffled = plan_of(axes, 7);
  std::vector<std::string> a = ids(shuffled);
  std::vector<std::string> b = ids(plan_of(axes, 7, Order::grid));
  EXPECT_NE(a, b);
  ASSERT_EQ(a.size(), 48U);
  std::set<std::string> leaders;
  for (std::size_t i = 0; i < shuffled.size(); i += 2) {
    EXPECT_EQ(shuffled[i].problem, shuffled[i + 1].problem);
    EXPECT_NE(shuffled[i].kernel, shuffled[i + 1].kernel);
    leaders.insert(shuffled[i].kernel);
  }
  EXPECT_EQ(leaders.size(), 2U);  // neither kernel always goes first
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  EXPECT_EQ(a, b);
}

TEST(MakePlan, SeedDecidesTheOrder) {
  EXPECT_EQ(ids(plan_of(Axes{}, 42)), ids(plan_of(Axes{}, 42)));
  EXPECT_NE(ids(plan_of(Axes{}, 42)), ids(plan_of(Axes{}, 43)));
}

TEST(MakePlan, OrderOfASeedIsTheSameOnEveryPlatform) {
  const Axes axes = axes_with(
      {{"kernel", "naive"}, {"seqlen", "1:8:1"}, {"batch-size", "1"}, {"causal", "false"}});
  std::vector<std::int64_t> lengths;
  for (const Case& c : plan_of(axes, 1)) lengths.push_back(c.problem.seqlen_kv);
  EXPECT_EQ(lengths, (std::vector<std::int64_t>{5, 4, 3, 8, 6, 7, 1, 2}));
}

TEST(MakePlan, RoundsRepeatTheSweepInNewOrders) {
  const std::vector<Case> plan = plan_of(Axes{}, 1, Order::shuffle, 3);
  ASSERT_EQ(plan.size(), 3 * plan_of(Axes{}, 1).size());
  std::vector<std::vector<std::string>> rounds(3);
  int last = 0;
  for (const Case& c : plan) {
    EXPECT_GE(c.round, last);
    last = c.round;
    rounds.at(static_cast<std::size_t>(c.round)).push_back(case_id(c.kernel, c.problem));
  }
  EXPECT_NE(rounds[0], rounds[1]);
  for (auto& round : rounds) std::sort(round.begin(), round.end());
  EXPECT_EQ(rounds[0], rounds[1]);
  EXPECT_EQ(rounds[0], rounds[2]);
}

TEST(MakePlan, EveryDeviceGetsEveryCase) {
  const std::vector<Case> plan =
      plan_of(Axes{}, 1, Order::shuffle, 1, {{"cuda:0", 0}, {"cuda:1", 0}});
  const std::size_t cases = plan_of(Axes{}, 1, Order::grid, 1, {{"cuda:0", 0}}).size();
  EXPECT_EQ(plan.size(), 2 * cases);
  const auto on_second =
      std::count_if(plan.begin(), plan.end(), [](const Case& c) { return c.device == "cuda:1"; });
  EXPECT_EQ(static_cast<std::size_t>(on_second), cases);
}

TEST(MakePlan, NamedKernelsSayWhatTheyLackAndDefaultedOnesAreSilent) {
  std::vector<std::pair<std::string, std::string>> fp32 = {{"dtype", "fp32"}};
  for (const Case& c : plan_of(axes_with(fp32))) EXPECT_NE(c.kernel, "fa2");
  fp32.emplace_back("kernel", "fa2,naive");
  int unsupported = 0;
  for (const Case& c : plan_of(axes_with(fp32))) {
    EXPECT_EQ(c.unsupported_reason.empty(), c.kernel == "naive");
    if (c.kernel == "fa2") {
      ++unsupported;
      EXPECT_NE(c.unsupported_reason.find("fa2 has no fp32 variant"), std::string::npos);
    }
  }
  EXPECT_EQ(unsupported, 12);
}

TEST(MakePlan, DeviceDecidesWhichVariantsCount) {
  EXPECT_TRUE(plan_of(Axes{}, 1, Order::grid, 1, {{"sim:v100", 70}}).empty());
}

// Simulated devices have no model of closed kernels: named ones are rows that say so.
TEST(MakePlan, ClosedKernelsNeedARealGpu) {
  const auto of_cudnn = [](const Axes& axes, const PlanDevice& device) {
    std::vector<Case> plan = plan_of(axes, 1, Order::grid, 1, {device});
    std::erase_if(plan, [](const Case& c) { return c.kernel != "cudnn"; });
    return plan;
  };
  const Axes named = axes_with({{"kernel", "cudnn"}});
  for (const PlanDevice& real : {PlanDevice{"cuda:0", 90}, PlanDevice{}}) {
    EXPECT_EQ(of_cudnn(Axes{}, real).size(), 12U);
    EXPECT_EQ(of_cudnn(named, real).at(0).unsupported_reason, "");
  }
  EXPECT_TRUE(of_cudnn(Axes{}, kOneDevice[0]).empty());
  const std::vector<Case> plan = of_cudnn(named, kOneDevice[0]);
  ASSERT_EQ(plan.size(), 12U);
  EXPECT_EQ(plan[0].unsupported_reason,
            "the kernels of cudnn are closed: there is no model of them");
}

TEST(MakePlan, FilterKeepsItsCases) {
  const std::vector<Case> plan =
      plan_of(Axes{}, 1, Order::grid, 1, kOneDevice,
              Filter::parse("kernel:fa2 seqlen:>=8k -causal:true device:sim:*"));
  EXPECT_EQ(plan.size(), 2U);
  EXPECT_TRUE(plan_of(Axes{}, 1, Order::grid, 1, kOneDevice, Filter::parse("seqlen:3")).empty());
}

TEST(MakePlan, AProblemOfTwoGridsRunsOnce) {
  const std::vector<Axes> grids = {axes_with({{"kernel", "fa2"}}), axes_with({{"kernel", "naive"}}),
                                   axes_with({{"kernel", "fa2"}})};
  const std::vector<Case> plan = make_plan(grids, {}, kOneDevice, 1, 1, Order::shuffle);
  EXPECT_EQ(plan.size(), 24U);
  for (std::size_t i = 0; i < plan.size(); i += 2) {
    EXPECT_EQ(plan[i].problem, plan[i + 1].problem);
  }
}

TEST(CheckOptions, SaysWhatThereIs) {
  const auto refusal = [](const std::vector<std::pair<std::string, std::string>>& settings) {
    try {
      const Axes axes = axes_with(settings);
      check_options(axes, std::vector<Axes>{axes});
    } catch (const UsageError& error) {
      return std::string(error.what()) + " | " + error.hint();
    }
    return std::string();
  };
  EXPECT_EQ(refusal({}), "");
  EXPECT_EQ(refusal({{"dtype", "bf16,e4m3"}, {"option", "scale=head,accum=fast"}}), "");
  EXPECT_EQ(refusal({{"fp8-scale", "head"}}),
            "option scale is of e4m3 problems, and this run has none | add --dtype e4m3, or leave "
            "the option out");
  EXPECT_EQ(refusal({{"kernel", "cudnn"}, {"dtype", "e4m3"}, {"fp8-max", "lazy"}}), "");
  EXPECT_EQ(refusal({{"kernel", "cudnn"}, {"dtype", "e4m3"}, {"fp8-max", "lazy,true"}}),
            "no kernel of this run has an option 'max' | known: scale, hadamard, accum, out");
  EXPECT_EQ(refusal({{"dtype", "e4m3"}, {"option", "scal=head"}}),
            "no kernel of this run has an option 'scal' | did you mean 'scale'?");
  EXPECT_EQ(refusal({{"kernel", "fa2"}, {"option", "splits=2"}}),
            "no kernel of this run has an option 'splits' | fp8 has scale, hadamard, accum, max, "
            "smooth, out; cudnn has scale, hadamard, accum, out");
  // Another grid's problems may be of the type.
  const std::vector<Axes> grids = {axes_with({{"kernel", "fp8"}, {"fp8-accum", "fast"}}),
                                   axes_with({{"dtype", "e4m3"}})};
  EXPECT_NO_THROW(check_options(grids[0], grids));
}

TEST(SelectKernels, HiddenOnesOnlyByName) {
  for (const Kernel* kernel : select_kernels({"all"}).kernels) EXPECT_FALSE(kernel->hidden);
  EXPECT_FALSE(select_kernels({}).named);
  EXPECT_FALSE(select_kernels({"^naive"}).named);
  const Selection one = select_kernels({"test_crash"});
  ASSERT_EQ(one.kernels.size(), 1U);
  EXPECT_EQ(one.kernels[0]->name, "test_crash");
  EXPECT_TRUE(one.named);
  try {
    select_kernels({"fa22"});
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "--kernel: unknown name 'fa22'");
    EXPECT_EQ(error.hint(), "did you mean 'fa2'?");
  }
}

}  // namespace
}  // namespace rooflash
