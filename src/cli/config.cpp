// rooflash config: the settings, and where each value comes from.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/baseline_folder.hpp"
#include "cli/commands.hpp"
#include "cli/outputs.hpp"
#include "cli/settings.hpp"
#include "cli/terminal.hpp"
#include "core/units.hpp"

namespace rooflash {
namespace {

using Json = nlohmann::ordered_json;

// What has a place and no setting.
std::vector<Setting> folders() {
  const char* state = std::getenv("XDG_STATE_HOME");
  const bool has_state = state != nullptr && *state == '/';
  const char* baselines = std::getenv("ROOFLASH_BASELINE_DIR");
  const bool has_baselines = baselines != nullptr && *baselines != '\0';
  return {{"state folder", state_folder(), has_state ? "XDG_STATE_HOME" : "default"},
          {"baseline folder", baseline_folder(""),
           has_baselines ? "ROOFLASH_BASELINE_DIR" : "default"}};
}

// As people write it, and the same on every machine.
std::string with_tilde(const std::string& path) {
  const char* home = std::getenv("HOME");
  const std::string prefix = home == nullptr ? "" : std::string(home) + "/";
  if (prefix.size() < 2 || !path.starts_with(prefix)) return path;
  return "~/" + path.substr(prefix.size());
}

std::string table(const Settings& settings) {
  std::vector<Setting> rows{{"setting", "value", "from"}};
  for (Setting setting : settings.effective()) {
    if (setting.value.empty()) setting.value = "-";
    rows.push_back(std::move(setting));
  }
  for (Setting& folder : folders()) {
    folder.value = with_tilde(folder.value);
    rows.push_back(std::move(folder));
  }
  std::size_t name_width = 0;
  std::size_t value_width = 0;
  for (Setting& row : rows) {
    row.value = printable(row.value);
    name_width = std::max(name_width, row.name.size());
    value_width = std::max(value_width, row.value.size());
  }
  std::string text;
  for (const Setting& row : rows) {
    text += fmt::format("{:<{}}  {:<{}}  {}\n", row.name, name_width, row.value, value_width,
                        printable(with_tilde(row.origin)));
  }
  text += "\n-: as the command's --help says. Files, the first goes first:\n";
  for (const ConfigFile& file : settings.files()) {
    text += fmt::format("  {} ({})\n", printable(with_tilde(file.path)),
                        file.found ? "read" : "not there");
  }
  if (settings.files().empty()) text += "  none\n";
  return text;
}

std::string json(const Settings& settings) {
  Json list = Json::array();
  std::vector<Setting> all = settings.effective();
  for (Setting& folder : folders()) all.push_back(std::move(folder));
  for (const Setting& setting : all) {
    list.push_back({{"name", setting.name}, {"value", setting.value}, {"from", setting.origin}});
  }
  Json files = Json::array();
  for (const ConfigFile& file : settings.files()) {
    files.push_back({{"path", file.path}, {"found", file.found}});
  }
  return Json{{"settings", list}, {"files", files}}.dump(2, ' ', false,
                                                         Json::error_handler_t::replace) +
         "\n";
}

}  // namespace

void add_config(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("config", "the settings and where each comes from");
  command->require_subcommand(1);
  command->footer(
      "A file of settings (TOML): ./rooflash.toml, then ~/.config/rooflash/config.toml; --config\n"
      "FILE reads that one alone. A flag goes before its environment variable, that before a "
      "file.\n"
      "  color = \"never\"\n"
      "  [run]\n"
      "  device = \"sim:h200\"\n"
      "Flags that say what is measured and how are no settings: a command means the same "
      "everywhere.");
  CLI::App* show = command->add_subcommand("show", "each setting, its value and where it is from");
  auto as_json = std::make_shared<bool>(false);
  show->add_flag("--json", *as_json, "as JSON");
  show->callback([&context, as_json] {
    context.action = [&context, as_json] {
      print_result(*as_json ? json(*context.settings) : table(*context.settings));
      return 0;
    };
  });
}

}  // namespace rooflash
