#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "tests/gpu/device_check/checks.h"
#include "tutti/backend/conformance/conformance.h"
#include "tutti/backend/gpu/own/own_kernels.h"
#include "tutti/base/error.h"
#include "tutti/base/numeric/hash.h"

namespace tutti::device_check {
namespace {

using backend::OpCase, backend::OpRun, backend::Values;

std::string op_of(const std::string& line) { return line.substr(0, line.find(' ')); }

/// Returns the conformance lines of ops with own kernels, op by op; of each op and type the first
/// few if `small`.
std::vector<std::string> lines_of(bool small) {
  constexpr int kFew = 2;
  std::vector<std::string> lines;
  std::map<std::string, int> seen;
  for (const std::string& line : backend::conformance_lines()) {
    const std::string kind = line.substr(0, line.find(' ', line.find(' ') + 1));
    if (!backend::own_kernels().has(*backend::parse_op_case(line).problem.op)) continue;
    if (!small || seen[kind]++ < kFew) lines.push_back(line);
  }
  std::ranges::stable_sort(lines, {}, op_of);
  return lines;
}

/// Results of one kernel for one line in one layout.
struct Result {
  uint64_t hash = 0;  ///< the bits of all outputs, and of inputs that the op changes
  std::vector<double> first;

  bool operator==(const Result& other) const { return hash == other.hash; }
};

/// By "LINE | LAYOUT | KERNEL".
using Results = std::map<std::string, Result>;

Result result_of(const OpCase& c, const backend::Backend& backend, const std::string& layout,
                 const std::string& kernel) {
  OpRun run(c.problem, backend,
            {.layout = layout, .kernel = kernel, .step = {.seed = 7, .step = 3, .replica = 2}});
  const std::vector<Values> inputs = backend::random_inputs(c, 1);
  for (size_t i = 0; i < inputs.size(); ++i) run.set_in(i, inputs[i]);
  run.spoil_outputs();
  run.run();
  constexpr size_t kFirst = 3;
  Fnv1a hash;
  Result result;
  const auto add = [&](const Values& values) {
    for (const double v : values) hash.add(std::bit_cast<uint64_t>(v));
    for (size_t i = 0; i < std::min(kFirst, values.size()); ++i) result.first.push_back(values[i]);
  };
  for (size_t i = 0; i < run.out_types().size(); ++i) add(run.out(i));
  for (size_t i = 0; i < inputs.size(); ++i)
    if (c.problem.op->mutates(static_cast<int>(i))) add(run.in(i));
  result.hash = hash.value();
  return result;
}

/// Returns the results of all own kernels for a line, but for slow ones of long lines.
Results results_of(const std::string& line, const backend::Backend& own) {
  constexpr double kMostFlop = 1e6;  // as conformance.cpp
  const OpCase c = backend::parse_op_case(line);
  const bool is_long = c.problem.op->flop(c.problem.in, c.problem.out()) > kMostFlop;
  Results results;
  for (const std::string layout : {"last", "plain"}) {
    std::vector<std::string> accepted;
    try {
      const OpRun all(c.problem, own, {.layout = layout, .kernel = {}, .step = {}});
      accepted = all.accepted();
      if (is_long) std::erase_if(accepted, [&](const auto& name) { return all.is_slow(name); });
    } catch (const DeviceError& refusals) {
      if (!std::string_view(refusals.what()).starts_with("no kernel for")) throw;
    }
    for (const std::string& kernel : accepted)
      results[fmt::format("{} | {} | {}", line, layout, kernel)] =
          result_of(c, own, layout, kernel);
  }
  return results;
}

Results read(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw IoError(fmt::format("{} cannot be read", file));
  Results results;
  for (std::string line; std::getline(in, line);) {
    const size_t tab = line.find('\t');
    std::istringstream rest(line.substr(std::min(tab, line.size())));
    Result result;
    if (!(rest >> std::hex >> result.hash))
      throw IoError(fmt::format("{}: a line without a hash: {}", file, line));
    for (std::string v; rest >> v;) result.first.push_back(std::strtod(v.c_str(), nullptr));
    results[line.substr(0, tab)] = std::move(result);
  }
  return results;
}

/// CUDA and the C library have other last bits of exp, log, tanh and erf.
bool calls_functions(const std::string& line) {
  static const std::set<std::string> ops{"softmax_cross_entropy",
                                         "softmax_cross_entropy_grad",
                                         "pointwise_loss",
                                         "pointwise_loss_grad",
                                         "gaussian_kl",
                                         "gaussian_kl_grad",
                                         "gaussian_sample",
                                         "token_loss",
                                         "token_loss_grad",
                                         "token_head",
                                         "swiglu",
                                         "swiglu_grad",
                                         "attention",
                                         "attention_grad"};
  if (ops.contains(op_of(line))) return true;
  std::istringstream words(line);
  for (std::string word; words >> word;)
    if (word == "sigmoid" || word == "silu" || word == "mish" || word.starts_with("tanh") ||
        word.starts_with("gelu"))
      return true;
  return false;
}

/// Counts of what was found.
struct Tally {
  int lines = 0, same = 0, functions = 0, failures = 0;
  void fail(const std::string& what) {
    ++failures;
    fmt::print("FAILED {}\n", what);
  }
};

void compare(const std::string& line, const Results& got, const Results& recorded, Tally& tally) {
  for (const auto& [key, result] : got) {
    const auto entry = recorded.find(key);
    if (entry == recorded.end())
      tally.fail(key + ": the file has no such line");
    else if (result == entry->second)
      ++tally.same;
    else if (calls_functions(line))
      ++tally.functions;
    else
      tally.fail(fmt::format("{}: other bits than the emulated device's: it begins {}, there {}",
                             key, fmt::join(result.first, " "),
                             fmt::join(entry->second.first, " ")));
  }
  const std::string of_line = line + " | ";
  for (auto entry = recorded.lower_bound(of_line);
       entry != recorded.end() && entry->first.starts_with(of_line); ++entry)
    if (!got.contains(entry->first)) tally.fail(entry->first + ": is offered no more");
}

void check_line(const std::string& line, const backend::Backend& own, const Results& recorded,
                Tally& tally) {
  ++tally.lines;
  try {
    const std::vector<const backend::Backend*> twice{&own, &own};
    const backend::ConformanceReport report =
        backend::check_on_devices(backend::parse_op_case(line), twice);
    for (const std::string& failure : report.failures) tally.fail(failure);
    compare(line, results_of(line, own), recorded, tally);
  } catch (const Error& error) {
    tally.fail(line + ": " + error.what());
  }
}

}  // namespace

Outcome record_own_kernels(Target& target, const std::string& file) {
  const SomeKernels own(target.backend, is_own);
  std::ofstream out(file);
  for (const std::string& line : lines_of(target.small))
    for (const auto& [key, result] : results_of(line, own))
      out << fmt::format("{}\t{:x} {}\n", key, result.hash, fmt::join(result.first, " "));
  out.close();
  if (!out) throw IoError(fmt::format("{} cannot be written", file));
  return Outcome::passed;
}

Outcome check_own_kernels(Target& target, const std::string& file) {
  const SomeKernels own(target.backend, is_own);
  const Results recorded = read(file);
  Tally all;
  std::string op;
  Tally before;
  const auto end_op = [&] {
    if (!op.empty())
      fmt::print("{:28} {:4} lines {:5} same bits {:4} by functions {:3} failed\n", op,
                 all.lines - before.lines, all.same - before.same, all.functions - before.functions,
                 all.failures - before.failures);
    before = all;
  };
  for (const std::string& line : lines_of(target.small)) {
    if (op_of(line) != op) {
      end_op();
      op = op_of(line);
    }
    check_line(line, own, recorded, all);
  }
  end_op();
  fmt::print(
      "{} lines: {} results with the emulated device's bits, {} with others by functions such as "
      "exp and within the reference's limits, {} failures\n",
      all.lines, all.same, all.functions, all.failures);
  return all.failures == 0 && all.same > 0 ? Outcome::passed : Outcome::failed;
}

}  // namespace tutti::device_check
