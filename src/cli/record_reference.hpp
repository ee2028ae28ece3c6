// Records as a command line names them: a path, "-", @last, @prev, @last~3, @NAME of a baseline,
// each with a label before it where one is wanted (label=path).
#pragma once

#include <string>
#include <vector>

namespace rooflash {

inline constexpr const char* kRecordHelp =
    "records of rooflash run: a path, - for stdin, @last, @prev, @last~N, or @NAME of a baseline; "
    "label=RECORD names one";

struct RecordReference {
  std::string text;   // as typed
  std::string path;   // of the file; "-" is stdin
  std::string label;  // "" where none was typed

  // What the user knows the record by: its label, else the text.
  const std::string& name() const { return label.empty() ? text : label; }
};

// A text that names a file as it stands is that file; begin a path with ./ where it would be taken
// for something else. Throws UsageError on a label that cannot be shown, a run that is not kept and
// a baseline that is not one record.
RecordReference find_record(const std::string& text);

// Of each; no two may have the same label.
std::vector<RecordReference> find_records(const std::vector<std::string>& texts);
std::vector<std::string> paths_of(const std::vector<RecordReference>& references);

}  // namespace rooflash
