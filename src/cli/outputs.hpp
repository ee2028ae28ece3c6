// The files of a run: -o FILE, in the format that the extension names.
#pragma once

#include <string>
#include <vector>

#include "core/record.hpp"

namespace rooflash {

struct Context;

// True where both paths name one file, which need not exist.
bool same_file(const std::string& a, const std::string& b);

// Refuses, before any work and before any folder is made, what could not be written at the end: an
// unknown extension, a path named twice, a folder that cannot be made, no permission. Makes missing
// folders, but none directly in the root folder: "/resutls/x.json" is a misspelling. Throws
// UsageError.
void check_outputs(const std::vector<std::string>& paths);

// The same for one file of any name that is made from `inputs` ("-" is stdin), none of which it may
// replace.
void check_output_file(const std::string& path, const std::vector<std::string>& inputs);

// Prints `text`, or writes it to the file `output` where one is named, and says so.
void deliver_text(const Context& context, const std::string& output, const std::string& text);

// Writes the record to each path: .json, .csv, .md, .html. Each file is replaced whole or not at
// all. Throws UsageError.
void write_outputs(const Record& record, const std::vector<std::string>& paths);

// XDG_STATE_HOME/rooflash, or ~/.local/state/rooflash; "" where neither variable is set.
std::string state_folder();

}  // namespace rooflash
