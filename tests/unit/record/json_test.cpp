#include "record/json.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "core/error.hpp"
#include "core/version.hpp"
#include "record/check.hpp"
#include "sample_record.hpp"

namespace rooflash {
namespace {

using Json = nlohmann::ordered_json;

TEST(RecordJson, EveryFieldSurvivesTheRoundTrip) {
  const Json written = to_json(sample_record());
  EXPECT_EQ(to_json(record_from_json(written, "x")).dump(), written.dump());
}

TEST(RecordJson, RowHasTheDocumentedShape) {
  const Json row = to_json(sample_row());
  EXPECT_EQ(row["case"],
            "fa2/fwd/bf16/b2.h16.kv4/q512.k1024/d128/win255.inf-tl/outlier/scale=block");
  EXPECT_EQ(row["cycles"].dump(), R"({"median":21000.0})");
  EXPECT_EQ(row["time_us"]["ci95"].dump(), "[11.5,12.5]");
  EXPECT_EQ(row["problem"]["window"].dump(), "[255,-1]");
  EXPECT_EQ(row["problem"]["align"], "top-left");
  EXPECT_EQ(row["clock_mhz"]["samples"].size(), 3U);
}

TEST(RecordJson, UnmeasuredIsNullAndNeverZero) {
  const Row unmeasured;
  const Json row = to_json(unmeasured);
  EXPECT_TRUE(row["time_us"].is_null());
  EXPECT_TRUE(row["clock_mhz"].is_null());
  EXPECT_TRUE(row["power_w"].is_null());
  EXPECT_TRUE(row["counters"]["hbm_read_bytes"].is_null());
  EXPECT_TRUE(row["cycles"]["median"].is_null());
  EXPECT_TRUE(row["problem"]["window"].is_null());
}

TEST(RecordJson, NotFiniteIsNull) {
  Row row = sample_row();
  row.power_w = std::numeric_limits<double>::quiet_NaN();
  row.derived.tflops = std::numeric_limits<double>::infinity();
  const Json json = to_json(row);
  EXPECT_TRUE(json["power_w"].is_null());
  EXPECT_TRUE(json["derived"]["tflops"].is_null());
}

TEST(RecordJson, LineIsCanonicalAndValidUtf8) {
  Row row = sample_row();
  row.reason = "bad \xff byte,\nnew line, caf\xc3\xa9 \"quoted\"";
  row.power_w = 0.1;
  row.model.flops = 9007199254740992.0;
  row.derived = {};  // those of other FLOPs
  row.energy.reset();
  const std::string line = to_json_line(row);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_NE(line.find("bad \xef\xbf\xbd byte"), std::string::npos);
  EXPECT_NE(line.find("caf\xc3\xa9"), std::string::npos);
  EXPECT_EQ(dump_line(parse_json(line, "line")), line);
  EXPECT_EQ(to_json_line(row_from_json(parse_json(line, "line"), "row")), line);
}

// As a report keeps them: fewer samples than n, which `missing` says.
TEST(RecordJson, ThinnedSamplesAreAcceptedWhereMissingSaysSo) {
  Record record = sample_record();
  TimeUs& time = *record.rows[0].time_us;
  time.n = 1000;
  EXPECT_THROW(record_from_json(to_json(record), "x"), UsageError);
  record.rows[0].missing["time_us.samples"] = "3 of 1000 samples kept in the report";
  time.median = time.ci95_high = 12.5;
  record.rows[0].derived = {};
  EXPECT_NO_THROW(record_from_json(to_json(record), "x"));
  time.median = time.ci95_high = 13.5;  // above the largest
  EXPECT_THROW(record_from_json(to_json(record), "x"), UsageError);
}

// A modelled row, and a row that was not reached in an interrupted run.
TEST(RecordJson, SimulatedAndUnreachedRowsAreAccepted) {
  Record record = sample_record();
  record.environment.devices.emplace_back().device = "sim:h200";
  Row& row = record.rows[0];
  row.device = "sim:h200";
  row.simulated = true;
  row.time_us = TimeUs{12, 12, 12, 12, 1, {12}, "cold", "burst", "model", "model"};
  row.clock_mhz.reset();
  row.trace.reset();
  EXPECT_NO_THROW(record_from_json(to_json(record), "x"));
  row.time_us->timer = "event";
  EXPECT_THROW(record_from_json(to_json(record), "x"), UsageError);
  record.rows[0] = record.rows[1];
  record.rows[0].round = 7;
  record.rows[0].status = Status::not_run;
  record.rows[0].reason = "stopped by SIGINT before this case";
  EXPECT_NO_THROW(record_from_json(to_json(record), "x"));
}

// Records of older versions have none, and reading them adds none.
TEST(RecordJson, TraceMayBeLeftOut) {
  Row row = sample_row();
  EXPECT_EQ(to_json(row)["trace"]["sample_start_us"].dump(), "[30.5,45.5,60.0]");
  row.trace.reset();
  const Json json = to_json(row);
  EXPECT_FALSE(json.contains("trace"));
  EXPECT_EQ(to_json(row_from_json(json, "row")).dump(), json.dump());
}

// The message of the error that `call` throws; "" where it throws none.
template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

Row quantized_row() {
  Row row = sample_row();
  row.problem.dtype = DType::e4m3;
  row.problem.options.clear();
  row.case_id = case_id(row.kernel, row.problem);
  row.quantize_us = TimeUs{4, 3, 5, 3, 3, {3, 5, 4}, "cold", "burst", "event", "ci"};
  row.time_with_quantize_us = 16;
  row.saturated_elements = 2;
  return row;
}

TEST(RecordJson, QuantisingStandsBesideTheTime) {
  const Row row = quantized_row();
  check_row(row, "row");
  const Json json = to_json(row);
  EXPECT_EQ(json["quantize_us"]["median"], 4);
  EXPECT_EQ(json["time_with_quantize_us"], 16);
  EXPECT_EQ(json["saturated_elements"], 2);
  EXPECT_EQ(to_json(row_from_json(json, "row")).dump(), json.dump());
  for (const char* key : {"quantize_us", "time_with_quantize_us", "saturated_elements"}) {
    EXPECT_FALSE(to_json(sample_row()).contains(key));
  }
}

TEST(RecordJson, QuantisingThatContradictsItselfIsRefused) {
  const auto fault = [](const std::function<void(Row&)>& edit) {
    Row row = quantized_row();
    edit(row);
    return error_of([&] { check_row(row, "row"); });
  };
  EXPECT_EQ(fault([](Row& row) {
              row.problem.dtype = DType::bf16;
              row.case_id = case_id(row.kernel, row.problem);
            }),
            "row.quantize_us: nothing is quantised for bf16");
  EXPECT_EQ(fault([](Row& row) { row.time_with_quantize_us = 17; }),
            "row.time_with_quantize_us: is not the sum of the two medians");
  EXPECT_EQ(fault([](Row& row) { row.quantize_us.reset(); }),
            "row.time_with_quantize_us: goes with quantize_us, and one of the two is missing");
  const auto untimed = [](Row& row) {
    row.quantize_us.reset();
    row.time_with_quantize_us.reset();
  };
  EXPECT_EQ(fault(untimed),
            "row.quantize_us: an ok e4m3 row without it, and missing gives no reason");
  EXPECT_EQ(fault([&](Row& row) {
              untimed(row);
              row.missing["quantize_us"] = "quantising was not timed";
            }),
            "");
  EXPECT_EQ(fault([](Row& row) { row.quantize_us->median = 3.5; }),
            "row.quantize_us.median: is not that of the samples");
  EXPECT_EQ(fault([](Row& row) { row.saturated_elements = -1; }),
            "row.saturated_elements: is negative");
  EXPECT_EQ(fault([](Row& row) { row.saturated_elements = std::int64_t{1} << 60; }),
            "row.saturated_elements: more than the inputs have");
  EXPECT_EQ(fault([](Row& row) { row.quantize_us->l2 = "warm"; }),
            "row.quantize_us: was not taken as time_us was: l2 or power differs");
}

TEST(RecordJson, ErrorsThatContradictTheVerdictAreRefused) {
  const auto fault = [](const std::function<void(VerifyResult&)>& edit) {
    Row row = sample_row();
    row.verify.status = "passed";
    row.verify.max_abs_err = 1e-3;
    row.verify.tolerance_max = 1e-3;
    row.verify.rms_err = 1e-4;
    row.verify.tolerance_rms = 2e-4;
    edit(row.verify);
    return error_of([&] { check_row(row, "row"); });
  };
  EXPECT_EQ(fault([](VerifyResult&) {}), "");
  EXPECT_EQ(fault([](VerifyResult& verify) { verify.max_abs_err = 5; }),
            "row.verify.status: passed, with an error above its tolerance");
  EXPECT_EQ(fault([](VerifyResult& verify) { verify.rms_err = 3e-4; }),
            "row.verify.status: passed, with an error above its tolerance");
  EXPECT_EQ(fault([](VerifyResult& verify) { verify.unquantized_rms_err = -1; }),
            "row.verify.unquantized_rms_err: is negative");
}

TEST(RecordJson, UnknownKeysAreIgnored) {
  Json json = to_json(sample_record());
  const std::string before = json.dump();
  json["later"] = 1;
  json["rows"][0]["time_us"]["later"] = {1, 2};
  EXPECT_EQ(to_json(record_from_json(json, "x")).dump(), before);
}

struct Fault {
  const char* pointer;  // what is replaced in the sample record, ...
  const char* value;    // ... by this JSON; "" takes the key away
  const char* message;
};

class RecordFault : public testing::TestWithParam<Fault> {};

TEST_P(RecordFault, IsRefusedWithItsPlace) {
  const Fault& fault = GetParam();
  Json json = to_json(sample_record());
  const Json::json_pointer pointer(fault.pointer);
  if (*fault.value == '\0') {
    json[pointer.parent_pointer()].erase(pointer.back());
  } else {
    json[pointer] = Json::parse(fault.value);
  }
  EXPECT_EQ(error_of([&] { record_from_json(json, "r.json"); }), fault.message);
}

INSTANTIATE_TEST_SUITE_P(
    Shape, RecordFault,
    testing::Values(
        Fault{"/rows/0/time_us/median", "\"12\"",
              "r.json: rows[0].time_us.median: expected a number, found a string"},
        Fault{"/rows/1/kernel", "", "r.json: rows[1].kernel: missing"},
        Fault{"/suite", "", "r.json: suite: missing"},
        Fault{"/rows", "{}", "r.json: rows: expected an array, found an object"},
        Fault{"/rows/1", "null", "r.json: rows[1]: expected an object, found null"},
        Fault{"/rows/0/status", "\"fine\"",
              "r.json: rows[0].status: \"fine\" is not one of ok, unsupported, wrong, failed, oom, "
              "crashed, timeout, not_run"},
        Fault{"/rows/0/time_us/l2", "\"hot\"",
              "r.json: rows[0].time_us.l2: \"hot\" is not one of cold, warm"},
        Fault{"/rows/0/time_us/ci95", "[1]",
              "r.json: rows[0].time_us.ci95: expected 2 elements, found 1"},
        Fault{"/rows/0/time_us/samples/1", "null",
              "r.json: rows[0].time_us.samples[1]: expected a number, found null"},
        Fault{"/rows/0/problem/batch", "2.5",
              "r.json: rows[0].problem.batch: expected an integer, found a number with a fraction"},
        Fault{"/rows/0/model/pairs", "18446744073709551615",
              "r.json: rows[0].model.pairs: the integer is too large"},
        Fault{"/seed", "-1", "r.json: seed: the integer is negative"},
        Fault{"/tool/dirty", "0", "r.json: tool.dirty: expected true or false, found an integer"},
        Fault{"/schema", "2", "r.json: schema 2 is not one this version reads (1)"}));

INSTANTIATE_TEST_SUITE_P(
    Contradiction, RecordFault,
    testing::Values(
        Fault{"/rows/1/time_us",
              R"({"median":1.0,"ci95":[1,1],"min":1,"n":1,"samples":[1],"l2":"cold",
                  "power":"burst","timer":"event","stopped_by":"ci"})",
              "r.json: rows[1].time_us: a time on a row whose status is unsupported"},
        Fault{"/rows/0/time_us", "null",
              "r.json: rows[0].time_us: an ok row without a time, and missing gives no reason"},
        Fault{"/rows/0/time_us/n", "4", "r.json: rows[0].time_us.n: 4, but there are 3 samples"},
        Fault{"/rows/0/time_us/samples/0", "0",
              "r.json: rows[0].time_us.samples: a time that is not positive"},
        Fault{"/rows/0/time_us/min", "10.5",
              "r.json: rows[0].time_us.min: is not that of the samples"},
        Fault{"/rows/0/time_us/median", "12.001",
              "r.json: rows[0].time_us.median: is not that of the samples"},
        Fault{"/rows/0/time_us/timer", "\"model\"",
              "r.json: rows[0].time_us.timer: model contradicts the device \"cuda:0\""},
        Fault{"/rows/0/case", "\"fa2/other\"",
              "r.json: rows[0].case: \"fa2/other\", but kernel and problem are those of "
              "\"fa2/fwd/bf16/b2.h16.kv4/q512.k1024/d128/win255.inf-tl/outlier/scale=block\""},
        Fault{"/rows/0/kernel", "\"naive\"",
              "r.json: rows[0].case: "
              "\"fa2/fwd/bf16/b2.h16.kv4/q512.k1024/d128/win255.inf-tl/outlier/scale=block\", but "
              "kernel and problem are those of "
              "\"naive/fwd/bf16/b2.h16.kv4/q512.k1024/d128/win255.inf-tl/outlier/scale=block\""},
        Fault{"/rows/0/derived/tflops", "-42.5", "r.json: rows[0].derived.tflops: is negative"},
        Fault{"/rows/0/derived/tflops", "42.6",
              "r.json: rows[0].derived.tflops: is not what the row's figures give"},
        Fault{"/rows/0/derived/hardware_tflops", "51",
              "r.json: rows[0].derived.hardware_tflops: is not what the row's figures give"},
        Fault{"/rows/0/derived/hbm_gbps", "101",
              "r.json: rows[0].derived.hbm_gbps: is not what the row's figures give"},
        Fault{"/rows/0/derived/intensity_flop_per_byte", "426",
              "r.json: rows[0].derived.intensity_flop_per_byte: is not what the row's figures "
              "give"},
        Fault{"/rows/0/derived/roof_pct", "-1", "r.json: rows[0].derived.roof_pct: is negative"},
        Fault{"/rows/1/derived/tflops", "1",
              "r.json: rows[1].derived.tflops: a rate on a row without a time"},
        Fault{"/environment/devices", "[]",
              "r.json: rows[0].device: \"cuda:0\" is not among environment.devices"},
        Fault{"/rows/0/time_us/ci95/0", "12.25",
              "r.json: rows[0].time_us.ci95: does not enclose the median"},
        Fault{"/rows/0/clock_mhz/samples", "[1700]",
              "r.json: rows[0].clock_mhz.samples: not as many as the time samples"},
        Fault{"/rows/0/model/predicted_hbm_bytes", "-1",
              "r.json: rows[0].model.predicted_hbm_bytes: is negative"},
        Fault{"/rows/0/memory/peak_bytes", "-1", "r.json: rows[0].memory.peak_bytes: is negative"},
        Fault{"/rows/0/problem/heads_kv", "5",
              "r.json: rows[0].problem: heads_q 16 is not a multiple of heads_kv 5"},
        Fault{"/rows/0/problem/window", "null",
              "r.json: rows[0].problem.window: set if and only if mask is \"window\""},
        Fault{"/rows/0/counters/tensor_ops", "null",
              "r.json: rows[0].counters.tensor_ops: null though counters.status is ok, and missing "
              "gives no reason"},
        Fault{"/rows/1/counters/tensor_ops", "1",
              "r.json: rows[1].counters.tensor_ops: a value though counters.status is "
              "not_requested"},
        Fault{"/rows/0/verify/status", "\"failed\"",
              "r.json: rows[0].verify.status: failed verification on a row whose status is ok"},
        Fault{"/rows/1/reason", "\"\"",
              "r.json: rows[1].reason: is empty on a row whose status is unsupported"},
        Fault{"/rows/0/trace/phases/1/start_us", "20",
              "r.json: rows[0].trace.phases: a phase begins before the one before it ends, or ends "
              "before it begins"},
        Fault{"/rows/0/trace/phases/1/end_us", "20",
              "r.json: rows[0].trace.phases: a phase begins before the one before it ends, or ends "
              "before it begins"},
        Fault{"/rows/0/trace/sample_start_us", "[1, 2]",
              "r.json: rows[0].trace.sample_start_us: not as many as the time samples"},
        Fault{"/rows/0/trace/sample_start_us", "[1, 3, 2]",
              "r.json: rows[0].trace.sample_start_us: are not in order"},
        Fault{"/rows/0/trace/start_unix_us", "-1",
              "r.json: rows[0].trace.start_unix_us: is negative"},
        Fault{"/rows/0/trace/sample_start_us/0", "-1",
              "r.json: rows[0].trace.sample_start_us: is negative"},
        Fault{"/rows/0/trace/power_w/0/value", "-1", "r.json: rows[0].trace.power_w: is negative"},
        Fault{"/rows/0/simulated", "true",
              "r.json: rows[0].simulated: contradicts the device \"cuda:0\""},
        Fault{"/rows/1/round", "1",
              "r.json: rows[1].case: "
              "\"fa2/fwd/bf16/b2.h16.kv4/q512.k1024/d128/win255.inf-tl/outlier/scale=block\" on "
              "cuda:0, round 1, stands twice"}));

TEST(ParseJson, SyntaxErrorsNameLineAndColumn) {
  const auto error = [](const char* text) { return error_of([&] { parse_json(text, "r.json"); }); };
  EXPECT_EQ(error("{\n  \"a\": NaN\n}"), "r.json: not valid JSON at line 2, column 8");
  EXPECT_EQ(error("[Infinity]"), "r.json: not valid JSON at line 1, column 2");
  EXPECT_EQ(error("{\"a\": [1, 2"),
            "r.json: not valid JSON at line 1, column 12: the text ends too early");
  EXPECT_EQ(error(""), "r.json: not valid JSON at line 1, column 1: the text ends too early");
  EXPECT_EQ(error("{} {}"), "r.json: not valid JSON at line 1, column 4");
  EXPECT_EQ(error("[1e999]"),
            "r.json: a number is outside the range of a double at line 1, column 6");
}

TEST(ParseJson, RefusesAKeyTwice) {
  EXPECT_EQ(error_of([] { parse_json(R"({"a": {"b": 1}, "c": [{"b": 1, "b": 2}]})", "r.json"); }),
            "r.json: the key \"b\" stands twice in one object");
  EXPECT_EQ(error_of([] { parse_json(R"([{"b": 1}, {"b": 2}])", "r.json"); }), "");
}

}  // namespace
}  // namespace rooflash
