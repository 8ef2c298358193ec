#include "tutti/backend/cpu/matrix/matrix_product.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "tutti/backend/cpu/matrix/matrix_tile.h"
#include "tutti/backend/cpu/simd/simd_transpose.h"

namespace tutti::backend::matrix {
namespace {

/// Elements of a part of the sum: its weights for the panels of a tile are 24 KiB, half of the
/// first-level cache. A multiple of the elements that are transposed at a time.
constexpr int64_t kPartDepth = 192;
/// The least number of columns whose sums are kept until they are complete: x is gathered once for
/// all of them.
constexpr int64_t kColumnsOfBlock = 512;
/// The number of floats of such sums that fit into the second-level cache beside x.
constexpr int64_t kSumsOfBlock = int64_t{1} << 16;

/// The form of a sum's terms, and the conversion of weights to that form.
template <class T>
struct Terms;

template <>
struct Terms<float> {
  using Element = float;
  static constexpr int64_t kCount = 1;  ///< terms in an element
  /// Copies panels of 16 columns, `rows` elements: one row of 16 after the other.
  static void put_rows(const float* w, int64_t rows, int64_t, float* to) {
    std::memcpy(to, w, static_cast<size_t>(rows * kColumns) * sizeof(float));
  }
  static simd::Row row(const float* w, const float*) {
    simd::Row row;
    std::memcpy(&row, w, sizeof row);
    return row;
  }
};

template <>
struct Terms<bf16> {
  using Element = TermPair;
  static constexpr int64_t kCount = 2;
  /// Converts `terms` rows of 16 to pairs.
  static void put_rows(const float* w, int64_t rows, int64_t terms, TermPair* to) {
    for (int64_t i = 0; i < rows; ++i, to += kColumns) {
      const float* const first = w + 2 * i * kColumns;
      const bool second = 2 * i + 1 < terms;
      simd::store_as(to, interleaved(simd::load(first, simd::AllLanes{}),
                                     second ? simd::load(first + kColumns, simd::AllLanes{})
                                            : simd::Floats{}));
    }
  }
  /// Returns the sixteen numbers at `low`, then those at `high` (null: zeros).
  static simd::Row row(const float* low, const float* high) {
    return pairs_of(simd::load(low, simd::AllLanes{}),
                    high ? simd::load(high, simd::AllLanes{}) : simd::Floats{});
  }
};

/// Takes activations of type T and gives results of type Y.
template <class T, class Y>
class ProductKernel final : public Kernel {
 public:
  explicit ProductKernel(const ProductProblem& problem)
      : p_(problem), elements_(parts_of(p_.from, kTerms)),
        columns_(std::min(panels_of(p_.to) * kColumns,
                          std::max(kColumnsOfBlock, kSumsOfBlock / p_.positions / kPair * kPair))),
        rows_(static_cast<size_t>(p_.positions)) {}

  size_t workspace_bytes() const override {
    return static_cast<size_t>(p_.positions * (kRowStride + columns_) + kPartDepth * kPair) *
           sizeof(float);
  }

  void run(const KernelArgs& args) override {
    const auto* const x = static_cast<const T*>(args.in[0]);
    auto* const y = static_cast<Y*>(args.out[0]);
    const auto* const bias = p_.bias ? static_cast<const float*>(args.in[2]) : nullptr;
    auto* const gathered = static_cast<Element*>(args.workspace);
    Element* const b = gathered + p_.positions * kRowStride;
    auto* const sums = reinterpret_cast<float*>(b + kPartDepth * kPair);
    for (int64_t r = 0; r < p_.positions; ++r) rows_[static_cast<size_t>(r)] = sums + r * columns_;
    for (int64_t first = 0; first < p_.to; first += columns_) {
      const int64_t count = std::min(columns_, p_.to - first);
      for (int64_t begin = 0; begin < elements_; begin += kPartDepth) {
        const Part part{begin, std::min(begin + kPartDepth, elements_)};
        gather(x, part, gathered);
        add_part(static_cast<const float*>(args.in[1]), part, {first, count}, gathered, b);
      }
      close(first, count, bias, y);
    }
  }

 private:
  using Element = typename Terms<T>::Element;
  static_assert(sizeof(Element) == sizeof(float));
  static constexpr int64_t kTerms = Terms<T>::kCount;
  static constexpr int64_t kRowStride = kPartDepth + kGap;
  static constexpr int64_t kPair = kMostPanels * kColumns;

  /// A range of elements of the sum.
  struct Part {
    int64_t begin, end;
    int64_t depth() const { return end - begin; }
  };

  /// Gathers the terms of all positions, and zeros up to a whole element.
  void gather(const T* x, const Part& part, Element* to) const {
    const int64_t first = part.begin * kTerms, terms = std::min(part.end * kTerms, p_.from) - first;
    for (int64_t r = 0; r < p_.positions; ++r, to += kRowStride) {
      std::memcpy(to, x + r * p_.from + first, static_cast<size_t>(terms) * sizeof(T));
      if (terms < part.depth() * kTerms) reinterpret_cast<T*>(to)[terms] = T(0.f);
    }
  }

  struct Columns {
    int64_t first, count;
  };

  /// Adds the part to the sums of the columns, or begins the sums.
  void add_part(const float* w, const Part& part, const Columns& columns, const Element* a,
                Element* b) const {
    const int64_t panels = panels_of(columns.count), tiles = parts_of(p_.positions, kMostRows),
                  first = columns.first / kColumns;
    Tile<Element> t{.a_row = kRowStride,
                    .a_step = 1,
                    .b = b,
                    .b_panel = kPartDepth * kColumns,
                    .depth = part.depth(),
                    .c_panel = kColumns,
                    .add = part.begin > 0};
    for (int64_t j = 0; j < panels; j += kMostPanels) {
      const int64_t width = std::min<int64_t>(kMostPanels, panels - j);
      for (int64_t i = 0; i < width; ++i) put_panel(w, part, first + j + i, b + i * t.b_panel);
      t.c_first = j * kColumns;
      const auto multiply = multiply_of<Element, true>;
      const int64_t next = first + (j + kMostPanels < panels ? j + kMostPanels : j);
      for (int64_t i = 0; i < tiles; ++i) {
        const auto [begin, end] = part_of(p_.positions, i, tiles);
        t.a = a + begin * kRowStride;
        t.c = rows_.data() + begin;
        look_ahead(w, part, next, i, t);
        multiply(end - begin, width)(t);
      }
    }
  }

  /// While tile `i` of the rows is computed, prefetches a share of the weights that put_panel()
  /// will read for the panels from `panel` on: memory takes about as long as that.
  void look_ahead(const float* w, const Part& part, int64_t panel, int64_t i,
                  Tile<Element>& t) const {
    constexpr int64_t kFloats = kLineBytes / static_cast<int64_t>(sizeof(float));
    const int64_t first = part.begin * kTerms, lines = i * kAheadLines;
    if (p_.data) {  // each run of weights for the panels' columns is a few lines
      const int64_t of_panel = p_.to * kColumns;
      t.ahead = w + first / kColumns * of_panel +
                (panel * kColumns + lines % (kMostPanels * kColumns)) * kFloats;
      t.ahead_step = of_panel * static_cast<int64_t>(sizeof(float));
    } else {  // each panel of this part is one run
      const int64_t of_tile = std::max(part.depth() / kAheadDepth, int64_t{1}) * kAheadLines,
                    tiles = parts_of(part.depth() * kTerms, of_tile);
      t.ahead = w + ((panel + i / tiles % kMostPanels) * p_.from + first + i % tiles * of_tile) *
                        kColumns;
      t.ahead_step = kAheadLines * kLineBytes;
    }
  }

  /// Writes the part's weights for 16 columns: outputs of the weights, or with `data` their inputs.
  void put_panel(const float* w, const Part& part, int64_t panel, Element* to) const {
    if (!p_.data) {
      const int64_t first = part.begin * kTerms;
      Terms<T>::put_rows(w + (panel * p_.from + first) * kColumns, part.depth(), p_.from - first,
                         to);
      return;
    }
    // There are blocks of 16 elements by 16 columns: an input of the weights has 16 outputs side by
    // side.
    const int64_t of_panel = p_.to * kColumns, all = panels_of(p_.from),
                  inputs = std::min(kColumns, p_.to - panel * kColumns);
    for (int64_t e = part.begin; e < part.end; e += kColumns, to += kColumns * kColumns) {
      const int64_t outputs = e / kColumns * kTerms;
      const float* const low = w + outputs * of_panel + panel * kColumns * kColumns;
      const float* const high = outputs + 1 < all ? low + of_panel : nullptr;
      simd::Row rows[kColumns]{};
      for (int64_t i = 0; i < inputs; ++i)
        rows[i] = Terms<T>::row(low + i * kColumns, high ? high + i * kColumns : nullptr);
      simd::transpose(rows);
      std::memcpy(to, rows, sizeof rows);
    }
  }

  /// Applies bias and activation.
  void close(int64_t first, int64_t count, const float* bias, Y* y) const {
    for (int64_t r = 0; r < p_.positions; ++r) {
      const float* const sums = rows_[static_cast<size_t>(r)];
      Y* const to = y + r * p_.to + first;
      const auto finish = [&](int64_t c, auto lanes) {
        simd::Floats v = simd::load(sums + c, lanes);
        if (bias) v += simd::load(bias + first + c, lanes);
        if (p_.relu && p_.slope == 0) v = simd::relu(v);
        if (p_.relu && p_.slope != 0) v = simd::select(v < simd::Floats{}, v * p_.slope, v);
        simd::store(to + c, v, lanes);
      };
      int64_t c = 0;
      for (; c + kColumns <= count; c += kColumns) finish(c, simd::AllLanes{});
      if (c < count) finish(c, simd::SomeLanes{static_cast<int>(count - c)});
    }
  }

  ProductProblem p_;
  int64_t elements_, columns_;
  std::vector<float*> rows_;  ///< the sums of each position
};

}  // namespace

std::unique_ptr<Kernel> make_product_kernel(const ProductProblem& problem, DType type,
                                            DType results) {
  if (type == DType::f32) return std::make_unique<ProductKernel<float, float>>(problem);
  if (results == DType::f32) return std::make_unique<ProductKernel<bf16, float>>(problem);
  return std::make_unique<ProductKernel<bf16, bf16>>(problem);
}

}  // namespace tutti::backend::matrix
