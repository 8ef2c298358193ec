// Dot products of all pairs of a sample's features, and their gradient. A sample is gathered into
// the workspace as f32, whatever its type and layout: it is read by every pair.

#include <memory>
#include <vector>

#include "tutti/backend/cpu/pooling.h"
#include "tutti/ops/interaction.h"

namespace tutti {
namespace {

/// Where the elements of a sample lie.
std::vector<int64_t> element_places(const TensorDesc& desc) {
  std::vector<int64_t> places(static_cast<size_t>(sample_size(desc)));
  SampleOffsets(desc).read(0, sample_size(desc), places.data());
  return places;
}

template <class T>
class InteractionKernel final : public Kernel {
 public:
  InteractionKernel(const KernelRequest& r, int64_t width, bool itself)
      : samples_(r.in[0].shape[0]), width_(width), pairs_{r.in[0].shape[1] / width, itself},
        x_places_(element_places(r.in[0])), y_places_(element_places(r.out[0])) {}

  size_t workspace_bytes() const override { return x_places_.size() * sizeof(float); }

  void run(const KernelArgs& args) override {
    const auto* x = static_cast<const T*>(args.in[0]);
    auto* y = static_cast<T*>(args.out[0]);
    auto* const features = static_cast<float*>(args.workspace);
    for (int64_t n = 0; n < samples_; ++n, x += x_places_.size(), y += y_places_.size()) {
      for (size_t e = 0; e < x_places_.size(); ++e)
        features[e] = static_cast<float>(x[x_places_[e]]);
      size_t pair = 0;
      for (int64_t i = 0; i < pairs_.features; ++i)
        for (int64_t j = 0; j < (pairs_.itself ? i + 1 : i); ++j)
          y[y_places_[pair++]] =
              static_cast<T>(product(features + i * width_, features + j * width_));
    }
  }

 private:
  float product(const float* a, const float* b) const {
    simd::Floats sum{};
    for_each_channel_vector(width_, [&](int64_t d, auto lanes) {
      sum += simd::load(a + d, lanes) * simd::load(b + d, lanes);
    });
    return simd::sum(sum);
  }

  int64_t samples_, width_;
  FeaturePairs pairs_;
  std::vector<int64_t> x_places_, y_places_;
};

template <class T>
class InteractionGradKernel final : public Kernel {
 public:
  InteractionGradKernel(const KernelRequest& r, int64_t width, bool itself)
      : samples_(r.in[1].shape[0]), width_(width), pairs_{r.in[1].shape[1] / width, itself},
        dy_places_(element_places(r.in[0])), x_places_(element_places(r.in[1])),
        dx_places_(element_places(r.out[0])) {}

  /// The features, and one row of their gradient.
  size_t workspace_bytes() const override {
    return (x_places_.size() + static_cast<size_t>(width_)) * sizeof(float);
  }

  void run(const KernelArgs& args) override {
    const auto *dy = static_cast<const T*>(args.in[0]), *x = static_cast<const T*>(args.in[1]);
    auto* dx = static_cast<T*>(args.out[0]);
    auto* const features = static_cast<float*>(args.workspace);
    float* const row = features + x_places_.size();
    for (int64_t n = 0; n < samples_;
         ++n, dy += dy_places_.size(), x += x_places_.size(), dx += dx_places_.size()) {
      for (size_t e = 0; e < x_places_.size(); ++e)
        features[e] = static_cast<float>(x[x_places_[e]]);
      for (int64_t i = 0; i < pairs_.features; ++i) {
        gradient_of(i, dy, features, row);
        for (int64_t d = 0; d < width_; ++d)
          dx[dx_places_[static_cast<size_t>(i * width_ + d)]] = static_cast<T>(row[d]);
      }
    }
  }

 private:
  void gradient_of(int64_t i, const T* dy, const float* features, float* row) const {
    for_each_channel_vector(width_, [&](int64_t d, auto lanes) {
      simd::Floats sum{};
      for (int64_t j = 0; j < pairs_.features; ++j) {
        if (i == j && !pairs_.itself) continue;
        const auto g = static_cast<float>(dy[dy_places_[static_cast<size_t>(pairs_.place(i, j))]]);
        sum += simd::load(features + j * width_ + d, lanes) * (i == j ? 2 * g : g);
      }
      simd::store(row + d, sum, lanes);
    });
  }

  int64_t samples_, width_;
  FeaturePairs pairs_;
  std::vector<int64_t> dy_places_, x_places_, dx_places_;
};

template <template <class> class K, class O>
bool add_interaction(const KernelRequest& r, std::vector<KernelCandidate>& candidates,
                     const O& op) {
  KernelCandidate c = candidate_for(r, "cpu:interaction");
  c.refusal = refusal_of_layouts(r);
  if (!with_float_type(r.out[0].dtype, [&](auto type) {
        c.make = [r, width = op.width(), itself = op.itself()] {
          return std::make_unique<K<decltype(type)>>(r, width, itself);
        };
      }))
    c.refusal = fmt::format("no products of {}", name_of(r.out[0].dtype));
  candidates.push_back(std::move(c));
  return true;
}

}  // namespace

bool append_interaction_candidates(const KernelRequest& r,
                                   std::vector<KernelCandidate>& candidates) {
  if (const auto* const op = dynamic_cast<const Interaction*>(r.op))
    return add_interaction<InteractionKernel>(r, candidates, *op);
  if (const auto* const op = dynamic_cast<const InteractionGrad*>(r.op))
    return add_interaction<InteractionGradKernel>(r, candidates, *op);
  return false;
}

}  // namespace tutti
