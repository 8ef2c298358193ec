// The output layer of a vocabulary with its loss. Each part of the team has some tokens: their
// logits for a few hundred positions at a time, their rows of the weights' gradient, and their
// terms of the positions' gradient. A position's sum over all tokens is combined from the parts'
// sums when they meet, as among ranks that share a vocabulary (ops/sequence/token_slice.h).

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>

#include "tutti/backend/cpu/kernel/kernel_table.h"
#include "tutti/backend/cpu/kernel/sample.h"
#include "tutti/backend/cpu/matrix/matrix_product.h"
#include "tutti/backend/cpu/matrix/matrix_rows.h"
#include "tutti/backend/cpu/matrix/matrix_tile.h"
#include "tutti/backend/cpu/matrix/matrix_weights.h"
#include "tutti/backend/cpu/sequence/channels_last.h"
#include "tutti/backend/cpu/sequence/token_logits.h"
#include "tutti/base/error.h"
#include "tutti/ops/sequence/token_head.h"

namespace tutti::backend {
namespace {

using matrix::kColumns, matrix::panels_of, matrix::part_of, matrix::parts_of;

/// The number of positions whose logits exist at a time. Each time weights are read twice and their
/// gradient is added to: with fewer positions that takes longer than the arithmetic, which in 16
/// bits is twice as fast.
template <class T>
constexpr int64_t kPositionsAtATime = 1024 / sizeof(T);

/// A part's statistics of a position from the logits of its tokens. `before` and `behind` are the
/// greatest logits before and after the label in the vocabulary.
struct PartOfPosition {
  static constexpr float kNone = std::numeric_limits<float>::lowest();
  float log_sum = kNone, of_label = 0, sum = 0, before = kNone, behind = kNone;
};

/// The same over all parts, in their order.
struct WholePosition {
  double log_sum = 0, of_label = 0, sum = 0;
  float before = PartOfPosition::kNone, behind = PartOfPosition::kNone;

  template <class PartOf>  // by part
  WholePosition(int parts, const PartOf& part_of) {
    float top = PartOfPosition::kNone;
    for (int p = 0; p < parts; ++p) top = std::max(top, part_of(p).log_sum);
    double powers = 0;
    for (int p = 0; p < parts; ++p) {
      const PartOfPosition& part = part_of(p);
      powers += std::exp(static_cast<double>(part.log_sum) - static_cast<double>(top));
      of_label += static_cast<double>(part.of_label);
      sum += static_cast<double>(part.sum);
      before = std::max(before, part.before);
      behind = std::max(behind, part.behind);
    }
    log_sum = static_cast<double>(top) + std::log(powers);
  }
  bool is_hit() const {
    const auto label = static_cast<float>(of_label);
    return before < label && behind <= label;
  }
};

template <class T>
class TokenHeadKernel final : public Kernel {
 public:
  TokenHeadKernel(const KernelRequest& r, const ops::TokenHead& op)
      : op_(op), a_(op.head()), type_(r.in[0].dtype), channels_(r.in[0].shape[1]),
        vocabulary_(r.in[1].shape[0]), positions_(r.in[2].elements()), team_(r.team),
        chunks_(parts_of(positions_, kPositionsAtATime<T>)),
        most_rows_(parts_of(positions_, chunks_)) {
    for (int part = 0; part < team_; ++part)
      for (const int64_t rows : {most_rows_, positions_ / chunks_}) {
        const int64_t columns = tokens_of(part).count;
        most_columns_ = std::max(most_columns_, columns);
        if (columns > 0 && rows > 0 && !find(rows, columns))
          products_.push_back(make(rows, columns));
      }
    for (const Products& made : products_)
      for (const auto* each : {&made.logits, &made.dx, &made.dw})
        if (*each) inner_bytes_ = std::max(inner_bytes_, (*each)->workspace_bytes());
  }
  size_t workspace_bytes() const override {
    return logits_bytes() + known_bytes() + dx_bytes() + inner_bytes_;
  }

  void run(const KernelArgs& args) override {
    CHECK(args.threads == team_, "token_head: made for {} threads, run by {}", team_, args.threads);
    const Tokens mine = tokens_of(args.thread);
    double loss = 0;
    for (int64_t i = 0; i < chunks_; ++i) {
      const auto [first, end] = part_of(positions_, i, chunks_);
      const Call call{args, first, end - first, static_cast<const int32_t*>(args.in[2]) + first};
      make_logits(call, mine);
      meet(args);
      if (args.thread == 0) loss += judge(call);
      if (a_.trains()) make_gradients(call, mine);
      meet(args);
      if (a_.data) add_parts(call);
    }
    if (args.thread == 0)
      *static_cast<float*>(args.out[0]) =
          static_cast<float>(static_cast<double>(a_.loss.scale) * loss / count_of(args));
  }

 private:
  /// A part's run of the vocabulary: whole panels of the weights.
  struct Tokens {
    int64_t first, count;
    bool has(int32_t token) const { return token >= first && token - first < count; }
  };
  /// Some positions of a run.
  struct Call {
    const KernelArgs& args;
    int64_t first, rows;
    const int32_t* labels;
  };
  /// Products of that many positions and tokens.
  struct Products {
    int64_t rows, columns;
    std::unique_ptr<Kernel> logits, dx, dw;
  };
  /// The contents of a workspace.
  struct Memory {
    T* logits;
    PartOfPosition* known;
    float* dx;  ///< for this part's tokens only
    std::byte* inner;
  };

  Tokens tokens_of(int part) const {
    const auto [first, end] = part_of(panels_of(vocabulary_), part, team_);
    return {first * kColumns, std::min(end * kColumns, vocabulary_) - first * kColumns};
  }
  const Products* find(int64_t rows, int64_t columns) const {
    for (const Products& made : products_)
      if (made.rows == rows && made.columns == columns) return &made;
    return nullptr;
  }
  Products make(int64_t rows, int64_t columns) const {
    Products made{rows, columns, nullptr, nullptr, nullptr};
    made.logits = matrix::make_product_kernel({.positions = rows, .from = channels_, .to = columns},
                                              type_, type_);
    if (a_.data)
      made.dx = matrix::make_product_kernel(
          {.positions = rows, .from = columns, .to = channels_, .data = true}, type_, DType::f32);
    if (a_.weights) {
      const matrix::Sliding sliding{.x = {1, 1, rows}, .y = {1, 1, rows}};
      made.dw = matrix::make_weights_kernel({.lattice = matrix::forward_lattice(sliding),
                                             .samples = 1,
                                             .x_pixels = rows,
                                             .channels = channels_,
                                             .outputs = columns,
                                             .whole = true},
                                            type_);
    }
    return made;
  }

  size_t logits_bytes() const {
    return workspace_part(static_cast<size_t>(most_rows_ * most_columns_) * sizeof(T));
  }
  size_t known_bytes() const {
    return workspace_part(static_cast<size_t>(most_rows_) * sizeof(PartOfPosition));
  }
  size_t dx_bytes() const {
    return a_.data ? workspace_part(static_cast<size_t>(most_rows_ * channels_) * sizeof(float))
                   : 0;
  }
  Memory memory_of(const KernelArgs& args, int part) const {
    auto* const at =
        static_cast<std::byte*>(part == args.thread ? args.workspace : args.team->workspace(part));
    return {reinterpret_cast<T*>(at), reinterpret_cast<PartOfPosition*>(at + logits_bytes()),
            reinterpret_cast<float*>(at + logits_bytes() + known_bytes()),
            at + logits_bytes() + known_bytes() + dx_bytes()};
  }

  static void meet(const KernelArgs& args) {
    if (args.team) args.team->meet();
  }
  static double count_of(const KernelArgs& args) {
    return static_cast<double>(*static_cast<const float*>(args.in[3]));
  }
  bool is_token(int32_t label) const { return label >= 0 && label < vocabulary_; }
  const T* x_of(const Call& call) const {
    return static_cast<const T*>(call.args.in[0]) + call.first * channels_;
  }
  WholePosition whole(const KernelArgs& args, int64_t row) const {
    return {args.threads,
            [&](int part) -> const PartOfPosition& { return memory_of(args, part).known[row]; }};
  }

  template <size_t kIns>
  static void run_product(Kernel& kernel, const Memory& memory,
                          const std::array<const void*, kIns>& from, void* to, bool first = true) {
    std::array<void*, kIns> in;
    for (size_t i = 0; i < kIns; ++i)
      in[i] = const_cast<void*>(from[i]);  // the inner kernel only
                                           // reads them
    kernel.run({.in = in.data(), .out = &to, .workspace = memory.inner, .first = first});
  }

  void make_logits(const Call& call, const Tokens& mine) const {
    const Memory memory = memory_of(call.args, call.args.thread);
    if (mine.count == 0) {
      std::fill_n(memory.known, call.rows, PartOfPosition{});
      return;
    }
    const auto* const w = static_cast<const float*>(call.args.in[1]) + mine.first * channels_;
    run_product<2>(*find(call.rows, mine.count)->logits, memory, {x_of(call), w}, memory.logits);
    for (int64_t r = 0; r < call.rows; ++r)
      memory.known[r] =
          known_of({memory.logits + r * mine.count, mine.count}, mine, call.labels[r]);
  }

  PartOfPosition known_of(const LogitRow<T>& row, const Tokens& mine, int32_t label) const {
    PartOfPosition known;
    if (!is_token(label)) return known;
    known.log_sum = row.log_sum();
    if (mine.has(label)) known.of_label = static_cast<float>(row.x[label - mine.first]);
    if (a_.loss.label_smoothing > 0) known.sum = row.sum([](simd::Floats v) { return v; });
    if (!a_.hits) return known;
    const int64_t before = std::clamp<int64_t>(label - mine.first, 0, mine.count),
                  behind = std::clamp<int64_t>(label + 1 - mine.first, 0, mine.count);
    if (before > 0) known.before = LogitRow<T>{row.x, before}.greatest();
    if (behind < mine.count)
      known.behind = LogitRow<T>{row.x + behind, mine.count - behind}.greatest();
    return known;
  }

  /// Writes surprises and hits; returns the sum of the positions' losses.
  double judge(const Call& call) const {
    auto* const surprise = static_cast<float*>(call.args.out[1]) + call.first;
    float* const hits =
        a_.hits ? static_cast<float*>(call.args.out[op_.hits_output()]) + call.first : nullptr;
    const double s = static_cast<double>(a_.loss.label_smoothing);
    double loss = 0;
    for (int64_t r = 0; r < call.rows; ++r) {
      surprise[r] = 0;
      if (hits) hits[r] = 0;
      if (!is_token(call.labels[r])) continue;
      const WholePosition all = whole(call.args, r);
      surprise[r] = static_cast<float>(all.log_sum - all.of_label);
      if (hits) hits[r] = all.is_hit();
      loss += (1 - s) * (all.log_sum - all.of_label) +
              s * (all.log_sum - all.sum / static_cast<double>(vocabulary_));
    }
    return loss;
  }

  void make_gradients(const Call& call, const Tokens& mine) const {
    const Memory memory = memory_of(call.args, call.args.thread);
    if (mine.count == 0) {
      if (a_.data) std::fill_n(memory.dx, call.rows * channels_, 0.f);
      return;
    }
    const auto gradient =
        LogitGradient::of(a_.loss, static_cast<float>(count_of(call.args)), vocabulary_);
    for (int64_t r = 0; r < call.rows; ++r) {
      T* const row = memory.logits + r * mine.count;
      const int32_t label = call.labels[r];
      if (is_token(label))
        gradient.write(LogitRow<T>{row, mine.count},
                       static_cast<float>(whole(call.args, r).log_sum),
                       mine.has(label) ? label - mine.first : -1, row);
      else
        std::fill_n(row, mine.count, T(0.f));
    }
    const Products& products = *find(call.rows, mine.count);
    const int64_t first = mine.first * channels_;
    if (a_.weights)
      run_product<2>(*products.dw, memory, {x_of(call), memory.logits},
                     static_cast<float*>(call.args.out[op_.weights_output()]) + first,
                     call.first == 0);
    if (a_.data)
      run_product<2>(*products.dx, memory,
                     {memory.logits, static_cast<const float*>(call.args.in[1]) + first},
                     memory.dx);
  }

  /// Adds up a share of the positions' dx: the terms of the parts' tokens, in the order of the
  /// parts.
  void add_parts(const Call& call) const {
    const auto [first, end] = part_of(call.rows * channels_, call.args.thread, call.args.threads);
    T* const dx = static_cast<T*>(call.args.out[op_.data_output()]) + call.first * channels_;
    const auto add = [&, begin = first](int64_t at, auto lanes) {
      simd::Floats sum = simd::load(memory_of(call.args, 0).dx + at, lanes);
      for (int part = 1; part < call.args.threads; ++part)
        sum += simd::load(memory_of(call.args, part).dx + at, lanes);
      simd::store(dx + at, sum, lanes);
    };
    int64_t at = first;
    for (; at + kColumns <= end; at += kColumns) add(at, simd::AllLanes{});
    if (at < end) add(at, simd::SomeLanes{static_cast<int>(end - at)});
  }

  const ops::TokenHead op_;
  const ops::TokenHeadAttributes a_;
  const DType type_;
  const int64_t channels_, vocabulary_, positions_;
  const int team_;
  const int64_t chunks_, most_rows_;
  int64_t most_columns_ = 0;
  std::vector<Products> products_;
  size_t inner_bytes_ = 0;
};

std::string refusal_of_head(const KernelRequest& r, const ops::TokenHead& op,
                            const Layout& panels) {
  const Layout last = Layout::channels_last(3);
  const int data = op.data_output(), weights = op.weights_output();
  if (r.in[0].layout != last) return "only channels last";
  if (data >= 0 && r.out[static_cast<size_t>(data)].layout != last)
    return "the gradient lies otherwise";
  if (!r.in[2].layout.is_plain()) return "only plain labels";
  const auto is_free = [](const std::vector<bool>& list, size_t i) {
    return i < list.size() && list[i];
  };
  if (!is_free(r.in_free, 1) && (r.in[1].layout != panels || r.in[1].dtype != DType::f32))
    return "the weights lie otherwise";
  if (weights >= 0)
    if (const auto i = static_cast<size_t>(weights);
        !is_free(r.out_free, i) && r.out[i].layout != panels)
      return "the weights' gradient lies otherwise";
  return {};
}

KernelCandidate token_head_kernel(const KernelRequest& r, const ops::TokenHead& op) {
  const Layout panels = matrix::panels_layout(3, false);
  KernelCandidate c = candidate_for(r, "cpu:token_head");
  c.refusal = refusal_of_head(r, op, panels);
  c.in[1].layout = panels;
  if (const int weights = op.weights_output(); weights >= 0)
    c.out[static_cast<size_t>(weights)].layout = panels;
  choose_kernel<TokenHeadKernel>(c, r.in[0].dtype, "loss", r, op);
  return c;
}

}  // namespace

void register_token_head_kernel(KernelTable& table) {
  table.add<ops::TokenHead>(channels_last(token_head_kernel, [](const ops::TokenHead& op) {
    SequenceForm form{.inputs = 1, .shared = true};
    if (op.weights_output() >= 0) form.outputs = static_cast<size_t>(op.weights_output());
    return form;
  }));
}

}  // namespace tutti::backend
