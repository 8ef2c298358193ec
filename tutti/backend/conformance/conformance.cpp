#include "tutti/backend/conformance/conformance.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "tutti/backend/reference/reference.h"
#include "tutti/base/error.h"

namespace tutti::backend {
namespace {

/// Returns the names of all layouts that the backend offers for any of the operands.
std::vector<std::string> layout_names(const OpCase& c, const Backend& backend) {
  std::vector<std::string> names{"plain"};
  std::vector<graph::ValueType> types = c.problem.in;
  for (const graph::ValueType& out : c.problem.out()) types.push_back(out);
  for (const graph::ValueType& type : types) {
    if (!type.batched || type.desc.shape.rank() < 3) continue;
    for (const Layout& layout : backend.activation_layouts(type.desc.shape, type.desc.dtype)) {
      const std::string name = layout.to_string(type.desc.shape.rank());
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

struct Results {
  std::vector<Values> out, changed_in;
};

Results results_of(OpRun& run, const OpCase& c, const std::vector<Values>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) run.set_in(i, inputs[i]);
  run.spoil_outputs();
  run.run();
  Results results;
  for (size_t i = 0; i < run.out_types().size(); ++i) results.out.push_back(run.out(i));
  for (size_t i = 0; i < inputs.size(); ++i)
    results.changed_in.push_back(c.problem.op->mutates(static_cast<int>(i)) ? run.in(i) : Values{});
  return results;
}

bool same_bits(const Results& a, const Results& b) {
  const auto same = [](const std::vector<Values>& x, const std::vector<Values>& y) {
    return std::ranges::equal(x, y, [](const Values& v, const Values& w) {
      return v.size() == w.size() && std::memcmp(v.data(), w.data(), v.size() * sizeof v[0]) == 0;
    });
  };
  return same(a.out, b.out) && same(a.changed_in, b.changed_in);
}

double tolerance_of(const OpCase& c) {
  const auto narrow = [](const graph::ValueType& type) { return type.desc.dtype == DType::bf16; };
  return std::ranges::any_of(c.problem.in, narrow) || std::ranges::any_of(c.problem.out(), narrow)
             ? 1.5e-2
             : 3e-5;
}

/// Returns where the values differ most; empty if they agree. A NaN agrees with a NaN if there may
/// be any.
std::string difference(const Values& got, const Values& want, double tolerance, bool nan) {
  double squares = 0, worst = 1;
  size_t at = want.size();
  for (const double v : want) squares += nan && std::isnan(v) ? 0 : v * v;
  const double rms = std::sqrt(squares / static_cast<double>(std::max<size_t>(want.size(), 1)));
  for (size_t i = 0; i < want.size(); ++i) {
    if (nan && std::isnan(want[i]) && std::isnan(got[i])) continue;
    const double error =
        std::abs(got[i] - want[i]) / (tolerance * (std::abs(want[i]) + rms) + 1e-30);
    if (error <= worst) continue;  // false for NaN
    at = i;
    if (std::isnan(error)) break;
    worst = error;
  }
  return at == want.size()
             ? std::string()
             : fmt::format("element {} is {:.8g}, the reference says {:.8g} (rms {:.3g})", at,
                           got[at], want[at], rms);
}

/// The limit for a library's loops that take a product at a time: only their operands come from
/// this project, and a short sum tests these as well as a long one.
constexpr double kMostFlopOfLoops = 1e6;

bool is_long(const OpCase& c) {
  return c.problem.op->flop(c.problem.in, c.problem.out()) > kMostFlopOfLoops;
}

/// One case and what the reference makes of it.
class Check {
 public:
  explicit Check(const OpCase& c) : case_(c), inputs_(random_inputs(c, 1)) {
    options.step = {.seed = 7, .step = 3, .replica = 2, .batch = 0};
  }

  /// Runs the kernel that `options` ask for, and reports differences from the reference. Returns no
  /// results if it fails.
  Results compare(const Backend& backend) {
    if (report.runs++ == 0) {
      OpRun oracle(case_.problem, ReferenceBackend(), {.kernel = {}, .step = options.step});
      want_ = results_of(oracle, case_, inputs_);
    }
    try {
      OpRun run(case_.problem, backend, options);
      Results got = results_of(run, case_, inputs_);
      const double tolerance = tolerance_of(case_) * (run.error() > 1 ? 2 : 1);
      if (const std::string broken = run.broken_guard(); !broken.empty()) fail(broken);
      const bool nan = std::ranges::find(case_.fill, Fill::ties) != case_.fill.end();
      for (size_t i = 0; i < want_.out.size(); ++i)
        if (const std::string d = difference(got.out[i], want_.out[i], tolerance, nan); !d.empty())
          fail(fmt::format("output {}: {}", i, d));
      for (size_t i = 0; i < want_.changed_in.size(); ++i)
        if (const std::string d =
                difference(got.changed_in[i], want_.changed_in[i], tolerance, nan);
            !d.empty())
          fail(fmt::format("changed input {}: {}", i, d));
      return got;
    } catch (const Error& error) {
      fail(error.what());
      return {};
    }
  }

  void fail(const std::string& what) {
    report.failures.push_back(fmt::format("{} [{} layout {} tile {} threads {}]: {}", case_.text,
                                          options.kernel, options.layout, options.tile,
                                          options.threads, what));
  }
  void fail_layout(const std::string& what) {
    report.failures.push_back(fmt::format("{} [layout {}]: {}", case_.text, options.layout, what));
  }

  OpRunOptions options;
  ConformanceReport report;

 private:
  const OpCase& case_;
  std::vector<Values> inputs_;
  Results want_;
};

}  // namespace

ConformanceReport check_conformance(const OpCase& c, const Backend& backend) {
  Check check(c);
  OpRunOptions& options = check.options;
  for (const std::string& layout : layout_names(c, backend)) {
    options.layout = layout;
    options.kernel.clear();
    try {
      const OpRun all(c.problem, backend, options);
      std::vector<std::string> accepted = all.accepted();
      const bool of_reference = backend.name() == "reference";
      if (!of_reference)
        std::erase(accepted, "reference");  // the fallback would be compared with itself
      if (accepted.empty()) throw DeviceError("only the reference has a kernel");
      for (const std::string& kernel : accepted) {
        if (!of_reference && all.is_slow(kernel) && is_long(c)) continue;
        options.kernel = kernel;
        options.tile = 0;
        options.threads = 1;
        check.compare(backend);
        options.tile = 2;
        options.threads = 3;
        options.kernel = kernel == accepted.front()
                             ? std::string()
                             : kernel;  // a kernel may exist for some tile sizes only
        if (options.kernel.empty()) check.compare(backend);
      }
    } catch (const Error& error) {
      check.fail_layout(error.what());
    }
  }
  return check.report;
}

ConformanceReport check_on_devices(const OpCase& c, std::span<const Backend* const> alike) {
  Check check(c);
  OpRunOptions& options = check.options;
  for (const std::string& layout : layout_names(c, *alike.front())) {
    options.layout = layout;
    options.kernel.clear();
    std::vector<std::string> accepted;
    try {
      const OpRun all(c.problem, *alike.front(), options);
      accepted = all.accepted();
      if (is_long(c)) std::erase_if(accepted, [&](const auto& name) { return all.is_slow(name); });
    } catch (const DeviceError& refusals) {
      if (!std::string_view(refusals.what()).starts_with("no kernel for")) throw;
      check.report.refusals.push_back(fmt::format("[layout {}]: {}", layout, refusals.what()));
    }
    for (const std::string& kernel : accepted) {
      options.kernel = kernel;
      Results first;
      for (const Backend* backend : alike) {
        options.recorded = backend == alike.back();
        const Results got = check.compare(*backend);
        if (backend == alike.front())
          first = got;
        else if (!same_bits(first, got))
          check.fail("other bits than on the first device");
      }
    }
  }
  return check.report;
}

std::vector<OpTiming> time_op(const OpCase& c, const Backend& backend, int threads,
                              double least_seconds) {
  using Clock = std::chrono::steady_clock;
  std::vector<OpTiming> timings;
  const std::vector<Values> inputs = random_inputs(c, 1);
  for (const std::string& layout : layout_names(c, backend)) {
    OpRunOptions options;
    options.layout = layout;
    options.threads = threads;
    const bool whole = c.problem.op->walk(c.problem.in) == graph::Walk::whole;
    const int64_t batch =
        c.problem.in.front().desc.shape.rank() > 0 ? c.problem.in.front().desc.shape[0] : 1;
    if (!whole) options.tile = (batch + threads - 1) / threads;
    OpRun run(c.problem, backend, options);
    for (size_t i = 0; i < inputs.size(); ++i) run.set_in(i, inputs[i]);
    run.run();
    std::vector<double> seconds;
    const Clock::time_point begin = Clock::now();
    do {
      const Clock::time_point start = Clock::now();
      run.run();
      seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    } while (std::chrono::duration<double>(Clock::now() - begin).count() < least_seconds ||
             seconds.size() < 7);
    std::ranges::nth_element(seconds, seconds.begin() + static_cast<ptrdiff_t>(seconds.size() / 2));
    timings.push_back({run.kernel(), layout, seconds[seconds.size() / 2],
                       c.problem.op->flop(c.problem.in, run.out_types()), run.bytes()});
  }
  return timings;
}

}  // namespace tutti::backend
