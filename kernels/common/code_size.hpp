// Size of a kernel's machine code. No call of the CUDA runtime or driver tells it, so it is read
// from the cubins (ELF files) that an executable carries.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace rooflash {

// By architecture (90) and mangled name: bytes of the section ".text.NAME", with its padding to 128
// bytes.
using CodeSizes = std::map<std::pair<int, std::string>, std::int64_t>;

// Of all cubins in `image`, a file with uncompressed fatbins. A cubin that is cut off or damaged
// gives none.
CodeSizes code_sizes(std::string_view image);

// Of the running executable, read once.
const CodeSizes& own_code_sizes();

// Of the kernel `symbol` in the running executable; empty where it carries none for `sm`.
std::optional<std::int64_t> own_code_bytes(const std::string& symbol, int sm);

}  // namespace rooflash
