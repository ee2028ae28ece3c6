// The subcommands of rooflash, one file each. `add_X` declares the flags of X on the command line
// and sets Context::action when X was chosen.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace rooflash {

class Settings;

// What every subcommand shares.
struct Context {
  std::vector<std::string> argv;
  bool quiet = false;
  std::string color = "auto";          // auto | always | never
  const Settings* settings = nullptr;  // set once the command line is parsed
  std::function<int()> action;         // returns the exit code; throws Error
};

void add_run(CLI::App& app, Context& context);
void add_list(CLI::App& app, Context& context);
void add_list_metrics(CLI::App& list, Context& context);  // under `list`
void add_report(CLI::App& app, Context& context);
void add_compare(CLI::App& app, Context& context);
void add_gate(CLI::App& app, Context& context);
void add_export(CLI::App& app, Context& context);
void add_history(CLI::App& app, Context& context);
void add_config(CLI::App& app, Context& context);
void add_completion(CLI::App& app, Context& context);
void add_baseline(CLI::App& app, Context& context);
void add_doctor(CLI::App& app, Context& context);
void add_ceilings(CLI::App& app, Context& context);
void add_verify(CLI::App& app, Context& context);
void add_profile(CLI::App& app, Context& context);

// Parses `argv` and runs the subcommand. Returns the exit code. Throws Error: the message and the
// hint are the caller's to print.
int run_command_line(const std::vector<std::string>& argv);

}  // namespace rooflash
