#include "report/sha256.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace rooflash {
namespace {

std::string hex(std::string_view bytes) {
  std::string out;
  for (const std::uint8_t byte : sha256(bytes)) out += fmt::format("{:02x}", byte);
  return out;
}

std::string base64_of(std::string_view text) {
  return base64({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

// FIPS 180-4 example values.
TEST(Sha256, MatchesThePublishedVectors) {
  EXPECT_EQ(hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// RFC 4648 section 10.
TEST(Base64, MatchesThePublishedVectors) {
  EXPECT_EQ(base64_of(""), "");
  EXPECT_EQ(base64_of("f"), "Zg==");
  EXPECT_EQ(base64_of("fo"), "Zm8=");
  EXPECT_EQ(base64_of("foo"), "Zm9v");
  EXPECT_EQ(base64_of("foob"), "Zm9vYg==");
  EXPECT_EQ(base64_of("foobar"), "Zm9vYmFy");
}

}  // namespace
}  // namespace rooflash
