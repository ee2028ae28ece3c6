// Files embedded at build time: built-in suites, GPU specs, report script and style, D3.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace rooflash {

struct EmbeddedFile {
  std::string_view name;  // path in the repository ("suites/smoke.json"), or "d3.min.js"
  std::string_view content;
};

std::span<const EmbeddedFile> embedded_files();
std::optional<std::string_view> embedded(std::string_view name);

}  // namespace rooflash
