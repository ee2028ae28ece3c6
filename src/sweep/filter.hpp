// The filter language of -f: which cases to keep.
//
//   kernel:fa2 dtype:(bf16 OR fp16) seqlen:>=4k -causal:true
//
// Terms side by side must all hold (AND may be written), OR separates alternatives, - negates and
// parentheses group. Values of names may hold '*'; values of numbers may start with >=, <=, > or <.
// A list (seqlen:4k,8k or 512:16k:x2) is its values side by side with OR.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem.hpp"

namespace rooflash {

class Filter {
 public:
  Filter() = default;  // keeps everything

  // Which names of kernels and devices a filter may hold: a record can have others than this build.
  enum class Names { known, any };

  // Throws UsageError with the column and what was expected there.
  static Filter parse(std::string_view text, Names names = Names::known);
  // Keeps what each of `texts` keeps, every one a filter of its own. Throws as parse() does.
  static Filter all_of(const std::vector<std::string>& texts, Names names = Names::known);

  bool matches(std::string_view kernel, const Problem& problem, std::string_view device) const;

  struct Node;

 private:
  std::shared_ptr<const Node> root_;
};

}  // namespace rooflash
