#include "sweep/suite.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/embedded.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "model/strict_json.hpp"
#include "model/suggest.hpp"

namespace rooflash {
namespace {

constexpr std::string_view kFolder = "suites/";
constexpr std::string_view kExtension = ".json";
constexpr std::string_view kGpuSpecs = "suites/gpus.json";  // lies beside the suites
constexpr std::size_t kMaxBytes = std::size_t{1024} * 1024;

// A value as the text that its flag would take.
std::string axis_text(const JsonNode& node) {
  using Kind = JsonNode::Kind;
  if (node.kind == Kind::string || node.kind == Kind::integer || node.kind == Kind::boolean) {
    return node.text;
  }
  if (node.kind != Kind::array) {
    node.fail("expected a string, a whole number, true or false, or an array of these");
  }
  if (node.items.empty()) node.fail("the array is empty");
  std::string text;
  for (const JsonNode& item : node.items) {
    if (item.kind == Kind::array) item.fail("an array within an array");
    text += (text.empty() ? "" : ",") + axis_text(item);
  }
  return text;
}

Axes parse_grid(const JsonNode& node) {
  node.allow_keys(axis_names());
  Axes axes;
  for (const auto& [key, value] : node.as_object()) {
    set_axis(axes, key, axis_text(value),
             fmt::format("{}:{}: {}", printable(value.file), value.line, key));
  }
  return axes;
}

std::string read_file(const std::string& path) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  // Not by its size: a pipe, as of `--suite <(...)`, has none.
  std::string text(kMaxBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (!in.is_open() || in.bad()) {
    throw UsageError(
        fmt::format("cannot read suite '{}': {}", printable(path), std::strerror(errno)));
  }
  if (text.size() > kMaxBytes) {
    throw UsageError(fmt::format("suite '{}' is larger than 1 MiB", printable(path)));
  }
  return text;
}

}  // namespace

std::vector<std::string> suite_names() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_files()) {
    if (!file.name.starts_with(kFolder) || file.name == kGpuSpecs) continue;
    std::string_view name = file.name.substr(kFolder.size());
    name.remove_suffix(kExtension.size());
    names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Suite load_suite(std::string_view name_or_path) {
  const std::vector<std::string> names = suite_names();
  const std::string name(name_or_path);
  if (std::find(names.begin(), names.end(), name) != names.end()) {
    const std::string file = fmt::format("{}{}{}", kFolder, name, kExtension);
    return parse_suite(embedded(file).value(), file, name);
  }
  const bool is_path = name.find('/') != std::string::npos || name.ends_with(kExtension);
  if (!is_path) {
    const std::string hint = suggest(name, names);
    throw UsageError(fmt::format("unknown suite '{}'", printable(name)),
                     hint + (hint.ends_with('?') ? " " : ". ") +
                         "A path to a suite ends in .json or holds a /.");
  }
  return parse_suite(read_file(name), name, std::filesystem::path(name).stem().string());
}

Suite parse_suite(std::string_view text, std::string_view file, std::string name) {
  const JsonNode root = parse_strict_json(text, file);
  root.allow_keys({"summary", "grids"});
  Suite suite;
  suite.name = std::move(name);
  suite.summary = root.at("summary").as_string();
  for (const JsonNode& grid : root.at("grids").as_array()) suite.grids.push_back(parse_grid(grid));
  if (suite.grids.empty()) root.at("grids").fail("a suite needs at least one grid");
  return suite;
}

}  // namespace rooflash
