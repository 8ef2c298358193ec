#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/gpu/device_check/timed_kernel.h"
#include "tutti/backend/conformance/op_run.h"
#include "tutti/base/error.h"
#include "tutti/device/libraries.h"

namespace tutti::device_check {
namespace {

using backend::OpCase, backend::OpRun, backend::Values;

/// Layers of ResNet-44, ResNet-50, CosmoFlow and DeepCAM, with batches for which the own kernel,
/// which is slow, takes moments.
std::vector<std::string> layers(bool small) {
  if (small) return {"n2c16h8w8 k16r3s3 pad1", "n1c4d8h8w8 k8t3r3s3 pad1"};
  return {"n32c16h32w32 k16r3s3 pad1",
          "n32c16h32w32 k32r3s3 stride2 pad1",
          "n32c64h8w8 k64r3s3 pad1",
          "n2c3h224w224 k64r7s7 stride2 pad3",
          "n4c64h56w56 k64r3s3 pad1",
          "n4c64h56w56 k256r1s1",
          "n4c256h56w56 k512r1s1 stride2",
          "n8c512h7w7 k512r3s3 pad1",
          "n1c4d64h64w64 k32t3r3s3 pad1",
          "n1c64d32h32w32 k128t3r3s3 pad1",
          "n1c256h48w72 k256r3s3 pad1",
          "n1c256h24w36 k256r3s3 pad6 dilation6",
          "n1c128h48w72 k128r3s3 pad1 groups128"};
}

/// Returns layers in every direction, of one type.
std::vector<std::string> layer_lines(const char* type, bool small) {
  std::vector<std::string> all;
  for (const char* op : {"conv", "conv_backward_data", "conv_backward_weights"})
    for (const std::string& layer : layers(small))
      all.push_back(fmt::format("{} {} {}", op, type, layer));
  for (const char* op : {"dense", "dense_backward_data", "dense_backward_weights"})
    all.push_back(fmt::format("{} {} {}", op, type, small ? "n5c64 k10" : "n64c2048 k1000"));
  return all;
}

/// Returns the largest distance of two results, relative to the root mean square of the second.
double distance(const std::vector<Values>& got, const std::vector<Values>& want) {
  double worst = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    double squares = 0, largest = 0;
    for (size_t k = 0; k < want[i].size(); ++k) {
      squares += want[i][k] * want[i][k];
      const double d = std::abs(got[i][k] - want[i][k]);
      largest = std::isnan(d) ? INFINITY : std::max(largest, d);
    }
    const double rms =
        std::sqrt(squares / static_cast<double>(std::max<size_t>(want[i].size(), 1)));
    worst = std::max(worst, largest / (rms + 1e-30));
  }
  return worst;
}

std::vector<Values> layer_results(OpRun& run, const OpCase& c) {
  run.spoil_outputs();
  run.run();
  std::vector<Values> out;
  for (size_t i = 0; i < c.problem.out().size(); ++i) out.push_back(run.out(i));
  return out;
}

bool same_bits(const std::vector<Values>& a, const std::vector<Values>& b) {
  return std::ranges::equal(a, b, [](const Values& v, const Values& w) {
    return v.size() == w.size() && std::memcmp(v.data(), w.data(), v.size() * sizeof v[0]) == 0;
  });
}

struct LibraryTally {
  int kernels = 0, failures = 0;
};

/// One line, its inputs, and what the own kernel makes of them.
class LayerCheck {
 public:
  LayerCheck(const std::string& line, const backend::Backend& all, double limit,
             LibraryTally& tally)
      : line_(line), case_(backend::parse_op_case(line)), limit_(limit), tally_(tally),
        own_(all, is_own),
        libraries_(all, [](auto name) { return !is_own(name) && !name.starts_with("host"); }),
        inputs_(backend::random_inputs(case_, 1)) {}

  /// Tries and compares the first few kernels of libraries.
  void run() {
    constexpr int kMostKernels = 2;
    int tried = 0, refused = 0;
    std::string reason;
    for (const auto& c : libraries_.candidates(request_for(case_.problem, libraries_))) {
      if (!c.refusal.empty()) {
        ++refused;
        reason = c.name + ": " + c.refusal;
      } else if (tried++ < kMostKernels) {
        check(c);
      }
    }
    fmt::print("{}: {} kernels offered, {} refused{}{}\n", line_, tried, refused,
               refused ? ", as " : "", reason);
  }

 private:
  void check(const backend::KernelCandidate& c) {
    ++tally_.kernels;
    if (c.trial) {
      const backend::KernelTrial trial = c.trial();
      tally_.failures += !trial.refusal.empty();
      fmt::print("{}{} [{}]: trial: {}\n", trial.refusal.empty() ? "" : "FAILED ", line_, c.name,
                 trial.refusal.empty() ? trial.result : trial.refusal);
      if (!trial.refusal.empty()) return;
    }
    OpRun run = filled(libraries_, c.name);
    if (want_.empty()) {
      OpRun plain = filled(own_, {});
      want_ = layer_results(plain, case_);
    }
    const std::vector<Values> got = layer_results(run, case_);
    const bool steady = same_bits(got, layer_results(run, case_));
    const double apart = distance(got, want_);
    const bool right = apart <= limit_ && steady && run.broken_guard().empty();
    tally_.failures += !right;
    fmt::print("{}{} [{}]: {:.2g} of the root mean square apart, limit {:.2g}{}{}{}\n",
               right ? "" : "FAILED ", line_, c.name, apart, limit_,
               steady ? "" : "; other bits the second time", run.broken_guard().empty() ? "" : "; ",
               run.broken_guard());
  }

  OpRun filled(const backend::Backend& backend, const std::string& kernel) const {
    OpRun run(case_.problem, backend, {.layout = "last", .kernel = kernel, .step = {.seed = 7}});
    for (size_t i = 0; i < inputs_.size(); ++i) run.set_in(i, inputs_[i]);
    return run;
  }

  std::string line_;
  OpCase case_;
  double limit_;
  LibraryTally& tally_;
  SomeKernels own_, libraries_;
  std::vector<Values> inputs_, want_;
};

/// Types of factors, with how far the largest of a million sums may be from the own kernel's.
struct FactorType {
  const char* type;
  bool tf32;
  double limit;
};

}  // namespace

Outcome check_libraries(Target& target) {
  if (!target.device->libraries()) {
    fmt::print("not run: there are no libraries for this device\n");
    return Outcome::not_run;
  }
  fmt::print("{}\n", target.device->libraries()->versions());
  LibraryTally tally;
  for (const FactorType& factors :
       {FactorType{"bf16", false, 4e-2}, {"f32", false, 2e-4}, {"f32", true, 2e-2}}) {
    fmt::print("{}{}\n", factors.type, factors.tf32 ? " with tf32" : "");
    const backend::GpuBackend all(*target.device, target.host, backend::GpuKernels::own_only,
                                  factors.tf32);
    for (const std::string& line : layer_lines(factors.type, target.small)) {
      try {
        LayerCheck(line, all, factors.limit, tally).run();
      } catch (const Error& error) {
        ++tally.failures;
        fmt::print("FAILED {}: {}\n", line, error.what());
      }
    }
  }
  fmt::print("{} kernels of libraries tried, {} failures\n", tally.kernels, tally.failures);
  if (tally.kernels == 0 && tally.failures == 0) {
    fmt::print("not run: the libraries offer no kernel\n");
    return Outcome::not_run;
  }
  return tally.failures == 0 ? Outcome::passed : Outcome::failed;
}

}  // namespace tutti::device_check
