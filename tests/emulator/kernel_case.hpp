// What tests of emulated kernels have in common: inputs as the device has them, launches in several
// orders, and the judge.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kernel.hpp"
#include "machine.hpp"
#include "verify/reference.hpp"

namespace rooflash {

// Every case runs in these, with seeds of its own. Warps 0 to 3 move data, warp 1 keys and values
// or some of these; 4 to 7 are the first consumer's.
inline std::vector<machine::Order> orders_of(const Problem& p) {
  const auto seed = static_cast<unsigned>(std::hash<std::string>{}(case_id("", p)));
  return {{.seed = seed, .late_products = true},
          {.seed = seed + 1, .late_copies = true, .held_warp = 1},
          {.seed = seed + 2, .late_products = true, .held_warp = static_cast<int>(seed % 8)}};
}

// Output memory, poisoned, with a margin that must stay so.
template <class T>
class Output {
 public:
  explicit Output(std::int64_t elements) : values_(static_cast<std::size_t>(elements) + kMargin) {}
  T* poisoned() {
    std::memset(static_cast<void*>(values_.data()), 0xFF, values_.size() * sizeof(T));
    return values_.data();
  }
  std::span<const T> values() const { return {values_.data(), values_.size() - kMargin}; }
  bool margin_is_whole() const {
    const auto* bytes = reinterpret_cast<const unsigned char*>(values_.data() + values().size());
    return std::all_of(bytes, bytes + kMargin * sizeof(T), [](int byte) { return byte == 0xFF; });
  }
  bool operator==(const Output& other) const {
    return std::memcmp(values_.data(), other.values_.data(), values_.size() * sizeof(T)) == 0;
  }

 private:
  static constexpr std::size_t kMargin = 64;
  std::vector<T> values_;
};

// Rows that see no key are O = 0 and LSE = -inf, exactly.
inline void expect_exact_empty_rows(const Problem& p, const HostTensors& t) {
  for (std::int64_t row = 0; row < p.seqlen_q; ++row) {
    const KeyRange keys = visible_keys(p, row);
    if (keys.begin < keys.end) continue;
    for (std::int64_t head = 0; head < p.batch * p.heads_q; ++head) {
      ASSERT_EQ(t.lse[head * p.seqlen_q + row], -INFINITY) << "row " << row;
      const std::int64_t batch = head / p.heads_q;
      const float* const o =
          t.o + ((batch * p.seqlen_q + row) * p.heads_q + head % p.heads_q) * p.headdim_v;
      ASSERT_TRUE(std::all_of(o, o + p.headdim_v, [](float x) { return x == 0; })) << "row " << row;
    }
  }
}

// Launches in every order; the bits must be the same each time. O and LSE go to `c`. `prepare` is
// given where the outputs lie.
template <class T>
void run_in_all_orders(const Problem& p, HostCase& c,
                       const std::function<Prepared(void* o, float* lse)>& prepare) {
  Output<T> o(o_elements(p));
  Output<float> lse(lse_elements(p));
  const Prepared prepared = prepare(o.poisoned(), lse.poisoned());
  bool first = true;
  for (const machine::Order& order : orders_of(p)) {
    const Output<T> last_o = o;
    const Output<float> last_lse = lse;
    o.poisoned();
    lse.poisoned();
    machine::set_order(order);
    try {
      prepared.launch(nullptr);
    } catch (const machine::Fault& fault) {  // here, where the case is still known
      FAIL() << fault.what();
    }
    ASSERT_TRUE(o.margin_is_whole() && lse.margin_is_whole());
    ASSERT_TRUE(first || (o == last_o && lse == last_lse)) << "the order of threads shows";
    first = false;
  }
  std::transform(o.values().begin(), o.values().end(), c.o.begin(),
                 [](T value) { return static_cast<float>(value); });
  std::copy(lse.values().begin(), lse.values().end(), c.lse.begin());
  expect_exact_empty_rows(p, c.tensors());
}

}  // namespace rooflash
