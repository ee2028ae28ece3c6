// Writes files whole or not at all.
#pragma once

#include <string>
#include <string_view>

#include "core/record.hpp"

namespace rooflash {

// The record as a JSON text: a readable head, then one row a line.
std::string record_text(const Record& record);

// Replaces the file at `path` (or what a symbolic link there points at) by `content` through a
// temporary file in the same folder, synced and renamed: after a fault the old file is untouched.
// Throws UsageError, also where `path` is not a regular file (a folder, a pipe, a device).
void write_file_atomic(const std::string& path, std::string_view content);

// Refuses, before any work, a path that write_file_atomic() could not write. Where the folder is
// missing and `path` is relative, makes that one folder ("out/" of out/run.json).
void check_output_path(const std::string& path);

}  // namespace rooflash
