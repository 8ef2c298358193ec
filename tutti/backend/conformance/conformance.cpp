#include "tutti/backend/conformance/conformance.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

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

double tolerance_of(const OpCase& c) {
  const auto narrow = [](const graph::ValueType& type) { return type.desc.dtype == DType::bf16; };
  return std::ranges::any_of(c.problem.in, narrow) || std::ranges::any_of(c.problem.out(), narrow)
             ? 1.5e-2
             : 3e-5;
}

/// Returns where the values differ most; empty if they agree.
std::string difference(const Values& got, const Values& want, double tolerance) {
  double squares = 0, worst = 1;
  size_t at = want.size();
  for (const double v : want) squares += v * v;
  const double rms = std::sqrt(squares / static_cast<double>(std::max<size_t>(want.size(), 1)));
  for (size_t i = 0; i < want.size(); ++i) {
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

}  // namespace

ConformanceReport check_conformance(const OpCase& c, const Backend& backend) {
  ConformanceReport report;
  const std::vector<Values> inputs = random_inputs(c, 1);
  OpRunOptions options;
  options.step = {.seed = 7, .step = 3, .replica = 2, .batch = 0};
  OpRun oracle(c.problem, ReferenceBackend(), options);
  const Results want = results_of(oracle, c, inputs);

  const auto compare = [&](const OpRunOptions& how) {
    const std::string where = fmt::format("{} [{} layout {} tile {} threads {}]", c.text,
                                          how.kernel, how.layout, how.tile, how.threads);
    ++report.runs;
    try {
      OpRun run(c.problem, backend, how);
      const Results got = results_of(run, c, inputs);
      const auto fail = [&](const std::string& what) {
        report.failures.push_back(where + ": " + what);
      };
      const double tolerance = tolerance_of(c) * (run.error() > 1 ? 2 : 1);
      if (const std::string broken = run.broken_guard(); !broken.empty()) fail(broken);
      for (size_t i = 0; i < want.out.size(); ++i)
        if (const std::string d = difference(got.out[i], want.out[i], tolerance); !d.empty())
          fail(fmt::format("output {}: {}", i, d));
      for (size_t i = 0; i < want.changed_in.size(); ++i)
        if (const std::string d = difference(got.changed_in[i], want.changed_in[i], tolerance);
            !d.empty())
          fail(fmt::format("changed input {}: {}", i, d));
    } catch (const Error& error) {
      report.failures.push_back(where + ": " + error.what());
    }
  };

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
        compare(options);
        options.tile = 2;
        options.threads = 3;
        options.kernel = kernel == accepted.front()
                             ? std::string()
                             : kernel;  // a kernel may exist for some tile sizes only
        if (options.kernel.empty()) compare(options);
      }
    } catch (const Error& error) {
      report.failures.push_back(fmt::format("{} [layout {}]: {}", c.text, layout, error.what()));
    }
  }
  return report;
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
