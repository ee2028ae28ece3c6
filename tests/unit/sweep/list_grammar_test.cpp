#include "sweep/list_grammar.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace rooflash {
namespace {

using Counts = std::vector<std::int64_t>;
using Names = std::vector<std::string>;

std::string error_of(std::string_view text) {
  try {
    parse_counts(text, "--seqlen");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ParseCounts, ListsAndRangesAreInclusive) {
  EXPECT_EQ(parse_counts("512,1k,8k", "--x"), (Counts{512, 1024, 8192}));
  EXPECT_EQ(parse_counts("512:16k:x2", "--x"), (Counts{512, 1024, 2048, 4096, 8192, 16384}));
  EXPECT_EQ(parse_counts("1k:8k:x4", "--x"), (Counts{1024, 4096}));  // 16k is past the end
  EXPECT_EQ(parse_counts("1k:4k:1k", "--x"), (Counts{1024, 2048, 3072, 4096}));
  EXPECT_EQ(parse_counts("1:6:2", "--x"), (Counts{1, 3, 5}));
  EXPECT_EQ(parse_counts("7:7:1", "--x"), (Counts{7}));
  EXPECT_EQ(parse_counts("64,1:3:1,5", "--x"), (Counts{64, 1, 2, 3, 5}));
}

TEST(ParseCounts, DuplicatesAreRemovedAndOrderKept) {
  EXPECT_EQ(parse_counts("1k,512,1024,512:2k:x2", "--x"), (Counts{1024, 512, 2048}));
}

TEST(ParseCounts, RangesEndWithoutOverflow) {
  EXPECT_EQ(parse_counts("1:9007199254740992:x1000000", "--x"),
            (Counts{1, 1000000, 1000000000000}));
  EXPECT_EQ(parse_counts("9007199254740991:9007199254740992:9007199254740992", "--x").size(), 1U);
}

TEST(ParseCounts, ErrorsNameTheFlagAndTheValue) {
  EXPECT_EQ(error_of("0"), "--seqlen: '0' is not positive");
  EXPECT_EQ(error_of("512,-1"), "--seqlen: '-1' is not positive");
  EXPECT_EQ(error_of("512,,1k"), "--seqlen: '512,,1k' has an empty element");
  EXPECT_EQ(error_of("512,"), "--seqlen: '512,' has an empty element");
  EXPECT_EQ(error_of(""), "--seqlen: '' has an empty element");
  EXPECT_EQ(error_of("99999999999999999999"), "--seqlen: '99999999999999999999' is too large");
  EXPECT_EQ(error_of("8k:1k:x2"), "--seqlen: range '8k:1k:x2' runs backwards");
  EXPECT_EQ(error_of("1k:8k:0"), "--seqlen: '0' is not positive");
  EXPECT_EQ(error_of("1k:8k:x0"), "--seqlen: '0' is not positive");
  EXPECT_EQ(error_of("1k:8k:x1"),
            "--seqlen: range '1k:8k:x1' never grows: the factor must be at least 2");
  EXPECT_EQ(error_of("1k:8k"), "--seqlen: range '1k:8k' does not have three parts");
  EXPECT_EQ(error_of("1:2:3:4"), "--seqlen: range '1:2:3:4' does not have three parts");
  EXPECT_EQ(error_of("1:1m:1"), "--seqlen: range '1:1m:1' has too many values");
  EXPECT_EQ(error_of("1k, 2k"), "--seqlen: ' 2k' is not a number");
}

TEST(SelectNames, PicksExcludesAndSuggests) {
  const Names known = {"naive", "fa1", "fa2"};
  EXPECT_EQ(select_names({}, known, "--k"), known);
  EXPECT_EQ(select_names({"all"}, known, "--k"), known);
  EXPECT_EQ(select_names({"fa2", "naive"}, known, "--k"), (Names{"fa2", "naive"}));
  EXPECT_EQ(select_names({"^naive"}, known, "--k"), (Names{"fa1", "fa2"}));
  EXPECT_EQ(select_names({"all", "^fa1"}, known, "--k"), (Names{"naive", "fa2"}));
  EXPECT_EQ(select_names({"fa2", "all"}, known, "--k"), (Names{"fa2", "naive", "fa1"}));
  EXPECT_THROW(select_names({"fa2", "^fa2"}, known, "--k"), UsageError);
  EXPECT_THROW(select_names({"^nope"}, known, "--k"), UsageError);
  try {
    select_names({"niave"}, known, "--kernel");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "--kernel: unknown name 'niave'");
    EXPECT_EQ(error.hint(), "did you mean 'naive'?");
  }
}

}  // namespace
}  // namespace rooflash
