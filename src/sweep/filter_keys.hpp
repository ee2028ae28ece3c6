// What a filter can ask about: the keys, and the values that some of them are limited to.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/problem.hpp"

namespace rooflash {

// The case that a filter looks at.
struct FilterSubject {
  std::string_view kernel;
  const Problem& problem;
  std::string_view device;
};

using FilterText = std::string (*)(const FilterSubject&);
using FilterCount = std::int64_t (*)(const FilterSubject&);

// What a key means: the text or the count of a case it is compared with.
struct FilterKey {
  std::string name;
  FilterText text = nullptr;
  FilterCount count = nullptr;
};

const std::vector<FilterKey>& filter_keys();

// Families, with or without those of the test suite.
std::vector<std::string> kernel_names(bool hidden);

// Keys whose values are a closed set: another value can never match, so it is a mistake.
const std::vector<std::pair<std::string, std::vector<std::string>>>& closed_filter_values();

}  // namespace rooflash
