// SHA-256 (FIPS 180-4) and base64 (RFC 4648), for the hashes of the report's security policy.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace rooflash {

std::array<std::uint8_t, 32> sha256(std::string_view bytes);
std::string base64(std::span<const std::uint8_t> bytes);

}  // namespace rooflash
