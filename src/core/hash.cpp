#include "core/hash.hpp"

#include <cstdint>

namespace rooflash {

std::string hash_hex(std::string_view text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  }
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string hex(16, '0');
  for (std::size_t i = 16; i-- > 0; hash >>= 4U) hex[i] = kHex[hash & 15U];
  return hex;
}

}  // namespace rooflash
