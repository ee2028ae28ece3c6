// The driver's part of a record's head: who ran what, when, with which build. Names of the host and
// its folders never enter a record.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/record.hpp"

namespace rooflash {

// 16 hex digits for a host name or a GPU uuid; `kind` keeps equal texts of two kinds apart.
std::string identity_hash(std::string_view kind, std::string_view identity);

// `argv` with every path reduced to its last part: what is absolute, begins with "~" or ".", or
// lies in a folder that exists. "--suite=/a/b.json" becomes "--suite=b.json".
std::vector<std::string> without_paths(const std::vector<std::string>& argv);

// Now, as "2026-01-31T09:05:00Z"; with SOURCE_DATE_EPOCH set, that moment.
// `text` with each absolute path in it cut to its last part: messages of libraries and tools may
// hold folders of the machine.
std::string without_folders(std::string_view text);

std::string utc_date();

// host_hash, argv and date; the rest comes from the workers.
Environment host_environment(const std::vector<std::string>& argv);

Tool tool_info();

}  // namespace rooflash
