// The times of one case over many records, ordered by date: of its attention and, of e4m3, of
// quantising its inputs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/record.hpp"
#include "measure/statistics.hpp"

namespace rooflash {

// What must be equal for two times to stand in one series.
struct SeriesKey {
  std::string case_id;
  std::string definition_hash;
  std::string device_class;  // gate/match.hpp: "NVIDIA H200, 132 SMs"
  std::string convention;    // of the FLOP count
  std::string l2;            // cold | warm
  std::string power;         // burst | sustained
  Measure measure = Measure::time_us;
  bool operator<(const SeriesKey& other) const;
};

// A case in one record. Of several rounds, and of several GPUs of one class, the median.
struct SeriesPoint {
  std::string date;  // of the record: "2026-01-31T09:05:00Z"
  std::string commit;
  bool dirty = false;
  std::string record;  // the name it was added under
  double time_us = 0;
  Interval ci95;          // of the median over the rounds; of one row its own
  std::int64_t rows = 0;  // that the point stands for
  OptDouble tflops;       // model FLOPs / time_us; empty where that is of quantising
  OptDouble hbm_bytes;  // of the attention, counted (predicted where simulated); the median of the
                        // rows that have it
};

struct Series {
  SeriesKey key;
  std::string kernel;
  Problem problem;
  bool simulated = false;
  std::vector<SeriesPoint> points;  // by date, then by the name of the record
};

bool is_implausible(const Row& row);

// Whether a row's time may stand for its case: it is ok, has one, and that is plausible.
bool has_usable_time(const Row& row);

class SeriesBuilder {
 public:
  // Throws UsageError where the record's date is none, so that it has no place in a series.
  void add(const Record& record, const std::string& name);
  // By key, with a point at least in each; the builder is empty afterwards.
  std::vector<Series> take();

 private:
  std::map<SeriesKey, Series> series_;
};

}  // namespace rooflash
