#include "sweep/filter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/units.hpp"
#include "model/suggest.hpp"
#include "sweep/filter_keys.hpp"
#include "sweep/list_grammar.hpp"

namespace rooflash {
namespace {

bool glob_match(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;  // place of the last '*', and the text it had eaten
  std::size_t eaten = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      eaten = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++eaten;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

enum class Compare { equal, less, less_equal, greater, greater_equal };

bool compare(std::int64_t value, Compare how, std::int64_t bound) {
  switch (how) {
    case Compare::equal:
      return value == bound;
    case Compare::less:
      return value < bound;
    case Compare::less_equal:
      return value <= bound;
    case Compare::greater:
      return value > bound;
    case Compare::greater_equal:
      return value >= bound;
  }
  return false;
}

}  // namespace

struct Filter::Node {
  enum class Kind { all_of, any_of, negate, match };
  Kind kind = Kind::all_of;
  std::vector<Node> children{};
  const FilterKey* key = nullptr;  // of match
  std::string pattern{};
  Compare how = Compare::equal;
  std::int64_t bound = 0;

  bool matches(const FilterSubject& subject) const {
    const auto holds = [&](const Node& child) { return child.matches(subject); };
    switch (kind) {
      case Kind::all_of:
        return std::all_of(children.begin(), children.end(), holds);
      case Kind::any_of:
        return std::any_of(children.begin(), children.end(), holds);
      case Kind::negate:
        return !children.front().matches(subject);
      case Kind::match:
        if (key->text != nullptr) return glob_match(pattern, key->text(subject));
        return compare(key->count(subject), how, bound);
    }
    return false;
  }
};

namespace {

using Node = Filter::Node;

// Recursive descent over
//   any   := all { "OR" all }          all  := term { ["AND"] term }
//   term  := "-" term | "(" any ")" | KEY ":" value | KEY ":(" value { "OR" value } ")"
class Parser {
 public:
  Parser(std::string_view text, Filter::Names names) : text_(text), names_(names) {}

  Node parse() {
    Node node = any();
    if (at_ < text_.size()) fail("unexpected ')'");
    return node;
  }

 private:
  static constexpr int kMaxDepth = 100;

  [[noreturn]] void fail(const std::string& what, std::string hint = {}) const {
    if (hint.empty()) hint = "for example: -f 'kernel:fa2 dtype:(bf16 OR fp16) seqlen:>=4k'";
    throw UsageError(
        fmt::format("--filter: {} at column {} of '{}'", what, at_ + 1, printable(text_)), hint);
  }

  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool peek(char c) {
    skip_spaces();
    return at_ < text_.size() && text_[at_] == c;
  }
  bool accept(char c) {
    if (!peek(c)) return false;
    ++at_;
    return true;
  }
  static bool in_word(char c) { return c != ' ' && c != '\t' && c != '(' && c != ')' && c != '\n'; }
  std::string_view word_at(std::size_t from) const {
    std::size_t end = from;
    while (end < text_.size() && in_word(text_[end])) ++end;
    return text_.substr(from, end - from);
  }
  bool accept_word(std::string_view word) {
    skip_spaces();
    if (word_at(at_) != word) return false;
    at_ += word.size();
    return true;
  }

  Node any() {
    if (++depth_ > kMaxDepth) fail("nested too deeply");
    Node node{Node::Kind::any_of};
    do {
      node.children.push_back(all());
    } while (accept_word("OR"));
    --depth_;
    return node;
  }

  Node all() {
    Node node{Node::Kind::all_of};
    for (;;) {
      node.children.push_back(term());
      const bool more = accept_word("AND");
      skip_spaces();
      const bool ends = at_ == text_.size() || text_[at_] == ')' || word_at(at_) == "OR";
      if (!more && ends) return node;
    }
  }

  Node term() {
    if (accept('-')) {
      if (++depth_ > kMaxDepth) fail("nested too deeply");
      Node node{Node::Kind::negate};
      node.children.push_back(term());
      --depth_;
      return node;
    }
    if (accept('(')) {
      Node node = any();
      if (!accept(')')) fail("expected ')'");
      return node;
    }
    const FilterKey& key = parse_key();
    if (at_ == text_.size() || text_[at_] != '(') return value(key);
    ++at_;
    Node node{Node::Kind::any_of};
    do {
      skip_spaces();
      node.children.push_back(value(key));
    } while (accept_word("OR"));
    if (!accept(')')) fail("expected OR or ')'");
    return node;
  }

  const FilterKey& parse_key() {
    const std::string_view word = word_at(at_);
    const std::size_t colon = word.find(':');
    if (word.empty() || colon == std::string_view::npos || colon == 0) fail("expected KEY:VALUE");
    const std::string_view name = word.substr(0, colon);
    std::vector<std::string> names;
    for (const FilterKey& key : filter_keys()) {
      if (key.name == name) {
        at_ += colon + 1;
        return key;
      }
      names.push_back(key.name);
    }
    fail(fmt::format("unknown key '{}'", printable(name)), suggest(name, names));
  }

  Node value(const FilterKey& key) {
    const std::string_view word = word_at(at_);
    if (word.empty()) fail(fmt::format("{} needs a value", key.name));
    Node node{Node::Kind::any_of};
    for (const std::string& element : parse_elements(word, fmt::format("--filter: {}", key.name))) {
      if (key.text != nullptr) {
        check_closed(key, element);
        node.children.push_back(Node{.kind = Node::Kind::match, .key = &key, .pattern = element});
      } else {
        add_counts(key, element, node.children);
      }
    }
    at_ += word.size();
    return node;
  }

  // "4k", "512:16k:x2" or ">=4k".
  static void add_counts(const FilterKey& key, std::string_view number, std::vector<Node>& nodes) {
    const std::string flag = fmt::format("--filter: {}", key.name);
    const std::pair<std::string_view, Compare> signs[] = {{">=", Compare::greater_equal},
                                                          {"<=", Compare::less_equal},
                                                          {">", Compare::greater},
                                                          {"<", Compare::less},
                                                          {"=", Compare::equal}};
    Node node{.kind = Node::Kind::match, .key = &key};
    for (const auto& [sign, how] : signs) {
      if (!number.starts_with(sign)) continue;
      node.how = how;
      node.bound = parse_count(number.substr(sign.size()), flag);
      nodes.push_back(node);
      return;
    }
    for (const std::int64_t bound : parse_counts(number, flag)) {
      node.bound = bound;
      nodes.push_back(node);
    }
  }

  void check_closed(const FilterKey& key, std::string_view word) const {
    if (names_ == Filter::Names::any && (key.name == "kernel" || key.name == "device")) return;
    for (const auto& [name, values] : closed_filter_values()) {
      if (name != key.name) continue;
      const bool known = std::any_of(values.begin(), values.end(), [&](const std::string& value) {
        return glob_match(word, value);
      });
      if (!known) {
        fail(fmt::format("{} is never '{}'", key.name, printable(word)),
             hint_for(key, word, values));
      }
    }
  }

  static std::string hint_for(const FilterKey& key, std::string_view word,
                              const std::vector<std::string>& values) {
    if (key.name == "device") return "devices are named as in cuda:0 and sim:h200";
    return suggest(word, key.name == "kernel" ? kernel_names(false) : values);
  }

  std::string_view text_;
  Filter::Names names_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Filter Filter::parse(std::string_view text, Names names) {
  return all_of({std::string(text)}, names);
}

Filter Filter::all_of(const std::vector<std::string>& texts, Names names) {
  Node root{Node::Kind::all_of};
  for (const std::string& text : texts) root.children.push_back(Parser(text, names).parse());
  Filter filter;
  filter.root_ = std::make_shared<const Node>(std::move(root));
  return filter;
}

bool Filter::matches(std::string_view kernel, const Problem& problem,
                     std::string_view device) const {
  return root_ == nullptr || root_->matches({kernel, problem, device});
}

}  // namespace rooflash
