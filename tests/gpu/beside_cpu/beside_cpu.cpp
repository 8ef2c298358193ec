// beside_cpu NETWORK [--steps N] [--bf16] [--seeds N] [--fault]:
// trains a small network on the CPU for N steps (100), and from the CPU's weights of each step
// makes the same step on the emulated device with own kernels, and in double precision
// (double_step.h). Ends with 1 unless loss, results that nodes compare, gradients and weights of
// the device are as near to double precision as the bound says; and unless the first two steps have
// the same bits twice, and under five seeds of the device.
//
// The bound. CPU and device round the same sums in two orders, so that their distances from double
// precision are two draws of one size: a sum is off by about the square root of its depth, in units
// of its last bit, and the depths of these sums, some thousand terms in the lanes of a vector or as
// a tree, differ by less than kFactor^2. A tensor of few elements may have come close by chance,
// and the whole of all tensors cannot. So in the 2-norm, for each tensor t of a kind (results,
// gradients, variables),
//     |device - double|_t
//         <= kFactor * (|cpu - double|_t + share * |double|_t) + rounding * |double|_t
// where `share` is the CPU's relative distance of all tensors of the kind, and `rounding` one last
// bit. Results are those that nodes compare, and the loss. The summary says the smallest relative
// error that the bound finds in each parameter's gradient, if all steps had it; with f32 that must
// be at most 1e-3. A gradient that is zero but for rounding doesn't count.
//
// With --fault one gradient of the device is wrong by 1e-3, and the program has to end with 1.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/gpu/beside_cpu/double_step.h"
#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/backend/gpu/gpu_backend.h"
#include "tutti/backend/gpu/kernels/device_functions.h"
#include "tutti/base/error.h"
#include "tutti/device/emulated/emulated_device.h"

namespace tutti::test {
namespace {

constexpr double kFactor = 8, kSees = 1e-3;
constexpr int64_t kRepeated = 2;  ///< steps that are made twice, and under every seed

struct Asked {
  std::string network;
  int64_t steps = 100, seeds = 5;
  bool bf16 = false, fault = false;
};

/// The largest ratio of a distance to its bound without kFactor, and the tensor that has it.
struct Ratio {
  double ratio = 0;
  std::string name = {};
  void take(const Ratio& other) {
    if (ratio == ratio && !(other.ratio <= ratio)) *this = other;  // a NaN comes in, and stays
  }
};

/// The smallest relative error that is found in a tensor, by its name.
using Found = std::map<std::string, double>;

/// Returns the relative distance of all tensors together.
double share_of_all(const Distances& all) {
  double apart = 0, size = 0;
  for (const auto& [name, d] : all) {
    apart += d.apart * d.apart;
    size += d.size * d.size;
  }
  return size > 0 ? std::sqrt(apart / size) : 0;
}

/// The bounds of one kind of tensors.
struct Bounds {
  const Distances& cpu;
  const double share, rounding;
  double of(const std::string& name, double size) const {
    return cpu.at(name).apart + (share + rounding / kFactor) * size;
  }
  Ratio worst(const Distances& device) const {
    Ratio worst;
    for (const auto& [name, d] : device) {
      const double bound = of(name, d.size);
      worst.take({d.apart > 0 || d.apart != d.apart ? d.apart / bound : 0, name});
    }
    return worst;
  }
  /// Lowers, for each tensor that is not zero but for rounding, the relative error that is found.
  void lower(Found& found) const {
    for (const auto& [name, d] : cpu) {
      if (d.size < 2 * d.apart) continue;
      double& least = found.try_emplace(name, 1).first->second;
      least = std::min(least, kFactor * of(name, d.size) / d.size);
    }
  }
};

struct Ratios {
  Ratio loss, results, gradients, variables;
  int64_t cpu_branches = 0, device_branches = 0;
  void take(const Ratios& other) {
    loss.take(other.loss);
    results.take(other.results);
    gradients.take(other.gradients);
    variables.take(other.variables);
    cpu_branches += other.cpu_branches;
    device_branches += other.device_branches;
  }
  bool fine() const {
    return std::ranges::all_of(std::array{&loss, &results, &gradients, &variables},
                               [](const Ratio* r) { return r->ratio <= kFactor; });
  }
  void print() const {
    const auto part = [](const char* what, const Ratio& r) {
      return fmt::format("{} {:.2f} ({})", what, r.ratio, r.name);
    };
    fmt::print("loss {:.2f}, {}, {}, {}; other branches: cpu {}, device {}\n", loss.ratio,
               part("results", results), part("gradients", gradients), part("weights", variables),
               cpu_branches, device_branches);
  }
};

/// An emulated device and the network's plan on it.
struct OnDevice {
  backend::CpuBackend host;
  std::unique_ptr<device::EmulatedDevice> device;
  backend::GpuBackend backend;
  Machine machine;
  OnDevice(const train::TrainingGraph& training, uint64_t seed, Watched watched)
      : device(device::make_emulated_device({.seed = seed, .functions = backend::own_functions()})),
        backend(*device, host, backend::GpuKernels::own_only), machine(training, backend, watched) {
  }
  MadeStep make(const StepToMake& step, const Named& before, const std::vector<Numbers>& batch) {
    machine.set_variables(before);
    return machine.make(step, batch);
  }
};

class Comparison {
 public:
  explicit Comparison(const Asked& asked)
      : asked_(asked),
        network_(small_network(asked.network, asked.bf16 ? DType::bf16 : DType::f32)),
        team_(network_.training, cpu_), watched_team_(network_.training, cpu_, Watched::yes),
        watched_device_(network_.training, 1, Watched::yes) {
    for (int64_t seed = 1; seed <= asked.seeds; ++seed)
      devices_.push_back(
          std::make_unique<OnDevice>(network_.training, static_cast<uint64_t>(seed), Watched::no));
  }

  /// Returns whether all steps are as they should be.
  bool run() {
    Ratios worst;
    bool same = true;
    for (int64_t i = 0; i < asked_.steps; ++i) {
      const StepToMake step{i, network_.rate};
      const std::vector<Numbers> batch = batch_of(network_.training, i);
      const Named before = team_.variables();
      watched_team_.set_variables(before);
      const MadeStep cpu = watched_team_.make(step, batch);
      MadeStep device = watched_device_.make(step, before, batch);
      same &= alike(cpu, team_.make(step, batch), i, "CPU, not watched");
      if (i < kRepeated) same &= repeats(device, step, before, batch);
      if (asked_.fault) spoil(device);
      const Ratios ratios = compare(step, before, batch, cpu, device);
      fmt::print("step {}: loss {:.6f}, ", i, cpu.loss);
      ratios.print();
      std::fflush(stdout);
      worst.take(ratios);
    }
    CHECK(!found_.empty(), "all gradients are zero");
    const auto most = std::ranges::max_element(found_, {}, &Found::value_type::second);
    const bool fine = same && worst.fine() && (asked_.bf16 || most->second <= kSees);
    fmt::print("{} {}, {} steps, bound {}: {}: ", asked_.network, asked_.bf16 ? "bf16" : "f32",
               asked_.steps, kFactor, fine ? "fine" : "FAILED");
    worst.print();
    fmt::print("finds errors of {:.1e} ({}) and less in {} of {} gradients\n", most->second,
               most->first, found_.size(), gradients_);
    return fine;
  }

 private:
  static bool alike(const MadeStep& made, const MadeStep& first, int64_t step,
                    std::string_view where) {
    const bool same = same_bits(made, first);
    if (!same) fmt::print("step {}: other bits: {}\n", step, where);
    return same;
  }

  /// Returns whether the step has the same bits twice, and on every device.
  bool repeats(const MadeStep& first, const StepToMake& step, const Named& before,
               const std::vector<Numbers>& batch) {
    bool same = alike(watched_device_.make(step, before, batch), first, step.number,
                      "device, the second time");
    for (size_t i = 0; i < devices_.size(); ++i)
      same &= alike(devices_[i]->make(step, before, batch), first, step.number,
                    fmt::format("device with seed {}, not watched", i + 1));
    return same;
  }

  static void spoil(MadeStep& device) {
    for (double& x : device.gradients.rbegin()->second) x *= 1 + kSees;
  }

  Ratios compare(const StepToMake& step, const Named& before, const std::vector<Numbers>& batch,
                 const MadeStep& cpu, const MadeStep& device) {
    const auto distances = [&](const MadeStep& made) {
      return from_double(network_.training, team_.plan(), step, before, batch, made);
    };
    const StepDistances of_cpu = distances(cpu), of_device = distances(device);
    const double rounding = asked_.bf16 ? std::ldexp(1, -8) : std::ldexp(1, -23);
    const auto bounds = [&](const Distances& of, double last_bit) {
      return Bounds{of, share_of_all(of), last_bit};
    };
    const Bounds results = bounds(of_cpu.compared, rounding),
                 gradients = bounds(of_cpu.gradients, rounding),
                 variables = bounds(of_cpu.variables, std::ldexp(1, -23));
    gradients.lower(found_);
    gradients_ = of_cpu.gradients.size();
    const Distances loss{{"loss", of_cpu.loss}};
    return {.loss = Bounds{loss, results.share, rounding}.worst({{"loss", of_device.loss}}),
            .results = results.worst(of_device.compared),
            .gradients = gradients.worst(of_device.gradients),
            .variables = variables.worst(of_device.variables),
            .cpu_branches = of_cpu.branches,
            .device_branches = of_device.branches};
  }

  const Asked asked_;
  const SmallNetwork network_;
  const backend::CpuBackend cpu_;
  Machine team_, watched_team_;
  OnDevice watched_device_;
  std::vector<std::unique_ptr<OnDevice>> devices_;
  Found found_;
  size_t gradients_ = 0;  // tensors
};

/// Reads the arguments. Returns whether they make sense.
bool read(int argc, char** argv, Asked& asked) {
  if (argc < 2) return false;
  asked.network = argv[1];
  for (int i = 2; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--bf16")
      asked.bf16 = true;
    else if (flag == "--fault")
      asked.fault = true;
    else if (flag == "--steps" && i + 1 < argc)
      asked.steps = std::atoll(argv[++i]);
    else if (flag == "--seeds" && i + 1 < argc)
      asked.seeds = std::atoll(argv[++i]);
    else
      return false;
  }
  return asked.steps > 0 && asked.seeds > 0;
}

}  // namespace
}  // namespace tutti::test

int main(int argc, char** argv) {
  using namespace tutti;
  test::Asked asked;
  if (!test::read(argc, argv, asked)) {
    std::fprintf(stderr,
                 "usage: beside_cpu (resnet44|cosmoflow|deepcam|ffn) [--steps N] [--seeds N] "
                 "[--bf16] [--fault]\n");
    return 2;
  }
  try {
    return test::Comparison(asked).run() ? 0 : 1;
  } catch (const Error& error) {
    std::fprintf(stderr, "beside_cpu: %s\n", error.what());
    return 2;
  }
}
