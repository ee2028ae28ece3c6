#include "gate/baseline.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "core/error.hpp"
#include "fixture.hpp"
#include "gate/compare.hpp"
#include "gate/match.hpp"
#include "gate/rounds.hpp"
#include "record/json.hpp"
#include "record/writer.hpp"

namespace rooflash {
namespace {

using fixture::measured;
using fixture::record;

TEST(Baseline, NamesAreNoPaths) {
  for (const char* good : {"main", "v1.2_rc-3", "A"}) EXPECT_NO_THROW(require_baseline_name(good));
  for (const char* bad : {"", ".", "..", ".hidden", "a/b", "../x", "a b", "a\n", "\xC3\xA9"}) {
    EXPECT_THROW(require_baseline_name(bad), UsageError) << bad;
  }
  EXPECT_THROW(require_baseline_name(std::string(101, 'a')), UsageError);
}

TEST(Baseline, FileNamesComeFromClassAndSuite) {
  EXPECT_EQ(baseline_file("b", "main", "NVIDIA H200, 132 SMs, simulated", "quickstart").path,
            "b/main/nvidia-h200-132-sms-simulated/quickstart.json");
  EXPECT_EQ(file_name_of("../../etc/passwd"), "etc-passwd");
  EXPECT_EQ(file_name_of("<>/"), "unnamed");
}

// Clocks, temperature, free memory and the index change from run to run; the key does not.
TEST(Baseline, KeyOfTheSameCardIsTheSameTwice) {
  Record later = measured(1000);
  later.environment.devices[0].device = "cuda:4";
  later.environment.devices[0].memory_bytes = 12345;
  later.environment.devices[0].sm_clock_max_mhz = 1500;
  for (Row& one : later.rows) {
    one.device = "cuda:4";
    one.temperature_c = 80;
  }
  EXPECT_EQ(baseline_parts(measured(1000))[0].device_class, baseline_parts(later)[0].device_class);
  EXPECT_EQ(fingerprint(measured(1000)), fingerprint(later));
}

TEST(Baseline, FingerprintChangesWithWhatMustNotChange) {
  const std::string print = fingerprint(measured(1000));
  const auto changed = [&](auto change) {
    Record other = measured(1000);
    change(other);
    return fingerprint(other) != print;
  };
  EXPECT_TRUE(changed([](Record& r) { r.seed = 2; }));
  EXPECT_TRUE(changed([](Record& r) { r.suite = "other"; }));
  EXPECT_TRUE(changed([](Record& r) { r.rows[0].definition_hash = "other"; }));
  EXPECT_TRUE(changed([](Record& r) { r.rows[0].model.convention = "other"; }));
  EXPECT_TRUE(changed([](Record& r) { r.rows[0].gpu = "NVIDIA H100"; }));
  EXPECT_TRUE(changed([](Record& r) { r.rows[0].time_us->l2 = "warm"; }));
  EXPECT_FALSE(changed([](Record& r) { r.rows[0].time_us->median = 1; }));
}

TEST(Baseline, OneForEachClassOfDevice) {
  Record mixed = measured(1000);
  mixed.rows.push_back(fixture::row("fa2", 1024, 900, 0, fixture::kSimulated));
  const std::vector<BaselinePart> parts = baseline_parts(mixed);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].record.rows.size(), 7U);
  EXPECT_EQ(parts[0].record.environment.devices.size(), 1U);
  EXPECT_EQ(parts[1].record.rows.size(), 1U);
  EXPECT_EQ(parts[1].device_class, "NVIDIA H200, 132 SMs, simulated");
}

TEST(Baseline, KeepsThreeSamplesAndStaysAReadableRecord) {
  Record one = measured(1000, 1);
  TimeUs& time = *one.rows[0].time_us;
  time.samples = {9, 1, 5, 7, 3};
  time.n = 5;
  time.min = 1;
  time.median = 5;
  time.ci95_low = 3;
  time.ci95_high = 7;
  one.rows[0].trace = Trace{};
  one.rows[0].trace->sample_start_us = {1, 2, 3, 4, 5};
  one.rows[0].clock_mhz = Clock{1980.0, 1900.0, 2000.0, {1, 2, 3, 4, 5}};
  const Record part = baseline_parts(one)[0].record;
  EXPECT_EQ(part.rows[0].time_us->samples, (std::vector<double>{1, 5, 9}));
  EXPECT_EQ(part.rows[0].time_us->n, 5);
  const Record read = record_from_json(parse_json(record_text(part), "baseline"), "baseline");
  EXPECT_EQ(read.rows[0].time_us->median, 5);
  EXPECT_TRUE(read.rows[0].clock_mhz->samples.empty());
}

TEST(Baseline, HoldsQuantisingInThreeSamples) {
  Record one = fixture::quantized(1000, 200, 1);
  TimeUs& time = *one.rows[0].quantize_us;
  time.samples = {9, 1, 5, 7, 3};
  time.n = 5;
  time.min = 1;
  time.median = time.ci95_low = time.ci95_high = 5;
  one.rows[0].time_with_quantize_us = 1001 + 5;
  const std::string text = record_text(baseline_parts(one)[0].record);
  const Row read = record_from_json(parse_json(text, "baseline"), "baseline").rows[0];
  EXPECT_EQ(read.quantize_us->samples, (std::vector<double>{1, 5, 9}));
  EXPECT_EQ(read.quantize_us->n, 5);
  EXPECT_EQ(read.time_us->samples.size(), 1U);
  EXPECT_TRUE(read.missing.contains("quantize_us.samples"));
  EXPECT_FALSE(read.missing.contains("time_us.samples"));
}

TEST(Baseline, TheSameRoundsAreNotAddedTwice) {
  Record stored = measured(1000, 3);
  EXPECT_EQ(add_to_baseline(stored, measured(1000, 3)),
            "it holds these rounds already; measure new ones");
  EXPECT_EQ(stored.rows.size(), 3U);
  Record next = measured(1000, 3);
  next.rows[1].time_us->median = 1000.5;
  EXPECT_EQ(add_to_baseline(stored, next), "");
}

TEST(Baseline, PromotingAddsRoundsAndKeepsTheLastTen) {
  Record stored = measured(1000, 7);
  Record next = measured(900, 5);
  next.tool.commit = "new";
  next.rows[4].time_us->median = 901.5;
  EXPECT_EQ(add_to_baseline(stored, next), "");
  ASSERT_EQ(stored.rows.size(), 10U);
  EXPECT_EQ(stored.tool.commit, "new");
  std::set<int> numbers;
  for (const Row& one : stored.rows) numbers.insert(one.round);
  EXPECT_EQ(numbers, (std::set<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(stored.rows.back().round, 9);
  EXPECT_DOUBLE_EQ(stored.rows.back().time_us->median, 901.5);
}

// The same card under another index is another device of the record, and still one more round.
TEST(Baseline, PromotingFromAnotherIndexOfTheCard) {
  Record stored = measured(1000, 5);
  Record next = measured(1001, 5);
  next.environment.devices[0].device = "cuda:1";
  for (Row& one : next.rows) one.device = "cuda:1";
  EXPECT_EQ(add_to_baseline(stored, next), "");
  const Comparison comparison = compare(stored, measured(1000), {});
  ASSERT_EQ(comparison.cases.size(), 1U);
  EXPECT_EQ(comparison.cases[0].time->base_us.size(), 10U);
}

TEST(Baseline, PromotingWhatDoesNotFitChangesNothing) {
  Record stored = measured(1000);
  Record seed = measured(1000);
  seed.seed = 9;
  EXPECT_EQ(add_to_baseline(stored, seed), "other seed of the inputs: base 0, new 9");
  Record warm = measured(1000);
  for (Row& one : warm.rows) one.time_us->l2 = "warm";
  EXPECT_NE(add_to_baseline(stored, warm), "");
  EXPECT_EQ(stored.rows.size(), 7U);
}

TEST(Baseline, WrongUnverifiedOrPartialRecordsAreUnfit) {
  EXPECT_EQ(unfit_for_baseline(measured(1000)), "");
  Record bad = measured(1000);
  bad.rows[2].verify.status = "skipped";
  EXPECT_EQ(unfit_for_baseline(bad), bad.rows[2].case_id + ": not verified");
  bad = measured(1000);
  bad.complete = false;
  EXPECT_EQ(unfit_for_baseline(bad), "it is of an interrupted run");
  bad = measured(1000);
  bad.rows[0].status = Status::crashed;
  bad.rows[0].reason = "SIGSEGV";
  EXPECT_EQ(unfit_for_baseline(bad), bad.rows[0].case_id + ": crashed: SIGSEGV");
  EXPECT_EQ(unfit_for_baseline(record({})), "no row of it has a time");
}

TEST(Baseline, ListsWhatLiesThere) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "baselines";
  std::filesystem::remove_all(folder);
  EXPECT_TRUE(list_baselines(folder.string()).empty());
  for (const char* file : {"main/gpu-a/s.json", "main/gpu-b/s.json", "old/gpu-a/t.json",
                           "main/gpu-a/notes.txt", "main/stray.json", "main/gpu-a/deep/x.json"}) {
    std::filesystem::create_directories((folder / file).parent_path());
    std::ofstream(folder / file) << "{}";
  }
  const std::vector<BaselineFile> all = list_baselines(folder.string());
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].gpu, "gpu-a");
  EXPECT_EQ(all[2].name, "old");
  EXPECT_EQ(list_baselines(folder.string(), "main").size(), 2U);
}

TEST(Rounds, AddedOnesAreNumberedOn) {
  Record both = measured(1000, 2);
  add_rounds(both, measured(1000, 3), end_of_rounds(both));
  EXPECT_EQ(end_of_rounds(both), 5);
  EXPECT_EQ(both.rows.back().round, 4);
  EXPECT_EQ(both.environment.devices.size(), 2U);
}

}  // namespace
}  // namespace rooflash
