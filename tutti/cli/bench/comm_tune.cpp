#include "tutti/cli/bench/comm_tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tutti/cli/bench/comm_buffers.h"
#include "tutti/cli/bench/comm_turns.h"
#include "tutti/comm/algorithm/algorithm.h"

namespace tutti::cli {
namespace {

// The most ranks that are priced: all ranks' schedules of everything measured lie in the memory of
// rank 0, and the fit simulates each some fifty times.
constexpr int kMostPriced = 64;

// Makes every rank's schedule here: the tuner's parts are equal, and so is all else.
std::vector<comm::Schedule> schedules_of_all(const comm::Algorithm& algorithm, comm::Task task) {
  std::vector<comm::Schedule> schedules;
  for (task.rank = 0; task.rank < task.ranks; ++task.rank)
    schedules.push_back(comm::make_schedule(algorithm, task));
  return schedules;
}

void measure(comm::Communicator& communicator, const TuneOptions& options, comm::Collective kind,
             size_t bytes, Tuning& tuning) {
  const CommBuffers buffers(communicator, kind, options.element, options.op, bytes);
  std::vector<const comm::Algorithm*> algorithms;
  std::vector<std::unique_ptr<comm::CollectiveOperation>> operations;
  std::vector<std::function<void()>> calls;
  for (const comm::Algorithm* algorithm : comm::algorithms()) {
    if (!refusal_of(*algorithm, buffers.task()).empty()) continue;
    comm::CollectiveSpec spec = buffers.spec();
    spec.algorithm = algorithm->name;
    algorithms.push_back(algorithm);
    operations.push_back(communicator.plan(spec));
    calls.push_back([operation = operations.back().get()] { operation->run(); });
  }
  const auto seconds =
      time_in_turns(communicator, calls,
                    {.warmup = options.warmup, .iterations = options.iterations, .before = [&] {
                       buffers.rewrite();
                     }});
  tuning.node_of = buffers.task().node_of;
  for (size_t k = 0; k < calls.size(); ++k) {
    const double took = median(mean_over_ranks(communicator, seconds[k]));
    tuning.times.push_back({kind, buffers.bytes(), std::string(algorithms[k]->name),
                            algorithms[k]->reproducible(buffers.task()), took});
    if (communicator.rank() != 0 || communicator.size() > kMostPriced) continue;
    tuning.measured.push_back(
        {schedules_of_all(*algorithms[k], buffers.task()), comm::size_of(options.element),
         comm::size_of(comm::accumulator_of(options.element, options.op)), took});
  }
}

std::string rate(double seconds_per_byte) {
  return seconds_per_byte > 0 ? fmt::format("{:.2f} GB/s", 1e-9 / seconds_per_byte) : "no time";
}

std::string describe(const comm::NetworkCost& network, bool one_node) {
  const auto link = [](const comm::LinkCost& cost) {
    return fmt::format("latency {:.2f} us, {}", cost.latency * 1e6, rate(cost.seconds_per_byte));
  };
  return fmt::format("{}{}; sums {}, copies {}", link(network.inside),
                     one_node ? "" : "; between nodes " + link(network.between),
                     rate(network.seconds_per_reduced_byte), rate(network.seconds_per_copied_byte));
}

// For each collective and size with a choice: how much longer the algorithm with the least price
// takes than the fastest one.
std::vector<double> regrets(const Tuning& tuning, const std::vector<double>& prices) {
  std::vector<double> found;
  for (size_t begin = 0, end = 0; begin < tuning.times.size(); begin = end) {
    size_t cheapest = begin, fastest = begin;
    for (end = begin;
         end < tuning.times.size() && tuning.times[end].kind == tuning.times[begin].kind &&
         tuning.times[end].bytes == tuning.times[begin].bytes;
         ++end) {
      if (prices[end] < prices[cheapest]) cheapest = end;
      if (tuning.times[end].seconds < tuning.times[fastest].seconds) fastest = end;
    }
    if (end - begin > 1)
      found.push_back(tuning.times[cheapest].seconds / tuning.times[fastest].seconds);
  }
  return found;
}

using BySize = std::map<size_t, std::vector<const AlgorithmTime*>>;

const AlgorithmTime& winner(const std::vector<const AlgorithmTime*>& candidates,
                            const std::string& before, double tie) {
  const AlgorithmTime* best = candidates.front();
  const AlgorithmTime* keeper = nullptr;
  for (const AlgorithmTime* candidate : candidates) {
    if (candidate->seconds < best->seconds) best = candidate;
    if (candidate->algorithm == before) keeper = candidate;
  }
  return keeper != nullptr && keeper->seconds <= best->seconds * (1 + tie) ? *keeper : *best;
}

void append_lines(const BySize& sizes, comm::Selection::Line line, double tie,
                  std::vector<comm::Selection::Line>& lines) {
  size_t before = 0;
  for (const auto& [bytes, candidates] : sizes) {
    const std::string& algorithm = winner(candidates, line.algorithm, tie).algorithm;
    if (!line.algorithm.empty() && algorithm != line.algorithm) {
      line.bytes =
          static_cast<size_t>(std::sqrt(static_cast<double>(before) * static_cast<double>(bytes)));
      lines.push_back(line);
    }
    line.algorithm = algorithm;
    before = bytes;
  }
  line.bytes = 0;
  if (!line.algorithm.empty()) lines.push_back(line);
}

}  // namespace

std::vector<comm::Selection::Line> fastest_lines(std::span<const AlgorithmTime> times, int ranks,
                                                 bool one_node, double tie) {
  std::vector<comm::Selection::Line> lines;
  for (int k = 0; k < comm::kCollectives; ++k) {
    const auto kind = static_cast<comm::Collective>(k);
    BySize tree, all;
    bool others = false;
    for (const AlgorithmTime& time : times) {
      if (time.kind != kind) continue;
      all[time.bytes].push_back(&time);
      if (time.reproducible) tree[time.bytes].push_back(&time);
      others |= !time.reproducible;
    }
    comm::Selection::Line line{.kind = kind,
                               .ranks = static_cast<size_t>(ranks),
                               .one_node = one_node,
                               .bytes = 0,
                               .reproducible = {},
                               .algorithm = {}};
    if (others) {
      line.reproducible = false;
      append_lines(all, line, tie, lines);
      line.reproducible = true;
    }
    append_lines(tree, line, tie, lines);
  }
  return lines;
}

Tuning tune(comm::Communicator& communicator, const TuneOptions& options) {
  Tuning tuning;
  for (const comm::Collective kind : options.kinds) {
    const std::vector<size_t> sizes =
        kind == comm::Collective::barrier ? std::vector<size_t>{0} : options.sizes;
    for (const size_t bytes : sizes) measure(communicator, options, kind, bytes, tuning);
  }
  tuning.lines = fastest_lines(tuning.times, communicator.size(), communicator.one_node());
  return tuning;
}

std::string tuning_report(const Tuning& tuning) {
  const bool priced = !tuning.measured.empty();
  const comm::NetworkCost network =
      priced ? comm::fit_network(tuning.measured, tuning.node_of) : comm::NetworkCost{};
  std::string text =
      fmt::format("#{:>11} {:<15} {:<19} {:<12} {:>10} {:>10} {:>10}\n", "size(B)", "collective",
                  "algorithm", "reproducible", "time(us)", "price(us)", "price/time");
  std::vector<double> prices, errors;
  for (size_t i = 0; i < tuning.times.size(); ++i) {
    const AlgorithmTime& time = tuning.times[i];
    text +=
        fmt::format("{:>12} {:<15} {:<19} {:<12} {:>10.2f}", time.bytes, comm::name_of(time.kind),
                    time.algorithm, time.reproducible ? "yes" : "no", time.seconds * 1e6);
    if (priced) {
      const comm::MeasuredSchedules& m = tuning.measured[i];
      prices.push_back(
          comm::price(m.schedules, network, tuning.node_of, m.element_bytes, m.accumulator_bytes));
      if (prices[i] > 0) errors.push_back(std::exp(std::abs(std::log(prices[i] / time.seconds))));
      text += fmt::format(" {:>10.2f} {:>10.2f}", prices[i] * 1e6, prices[i] / time.seconds);
    }
    text += '\n';
  }
  if (!priced)
    return text + fmt::format("# no prices: too many ranks to play them all (the most is {})\n",
                              kMostPriced);
  text += fmt::format("# prices: comm/cost/cost.h on the network that fits these times best: {}\n",
                      describe(network, tuning.node_of.empty()));
  std::ranges::sort(errors);
  if (!errors.empty())
    text += fmt::format(
        "# half of the prices are within a factor of {:.2f} of the time, nine in ten within "
        "{:.2f}\n",
        median(errors), errors[(errors.size() - 1) * 9 / 10]);
  if (const auto found = regrets(tuning, prices); !found.empty())
    text += fmt::format(
        "# the cheapest by price takes {:.2f} times as long as the fastest (median; {:.2f} at "
        "worst)\n",
        median(found), std::ranges::max(found));
  return text;
}

}  // namespace tutti::cli
