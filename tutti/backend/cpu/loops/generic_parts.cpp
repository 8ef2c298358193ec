// SumParts and MergeMoments: a few numbers for each channel.

#include "tutti/backend/cpu/kernel/kernel_table.h"
#include "tutti/backend/cpu/kernel/sample.h"
#include "tutti/backend/cpu/kernel/statistics_out.h"
#include "tutti/ops/parts.h"

namespace tutti::backend {
namespace {

/// Elements [begin, end) of this call.
struct Part {
  int64_t begin, end;
  Part(int64_t count, const KernelArgs& args)
      : begin(count * args.thread / args.threads), end(count * (args.thread + 1) / args.threads) {}
};

const float* numbers(const KernelArgs& args, size_t i) {
  return static_cast<const float*>(args.in[i]);
}

class SumPartsKernel final : public Kernel {
 public:
  SumPartsKernel(const KernelRequest& r, float scale)
      : inputs_(r.in.size()), elements_(r.out[0].elements()), scale_(scale) {}
  void run(const KernelArgs& args) override {
    auto* const y = static_cast<float*>(args.out[0]);
    const Part part(elements_, args);
    for (int64_t k = part.begin; k < part.end; ++k) {
      double sum = 0;
      for (size_t i = 0; i < inputs_; ++i) sum += static_cast<double>(numbers(args, i)[k]);
      y[k] = static_cast<float>(sum * static_cast<double>(scale_));
    }
  }

 private:
  size_t inputs_;
  int64_t elements_;
  float scale_;
};

class MergeMomentsKernel final : public Kernel {
 public:
  MergeMomentsKernel(const KernelRequest& r, const ops::MergeMoments& op)
      : channels_(r.out[0].elements()), op_(op) {}
  void run(const KernelArgs& args) override {
    const StatisticsOut to{static_cast<float*>(args.in[0]), static_cast<float*>(args.in[1]),
                           static_cast<float*>(args.out[0]), static_cast<float*>(args.out[1])};
    const Part part(channels_, args);
    for (int64_t c = part.begin; c < part.end; ++c) {
      // As in Chan, Golub and LeVeque (1983).
      double count = 0, mean = 0, deviations = 0;
      for (size_t r = 0; r < op_.group().counts.size(); ++r) {
        const auto n = static_cast<double>(op_.group().counts[r]);
        const double delta = static_cast<double>(numbers(args, 2 + 2 * r)[c]) - mean;
        deviations += static_cast<double>(numbers(args, 3 + 2 * r)[c]) * n +
                      delta * delta * count * n / (count + n);
        mean += delta * n / (count + n);
        count += n;
      }
      to.end(op_.statistics(), c, count, mean, deviations);
    }
  }

 private:
  int64_t channels_;
  ops::MergeMoments op_;
};

}  // namespace

void register_parts_kernels(KernelTable& table) {
  table.add<ops::SumParts>([](const KernelRequest& r, const ops::SumParts& op) {
    KernelCandidate c = candidate_for(r, "cpu:parts");
    c.make = [r, scale = op.scale()] { return std::make_unique<SumPartsKernel>(r, scale); };
    return c;
  });
  table.add<ops::MergeMoments>([](const KernelRequest& r, const ops::MergeMoments& op) {
    KernelCandidate c = candidate_for(r, "cpu:parts");
    c.make = [r, op] { return std::make_unique<MergeMomentsKernel>(r, op); };
    return c;
  });
}

}  // namespace tutti::backend
