#include "sweep/suite.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <utility>

#include "core/error.hpp"

namespace rooflash {
namespace {

std::string error_of(std::string_view text) {
  try {
    parse_suite(text, "mine.json", "mine");
  } catch (const UsageError& error) {
    return std::string(error.what()) + " | " + error.hint();
  }
  return "no error";
}

std::size_t problem_count(const Suite& suite) {
  std::size_t count = 0;
  for (const Axes& axes : suite.grids) count += expand(axes).size();
  return count;
}

TEST(Suites, BuiltInOnesAreListedAndLoad) {
  EXPECT_EQ(suite_names(),
            (std::vector<std::string>{"counters", "fa1-paper", "fp8-accuracy", "headdim",
                                      "held-out", "held-out-2", "held-out-3", "huge", "llm-prefill",
                                      "peers-fp8", "peers-fwd", "quickstart", "seqlen", "smoke",
                                      "sustained", "verify"}));
  for (const std::string& name : suite_names()) {
    const Suite suite = load_suite(name);
    EXPECT_EQ(suite.name, name);
    EXPECT_FALSE(suite.summary.empty());
    EXPECT_GT(problem_count(suite), 0U) << name;
  }
}

TEST(Suites, QuickstartIsTheStatedGrid) {
  const Suite suite = load_suite("quickstart");
  ASSERT_EQ(suite.grids.size(), 1U);
  EXPECT_EQ(suite.grids[0].kernels, (std::vector<std::string>{"naive", "fa2"}));
  const std::vector<Problem> problems = expand(suite.grids[0]);
  EXPECT_EQ(problems.size(), 2U * 2 * 6 * 2);  // dtype, head dim, seqlen, mask
  for (const Problem& p : problems) {
    EXPECT_EQ(p.batch * p.seqlen_kv, 16384);
    EXPECT_EQ(p.heads_q * p.headdim, 2048);
  }
}

TEST(Suites, PeersGridHasAllHeadDimsAndKernels) {
  const Suite suite = load_suite("peers-fwd");
  EXPECT_EQ(problem_count(suite), 3U * 6 * 2);
  EXPECT_EQ(suite.grids[0].kernels, (std::vector<std::string>{"all"}));
}

// Each corner that a kernel may get wrong by itself.
TEST(Suites, VerifyHasTheCorners) {
  std::set<DType> dtypes;
  std::set<std::int64_t> headdims;
  std::set<Distribution> distributions;
  std::set<std::pair<MaskKind, Align>> masks;
  bool fewer_keys = false;
  bool more_keys = false;
  bool grouped = false;
  bool shared_by_all = false;
  bool many_heads = false;
  bool ragged_values = false;
  for (const Axes& axes : load_suite("verify").grids) {
    for (const Problem& p : expand(axes)) {
      dtypes.insert(p.dtype);
      headdims.insert(p.headdim);
      distributions.insert(p.distribution);
      masks.emplace(p.mask.kind, p.mask.align);
      fewer_keys |= p.seqlen_kv < p.seqlen_q;
      more_keys |= p.seqlen_kv > p.seqlen_q;
      grouped |= p.heads_kv > 1 && p.heads_kv < p.heads_q;
      shared_by_all |= p.heads_kv == 1 && p.heads_q > 1;
      many_heads |= p.batch * p.heads_q > 65535;
      ragged_values |= p.headdim != p.headdim_v;
    }
  }
  EXPECT_EQ(dtypes, (std::set{DType::fp32, DType::fp16, DType::bf16, DType::e4m3}));
  EXPECT_EQ(headdims, (std::set<std::int64_t>{8, 40, 48, 64, 96, 128, 192, 256}));
  EXPECT_EQ(distributions.size(), 8U);
  EXPECT_EQ(masks.size(), 5U);  // none, and causal and window by two alignments
  EXPECT_TRUE(fewer_keys && more_keys && grouped && shared_by_all && many_heads && ragged_values);
}

// Both ways to sum up over the same long rows, and every combination that the paper's table has.
TEST(Suites, Fp8AccuracyHasWhatItCompares) {
  std::map<std::string, std::set<std::int64_t>> biased_keys;
  std::set<std::string> outlier_options;
  for (const Axes& axes : load_suite("fp8-accuracy").grids) {
    for (const Problem& p : expand(axes)) {
      EXPECT_EQ(p.dtype, DType::e4m3);
      const std::string id = case_id("", p);
      const std::string options = id.substr(id.find("/full") + 5);
      if (options.starts_with("/biased")) biased_keys[options].insert(p.seqlen_kv);
      if (options.starts_with("/outlier")) outlier_options.insert(options);
    }
  }
  // Both means, by both ways to sum up, smoothed or not, and by cuDNN.
  EXPECT_EQ(biased_keys.size(), 2U * (2 * 2 + 1));
  for (const auto& [options, keys] : biased_keys) {
    EXPECT_EQ(keys, (std::set<std::int64_t>{512, 2048, 16384, 131072})) << options;
  }
  EXPECT_EQ(outlier_options,
            (std::set<std::string>{
                "/outlier", "/outlier/hadamard=on", "/outlier/hadamard=on/scale=tensor",
                "/outlier/scale=tensor", "/outlier/max=true", "/outlier/hadamard=on/max=true",
                "/outlier/hadamard=on/max=true/scale=tensor", "/outlier/max=true/scale=tensor"}));
}

// Neither heads of a batch nor lengths that a constant or a rule of the model was found on.
TEST(Suites, LaterHeldOutsAreNewToTheModel) {
  using Pair = std::pair<std::int64_t, std::int64_t>;
  std::set<Pair> heads;
  std::set<Pair> lengths;
  const auto for_each_problem = [](const char* suite, const auto& use) {
    for (const Axes& axes : load_suite(suite).grids) {
      for (const Problem& p : expand(axes)) use(p);
    }
  };
  const auto keep = [&](const Problem& p) {
    heads.emplace(p.batch, p.heads_q);
    lengths.emplace(p.seqlen_q, p.seqlen_kv);
  };
  for (const char* name : {"quickstart", "counters", "held-out", "peers-fwd"}) {
    for_each_problem(name, keep);
  }
  for (const char* name : {"held-out-2", "held-out-3"}) {
    for_each_problem(name, [&](const Problem& p) {
      EXPECT_FALSE(heads.contains({p.batch, p.heads_q})) << case_id("", p);
      EXPECT_FALSE(lengths.contains({p.seqlen_q, p.seqlen_kv})) << case_id("", p);
      EXPECT_LT(p.batch * p.heads_q * p.seqlen_q * p.seqlen_kv * size_bytes(p.dtype), 60e9);
    });
    for_each_problem(name, keep);
  }
}

TEST(Suites, SmokeIsSmallAndHasTheCorners) {
  bool odd = false;
  bool gqa = false;
  bool unequal = false;
  for (const Axes& axes : load_suite("smoke").grids) {
    for (const Problem& p : expand(axes)) {
      odd = odd || p.seqlen_kv % 2 == 1;
      gqa = gqa || p.heads_q != p.heads_kv;
      unequal = unequal || p.seqlen_q != p.seqlen_kv;
      EXPECT_LE(p.batch * p.heads_q * p.seqlen_q * p.seqlen_kv, 1 << 20);
    }
  }
  EXPECT_TRUE(odd && gqa && unequal);
}

TEST(ParseSuite, ValuesMayBeTextNumbersBooleansOrArrays) {
  const Suite suite = parse_suite(
      R"({"summary": "s", "grids": [{"kernel": ["fa2", "^naive"], "seqlen": ["1k:2k:x2", 64],
          "headdim": 64, "causal": true, "total-tokens": "16k"}]})",
      "mine.json", "mine");
  const Axes& axes = suite.grids.at(0);
  EXPECT_EQ(axes.kernels, (std::vector<std::string>{"fa2", "^naive"}));
  EXPECT_EQ(axes.seqlens_kv, (std::vector<std::int64_t>{1024, 2048, 64}));
  EXPECT_EQ(axes.headdims, (std::vector<Headdim>{{64, 64}}));
  EXPECT_EQ(axes.causal, std::vector<bool>{true});
}

TEST(ParseSuite, ErrorsHaveFileAndLine) {
  const std::string head = "{\"summary\": \"s\",\n\"grids\": [{\n";
  EXPECT_EQ(error_of(head + "\"seqlne\": 1}]}"),
            "mine.json:3: unknown key 'seqlne' | did you mean 'seqlen'?");
  EXPECT_EQ(error_of(head + "\"seqlen\": 0}]}"),
            "mine.json:3: seqlen: '0' is not positive | write a positive whole number, such as "
            "512, 4k (4096) or 1m");
  EXPECT_EQ(error_of(head + "\"seqlen\": 1.5}]}").rfind("mine.json:3: expected a string", 0), 0U);
  EXPECT_EQ(error_of(head + "\"seqlen\": null}]}").rfind("mine.json:3: expected a string", 0), 0U);
  EXPECT_EQ(error_of(head + "\"seqlen\": {}}]}").rfind("mine.json:3: expected a string", 0), 0U);
  EXPECT_EQ(error_of(head + "\"seqlen\": []}]}"), "mine.json:3: the array is empty | ");
  EXPECT_EQ(error_of(head + "\"seqlen\": [[1]]}]}"), "mine.json:3: an array within an array | ");
  EXPECT_EQ(error_of(head + "\"dtype\": true}]}").rfind("mine.json:3: dtype: unknown name", 0), 0U);
  EXPECT_EQ(error_of(head + "\"seqlen\": 1,\n\"seqlen\": 2}]}"),
            "mine.json:4: key 'seqlen' appears twice | ");
  EXPECT_EQ(error_of("{\"summary\": \"s\", \"grids\": [{}]}\ntrailing").rfind("mine.json:2:", 0),
            0U);
  EXPECT_EQ(error_of("{\"summary\": \"s\", \"grids\": []}"),
            "mine.json:1: a suite needs at least one grid | ");
  EXPECT_EQ(error_of("{\"grids\": [{}]}"), "mine.json:1: key 'summary' is missing | ");
  EXPECT_EQ(error_of("[]"), "mine.json:1: expected an object, found an array | ");
}

TEST(LoadSuite, UnknownNamesAndUnreadableFiles) {
  try {
    load_suite("quikstart");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "unknown suite 'quikstart'");
    EXPECT_EQ(error.hint().rfind("did you mean 'quickstart'?", 0), 0U);
  }
  EXPECT_THROW(load_suite("no/such.json"), UsageError);
  EXPECT_THROW(load_suite("./"), UsageError);  // a folder
  EXPECT_THROW(load_suite("gpus"), UsageError);
}

TEST(LoadSuite, ReadsAFile) {
  const std::filesystem::path path =
      std::filesystem::path(::testing::TempDir()) / "rooflash_suite_test.json";
  std::ofstream(path) << R"({"summary": "s", "grids": [{"seqlen": 64}]})";
  const Suite suite = load_suite(path.string());
  std::filesystem::remove(path);
  EXPECT_EQ(suite.name, "rooflash_suite_test");
  EXPECT_EQ(suite.grids.at(0).seqlens_kv, (std::vector<std::int64_t>{64}));
}

}  // namespace
}  // namespace rooflash
