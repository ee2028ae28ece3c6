// Settings: flags whose value an environment variable or a configuration file may give. None of
// them changes what a case is or how it is measured, so a command means the same on every machine.
//
// The command line goes before the environment, that before the project's file (rooflash.toml in
// the current folder), that before the user's (XDG_CONFIG_HOME/rooflash/config.toml), that before
// the default. --config FILE reads that file alone, --config none reads no file.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace rooflash {

struct Setting {
  std::string name;    // "color", "run.device"
  std::string value;   // "" where the default is none
  std::string origin;  // "--color", "ROOFLASH_DEVICE", "rooflash.toml:3", "default"
};

struct ConfigFile {
  std::string path;
  bool found = false;
};

class Settings {
 public:
  // Declares --config and gives settings their environment variables. Every command must have been
  // added, and both must outlive this.
  explicit Settings(CLI::App& app);

  // After parsing: reads the files, and sets what neither the command line nor the environment did.
  // Throws UsageError with file and line.
  void apply();

  // Of all commands, in the order of --help.
  const std::vector<Setting>& effective() const { return settings_; }
  // By precedence; those that are not there too.
  std::vector<ConfigFile> files() const;
  // "--device comes from ROOFLASH_DEVICE": of the settings that the error `what` names, those that
  // were not typed; "" where there are none.
  std::string hint(const std::string& what) const;

 private:
  struct Entry {
    std::string command;  // "" for the program's own flags
    CLI::App* app;
    CLI::Option* option;
  };
  struct FileValue {
    std::string command;
    std::string flag;
    std::vector<std::string> values;
    std::string place;  // "rooflash.toml:3"
  };

  void read(const std::string& path);
  const FileValue* in_files(const Entry& entry) const;
  // Where the entry's value comes from.
  Setting resolved(const Entry& entry) const;

  CLI::App& app_;
  std::string config_;
  std::vector<Entry> entries_;
  std::vector<FileValue> values_;  // of the file that goes first, first
  std::vector<Setting> settings_;  // parallel to entries_
};

}  // namespace rooflash
