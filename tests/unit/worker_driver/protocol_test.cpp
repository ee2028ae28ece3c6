#include "worker/protocol.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace rooflash {
namespace {

using Json = nlohmann::ordered_json;

CaseRequest sample_request() {
  CaseRequest request;
  request.index = 3;
  request.kernel = "fa2";
  request.problem.seqlen_q = 512;
  request.problem.mask.kind = MaskKind::causal;
  request.round = 2;
  request.seed = 0xffffffffffffffffULL;
  request.options = {"warm", "sustained", "none", "only", 3,       7,
                     0.25,   1.5,         0.125,  {},     1 << 16, true};
  return request;
}

TEST(Protocol, RequestSurvivesTheRoundTrip) {
  const Json json = to_json(sample_request());
  EXPECT_EQ(to_json(case_request_from_json(Json::parse(json.dump()))).dump(), json.dump());
  EXPECT_EQ(json["options"]["max_noise"], 0.25);
}

TEST(Protocol, ProfileRequestSurvivesTheRoundTrip) {
  const ProfileRequest request{sample_request(), {{"a.sum", "b.pct"}, {"c.max"}}};
  const Json json = to_json(request);
  const ProfileRequest back = profile_request_from_json(Json::parse(json.dump()));
  EXPECT_EQ(back.groups, request.groups);
  EXPECT_EQ(to_json(back).dump(), json.dump());
}

TEST(Protocol, ProfileRequestIsCheckedLikeACase) {
  const auto message = [](const char* pointer, const char* value) -> std::string {
    Json json = to_json(ProfileRequest{sample_request(), {{"a.sum"}}});
    json[Json::json_pointer(pointer)] = Json::parse(value);
    try {
      profile_request_from_json(json);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(message("/case/options/l2", "\"hot\""),
            "request.case.options.l2: \"hot\" is not one of cold, warm");
  EXPECT_EQ(message("/case/index", "-1"), "request.index: is negative");
  EXPECT_EQ(message("/groups/0", "[]"), "request.groups: a group without metrics");
  EXPECT_EQ(message("/groups/0/0", "7"),
            "request.groups[0][0]: expected a string, found an integer");
}

// Every figure and reason of a profile reaches the driver; a row that contradicts itself does not.
TEST(Protocol, CountedProfileSurvivesTheRoundTrip) {
  CountedProfile profile;
  Row& row = profile.row;
  row.kernel = "fa2";
  row.case_id = case_id(row.kernel, row.problem);
  row.device = "cuda:0";
  row.status = Status::ok;
  row.missing["time_us"] = "profiled, not timed";
  profile.chip = "GH100";
  profile.limits = {132, 64, 32, 65536, 233472, 1024};
  profile.groups = {{"ok", "", 2, {{"a.sum", 1.5}}, {{"b.pct", "CUPTI gave nan"}}},
                    {"busy", "another process", 0, {}, {}}};
  const Json json = Json::parse(to_json(profile).dump());
  const CountedProfile back = counted_profile_from_json(json, "reply");
  EXPECT_EQ(to_json(back).dump(), to_json(profile).dump());
  EXPECT_EQ(back.groups[0].values.at("a.sum"), 1.5);
  Json timeless = json;
  timeless["row"]["missing"] = Json::object();
  EXPECT_THROW(counted_profile_from_json(timeless, "reply"), UsageError);
  Json status = json;
  status["groups"][0]["status"] = "fine";
  EXPECT_THROW(counted_profile_from_json(status, "reply"), UsageError);
}

struct Fault {
  const char* pointer;
  const char* value;  // "" takes the key away
  const char* message;
};

class ProtocolFault : public testing::TestWithParam<Fault> {};

TEST_P(ProtocolFault, IsRefusedWithTheFieldsName) {
  const Fault& fault = GetParam();
  Json json = to_json(sample_request());
  const Json::json_pointer pointer(fault.pointer);
  if (*fault.value == '\0') {
    json[pointer.parent_pointer()].erase(pointer.back());
  } else {
    json[pointer] = Json::parse(fault.value);
  }
  try {
    case_request_from_json(json);
    FAIL() << "accepted";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), fault.message);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Faults, ProtocolFault,
    testing::Values(
        Fault{"/kernel", "", "request.kernel: missing"},
        Fault{"/index", "-1", "request.index: is negative"},
        Fault{"/round", "4294967296", "request.round: the integer is too large"},
        Fault{"/problem/batch", "\"1\"",
              "request.problem.batch: expected an integer, found a string"},
        Fault{"/problem/seqlen_kv", "0", "request.problem: seqlen_kv 0 is not positive"},
        Fault{"/options/l2", "\"hot\"", "request.options.l2: \"hot\" is not one of cold, warm"},
        Fault{"/options/min_samples", "0", "request.options.min_samples: must be positive"},
        Fault{"/options/max_samples", "2", "request.options.max_samples: is below min_samples"},
        Fault{"/options/warmup_s", "-0.1",
              "request.options: max_noise, max_time_s, warmup_s or sram_bytes is negative"},
        Fault{"/options/warmup_launches", "0", "request.options.warmup_launches: must be positive"},
        Fault{"/options/warmup_launches", "7",
              "request.options: warmup_s and warmup_launches exclude each other"},
        Fault{"/options", "[]", "request.options: expected an object, found an array"}));

}  // namespace
}  // namespace rooflash
