// Series and their changes as a table, CSV and JSON.
#pragma once

#include <string>
#include <vector>

#include "history/change_points.hpp"

namespace rooflash {

struct SkippedFile {
  std::string path;
  std::string reason;
};

struct History {
  std::vector<Series> series;
  std::vector<std::vector<ChangePoint>> changes;  // of each series
  double threshold = kChangeThreshold;
  std::vector<SkippedFile> skipped;      // broken
  std::vector<std::string> passed_over;  // of folders: JSON, but no records
};

// A block a series that changed, of every series with `all`; ends with what was looked at.
std::string history_table(const History& history, bool all);

// RFC 4180: a line a point. docs/formats.md names the columns.
std::string history_csv(const History& history);

std::string history_json(const History& history);

}  // namespace rooflash
