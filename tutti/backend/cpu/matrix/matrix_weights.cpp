#include "tutti/backend/cpu/matrix/matrix_weights.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "tutti/backend/cpu/matrix/matrix_tile.h"

namespace tutti::backend::matrix {
namespace {

/// Channels are shared in units of two vectors of bf16 that are loaded from whole lines.
constexpr int64_t kChannelsOfLine = 2 * kColumns;
constexpr int64_t kChannelsOfBlock = 7 * kChannelsOfLine;

/// The form of a sum's terms: a pixel's number, or two pixels' numbers side by side. put_row()
/// makes vectors of 16 elements, `step` elements apart, from the first `count` numbers of kTerms
/// pixels. A null pixel has zeros.
template <class T>
struct Element;

template <>
struct Element<float> {
  using Number = float;
  static constexpr int64_t kTerms = 1;
  static void put_row(const float* const* from, int64_t count, float* to, int64_t step) {
    const auto put = [&](int64_t c, auto lanes) {
      simd::store(to, from[0] ? simd::load(from[0] + c, lanes) : simd::Floats{}, simd::AllLanes{});
    };
    int64_t c = 0;
    for (; c + kColumns <= count; c += kColumns, to += step) put(c, simd::AllLanes{});
    if (c < count) put(c, simd::SomeLanes{static_cast<int>(count - c)});
  }
};

template <>
struct Element<TermPair> {
  using Number = bf16;
  static constexpr int64_t kTerms = 2;
  static void put_row(const bf16* const* from, int64_t count, TermPair* to, int64_t step) {
    int64_t c = 0;
#if TUTTI_AVX512
    for (; c + 2 * kColumns <= count; c += 2 * kColumns, to += 2 * step) put_two(from, c, to, step);
#endif
    const auto put = [&](auto lanes) {
      const auto bits = [&](const bf16* p) {
        return p ? simd::bits_of(simd::load(p + c, lanes)) : simd::Words{};
      };
      simd::store_as(to, bits(from[1]) | bits(from[0]) >> 16);
    };
    for (; c + kColumns <= count; c += kColumns, to += step) put(simd::AllLanes{});
    if (c < count) put(simd::SomeLanes{static_cast<int>(count - c)});
  }

 private:
#if TUTTI_AVX512
  /// Makes two vectors at once: half the instructions.
  [[gnu::always_inline]] static void put_two(const bf16* const* from, int64_t c, TermPair* to,
                                             int64_t step) {
    using Numbers = uint16_t __attribute__((vector_size(4 * kColumns)));
    const auto numbers = [&](const bf16* p) {
      return p ? simd::load_as<Numbers>(p + c) : Numbers{};
    };
    const Numbers a = numbers(from[0]), b = numbers(from[1]);
    simd::store_as(
        to, __builtin_shufflevector(a, b, 0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39, 8,
                                    40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47));
    simd::store_as(to + step, __builtin_shufflevector(a, b, 16, 48, 17, 49, 18, 50, 19, 51, 20, 52,
                                                      21, 53, 22, 54, 23, 55, 24, 56, 25, 57, 26,
                                                      58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63));
  }
#endif
};

/// Computes dw[tap] = the channels of x, by pixels, times dy: the sum runs over the pixels of y, of
/// all samples at once.
template <class T>
class WeightsKernel final : public Kernel {
 public:
  explicit WeightsKernel(WeightsProblem problem)
      : p_(std::move(problem)), panels_(panels_of(p_.outputs)),
        group_(std::clamp<int64_t>(p_.chunk / (kDepth * kColumns), 1, panels_)),
        chunk_(taps() == 1 ? kDepth
                           : std::clamp(p_.chunk / (group_ * kColumns) / kDepth * kDepth, kDepth,
                                        parts_of(elements_of(pixels()), kDepth) * kDepth)),
        rows_(kChannelsOfBlock), read_(kDepth * kTerms) {}
  size_t workspace_bytes() const override {
    return static_cast<size_t>(kDepth * kRowStride +
                               (chunk_ * kColumns + chunk_ / kDepth * kGap) * group_) *
           sizeof(T);
  }
  size_t state_bytes() const override {
    return p_.whole ? 0 : static_cast<size_t>(weights()) * sizeof(float);
  }
  int state_output() const override { return p_.whole ? -1 : 0; }

  void run(const KernelArgs& args) override {
    const auto* const x = static_cast<const Number*>(args.in[0]);
    const auto* const dy = static_cast<const Number*>(args.in[1]);
    auto* const gathered = static_cast<T*>(args.workspace);
    T* const b = gathered + kDepth * kRowStride;
    auto* const dw = static_cast<float*>(p_.whole ? args.out[0] : args.state);
    const int64_t elements = elements_of(pixels()), chunks = parts_of(elements, chunk_);
    const auto [first, last] =
        p_.whole ? part_of(panels_, args.thread, args.threads) : std::pair(int64_t{0}, panels_);
    for (int64_t at = first; at < last; at += group_) {
      const Group group{at, std::min(group_, last - at)};
      for (int64_t i = 0; i < chunks; ++i) {
        const auto [begin, end] = part_of(elements, i, chunks);
        const Chunk chunk{begin * kTerms, std::min(end * kTerms, pixels())};
        to_panels(dy, chunk, group, b);
        LookAhead ahead = look_ahead(x, dy, chunk);
        add_chunk(x, chunk, group, b, gathered, dw, i > 0 || !args.first, ahead);
      }
    }
  }
  void finish(const FinishArgs& args) override {
    simd::add_states(args, static_cast<float*>(args.out[0]), weights());
  }

 private:
  using Number = typename Element<T>::Number;
  static constexpr int64_t kTerms = Element<T>::kTerms;
  static constexpr int64_t kRowStride = kChannelsOfBlock + kGap;

  /// Pixels of y, counted through all samples.
  struct Chunk {
    int64_t first, last;
    int64_t elements() const { return elements_of(last - first); }
    /// Returns the pixels of elements [begin, end) of the chunk.
    Chunk part(int64_t begin, int64_t end) const {
      return {first + begin * kTerms, std::min(first + end * kTerms, last)};
    }
  };

  /// Panels of outputs that are made together.
  struct Group {
    int64_t first, count;
  };

  static int64_t elements_of(int64_t terms) { return parts_of(terms, kTerms); }
  int64_t pixels() const { return p_.samples * p_.lattice.results(); }
  int64_t taps() const { return static_cast<int64_t>(p_.lattice.taps.size()); }
  int64_t weights() const { return taps() * p_.channels * panels_ * kColumns; }

  /// Writes the chunk of dy as blocks of at most kDepth elements, each with all panels of the group
  /// in turn.
  void to_panels(const Number* dy, const Chunk& chunk, const Group& group, T* b) const {
    const int64_t blocks = parts_of(chunk.elements(), kDepth), first = group.first * kColumns,
                  columns = std::min(group.count * kColumns, p_.outputs - first);
    for (int64_t i = 0; i < blocks; ++i) {
      const auto [begin, end] = part_of(chunk.elements(), i, blocks);
      const int64_t panel = panel_of(end - begin);
      for (int64_t k = begin; k < end; ++k) {
        const Number* from[kTerms]{};
        for (int64_t term = 0; term < kTerms; ++term)
          if (const int64_t pixel = chunk.first + k * kTerms + term; pixel < chunk.last)
            from[term] = dy + pixel * p_.outputs + first;
        Element<T>::put_row(from, columns, b + (k - begin) * kColumns, panel);
      }
      b += group.count * panel;
    }
  }
  /// Returns the elements between panels of such a block. A row of dy is spread over all panels,
  /// and a power of two would put it into a few sets of the cache.
  static int64_t panel_of(int64_t depth) { return depth * kColumns + kGap; }

  /// Returns the memory that the next chunk is made from, as far as it lies in one piece.
  LookAhead look_ahead(const Number* x, const Number* dy, const Chunk& chunk) const {
    LookAhead ahead;
    if (taps() > 1) return ahead;  // a chunk is long, and read by each tap
    const int64_t next = std::min(chunk.last - chunk.first, pixels() - chunk.last);
    const auto add = [&](const Number* from, int64_t channels) {
      ahead.add(from + chunk.last * channels,
                next * channels * static_cast<int64_t>(sizeof(Number)));
    };
    add(dy, p_.outputs);
    if (p_.lattice.in_place()) add(x, p_.channels);
    return ahead;
  }

  void add_chunk(const Number* x, const Chunk& chunk, const Group& group, const T* b, T* gathered,
                 float* dw, bool add, LookAhead& ahead) {
    const int64_t lines = parts_of(p_.channels, kChannelsOfLine),
                  parts = parts_of(lines * kChannelsOfLine, kChannelsOfBlock);
    for (const Lattice::Tap& tap : p_.lattice.taps)
      for (int64_t c = 0; c < parts; ++c) {
        const auto [begin, end] = part_of(lines, c, parts);
        const int64_t low = begin * kChannelsOfLine,
                      high = std::min(end * kChannelsOfLine, p_.channels);
        for (int64_t i = low; i < high; ++i)
          rows_[static_cast<size_t>(i - low)] =
              dw + ((group.first * taps() + tap.index) * p_.channels + i) * kColumns;
        if (!add_channels(x, chunk, group, tap, low, high - low, b, gathered, add, ahead))
          clear(group, high - low);
      }
  }

  /// Adds to the rows of dw, or makes them. Returns false if there is nothing to add.
  bool add_channels(const Number* x, const Chunk& chunk, const Group& group,
                    const Lattice::Tap& tap, int64_t first, int64_t count, const T* b, T* gathered,
                    bool add, LookAhead& ahead) {
    const int64_t blocks = parts_of(chunk.elements(), kDepth);
    int64_t panel = 0;
    for (int64_t i = 0; i < blocks; ++i, b += group.count * panel) {
      const auto [begin, end] = part_of(chunk.elements(), i, blocks);
      const Chunk block = chunk.part(begin, end);
      panel = panel_of(end - begin);
      if (!read(tap, block)) continue;
      gather(x + first, block.last - block.first, count, gathered);
      multiply_block<T>({.a = gathered,
                         .a_row = 1,
                         .a_step = kRowStride,
                         .b = b,
                         .b_panel = panel,
                         .depth = end - begin,
                         .c = rows_.data(),
                         .c_panel = taps() * p_.channels * kColumns,
                         .add = std::exchange(add, true)},
                        count, group.count * kColumns, &ahead);
    }
    return add;
  }

  void clear(const Group& group, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      for (int64_t j = 0; j < group.count; ++j)
        std::fill_n(rows_[static_cast<size_t>(i)] + j * taps() * p_.channels * kColumns, kColumns,
                    0.f);
  }

  /// Writes to read_ the pixels of x, counted through all samples, that the block reads by the tap.
  bool read(const Lattice::Tap& tap, const Chunk& block) {
    if (p_.lattice.in_place()) {
      std::iota(read_.begin(), read_.begin() + (block.last - block.first), block.first);
      return true;
    }
    bool any = false;
    int64_t* to = read_.data();
    for (int64_t i = block.first; i < block.last;) {
      const int64_t sample = i / p_.lattice.results(), first = i % p_.lattice.results();
      const int64_t n = std::min(block.last - i, p_.lattice.results() - first);
      any |= read_pixels(p_.lattice, tap, first, n, to);
      for (int64_t k = 0; k < n; ++k, ++to)
        if (*to >= 0) *to += sample * p_.x_pixels;
      i += n;
    }
    return any;
  }

  /// Gathers channels of x from the pixels in read_.
  void gather(const Number* x, int64_t pixels, int64_t channels, T* to) const {
    for (int64_t k = 0; k < elements_of(pixels); ++k, to += kRowStride) {
      const Number* from[kTerms]{};
      for (int64_t term = 0; term < kTerms && k * kTerms + term < pixels; ++term)
        if (const int64_t pixel = read_[static_cast<size_t>(k * kTerms + term)]; pixel >= 0)
          from[term] = x + pixel * p_.channels;
      Element<T>::put_row(from, channels, to, kColumns);
    }
  }

  WeightsProblem p_;
  int64_t panels_, group_, chunk_;  ///< group_: panels; chunk_: elements
  std::vector<float*> rows_;        ///< for a block: where dw of its channels lies
  std::vector<int64_t> read_;       ///< for a block: pixels of x, or -1
};

}  // namespace

std::unique_ptr<Kernel> make_weights_kernel(const WeightsProblem& problem, DType type) {
  if (type == DType::bf16) return std::make_unique<WeightsKernel<TermPair>>(problem);
  return std::make_unique<WeightsKernel<float>>(problem);
}

}  // namespace tutti::backend::matrix
