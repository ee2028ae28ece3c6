#include "cli/roofs_cache.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "cli/outputs.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/outer_tool.hpp"
#include "record/environment.hpp"
#include "record/json.hpp"
#include "record/reader.hpp"
#include "record/writer.hpp"

namespace rooflash {
namespace {

constexpr double kTimeoutSeconds = 120;

// The build is part of the key: it measures the roofs, so another one may measure them better. So
// is the number of the way they are measured, which changes when more of them are.
std::string cache_path(const Hello& hello) {
  const std::string folder = state_folder();
  if (folder.empty()) return {};
  const std::string key = hello.device.name + '|' + hello.device.uuid_hash + '|' +
                          hello.environment.driver + '|' + tool_info().version + "|2";
  return folder + "/ceilings/" + hash_hex(key) + ".json";
}

}  // namespace

Ceilings device_ceilings(Connection& connection, const Hello& hello, bool refresh, bool sustained) {
  if (hello.device.simulated) return connection.ceilings(kTimeoutSeconds);
  const std::string path = cache_path(hello);
  std::error_code ignored;
  if (!path.empty() && !refresh && std::filesystem::exists(path, ignored)) {
    try {
      Ceilings kept = ceilings_from_json(parse_json(read_text(path), path), path);
      kept.device = hello.device.device;
      if (!sustained || kept.sustained) return kept;
    } catch (const UsageError&) {
      // A damaged file is measured again and replaced.
    }
  }
  const std::string tool = outer_tool();
  if (!tool.empty() && !refresh) {
    throw Error(ExitCode::incomplete,
                fmt::format("they are not measured under {}, whose times are not the card's", tool),
                "Run `rooflash ceilings` once without it.");
  }
  Ceilings measured = connection.ceilings(kTimeoutSeconds, sustained);
  if (!path.empty() && tool.empty()) {
    try {
      std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
      write_file_atomic(path, dump_line(to_json(measured)) + "\n");
    } catch (const UsageError&) {
      // Nothing is lost: the next run measures again.
    }
  }
  return measured;
}

}  // namespace rooflash
