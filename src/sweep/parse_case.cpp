#include "sweep/parse_case.hpp"

#include <fmt/format.h>

#include <charconv>
#include <vector>

#include "core/error.hpp"
#include "core/units.hpp"

namespace rooflash {
namespace {

constexpr const char* kForm =
    "a case id looks like fa2/fwd/bf16/b4.h16.kv16/q8192.k8192/d128/causal";

[[noreturn]] void fail(std::string_view text, std::string_view what) {
  throw UsageError(fmt::format("'{}' is no case id: {}", printable(text), what), kForm);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// Reads one case id; every message names the part that is wrong.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text), parts_(split(text, '/')) {}

  NamedCase parse() {
    if (parts_.size() < 7) fail(text_, fmt::format("{} parts of 7 at least", parts_.size()));
    NamedCase named{std::string(parts_[0]), {}};
    Problem& p = named.problem;
    if (named.kernel.empty()) fail(text_, "the kernel is missing");
    p.pass = known(parse_pass(parts_[1]), 1, "a pass (fwd, bwd)");
    p.dtype = known(parse_dtype(parts_[2]), 2, "a dtype (fp32, fp16, bf16, e4m3)");
    numbers(3, {{"b", &p.batch}, {"h", &p.heads_q}, {"kv", &p.heads_kv}});
    numbers(4, {{"q", &p.seqlen_q}, {"k", &p.seqlen_kv}});
    headdims(p);
    mask(p.mask);
    std::size_t next = 7;
    if (next < parts_.size() && parts_[next].find('=') == std::string_view::npos) {
      p.distribution = known(parse_distribution(parts_[next]), next, "a distribution");
      ++next;
    }
    for (; next < parts_.size(); ++next) {
      const std::size_t equals = parts_[next].find('=');
      if (equals == std::string_view::npos) fail_part(next, "NAME=VALUE");
      p.options[std::string(parts_[next].substr(0, equals))] = parts_[next].substr(equals + 1);
    }
    const std::string reason = invalid_reason(p);
    if (!reason.empty()) fail(text_, reason);
    // Leading zeros, "d128-128" or options out of order: another spelling of a case that has one.
    const std::string id = case_id(named.kernel, p);
    if (id != text_) fail(text_, "it would be written " + printable(id));
    return named;
  }

 private:
  [[noreturn]] void fail_part(std::size_t part, std::string_view expected) const {
    fail(text_, fmt::format("'{}' is not {}", printable(parts_[part]), expected));
  }

  template <class Value>
  Value known(const std::optional<Value>& value, std::size_t part, const char* expected) const {
    if (!value) fail_part(part, expected);
    return *value;
  }

  static bool number(std::string_view text, std::int64_t& value) {
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    return error == std::errc() && rest == end && value >= 0;
  }

  struct Number {
    std::string_view prefix;
    std::int64_t* value;
  };
  // "b4.h16.kv16"
  void numbers(std::size_t part, const std::vector<Number>& expected) const {
    const std::vector<std::string_view> found = split(parts_[part], '.');
    std::string form;
    for (const Number& one : expected) {
      form += fmt::format("{}{}N", form.empty() ? "" : ".", one.prefix);
    }
    bool good = found.size() == expected.size();
    for (std::size_t i = 0; good && i < found.size(); ++i) {
      good = found[i].starts_with(expected[i].prefix) &&
             number(found[i].substr(expected[i].prefix.size()), *expected[i].value);
    }
    if (!good) fail_part(part, form);
  }

  // "d128" or "d192-128"
  void headdims(Problem& p) const {
    const std::string_view part = parts_[5];
    const std::size_t dash = part.find('-');
    const bool good =
        part.starts_with('d') && number(part.substr(1, dash - 1), p.headdim) &&
        (dash == std::string_view::npos || number(part.substr(dash + 1), p.headdim_v));
    if (!good) fail_part(5, "dN or dN-N");
    if (dash == std::string_view::npos) p.headdim_v = p.headdim;
  }

  // "full", "causal", "win255.0", each but the first with "-tl" for top-left
  void mask(Mask& mask) const {
    constexpr std::string_view kTopLeft = "-tl";
    std::string_view part = parts_[6];
    if (part == "full") return;
    if (part.ends_with(kTopLeft)) {
      mask.align = Align::top_left;
      part.remove_suffix(kTopLeft.size());
    }
    if (part == "causal") {
      mask.kind = MaskKind::causal;
      return;
    }
    const std::vector<std::string_view> sides =
        split(part.substr(std::min<std::size_t>(3, part.size())), '.');
    const auto side = [](std::string_view text, std::int64_t& bound) {
      if (text != "inf") return number(text, bound);
      bound = kUnbounded;
      return true;
    };
    mask.kind = MaskKind::window;
    if (!part.starts_with("win") || sides.size() != 2 || !side(sides[0], mask.left) ||
        !side(sides[1], mask.right)) {
      fail_part(6, "full, causal, causal-tl or winLEFT.RIGHT");
    }
  }

  std::string_view text_;
  std::vector<std::string_view> parts_;
};

}  // namespace

NamedCase parse_case_id(std::string_view text) {
  return Parser(text).parse();
}

Axes axes_of(const NamedCase& named) {
  const Problem& p = named.problem;
  Axes axes;
  axes.kernels = {named.kernel};
  axes.passes = {p.pass};
  axes.dtypes = {p.dtype};
  axes.headdims = {{p.headdim, p.headdim_v}};
  axes.seqlens_kv = {p.seqlen_kv};
  if (p.seqlen_q != p.seqlen_kv) axes.seqlens_q = {p.seqlen_q};
  axes.batches = {p.batch};
  axes.nheads = {p.heads_q};
  axes.gqa_ratio = p.heads_q / p.heads_kv;
  axes.align = p.mask.align;
  axes.causal = {p.mask.kind == MaskKind::causal};
  if (p.mask.kind == MaskKind::window) axes.window = {p.mask.left, p.mask.right};
  axes.distributions = {p.distribution};
  for (const auto& [name, value] : p.options) axes.options[name] = {value};
  return axes;
}

}  // namespace rooflash
