#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tutti/base/json.h"
#include "tutti/cli/verbs/advice.h"

namespace tutti::cli {
namespace {

constexpr double kMiB = 1 << 20;

/// Returns the mark after the line of the advised batch.
const char* mark(const Advice& advice) {
  if (!trace::disturbance(advice.machine_use).empty()) return "  <- perhaps: see above";
  return advice.as_fast.size() > 1 ? "  <- as fast as any, as far as these steps tell"
                                   : "  <- the fastest";
}

std::string batch_lines(const Advice& advice) {
  std::string text = fmt::format(
      "\nMini-batch: the fastest whose memory is below {:.0f} MiB a rank\n"
      "{:>8} {:>12} {:>14} {:>10} {:>12}\n",
      advice.memory_bytes / kMiB, "batch", "plan MiB", "measured MiB", "step ms", "samples/s");
  for (const BatchAdvice& line : advice.batches) {
    text += fmt::format(
        "{:>8} {:>12} ", line.batch,
        line.planned_bytes > 0 ? fmt::format("{:.1f}", line.planned_bytes / kMiB) : "-");
    if (line.step_seconds > 0)
      text += fmt::format("{:>14.1f} {:>10.2f} {:>12.1f}", line.measured_bytes / kMiB,
                          line.step_seconds * 1e3, line.samples_per_s());
    else
      text += fmt::format("{:>14} {:>10} {:>12}", "too large", "-", "-");
    if (line.batch == advice.best_batch)
      text += mark(advice);
    else if (std::ranges::find(advice.as_fast, line.batch) != advice.as_fast.end())
      text += "  not told from it";
    text += '\n';
  }
  return text;
}

std::string count_words(const std::optional<int64_t>& workers) {
  return workers ? fmt::to_string(*workers) : "any number";
}

std::string worker_lines(const Advice& advice) {
  std::string text = fmt::format(
      "\nWorkers on {}: {:.4g} ms of computation a step{}, {:.4g} ms of a server's link (gradient "
      "and weights)\noverhead ratio {:.4g}: speed-up is at most {:.4g} through one server\n"
      "{:>8} {:>16} {:>22}",
      advice.machine, advice.compute * 1e3, advice.compute_measured ? ", as here" : "",
      advice.overhead * 1e3, advice.overhead / advice.compute, 1 + advice.compute / advice.overhead,
      "workers", "one server: rule", "servers to hide it");
  const auto column = [](const Advice::ByClock& scheme) { return scheme.scheme + ": replayed"; };
  for (const Advice::ByClock& scheme : advice.by_clock)
    text += fmt::format(" {:>18}", column(scheme));
  text += '\n';
  for (const WorkerAdvice& line : advice.workers) {
    text += fmt::format("{:>8} {:>16.2f} {:>22}", line.workers, line.rule_speedup, line.servers);
    for (size_t s = 0; s < advice.by_clock.size(); ++s) {
      const auto& speedup = line.replayed_speedups[s];
      text += fmt::format(" {:>{}}", speedup ? fmt::format("{:.2f}", *speedup) : "-",
                          std::max<size_t>(18, column(advice.by_clock[s]).size()));
    }
    text += '\n';
  }
  text += fmt::format("for an efficiency of {:.2f}: {} worker(s) through one server",
                      advice.efficiency, count_words(advice.workers_by_rule));
  for (const Advice::ByClock& most : advice.by_clock)
    text += fmt::format(", {}{} with scheme {}",
                        most.workers ? fmt::to_string(*most.workers) : "none of these",
                        most.ends ? " or more" : "", most.scheme);
  return text + '\n';
}

Json number_json(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

template <class T>
Json count_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

std::string advice_text(const Advice& advice) {
  std::string text = fmt::format(
      "{}: {:.0f} parameters, {:.2f} MiB of gradients, batch {}{}, {:.4g} GFLOP a step\n",
      advice.model, advice.parameters, advice.weight_bytes / kMiB,
      advice.micro_batches > 1 ? fmt::format("{} x ", advice.micro_batches) : "", advice.batch,
      advice.flop * 1e-9);
  if (const std::string sentence = trace::disturbance_sentence(advice.machine_use);
      !sentence.empty())
    text += '\n' + sentence + '\n';
  text += batch_lines(advice);
  if (advice.best_batch == 0) text += "none of them fits\n";
  if (!advice.workers.empty())
    text += worker_lines(advice);
  else if (!advice.workers_left_out.empty())
    text += fmt::format("\nNothing is said of workers on {}: {}\n", advice.machine,
                        advice.workers_left_out);
  else
    text += "\nWith --machine FILE: how many workers, and how many servers for them\n";
  return text + "docs/advise.md derives these rules; tutti study measures what they leave out\n";
}

Json advice_json(const Advice& advice) {
  Json out = {{"model", advice.model},
              {"batch", advice.batch},
              {"accumulate", advice.micro_batches},
              {"parameters", advice.parameters},
              {"gradient_bytes", advice.weight_bytes},
              {"flop", advice.flop},
              {"memory_bytes", advice.memory_bytes},
              {"best_batch", advice.best_batch},
              {"as_fast", advice.as_fast}};
  out.update(trace::machine_json(advice.machine_use));
  out["batches"] = Json::array();
  for (const BatchAdvice& line : advice.batches)
    out["batches"].push_back({{"batch", line.batch},
                              {"planned_bytes", line.planned_bytes},
                              {"measured_bytes", line.measured_bytes},
                              {"step_seconds", line.step_seconds},
                              {"update_seconds", line.update_seconds},
                              {"samples_per_s", line.samples_per_s()}});
  if (!advice.workers_left_out.empty()) out["workers_left_out"] = advice.workers_left_out;
  if (advice.workers.empty()) return out;
  out["machine"] = advice.machine;
  out["compute_seconds"] = advice.compute;
  out["compute_measured"] = advice.compute_measured;
  out["overhead_seconds"] = advice.overhead;
  out["overhead_ratio"] = number_json(advice.overhead / advice.compute);
  out["efficiency"] = advice.efficiency;
  out["workers_by_rule"] = count_json(advice.workers_by_rule);
  for (const Advice::ByClock& most : advice.by_clock)
    out["workers_by_clock"][most.scheme] = count_json(most.workers);
  for (const WorkerAdvice& line : advice.workers) {
    Json replayed = Json::object();
    for (size_t s = 0; s < advice.by_clock.size(); ++s)
      replayed[advice.by_clock[s].scheme] = count_json(line.replayed_speedups[s]);
    out["workers"].push_back({{"workers", line.workers},
                              {"rule_speedup", line.rule_speedup},
                              {"servers", line.servers},
                              {"replayed_speedup", replayed}});
  }
  return out;
}

}  // namespace tutti::cli
