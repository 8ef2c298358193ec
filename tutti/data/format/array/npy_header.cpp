#include "tutti/data/format/array/npy_header.h"

#include <charconv>

namespace tutti::data {
namespace {

constexpr size_t kMostRank = 32;  // the limit of NumPy and HDF5

/// Parses the subset of Python that NumPy writes.
class PythonText {
 public:
  explicit PythonText(std::string_view text) : rest_(text) {}

  bool take(char wanted) {
    skip();
    if (rest_.empty() || rest_.front() != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void expect(char wanted) {
    if (!take(wanted)) fail(fmt::format("'{}'", wanted));
  }

  bool at(char wanted) {
    skip();
    return !rest_.empty() && rest_.front() == wanted;
  }

  std::string_view quoted() {
    skip();
    const char quote = rest_.empty() ? '\0' : rest_.front();
    if (quote != '\'' && quote != '"') fail("a quoted word");
    const size_t end = rest_.find(quote, 1);
    if (end == rest_.npos) fail("the end of a quoted word");
    const std::string_view word = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return word;
  }

  bool boolean() {
    skip();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      return value;
    }
    fail("True or False");
  }

  std::vector<int64_t> tuple() {
    std::vector<int64_t> numbers;
    expect('(');
    while (!take(')')) {
      skip();
      int64_t number = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
      if (error != std::errc() || number < 0) fail("an extent");
      rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
      take('L');  // Python 2's long numbers
      if (numbers.size() == kMostRank) fail(fmt::format("at most {} dimensions", kMostRank));
      numbers.push_back(number);
      if (!at(')')) expect(',');
    }
    return numbers;
  }

  /// Skips a list with all its content.
  void pass_list() {
    int depth = 0;
    do {
      skip();
      if (at('\'') || at('"')) {
        quoted();
        continue;
      }
      if (rest_.empty()) fail("the end of a list");
      const char c = rest_.front();
      depth += c == '[' || c == '(' ? 1 : c == ']' || c == ')' ? -1 : 0;
      rest_.remove_prefix(1);
    } while (depth > 0);
  }

  [[noreturn]] void fail(const std::string& wanted) const {
    throw BadFile(fmt::format("the .npy header is corrupted: expected {} before '{}'", wanted,
                              printable(rest_.substr(0, 16))));
  }

  static std::string printable(std::string_view text) {
    std::string out;
    for (const char c : text) out += c >= ' ' && c <= '~' ? c : '?';
    return out;
  }

 private:
  void skip() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\n'))
      rest_.remove_prefix(1);
  }

  std::string_view rest_;
};

/// Says how to save an array of such elements as numbers, by the letter of its type.
std::string_view npy_remedy(char letter) {
  switch (letter) {
    case 'O': return "(Python objects): save x.astype('float32'), or each of them by itself";
    case 'U':
    case 'S': return "(texts): save their numbers, numpy.unique(x, return_inverse=True)[1]";
    case 'c': return "(complex numbers): save numpy.stack([x.real, x.imag], axis=-1)";
    case 'f': return "(long floats): save x.astype('float64')";
    case 'M':
    case 'm': return "(times): save x.astype('int64')";
    default: return ": save the array as numbers";
  }
}

/// Parses '<f4' and the like.
void set_npy_type(std::string_view descr, StoredArray& array) {
  array.swapped = descr.starts_with('>');
  std::string_view code = descr;
  if (!code.empty() && std::string_view("<>|=").find(code.front()) != code.npos)
    code.remove_prefix(1);
  int bytes = 0;
  const auto [end, error] =
      code.size() < 2 ? std::from_chars_result{nullptr, std::errc::invalid_argument}
                      : std::from_chars(code.data() + 1, code.data() + code.size(), bytes);
  const bool whole = error == std::errc() && end == code.data() + code.size();
  const std::string name = code == "b1" || code == "?" ? "bool"
                           : whole && bytes <= 8       ? fmt::format("{}{}", code[0], bytes * 8)
                                                       : "";
  // Only NumPy's own letters are valid: "bf16" is not.
  if ((name != "bool" && (code.empty() || std::string_view("iuf").find(code[0]) == code.npos)) ||
      !element_type_of(name, array.info.type))
    array.info.problem =
        fmt::format("elements of type '{}' are not known here {}", PythonText::printable(descr),
                    npy_remedy(code.empty() ? ' ' : code[0]));
}

}  // namespace

void parse_npy_header(std::string_view text, StoredArray& array) {
  PythonText python(text);
  bool has_type = false, has_order = false, has_shape = false;
  python.expect('{');
  while (!python.take('}')) {
    const std::string_view key = python.quoted();
    python.expect(':');
    if (key == "descr" && !has_type) {
      has_type = true;
      if (python.at('[')) {
        python.pass_list();
        array.info.problem =
            "records with fields are not known here: save each field on its own, as "
            "numpy.savez('NEW.npz', **{n: x[n] for n in x.dtype.names}) does";
      } else {
        set_npy_type(python.quoted(), array);
      }
    } else if (key == "fortran_order" && !has_order) {
      has_order = true;
      array.first_fastest = python.boolean();
    } else if (key == "shape" && !has_shape) {
      has_shape = true;
      array.info.shape = python.tuple();
    } else {
      python.fail("descr, fortran_order and shape, each once,");
    }
    if (!python.at('}')) python.expect(',');
  }
  if (!has_type || !has_order || !has_shape) python.fail("descr, fortran_order and shape");
}

}  // namespace tutti::data
