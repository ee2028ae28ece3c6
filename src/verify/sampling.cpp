#include "verify/sampling.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "verify/generator.hpp"

namespace rooflash {
namespace {

// Rows where tiled kernels go wrong first: both sides of multiples of 64 and 128 near the start,
// the middle and the end of the sequence.
std::set<std::int64_t> edge_rows(std::int64_t seqlen) {
  std::set<std::int64_t> rows = {0, seqlen - 1};
  for (const std::int64_t near : {std::int64_t{64}, std::int64_t{128}, std::int64_t{192},
                                  seqlen / 2, seqlen - 64, seqlen - 1}) {
    const std::int64_t edge = near / 64 * 64;
    rows.insert({edge - 1, edge});
  }
  std::erase_if(rows, [&](std::int64_t row) { return row < 0 || row >= seqlen; });
  return rows;
}

struct Place {
  std::int64_t batch;
  std::int64_t head;
};

// (batch item, head) pairs: the corners, then random ones.
std::vector<Place> places(const Problem& p, std::size_t count, std::uint64_t seed) {
  std::vector<Place> result = {
      {0, 0}, {p.batch - 1, p.heads_q - 1}, {0, p.heads_q - 1}, {p.batch - 1, 0}};
  for (std::uint64_t i = 0; result.size() < count; ++i) {
    const std::uint64_t bits = generator::mix(seed + generator::kGolden * (i + 1));
    result.push_back({static_cast<std::int64_t>((bits >> 32U) % p.batch),
                      static_cast<std::int64_t>((bits & 0xFFFFFFFFU) % p.heads_q)});
  }
  result.resize(count);
  return result;
}

}  // namespace

RowSample sample_rows(const Problem& p, std::int64_t max_rows, std::uint64_t seed) {
  RowSample sample;
  const std::int64_t total = p.batch * p.heads_q * p.seqlen_q;
  if (total <= max_rows) {
    sample.all = true;
    sample.description = "all";
    for (std::int64_t i = 0; i < total; ++i) {
      sample.rows.push_back(
          {i / p.seqlen_q / p.heads_q, i / p.seqlen_q % p.heads_q, i % p.seqlen_q});
    }
    return sample;
  }
  const std::set<std::int64_t> edges = edge_rows(p.seqlen_q);
  // Half of the rows are edges, so that the random half can find what no edge shows. Short
  // sequences take more heads to give as many rows.
  const std::int64_t count =
      std::max({std::int64_t{2}, max_rows / 2 / std::ssize(edges), max_rows / p.seqlen_q});
  const std::vector<Place> chosen = places(p, static_cast<std::size_t>(count), seed);
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> rows;
  const auto full = [&] { return static_cast<std::int64_t>(rows.size()) >= max_rows; };
  for (const std::int64_t row : edges) {
    for (const Place& place : chosen) {
      if (!full()) rows.emplace(place.batch, place.head, row);
    }
  }
  // More rows exist than are asked for, so distinct ones are found; the bound ends a run of
  // repeats.
  for (std::int64_t i = 0; i < 64 * max_rows && !full(); ++i) {
    const std::uint64_t bits = generator::mix(~seed + generator::kGolden * (i + 1));
    const Place& place = chosen[bits % chosen.size()];
    rows.emplace(place.batch, place.head, static_cast<std::int64_t>((bits >> 20U) % p.seqlen_q));
  }
  for (const auto& [batch, head, row] : rows) sample.rows.push_back({batch, head, row});
  sample.description = std::to_string(rows.size()) + " of " + std::to_string(total) +
                       ": first, last, tile edges, random";
  return sample;
}

}  // namespace rooflash
