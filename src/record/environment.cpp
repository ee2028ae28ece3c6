#include "record/environment.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "core/build_info.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/units.hpp"

namespace rooflash {
namespace {

bool is_path(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return false;
  if (slash == 0 || text.front() == '~' || text.front() == '.') return true;
  std::error_code error;
  return std::filesystem::is_directory(text.substr(0, slash), error);
}

std::string base_name(std::string_view text) {
  while (text.size() > 1 && text.back() == '/') text.remove_suffix(1);
  return std::string(text.substr(text.rfind('/') + 1));  // npos + 1 is 0
}

// Characters of `argument` before its value: "--flag=" or "-o", 0 for a plain argument.
std::size_t flag_length(std::string_view argument) {
  if (argument.starts_with("--")) {
    const std::size_t equals = argument.find('=');
    return equals == std::string_view::npos ? argument.size() : equals + 1;
  }
  return argument.size() > 2 && argument.front() == '-' ? 2 : 0;
}

std::time_t now() {
  const char* epoch = std::getenv("SOURCE_DATE_EPOCH");
  if (epoch == nullptr) return std::time(nullptr);
  const std::string_view text(epoch);
  std::int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  constexpr std::int64_t kYear10000 = 253402300800;
  if (error != std::errc() || end != text.data() + text.size() || seconds < 0 ||
      seconds >= kYear10000) {
    throw UsageError("SOURCE_DATE_EPOCH is \"" + printable(text, 60) + "\"",
                     "unset it, or set it to seconds since 1970");
  }
  return seconds;
}

}  // namespace

std::string identity_hash(std::string_view kind, std::string_view identity) {
  return hash_hex(std::string(kind) + ':' + std::string(identity));
}

std::vector<std::string> without_paths(const std::vector<std::string>& argv) {
  std::vector<std::string> kept;
  for (const std::string& argument : argv) {
    const std::size_t flag = flag_length(argument);
    const std::string_view value = std::string_view(argument).substr(flag);
    // The program itself may be named relative to a folder that is gone by now.
    const bool path = kept.empty() || is_path(value);
    kept.push_back(path ? argument.substr(0, flag) + base_name(value) : argument);
  }
  return kept;
}

std::string without_folders(std::string_view text) {
  const auto in_path = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::strchr("/._-+~@", c) != nullptr;
  };
  std::string kept;
  while (!text.empty()) {
    const bool starts = text.front() == '/' && (kept.empty() || !in_path(kept.back()));
    if (!starts) {
      kept += text.front();
      text.remove_prefix(1);
      continue;
    }
    const auto end = std::find_if_not(text.begin(), text.end(), in_path);
    const auto length = static_cast<std::size_t>(end - text.begin());
    kept += length == 1 ? "/" : base_name(text.substr(0, length));
    text.remove_prefix(length);
  }
  return kept;
}

std::string utc_date() {
  const std::time_t seconds = now();
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 32> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return {text.data(), length};
}

Environment host_environment(const std::vector<std::string>& argv) {
  Environment environment;
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) == 0) {
    environment.host_hash = identity_hash("host", host.data());
  }
  environment.argv = without_paths(argv);
  environment.date = utc_date();
  return environment;
}

Tool tool_info() {
  const BuildInfo& build = build_info();
  return {build.version, build.commit, build.dirty, build.build};
}

}  // namespace rooflash
