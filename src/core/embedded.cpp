#include "core/embedded.hpp"

namespace rooflash {

std::optional<std::string_view> embedded(std::string_view name) {
  for (const EmbeddedFile& file : embedded_files()) {
    if (file.name == name) return file.content;
  }
  return std::nullopt;
}

}  // namespace rooflash
