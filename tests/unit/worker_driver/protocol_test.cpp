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
  request.options = {"warm", "sustained", "none", "only", 3, 7, 0.25, 1.5, 0.125, 1 << 16};
  return request;
}

TEST(Protocol, RequestSurvivesTheRoundTrip) {
  const Json json = to_json(sample_request());
  EXPECT_EQ(to_json(case_request_from_json(Json::parse(json.dump()))).dump(), json.dump());
  EXPECT_EQ(json["options"]["max_noise"], 0.25);
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
        Fault{"/options", "[]", "request.options: expected an object, found an array"}));

}  // namespace
}  // namespace rooflash
