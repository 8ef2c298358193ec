// SgdUpdate, AdamUpdate, RmspropUpdate, WeightAverage.

#include <cmath>
#include <cstring>
#include <limits>

#include "tutti/backend/gpu/own/own_update.h"

namespace tutti::backend {
namespace {

class AdamKernel final : public OwnUpdate<AdamRule> {
 public:
  AdamKernel(const device::DeviceFunction& function, const KernelRequest& r,
             const ops::AdamUpdate& op, const AdamRule& rule)
      : OwnUpdate(function, r, op, rule), beta1_(op.adam().beta1), beta2_(op.adam().beta2) {}
  size_t number_bytes() const override { return sizeof(AdamNumbers); }
  void write_numbers(const StepInfo& step, std::byte* to) const override {
    const auto t = static_cast<double>(step.step + 1);
    const AdamNumbers numbers{1 - std::pow(beta1_, t),
                              static_cast<float>(1 / std::sqrt(1 - std::pow(beta2_, t)))};
    std::memcpy(to, &numbers, sizeof numbers);
  }
  void run(const KernelArgs& args) override {
    AdamRule rule = rule_;
    rule.numbers = reinterpret_cast<const AdamNumbers*>(args.numbers);
    put(args, rule);
  }

 private:
  double beta1_, beta2_;
};

/// Reads the weights that the preceding update has written.
class AverageKernel final : public OwnUpdate<AverageRule> {
 public:
  AverageKernel(const device::DeviceFunction& function, const KernelRequest& r,
                const ops::WeightAverage& op, const AverageRule& rule)
      : OwnUpdate(function, r, op, rule), average_(op.average()) {}
  size_t number_bytes() const override { return sizeof(AverageNumbers); }
  void write_numbers(const StepInfo& step, std::byte* to) const override {
    const AverageNumbers numbers{
        step.step < average_.from ? 1.0f : static_cast<float>(1 - average_.decay)};
    std::memcpy(to, &numbers, sizeof numbers);
  }
  void run(const KernelArgs& args) override {
    put(args, {reinterpret_cast<const AverageNumbers*>(args.numbers)});
  }

 private:
  ops::WeightAverageAttributes average_;
};

float limit_of(double clip) {
  return clip > 0 ? as_float(clip) : std::numeric_limits<float>::infinity();
}

KernelCandidate sgd(const KernelRequest& r, const ops::SgdUpdate& op, device::Device& device) {
  const ops::SgdAttributes& a = op.sgd();
  return ruled_update<OwnUpdate<SgdRule>>(
      r, op, function_named(device, "sgd"),
      SgdRule{as_float(a.rate), as_float(a.momentum), as_float(a.weight_decay), limit_of(a.clip),
              a.nesterov});
}

KernelCandidate adam(const KernelRequest& r, const ops::AdamUpdate& op, device::Device& device) {
  const ops::AdamAttributes& a = op.adam();
  return ruled_update<AdamKernel>(r, op, function_named(device, "adam"),
                                  AdamRule{.numbers = nullptr,
                                           .weight_decay = a.decoupled ? a.weight_decay : 0,
                                           .factor = as_float(a.rate),
                                           .beta1 = as_float(a.beta1),
                                           .beta2 = as_float(a.beta2),
                                           .new1 = as_float(1 - a.beta1),
                                           .new2 = as_float(1 - a.beta2),
                                           .eps = as_float(a.eps),
                                           .decay = as_float(a.decoupled ? 0 : a.weight_decay),
                                           .limit = limit_of(a.clip)});
}

KernelCandidate rmsprop(const KernelRequest& r, const ops::RmspropUpdate& op,
                        device::Device& device) {
  const ops::RmspropAttributes& a = op.rmsprop();
  return ruled_update<OwnUpdate<RmspropRule>>(
      r, op, function_named(device, "rmsprop"),
      RmspropRule{as_float(a.rate), as_float(a.rho), as_float(1 - a.rho), as_float(a.eps),
                  as_float(a.weight_decay), limit_of(a.clip)});
}

}  // namespace

void register_updates(OwnKernels& table) {
  table.add<ops::SgdUpdate>(sgd);
  table.add<ops::AdamUpdate>(adam);
  table.add<ops::RmspropUpdate>(rmsprop);
  table.add<ops::WeightAverage>(
      [](const KernelRequest& r, const ops::WeightAverage& op, device::Device& device) {
        return ruled_update<AverageKernel>(r, op, function_named(device, "average"), AverageRule{});
      });
}

}  // namespace tutti::backend
