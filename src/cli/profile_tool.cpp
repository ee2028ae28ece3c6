#include "cli/profile_tool.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "cli/commands.hpp"
#include "cli/sweep_flags.hpp"
#include "cli/terminal.hpp"
#include "core/error.hpp"
#include "core/shell.hpp"
#include "core/units.hpp"
#include "profile/tool_command.hpp"
#include "sweep/repro.hpp"

namespace rooflash {
namespace {

namespace fs = std::filesystem;

bool is_program(const fs::path& path) {
  std::error_code error;
  return access(path.c_str(), X_OK) == 0 && fs::is_regular_file(path, error);
}

// Its name where PATH has it, else where the toolkit puts it, else "".
std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "";
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    if (!folder.empty() && is_program(fs::path(folder) / name)) return name;
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
  }
  std::vector<std::string> roots{"/usr/local/cuda"};
  for (const char* variable : {"CUDA_PATH", "CUDA_HOME"}) {
    const char* root = std::getenv(variable);
    if (root != nullptr && *root != '\0') roots.insert(roots.begin(), root);
  }
  for (const std::string& root : roots) {
    const fs::path program = fs::path(root) / "bin" / name;
    if (is_program(program)) return program.string();
  }
  return {};
}

std::string without_extension(const std::string& report, const std::string& tool) {
  const std::string extension = tool == "ncu" ? ".ncu-rep" : ".nsys-rep";
  return report.ends_with(extension) ? report.substr(0, report.size() - extension.size()) : report;
}

}  // namespace

int profile_with_tool(const Context& context, const ToolFlags& flags, const ToolCase& profiled) {
  require_choice(flags.name, "--tool", {"ncu", "nsys"});
  if (flags.name == "nsys" && (profiled.set != "all" || !profiled.metrics.empty())) {
    throw UsageError("--set and --metrics are of counters, and nsys traces",
                     "leave them out, or use --tool ncu");
  }
  const std::string id = case_id(profiled.one.kernel, profiled.one.problem);
  ToolCommand command;
  command.tool = flags.name;
  command.program = find_program(flags.name);
  command.report =
      profiled.output.empty() ? report_name(id) : without_extension(profiled.output, flags.name);
  command.l2 = profiled.l2;
  command.set = profiled.set;
  command.metrics = profiled.metrics;
  command.run = repro_words(profiled.one.kernel, profiled.one.problem, profiled.device);
  command.run.front() = context.argv.front();
  for (const std::string& word :
       {std::string("--profile"), "--l2=" + profiled.l2, fmt::format("--seed={}", profiled.seed)}) {
    command.run.push_back(word);
  }
  const bool there = !command.program.empty();
  if (!there) command.program = flags.name;
  const std::vector<std::string> words = tool_words(command);
  const std::string line = shell_command(words);
  if (flags.print) {
    print_result(line + "\n");
    return 0;
  }
  if (!there) {
    throw UsageError(
        fmt::format("there is no {} in PATH, CUDA_HOME or /usr/local/cuda", flags.name),
        fmt::format("install Nsight {}, or add --print and run the command where it is",
                    flags.name == "ncu" ? "Compute" : "Systems"));
  }
  if (!context.quiet) print_message(printable(line, 4000));
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execvp(argv.front(), argv.data());
  throw UsageError(fmt::format("cannot run {}: {}", flags.name, std::strerror(errno)));
}

}  // namespace rooflash
