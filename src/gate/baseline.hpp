// Stored baselines: records in a folder, by name, GPU model and suite, as text that a reviewer can
// read: FOLDER/NAME/nvidia-h200-132-sms/quickstart.json.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/record.hpp"

namespace rooflash {

inline constexpr std::size_t kKeptRounds = 10;

struct BaselineFile {
  std::string name;
  std::string gpu;    // the device class as a folder name: gpu_key()
  std::string suite;  // as a file name, without ".json"
  std::string path;
};

// Throws UsageError where `name` is not letters, digits, '.', '_' and '-', or starts with '.'.
void require_baseline_name(const std::string& name);

// A device class, or the name of a suite, as the name of a folder or a file:
// "NVIDIA H200, 132 SMs" gives "nvidia-h200-132-sms".
std::string file_name_of(std::string_view text);

BaselineFile baseline_file(const std::string& folder, const std::string& name,
                           const std::string& device_class, const std::string& suite);

// What lies in `folder`, sorted by path; with `name`, of that baseline alone. Nothing where there
// is no such folder.
std::vector<BaselineFile> list_baselines(const std::string& folder, const std::string& name = {});

// The record as baselines, one for each class of its devices: thinned samples, the last rounds.
struct BaselinePart {
  std::string device_class;
  Record record;
};
std::vector<BaselinePart> baseline_parts(const Record& record);

// `stored` with the rounds of `next` added as the latest, and what `next` says of itself: its tool,
// environment and roofs. Neither is changed where they do not fit: gives the reason, else "".
std::string add_to_baseline(Record& stored, const Record& next);

// Why rows must not become a baseline: wrong, failed, unverified or implausible ones, an
// interrupted run, none with a time. "" where they may.
std::string unfit_for_baseline(const Record& record);

// Why `candidate` cannot be held against `stored` at all: another seed. "" where it can. What
// differs case by case (definition, convention, way of measuring) is for compare() to say.
std::string baseline_mismatch(const Record& stored, const Record& candidate);

// A short name of what must not change between a baseline and what is held against it: device
// class, suite, seed, definitions, conventions and ways of measuring.
std::string fingerprint(const Record& record);

}  // namespace rooflash
