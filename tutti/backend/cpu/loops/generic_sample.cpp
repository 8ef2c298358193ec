// Draws from normal distributions. Latent spaces are small: one element at a time.

#include <cmath>
#include <memory>
#include <vector>

#include "tutti/backend/cpu/kernel/kernel_table.h"
#include "tutti/backend/cpu/kernel/sample.h"
#include "tutti/ops/gaussian_sample.h"

namespace tutti::backend {
namespace {

template <class T>
class GaussianSampleKernel final : public Kernel {
 public:
  GaussianSampleKernel(const KernelRequest& r, const ops::GaussianSample& op)
      : samples_(r.out[0].shape[0]), size_(sample_size(r.out[0])), factor_(op.factor()),
        salt_(op.salt()) {
    for (const TensorDesc* d : {&r.in[0], &r.in[1], &r.out[0]}) {
      std::vector<int64_t>& places = places_.emplace_back(static_cast<size_t>(size_));
      SampleOffsets(*d).read(0, size_, places.data());
    }
  }

  void run(const KernelArgs& args) override {
    const auto *mean = static_cast<const T*>(args.in[0]),
               *logvar = static_cast<const T*>(args.in[1]);
    auto* z = static_cast<T*>(args.out[0]);
    for (int64_t n = 0; n < samples_; ++n, mean += size_, logvar += size_, z += size_) {
      const ops::SampleKey key{args.step->seed, args.step->step, args.step->replica,
                               args.first_sample + n, salt_};
      for (size_t i = 0; i < places_[0].size(); ++i) {
        const auto m = static_cast<float>(mean[places_[0][i]]),
                   l = static_cast<float>(logvar[places_[1][i]]);
        const auto e = static_cast<float>(ops::gaussian_draw(key, static_cast<int64_t>(i)));
        z[places_[2][i]] = static_cast<T>(m + std::exp(factor_ * l) * e);
      }
    }
  }

 private:
  int64_t samples_, size_;
  float factor_;
  uint32_t salt_;
  std::vector<std::vector<int64_t>> places_;  ///< offsets of a sample's elements in mean, logvar, z
};

}  // namespace

void register_sample_kernel(KernelTable& table) {
  table.add<ops::GaussianSample>([](const KernelRequest& r, const ops::GaussianSample& op) {
    KernelCandidate c = candidate_for(r, "cpu:gaussian_sample");
    c.refusal = refusal_of_layouts(r);
    choose_kernel<GaussianSampleKernel>(c, r.out[0].dtype, "draws", r, op);
    return c;
  });
}

}  // namespace tutti::backend
