#include "core/problem.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace rooflash {
namespace {

Problem shape(std::int64_t sq, std::int64_t sk, Mask mask) {
  Problem p;
  p.seqlen_q = sq;
  p.seqlen_kv = sk;
  p.mask = mask;
  return p;
}

// The definition of visibility, key by key.
bool is_visible(const Problem& p, std::int64_t i, std::int64_t j) {
  const std::int64_t shift = p.mask.align == Align::bottom_right ? p.seqlen_kv - p.seqlen_q : 0;
  const std::int64_t offset = j - (i + shift);
  switch (p.mask.kind) {
    case MaskKind::none:
      return true;
    case MaskKind::causal:
      return offset <= 0;
    case MaskKind::window:
      return (p.mask.left == kUnbounded || offset >= -p.mask.left) &&
             (p.mask.right == kUnbounded || offset <= p.mask.right);
  }
  return false;
}

TEST(VisibleKeys, AgreesWithTheDefinitionKeyByKey) {
  std::vector<Mask> masks = {{}};
  for (const Align align : {Align::bottom_right, Align::top_left}) {
    masks.push_back({MaskKind::causal, align});
    for (const std::int64_t left : {-1, 0, 1, 3, 100}) {
      for (const std::int64_t right : {-1, 0, 2, 100}) {
        masks.push_back({MaskKind::window, align, left, right});
      }
    }
  }
  for (const Mask& mask : masks) {
    for (std::int64_t sq = 1; sq <= 9; ++sq) {
      for (std::int64_t sk = 1; sk <= 9; ++sk) {
        const Problem p = shape(sq, sk, mask);
        for (std::int64_t i = 0; i < sq; ++i) {
          const KeyRange range = visible_keys(p, i);
          ASSERT_LE(range.begin, range.end);
          for (std::int64_t j = 0; j < sk; ++j) {
            ASSERT_EQ(j >= range.begin && j < range.end, is_visible(p, i, j))
                << case_id("x", p) << " row " << i << " key " << j;
          }
        }
      }
    }
  }
}

TEST(CaseId, NamesOnlyWhatDiffersFromTheDefault) {
  Problem p = shape(8192, 8192, {MaskKind::causal});
  p.batch = 4;
  p.heads_q = p.heads_kv = 16;
  p.headdim = p.headdim_v = 128;
  EXPECT_EQ(case_id("fa2", p), "fa2/fwd/bf16/b4.h16.kv16/q8192.k8192/d128/causal");
  p.mask = {MaskKind::window, Align::top_left, 255, 0};
  p.headdim = 192;
  p.pass = Pass::bwd;
  EXPECT_EQ(case_id("fa2", p), "fa2/bwd/bf16/b4.h16.kv16/q8192.k8192/d192-128/win255.0-tl");
  p.mask = {MaskKind::window, Align::bottom_right, kUnbounded, 7};
  p.distribution = Distribution::outlier;
  p.options = {{"scale", "block"}};
  EXPECT_EQ(case_id("fa2", p),
            "fa2/bwd/bf16/b4.h16.kv16/q8192.k8192/d192-128/wininf.7/outlier/scale=block");
}

TEST(DefinitionHash, ChangesWithEveryField) {
  const Problem base = shape(64, 64, {});
  std::vector<Problem> variants(11, base);
  variants[1].pass = Pass::bwd;
  variants[2].dtype = DType::fp16;
  variants[3].batch = 2;
  variants[4].heads_q = 2;
  variants[5].seqlen_q = 65;
  variants[6].seqlen_kv = 65;
  variants[7].headdim = 65;
  variants[8].headdim_v = 65;
  variants[9].mask.kind = MaskKind::causal;
  variants[10].distribution = Distribution::large;
  std::vector<std::string> hashes = {definition_hash("other", base)};
  for (const Problem& p : variants) hashes.push_back(definition_hash("fa2", p));
  for (const std::string& hash : hashes) {
    EXPECT_EQ(hash.size(), 16U);
    EXPECT_EQ(hash.find_first_not_of("0123456789abcdef"), std::string::npos);
  }
  std::sort(hashes.begin(), hashes.end());
  EXPECT_EQ(std::adjacent_find(hashes.begin(), hashes.end()), hashes.end());
}

TEST(InvalidReason, SaysWhatIsWrong) {
  Problem p = shape(64, 64, {});
  EXPECT_EQ(invalid_reason(p), "");
  p.heads_q = 33;
  p.heads_kv = 2;
  EXPECT_EQ(invalid_reason(p), "heads_q 33 is not a multiple of heads_kv 2");
  p = shape(0, 64, {});
  EXPECT_EQ(invalid_reason(p), "seqlen_q 0 is not positive");
  p = shape(64, 64, {MaskKind::window, Align::bottom_right, -2, 0});
  EXPECT_NE(invalid_reason(p), "");
  p = shape(std::int64_t{1} << 31, std::int64_t{1} << 31, {});
  EXPECT_EQ(invalid_reason(p), "the shape overflows 64-bit counts");
  p = shape(1, std::int64_t{1} << 40, {});
  EXPECT_EQ(invalid_reason(p), "");
}

TEST(Elements, GqaSharesKeysAndValues) {
  Problem p;
  p.batch = 2;
  p.heads_q = 8;
  p.heads_kv = 2;
  p.seqlen_q = 3;
  p.seqlen_kv = 5;
  p.headdim = 7;
  p.headdim_v = 11;
  p.dtype = DType::e4m3;
  EXPECT_EQ(q_elements(p), 2 * 3 * 8 * 7);
  EXPECT_EQ(k_elements(p), 2 * 5 * 2 * 7);
  EXPECT_EQ(v_elements(p), 2 * 5 * 2 * 11);
  EXPECT_EQ(o_elements(p), 2 * 3 * 8 * 11);
  EXPECT_EQ(lse_elements(p), 2 * 8 * 3);
  EXPECT_EQ(tensor_bytes(p), 336 + 140 + 220 + 528 * 2 + 48 * 4 + (16 + 4 * 3) * 4);
}

TEST(EnumNames, RoundTrip) {
  for (const Pass value : {Pass::fwd, Pass::bwd}) EXPECT_EQ(parse_pass(to_string(value)), value);
  for (const MaskKind value : {MaskKind::none, MaskKind::causal, MaskKind::window}) {
    EXPECT_EQ(parse_mask_kind(to_string(value)), value);
  }
  for (const Align value : {Align::bottom_right, Align::top_left}) {
    EXPECT_EQ(parse_align(to_string(value)), value);
  }
  for (const char* name :
       {"normal", "outlier", "large", "negative", "constant", "biased", "biased-0.3", "peaky"}) {
    const auto value = parse_distribution(name);
    ASSERT_TRUE(value.has_value()) << name;
    EXPECT_EQ(to_string(*value), name);
  }
  EXPECT_EQ(parse_distribution("gaussian"), std::nullopt);
}

}  // namespace
}  // namespace rooflash
