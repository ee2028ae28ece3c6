// The journal of a run, OUT.journal: what makes a crash cost one row. One JSON object a line; the
// first is the header, then one finished row a line, synced before the next case starts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/record.hpp"

namespace rooflash {

// What must be the same for rows of two runs to belong in one record.
struct JournalHeader {
  Tool tool;
  std::string suite;
  std::uint64_t seed = 0;
  std::string plan;     // hash of the cases and their order
  std::string options;  // hash of how they are measured
  std::vector<DeviceInfo> devices;
};

// One finished row and the exact text that stands in the journal.
using JournalRow = std::pair<Row, std::string>;

class Journal {
 public:
  // Starts the journal at `path`, replacing an older one; with `resume` goes on with the one that
  // is there, drops a last line that was cut, and leaves the finished rows in rows(). Throws
  // UsageError where the journal belongs to another run (saying what differs), is malformed, is in
  // use by another run, or cannot be written.
  Journal(std::string path, const JournalHeader& header, bool resume);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  const std::vector<JournalRow>& rows() const { return rows_; }
  // True where an unfinished run's journal was replaced because `resume` was not asked for.
  bool replaced() const { return replaced_; }

  // Appends the row and returns once it is on the disk. Where the folder was removed meanwhile, it
  // is made again with all rows so far. Throws Error on a full disk; the rows before stay whole.
  void append(const Row& row);

  // Deletes the file: the record that it served is written.
  void remove();

 private:
  void open_file();
  void write_line(std::string_view line);
  void sync();
  void load(const std::string& text, const std::string& header);
  bool linked() const;
  [[noreturn]] void fail(const std::string& what) const;

  std::string path_;
  int fd_ = -1;
  std::int64_t size_ = 0;  // bytes of whole lines
  bool replaced_ = false;
  bool open_done_ = false;  // faults from here on are not of the command line
  std::string header_;
  std::vector<JournalRow> rows_;
};

}  // namespace rooflash
