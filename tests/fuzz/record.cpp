// The record reader, and what is made of a record that it accepts.
#include <cstdlib>
#include <string_view>

#include "core/error.hpp"
#include "export/formats.hpp"
#include "fuzz/target.hpp"
#include "history/change_points.hpp"
#include "record/json.hpp"
#include "record/writer.hpp"
#include "report/formats.hpp"
#include "report/table.hpp"

namespace rooflash {
namespace {

void render_all(const Record& record) {
  const NamedRecord named{"fuzz.json", record};
  render_csv(record);
  render_markdown(record);
  render_table(record, {});
  export_openmetrics(named);
  export_junit({&named, 1});
  try {
    export_chrome_trace({&named, 1});
  } catch (const UsageError&) {
  }
  try {
    export_bencher(named);
    export_github_action_benchmark(named);
    export_otava_csv({&named, 1});
    SeriesBuilder builder;
    builder.add(record, "fuzz.json");
    for (const Series& series : builder.take()) change_points(series);
  } catch (const UsageError&) {
    // no date
  }
}

}  // namespace
}  // namespace rooflash

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rooflash;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Record record;
  try {
    record = record_from_json(parse_json(text, "fuzz.json"), "fuzz.json");
  } catch (const UsageError&) {
    return 0;
  }
  // What was read can be written, and read again as the same.
  const std::string written = record_text(record);
  if (record_text(record_from_json(parse_json(written, "again"), "again")) != written) std::abort();
  render_all(record);
  return 0;
}
