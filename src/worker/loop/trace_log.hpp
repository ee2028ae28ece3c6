// When the phases of one case began and ended, for its row's trace.
#pragma once

#include <string_view>

#include "core/record.hpp"

namespace rooflash {

class TraceLog {
 public:
  TraceLog();  // the case begins now

  // A phase begins and ends the one before.
  void begin(std::string_view phase);

  // The last phase ends. Gives `row` its trace, whose times a backend left on the steady clock
  // (worker/backend.hpp). A simulated row gets none where SOURCE_DATE_EPOCH asks for a record that
  // is the same each time.
  void finish(Row& row);

 private:
  double start_us_;
  Trace trace_;
};

}  // namespace rooflash
