// Data packed for a page: compressed, and in characters that mean nothing to HTML.
#pragma once

#include <string>
#include <string_view>

namespace rooflash {

// `bytes` as a zlib stream (RFC 1950) in base64. The same bytes and zlib give the same text. The
// page's script unpacks it with the browser's DecompressionStream("deflate").
std::string packed(std::string_view bytes);

// The bytes again. Throws std::invalid_argument where `text` is not what packed() returns.
std::string unpacked(std::string_view text);

}  // namespace rooflash
