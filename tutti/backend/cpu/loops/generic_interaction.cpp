// Dot products of all pairs of a sample's features, and their gradient, as small products of
// matrices: X X' and S X, where S holds the gradient of each product twice. A sample is read as
// f32 and row by row, whatever its type and layout.

#include <algorithm>
#include <memory>
#include <vector>

#include "tutti/backend/cpu/kernel/kernel_table.h"
#include "tutti/backend/cpu/kernel/plain_samples.h"
#include "tutti/backend/cpu/sequence/attention_rows.h"
#include "tutti/ops/interaction.h"

namespace tutti::backend {
namespace {

using attention::HeadRows, attention::padded, matrix::kColumns, matrix::kMostRows;

/// The common sizes of forward and backward for one problem.
struct PairsProblem {
  ops::FeaturePairs pairs;
  int64_t samples = 0, width = 0;

  PairsProblem(const TensorDesc& x, int64_t of_feature, bool itself)
      : pairs{x.shape[1] / of_feature, itself}, samples(x.shape[0]), width(of_feature) {}
  int64_t features() const { return pairs.features; }
  int64_t size() const { return features() * width; }  ///< elements in a sample of x
  int64_t row() const { return padded(width); }        ///< floats of a feature
  int64_t pair_row() const {
    return padded(features());
  }  ///< floats for its products with all
     ///< features
  int64_t products() const { return features() * pair_row(); }
  /// Returns the products of feature i that have a place, the one with feature 0 first.
  int64_t products_of(int64_t i) const { return pairs.itself ? i + 1 : i; }
  template <class T>
  HeadRows<T> rows(T* sample) const {
    return {sample, width, width};
  }
};

/// Sets pointers to the rows of c: `rows` of them, `stride` apart.
void point_at_rows(float* c, int64_t rows, int64_t stride, std::vector<float*>& to) {
  for (int64_t i = 0; i < rows; ++i) to[static_cast<size_t>(i)] = c + i * stride;
}

template <class T>
class InteractionKernel final : public Kernel {
 public:
  InteractionKernel(const KernelRequest& r, int64_t width, bool itself)
      : p_(r.in[0], width, itself), x_(r.in[0]), y_(r.out[0]),
        c_(static_cast<size_t>(p_.features())) {}

  size_t workspace_bytes() const override {
    return workspace_part(x_.bytes()) + workspace_part(y_.bytes()) +
           static_cast<size_t>(p_.features() * p_.row() + p_.pair_row() * p_.row() +
                               p_.products()) *
               sizeof(float);
  }

  void run(const KernelArgs& args) override {
    auto* memory = static_cast<std::byte*>(args.workspace);
    const T* x = x_.gather(static_cast<const T*>(args.in[0]), memory);
    memory += workspace_part(x_.bytes());
    auto* const out = static_cast<T*>(args.out[0]);
    T* const plain = y_.in_place() ? out : reinterpret_cast<T*>(memory);
    auto* const rows = reinterpret_cast<float*>(memory + workspace_part(y_.bytes()));
    float* const columns = rows + p_.features() * p_.row();
    float* const products = columns + p_.pair_row() * p_.row();
    point_at_rows(products, p_.features(), p_.pair_row(), c_);
    T* y = plain;
    for (int64_t n = 0; n < p_.samples; ++n, x += p_.size(), y += p_.pairs.count())
      multiply(x, rows, columns, products, y);
    if (!y_.in_place()) y_.scatter(plain, out);
  }

 private:
  /// Multiplies a block of rows by the columns up to its last one: later products have no place.
  void multiply(const T* x, float* rows, float* columns, const float* products, T* y) {
    p_.rows(x).read(p_.features(), rows, p_.row());
    attention::to_columns(p_.rows(x), p_.features(), columns);
    for (int64_t i = 0; i < p_.features(); i += kMostRows) {
      const int64_t count = std::min<int64_t>(kMostRows, p_.features() - i);
      matrix::multiply_block<float>({.a = rows + i * p_.row(),
                                     .a_row = p_.row(),
                                     .a_step = 1,
                                     .b = columns,
                                     .b_panel = p_.width * kColumns,
                                     .depth = p_.width,
                                     .c = c_.data() + i,
                                     .c_panel = kColumns},
                                    count, i + count);
    }
    for (int64_t i = 0; i < p_.features(); ++i)
      attention::for_each_lanes(p_.products_of(i), [&](int64_t j, auto lanes) {
        simd::store(y + p_.pairs.place(i, 0) + j,
                    simd::load(products + i * p_.pair_row() + j, lanes), lanes);
      });
  }

  PairsProblem p_;
  PlainSamples<T> x_, y_;
  std::vector<float*> c_;
};

template <class T>
class InteractionGradKernel final : public Kernel {
 public:
  InteractionGradKernel(const KernelRequest& r, int64_t width, bool itself)
      : p_(r.in[1], width, itself), dy_(r.in[0]), x_(r.in[1]), dx_(r.out[0]),
        c_(static_cast<size_t>(p_.features())) {}

  size_t workspace_bytes() const override {
    return workspace_part(dy_.bytes()) + workspace_part(x_.bytes()) + workspace_part(dx_.bytes()) +
           static_cast<size_t>(2 * p_.features() * p_.row() + p_.products()) * sizeof(float);
  }

  void run(const KernelArgs& args) override {
    auto* memory = static_cast<std::byte*>(args.workspace);
    const T* dy = dy_.gather(static_cast<const T*>(args.in[0]), memory);
    memory += workspace_part(dy_.bytes());
    const T* x = x_.gather(static_cast<const T*>(args.in[1]), memory);
    memory += workspace_part(x_.bytes());
    auto* const out = static_cast<T*>(args.out[0]);
    T* const plain = dx_.in_place() ? out : reinterpret_cast<T*>(memory);
    auto* const panels = reinterpret_cast<float*>(memory + workspace_part(dx_.bytes()));
    float* const gradients = panels + p_.features() * p_.row();
    float* const products = gradients + p_.features() * p_.row();
    point_at_rows(gradients, p_.features(), p_.row(), c_);
    T* dx = plain;
    for (int64_t n = 0; n < p_.samples;
         ++n, dy += p_.pairs.count(), x += p_.size(), dx += p_.size()) {
      spread(dy, products);
      attention::to_panels(p_.rows(x), p_.features(), panels);
      matrix::multiply_block<float>({.a = products,
                                     .a_row = p_.pair_row(),
                                     .a_step = 1,
                                     .b = panels,
                                     .b_panel = p_.features() * kColumns,
                                     .depth = p_.features(),
                                     .c = c_.data(),
                                     .c_panel = kColumns},
                                    p_.features(), p_.width);
      for (int64_t i = 0; i < p_.features(); ++i) p_.rows(dx).write(i, gradients + i * p_.row(), 1);
    }
    if (!dx_.in_place()) dx_.scatter(plain, out);
  }

 private:
  /// Spreads the gradients of one sample's products to a symmetric matrix.
  void spread(const T* dy, float* products) const {
    for (int64_t i = 0; i < p_.features(); ++i) {
      float* const row = products + i * p_.pair_row();
      const T* const from = dy + p_.pairs.place(i, 0);
      attention::for_each_lanes(p_.products_of(i), [&](int64_t j, auto lanes) {
        simd::store(row + j, simd::load(from + j, lanes), lanes);
      });
      for (int64_t j = 0; j < i; ++j) products[j * p_.pair_row() + i] = row[j];
      row[i] = p_.pairs.itself ? 2 * row[i] : 0;
    }
  }

  PairsProblem p_;
  PlainSamples<T> dy_, x_, dx_;
  std::vector<float*> c_;
};

template <template <class> class K, class O>
KernelCandidate interaction_kernel(const KernelRequest& r, const O& op) {
  KernelCandidate c = candidate_for(r, "cpu:interaction");
  c.refusal = refusal_of_layouts(r);
  choose_kernel<K>(c, r.out[0].dtype, "products", r, op.interaction().width,
                   op.interaction().itself);
  return c;
}

}  // namespace

void register_interaction_kernels(KernelTable& table) {
  table.add<ops::Interaction>(interaction_kernel<InteractionKernel, ops::Interaction>);
  table.add<ops::InteractionGrad>(interaction_kernel<InteractionGradKernel, ops::InteractionGrad>);
}

}  // namespace tutti::backend
