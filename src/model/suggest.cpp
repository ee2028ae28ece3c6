#include "model/suggest.hpp"

#include <algorithm>
#include <numeric>

namespace rooflash {
namespace {

// Insertions, deletions and replacements that turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string suggest(std::string_view name, const std::vector<std::string>& known) {
  constexpr std::size_t kLongest = 128;  // longer input is no misspelling, and would cost time
  const std::string* nearest = nullptr;
  // Two slips, as a swap of neighbours is; in a name of three letters one, or all of them look
  // alike.
  const std::size_t slips = name.size() <= 3 ? 1 : std::max<std::size_t>(2, name.size() / 3);
  std::size_t best = slips + 1;
  for (const std::string& candidate : known) {
    if (name.size() > kLongest) break;
    const std::size_t distance = edit_distance(name, candidate);
    // At least one character must be right: 'x' is not a misspelt 'fa'.
    if (distance < best && distance < std::max(name.size(), candidate.size())) {
      best = distance;
      nearest = &candidate;
    }
  }
  if (nearest != nullptr) return "did you mean '" + *nearest + "'?";
  std::string all;
  for (const std::string& candidate : known) all += (all.empty() ? "" : ", ") + candidate;
  return "known: " + all;
}

}  // namespace rooflash
