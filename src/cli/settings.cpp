#include "cli/settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "core/error.hpp"
#include "core/units.hpp"
#include "model/suggest.hpp"
#include "record/reader.hpp"

namespace rooflash {
namespace {

struct Rule {
  const char* flag;  // of any command that has it
  bool has_variable;
};

// A gate's rules belong in a file that is kept beside the code, not in the environment.
constexpr Rule kRules[] = {{"color", true},      {"quiet", true},   {"gpus", true},
                           {"device", true},     {"timeout", true}, {"no-progress", true},
                           {"threshold", false}, {"abs", false},    {"missing", false},
                           {"on-unsure", false}};

std::string variable_of(std::string flag) {
  std::replace(flag.begin(), flag.end(), '-', '_');
  for (char& c : flag) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return "ROOFLASH_" + flag;
}

std::string user_file() {
  const char* config = std::getenv("XDG_CONFIG_HOME");
  // The XDG rules: a relative path is invalid and ignored.
  if (config != nullptr && *config == '/') return std::string(config) + "/rooflash/config.toml";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home == '/') return std::string(home) + "/.config/rooflash/config.toml";
  return {};
}

// The line of `text` that sets `flag` under [command]; the parser does not tell.
int line_of(const std::string& text, const std::string& command, const std::string& flag) {
  std::istringstream lines(text);
  std::string line;
  std::string section;
  for (int number = 1; std::getline(lines, line); ++number) {
    line = CLI::detail::trim_copy(line);
    if (line.starts_with('[')) {
      section = CLI::detail::trim_copy(line.substr(1, line.find(']') - 1));
    } else if (section == command &&
               CLI::detail::trim_copy(line.substr(0, line.find('='))) == flag) {
      return number;
    }
  }
  return 0;
}

bool was_typed(const CLI::App& app, const CLI::Option* option) {
  const std::vector<CLI::Option*>& order = app.parse_order();
  return std::find(order.begin(), order.end(), option) != order.end();
}

std::string joined(const std::vector<std::string>& values) {
  return fmt::format("{}", fmt::join(values, ","));
}

}  // namespace

Settings::Settings(CLI::App& app) : app_(app) {
  app.add_option("--config", config_, "a file of settings, or none; see rooflash config --help")
      ->envname("ROOFLASH_CONFIG");
  std::vector<CLI::App*> commands{&app};
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    commands.push_back(command);
  }
  for (CLI::App* command : commands) {
    for (const Rule& rule : kRules) {
      CLI::Option* option = command->get_option_no_throw(std::string("--") + rule.flag);
      if (option == nullptr) continue;
      if (rule.has_variable) option->envname(variable_of(rule.flag));
      entries_.push_back({command == &app ? "" : command->get_name(), command, option});
    }
  }
}

std::vector<ConfigFile> Settings::files() const {
  const auto file = [](const std::string& path) {
    std::error_code error;
    return ConfigFile{path, std::filesystem::exists(path, error)};
  };
  if (config_ == "none") return {};
  if (!config_.empty()) return {file(config_)};
  std::vector<ConfigFile> files{file("rooflash.toml")};
  if (!user_file().empty()) files.push_back(file(user_file()));
  return files;
}

void Settings::read(const std::string& path) {
  const std::string text = read_text(path);
  std::vector<CLI::ConfigItem> items;
  try {
    std::istringstream stream(text);
    items = CLI::ConfigTOML().from_config(stream);
  } catch (const CLI::Error& error) {
    throw UsageError(fmt::format("{}: {}", printable(path), printable(error.what())));
  }
  for (const CLI::ConfigItem& item : items) {
    if (item.name == "++" || item.name == "--") continue;  // a section begins or ends
    const std::string command = fmt::format("{}", fmt::join(item.parents, "."));
    const int line = line_of(text, command, item.name);
    const std::string place =
        line > 0 ? fmt::format("{}:{}", printable(path), line) : printable(path);
    std::vector<std::string> known;
    for (const Entry& entry : entries_) {
      if (entry.command == command) known.push_back(entry.option->get_lnames().front());
    }
    if (std::find(known.begin(), known.end(), item.name) == known.end()) {
      throw UsageError(
          fmt::format(
              "{}: there is no setting '{}' {}", place, printable(item.name),
              command.empty() ? "outside a section" : fmt::format("in [{}]", printable(command))),
          known.empty() ? "rooflash config show lists them" : suggest(item.name, known));
    }
    const bool twice = std::any_of(values_.begin(), values_.end(), [&](const FileValue& value) {
      return value.command == command && value.flag == item.name &&
             value.place.starts_with(printable(path));
    });
    if (twice) throw UsageError(fmt::format("{}: '{}' is set twice", place, item.name));
    values_.push_back({command, item.name, item.inputs, place});
  }
}

const Settings::FileValue* Settings::in_files(const Entry& entry) const {
  for (const FileValue& value : values_) {
    if (value.command == entry.command && entry.option->check_lname(value.flag)) return &value;
  }
  return nullptr;
}

void Settings::apply() {
  for (const ConfigFile& file : files()) {
    if (file.found || !config_.empty()) read(file.path);
  }
  for (const Entry& entry : entries_) {
    const bool chosen = entry.command.empty() || app_.got_subcommand(entry.app);
    const FileValue* value = in_files(entry);
    if (!chosen || value == nullptr || entry.option->count() > 0) continue;
    try {
      for (const std::string& text : value->values) entry.option->add_result(text);
      entry.option->run_callback();
    } catch (const CLI::Error& error) {
      throw UsageError(fmt::format("{}: {}", value->place, printable(error.what())));
    }
  }
  for (const Entry& entry : entries_) settings_.push_back(resolved(entry));
}

Setting Settings::resolved(const Entry& entry) const {
  const std::string flag = entry.option->get_lnames().front();
  Setting setting;
  setting.name = entry.command.empty() ? flag : entry.command + "." + flag;
  const std::string variable = entry.option->get_envname();
  const char* text = variable.empty() ? nullptr : std::getenv(variable.c_str());
  if (was_typed(*entry.app, entry.option)) {
    setting.value = joined(entry.option->results());
    setting.origin = "--" + flag;
  } else if (text != nullptr && *text != '\0') {
    setting.value = text;
    setting.origin = variable;
  } else if (const FileValue* value = in_files(entry)) {
    setting.value = joined(value->values);
    setting.origin = value->place;
  } else {
    entry.option->capture_default_str();
    setting.value = entry.option->get_default_str();
    if (setting.value == "[]") setting.value.clear();  // a list
    if (entry.option->get_items_expected_max() == 0) setting.value = "false";
    setting.origin = "default";
  }
  return setting;
}

std::string Settings::hint(const std::string& what) const {
  std::string text;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    const std::string flag = "--" + entry.option->get_lnames().front();
    const bool chosen = entry.command.empty() || app_.got_subcommand(entry.app);
    if (!chosen || what.find(flag) == std::string::npos) continue;
    const Setting& setting = settings_[i];
    if (setting.origin == "default" || setting.origin == flag) continue;
    text += fmt::format("{}{} comes from {}", text.empty() ? "" : ", ", flag,
                        printable(setting.origin));
  }
  return text;
}

}  // namespace rooflash
