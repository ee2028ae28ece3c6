#include "cli/outputs.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "cli/commands.hpp"
#include "cli/report_data.hpp"
#include "cli/terminal.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "record/writer.hpp"
#include "report/formats.hpp"
#include "report/html.hpp"

namespace rooflash {
namespace {

namespace fs = std::filesystem;

using Render = std::string (*)(const Record&);

constexpr std::pair<std::string_view, Render> kFormats[] = {
    {".json", record_text},
    {".csv", render_csv},
    {".md", render_markdown},
    {".html",
     [](const Record& record) {
       return html_report(runs_to_report({&record, 1}, {}), {});
     }},
};

Render format_of(const std::string& path) {
  const std::string extension = fs::path(path).extension().string();
  for (const auto& [name, render] : kFormats) {
    if (name == extension) return render;
  }
  throw UsageError(fmt::format("-o {}: the extension says no known format", printable(path)),
                   "use .json, .csv, .md or .html");
}

void make_folder(const std::string& path) {
  const fs::path folder = fs::absolute(path).lexically_normal().parent_path();
  std::error_code error;
  if (fs::exists(folder, error)) return;
  const fs::path first = *std::next(folder.begin());
  if (!fs::exists("/" / first, error)) {
    throw UsageError(fmt::format("cannot write {}: there is no folder /{}", printable(path),
                                 printable(first.string())),
                     "make it first, or choose another path with -o");
  }
  fs::create_directories(folder, error);
  if (error) {
    throw UsageError(fmt::format("cannot write {}: cannot make the folder {}: {}", printable(path),
                                 printable(folder.string()), error.message()),
                     "choose another path with -o");
  }
}

}  // namespace

bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  return fs::absolute(a).lexically_normal() == fs::absolute(b).lexically_normal() ||
         fs::equivalent(a, b, error);
}

void check_outputs(const std::vector<std::string>& paths) {
  for (std::size_t i = 0; i < paths.size(); ++i) {
    format_of(paths[i]);
    for (std::size_t before = 0; before < i; ++before) {
      if (same_file(paths[before], paths[i])) {
        throw UsageError(fmt::format("-o {} is given twice", printable(paths[i])));
      }
    }
  }
  for (const std::string& path : paths) {
    make_folder(path);
    check_output_path(path);
  }
}

void check_output_file(const std::string& path, const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    if (input != "-" && same_file(input, path)) {
      throw UsageError(fmt::format("-o {}: this record is an input", printable(path)),
                       "choose another path with -o");
    }
  }
  make_folder(path);
  check_output_path(path);
}

void deliver_text(const Context& context, const std::string& output, const std::string& text) {
  if (output.empty()) {
    print_result(text);
    return;
  }
  write_file_atomic(output, text);
  if (!context.quiet) print_message("saved " + printable(output));
}

void write_outputs(const Record& record, const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    make_folder(path);  // it may have been removed during the run
    write_file_atomic(path, format_of(path)(record));
  }
}

std::string state_folder() {
  const char* state = std::getenv("XDG_STATE_HOME");
  // The XDG rules: a relative path is invalid and ignored.
  if (state != nullptr && *state == '/') return std::string(state) + "/rooflash";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home == '/') return std::string(home) + "/.local/state/rooflash";
  return {};
}

}  // namespace rooflash
