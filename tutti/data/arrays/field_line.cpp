#include "tutti/data/arrays/field_line.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "tutti/base/error.h"
#include "tutti/tensor/shape.h"

namespace tutti::data {
namespace {

constexpr int64_t kMostClasses = 65536, kMostExtent = int64_t{1} << 40;

struct LineWord {
  std::string text{};
  bool after_comma = false, quoted = false;
};

[[noreturn]] void refuse_line(std::string_view text, const std::string& why) {
  throw ConfigError(fmt::format("data.fields: in \"{}\", {}", text, why));
}

/// Splits text at blanks and commas; text in '...' is one word. Stops at `end` outside of quotes;
/// `at` then points behind it.
std::vector<LineWord> words_until(std::string_view text, size_t& at, char end) {
  std::vector<LineWord> words;
  bool comma = false;
  while (at < text.size() && text[at] != end) {
    const char c = text[at];
    if (c == ' ' || c == '\t') {
      ++at;
    } else if (c == ',') {
      if (comma || words.empty()) refuse_line(text, "a comma stands where a word is wanted");
      comma = true;
      ++at;
    } else if (c == '\'') {
      const size_t close = text.find('\'', at + 1);
      if (close == text.npos) refuse_line(text, "a ' is not closed");
      words.push_back({std::string(text.substr(at + 1, close - at - 1)), comma, true});
      comma = false;
      at = close + 1;
    } else {
      const size_t begin = at;
      while (at < text.size() && text[at] != end &&
             std::string_view(" \t,'").find(text[at]) == std::string_view::npos)
        ++at;
      words.push_back({std::string(text.substr(begin, at - begin)), comma, false});
      comma = false;
    }
  }
  if (comma) refuse_line(text, "a comma stands where nothing follows");
  if (at < text.size()) ++at;
  return words;
}

/// Reads the clauses of a line from left to right.
class LineReader {
 public:
  explicit LineReader(std::string_view text) : text_(text) {}

  FieldLine read() {
    size_t at = 0;
    const std::vector<LineWord> name = words_until(text_, at, ':');
    words_ = words_until(text_, at, '\0');
    if (name.size() != 1 || name[0].text.empty() || words_.empty() || words_[0].text != "from")
      refuse_line(text_,
                  "a field, a colon and 'from' must come first, as in \"image: from images\"");
    line_.field = name[0].text;
    next_ = 1;
    line_.arrays = list("an array's name behind 'from'");
    while (next_ < words_.size()) clause();
    check();
    return std::move(line_);
  }

 private:
  static bool is_keyword(const LineWord& word) {
    constexpr std::string_view kWords[] = {"axis", "whole", "cut", "as", "classes", "missing"};
    return !word.quoted && std::ranges::find(kWords, word.text) != std::end(kWords);
  }
  bool more() const { return next_ < words_.size() && !is_keyword(words_[next_]); }

  std::vector<std::string> list(const char* wanted) {
    std::vector<std::string> items;
    while (next_ < words_.size() && (items.empty() || words_[next_].after_comma)) {
      if (words_[next_].text.empty()) refuse_line(text_, "'' is no name");
      if (items.empty() && words_[next_].after_comma)
        refuse_line(text_, "a comma stands where a word is wanted");
      items.push_back(words_[next_++].text);
    }
    if (items.empty()) refuse_line(text_, fmt::format("{} is missing", wanted));
    return items;
  }

  double number(const std::string& word) const {
    double value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(value))
      refuse_line(text_, fmt::format("'{}' stands where a number is wanted", word));
    return value;
  }
  int64_t whole_number(const std::string& word, int64_t least, int64_t most) const {
    const double value = number(word);
    if (value != std::floor(value) || value < static_cast<double>(least) ||
        value > static_cast<double>(most))
      refuse_line(text_, fmt::format("'{}' stands where a whole number of {} to {} is wanted", word,
                                     least, most));
    return static_cast<int64_t>(value);
  }

  std::vector<int64_t> extents(bool open) {
    std::vector<int64_t> all;
    while (more()) {
      const std::string& word = words_[next_++].text;
      all.push_back(open && word == "?" ? FieldLine::kAnyExtent
                                        : whole_number(word, 1, kMostExtent));
    }
    if (all.size() >= Shape::kMaxRank)
      refuse_line(text_, fmt::format("a sample has {} axes at most", Shape::kMaxRank - 1));
    return all;
  }

  const std::string& one(std::string_view keyword) {
    if (!more()) refuse_line(text_, fmt::format("a number behind '{}' is missing", keyword));
    return words_[next_++].text;
  }

  void place(FieldLine::Place place) {
    if (line_.place != FieldLine::Place::unset)
      refuse_line(text_, "one of 'axis', 'whole' and 'cut' can stand, and once");
    line_.place = place;
  }

  void clause() {
    const LineWord& word = words_[next_++];
    const std::string_view keyword =
        word.quoted || word.after_comma ? std::string_view() : std::string_view(word.text);
    if (keyword == "axis") {
      place(FieldLine::Place::axis);
      line_.axis = static_cast<int>(whole_number(one(keyword), 0, Shape::kMaxRank));
    } else if (keyword == "whole") {
      place(FieldLine::Place::whole);
    } else if (keyword == "cut") {
      place(FieldLine::Place::cut);
      line_.cut = extents(false);
      if (line_.cut.empty()) refuse_line(text_, "'cut' wants the extents of a block");
    } else if (keyword == "as") {
      as();
    } else if (keyword == "classes") {
      classes();
    } else if (keyword == "missing") {
      if (line_.missing) refuse_line(text_, "'missing' stands there twice");
      line_.missing = number(one(keyword));
    } else {
      refuse_line(text_, fmt::format("'{}' is not known here; known are axis, whole, cut, as, "
                                     "classes, missing",
                                     word.text));
    }
  }

  void as() {
    if (line_.type || line_.shape) refuse_line(text_, "'as' stands there twice");
    ElementType type{};
    if (more() && element_type_of(words_[next_].text, type)) {
      line_.type = type;
      ++next_;
    }
    if (std::vector<int64_t> shape = extents(true); !shape.empty()) line_.shape = std::move(shape);
    if (!line_.type && !line_.shape)
      refuse_line(text_, "'as' wants a type, the extents of a sample, or both");
  }

  void classes() {
    if (!line_.class_names.empty()) refuse_line(text_, "'classes' stands there twice");
    std::vector<std::string> names = list("a number of classes, or their names, behind 'classes'");
    if (names.size() == 1 &&
        std::ranges::all_of(names[0], [](char c) { return c >= '0' && c <= '9'; })) {
      const int64_t count = whole_number(names[0], 2, kMostClasses);
      names.clear();
      for (int64_t c = 0; c < count; ++c) names.push_back(std::to_string(c));
    }
    if (names.size() < 2 || std::ssize(names) > kMostClasses)
      refuse_line(text_, "'classes' wants a number from 2 on, or at least two names");
    line_.class_names = std::move(names);
  }

  void check() const {
    if (line_.arrays.size() > 1 && !line_.class_names.empty())
      refuse_line(text_, "class numbers come from one array");
  }

  std::string_view text_;
  std::vector<LineWord> words_;
  size_t next_ = 0;
  FieldLine line_;
};

}  // namespace

FieldLine parse_field_line(std::string_view text) { return LineReader(text).read(); }

std::vector<FieldLine> parse_field_lines(const std::vector<std::string>& texts) {
  std::vector<FieldLine> lines;
  for (const std::string& text : texts) {
    FieldLine line = parse_field_line(text);
    if (std::ranges::find(lines, line.field, &FieldLine::field) != lines.end())
      refuse_line(text, fmt::format("the field '{}' is there already", line.field));
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace tutti::data
