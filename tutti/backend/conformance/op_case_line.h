#pragma once
// The common parts of the makers of cases: the words of a line, and the inputs that they collect.
// Private to files of cases.

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/backend/conformance/op_case.h"
#include "tutti/base/error.h"
#include "tutti/ops/activation.h"

namespace tutti::backend {

using CaseNumbers = std::array<int64_t, 3>;

/// The words of a line.
class CaseLine {
 public:
  explicit CaseLine(std::string_view text);

  std::string op;
  DType dtype = DType::f32;
  Shape x;

  int64_t extent(char letter, int64_t otherwise) const;
  bool has(const char* word);
  double number(const char* word, double otherwise);
  float real(const char* word, double otherwise) {
    return static_cast<float>(number(word, otherwise));
  }
  int64_t whole_number(const char* word, int64_t otherwise);
  /// Returns the numbers of "stride2" for all dimensions, "stride2x1" for each.
  CaseNumbers numbers(const char* word, int64_t otherwise);
  void check_all_used() const;
  [[noreturn]] void fail(std::string_view what) const;

 private:
  struct Word {
    std::string value;
    bool used;
  };

  DType dtype_named(std::string_view name) const;
  /// Reads single letters with numbers, "k16r3s3"; false if the word is of another form.
  bool read_extents(std::string_view word, std::vector<int64_t>* dims);

  std::string text_;
  std::map<char, int64_t> extents_;
  std::map<std::string, Word> words_;
};

/// Collects the inputs of a case.
class CaseInputs {
 public:
  explicit CaseInputs(OpCase& made) : made_(made) {}
  CaseInputs& batched(const Shape& shape, DType dtype, Fill fill = Fill::normal) {
    return add({{dtype, shape, {}}, true}, fill, false);
  }
  CaseInputs& free(const Shape& shape) {
    return add({{DType::f32, shape, {}}, false}, Fill::normal, true);
  }
  CaseInputs& fixed(const Shape& shape, Fill fill = Fill::normal) {
    return add({{DType::f32, shape, {}}, false}, fill, false);
  }

 private:
  CaseInputs& add(const graph::ValueType& type, Fill fill, bool is_free) {
    made_.problem.in.push_back(type);
    made_.problem.in_free.push_back(is_free);
    made_.fill.push_back(fill);
    return *this;
  }
  OpCase& made_;
};

/// Returns the activation that a line names; leaky_relu's slope is 0.2.
std::optional<ops::ActivationAttributes> activation_of(CaseLine& line);

}  // namespace tutti::backend
