#include "report/pack.hpp"

#include <zlib.h>

#include <array>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "report/sha256.hpp"

namespace rooflash {
namespace {

// Level 6 takes twice the time for a tenth less on records.
constexpr int kLevel = 4;

std::vector<std::uint8_t> from_base64(std::string_view text) {
  std::vector<std::uint8_t> bytes;
  std::uint32_t group = 0;
  int bits = 0;
  while (text.ends_with('=')) text.remove_suffix(1);
  for (const char c : text) {
    const std::size_t digit =
        std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
            .find(c);
    if (digit == std::string_view::npos) throw std::invalid_argument("not base64");
    group = group << 6U | static_cast<std::uint32_t>(digit);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes.push_back(static_cast<std::uint8_t>(group >> bits & 0xffU));
    }
  }
  return bytes;
}

}  // namespace

std::string packed(std::string_view bytes) {
  uLongf size = compressBound(bytes.size());
  std::vector<std::uint8_t> stream(size);
  if (compress2(stream.data(), &size, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(),
                kLevel) != Z_OK) {
    throw std::bad_alloc();
  }
  return base64(std::span(stream).first(size));
}

std::string unpacked(std::string_view text) {
  const std::vector<std::uint8_t> stream = from_base64(text);
  std::string bytes;
  z_stream state{};
  state.next_in = const_cast<Bytef*>(stream.data());  // zlib does not write there
  state.avail_in = static_cast<uInt>(stream.size());
  if (inflateInit(&state) != Z_OK) throw std::bad_alloc();
  std::array<char, 1 << 16> part{};
  int result = Z_OK;
  while (result == Z_OK) {
    state.next_out = reinterpret_cast<Bytef*>(part.data());
    state.avail_out = part.size();
    result = inflate(&state, Z_NO_FLUSH);
    bytes.append(part.data(), part.size() - state.avail_out);
  }
  inflateEnd(&state);
  if (result != Z_STREAM_END) throw std::invalid_argument("not a zlib stream");
  return bytes;
}

}  // namespace rooflash
