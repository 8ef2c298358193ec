#include "tutti/cli/bench/comm_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>

#include "tutti/base/json.h"

namespace tutti::cli {

std::string comm_header(CommColumns columns, const CommBenchOptions& options) {
  if (columns == CommColumns::osu)
    return fmt::format("# Tutti {}\n{:<10}{:>20}{:>20}{:>20}{:>12}", comm::name_of(options.kind),
                       "# Size", "Avg Latency(us)", "Min Latency(us)", "Max Latency(us)",
                       "Iterations");
  std::string names =
      fmt::format("{:>11} {:>12} {:>6} {:>6} {:<19} {:>10} {:>8} {:>8} {:>7}", "size", "count",
                  "type", "redop", "algorithm", "time", "algbw", "busbw", "#wrong");
  std::string units = fmt::format("{:>11} {:>12} {:>6} {:>6} {:<19} {:>10} {:>8} {:>8} {:>7}",
                                  "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "");
  for (const OpenPeer* peer : options.peers) {
    names += fmt::format(" {:>11}", peer->name);
    units += fmt::format(" {:>11}", "(us)");
  }
  if (options.overlap) {
    names += fmt::format(" {:>8}", "hidden");
    units += fmt::format(" {:>8}", "");
  }
  return fmt::format("# {}\n#{}\n#{}", comm::name_of(options.kind), names, units);
}

std::string comm_line(CommColumns columns, const CommBenchOptions& options, const CommBenchRow& row,
                      int ranks) {
  if (columns == CommColumns::osu)
    return fmt::format("{:<10}{:>20.2f}{:>20.2f}{:>20.2f}{:>12}", row.bytes, row.average * 1e6,
                       row.least * 1e6, row.most * 1e6, options.iterations);
  const double gb = row.algorithm_bandwidth() / 1e9;
  std::string line =
      fmt::format("{:>12} {:>12} {:>6} {:>6} {:<19} {:>10.2f} {:>8.3f} {:>8.3f} {:>7}", row.bytes,
                  row.count, comm::name_of(options.element),
                  comm::reduces(options.kind) ? comm::name_of(options.op) : "none", row.algorithm,
                  row.seconds * 1e6, gb, gb * bus_factor(options.kind, ranks),
                  row.wrong ? fmt::format("{}", *row.wrong) : "N/A");
  for (const auto& seconds : row.peer_seconds)
    line += fmt::format(" {:>11}", seconds ? fmt::format("{:.2f}", *seconds * 1e6) : "N/A");
  if (row.hidden) line += fmt::format(" {:>7.0f}%", *row.hidden * 100);
  return line;
}

double bus_bandwidth(comm::Collective kind, const CommBenchRow& row, int ranks) {
  return row.algorithm_bandwidth() * bus_factor(kind, ranks);
}

std::string comm_footer(const CommBenchOptions& options, size_t wrong,
                        const std::vector<double>& bus_bandwidths) {
  const double sum = std::accumulate(bus_bandwidths.begin(), bus_bandwidths.end(), 0.0);
  const std::string checked = options.checks == 0
                                  ? "not checked (-c 0)"
                                  : fmt::format("{} {}", wrong, wrong == 0 ? "OK" : "FAILED");
  return fmt::format(
      "# Out of bounds values   : {}\n# Average bus bandwidth  : {:.3f} GB/s", checked,
      bus_bandwidths.empty() ? 0 : sum / static_cast<double>(bus_bandwidths.size()) / 1e9);
}

Json comm_json(const CommBenchOptions& options, const CommBenchRow& row, int ranks) {
  const double gb = row.algorithm_bandwidth() / 1e9;
  Json json = {{"collective", comm::name_of(options.kind)},
               {"ranks", ranks},
               {"bytes", row.bytes},
               {"count", row.count},
               {"type", comm::name_of(options.element)},
               {"redop", comm::reduces(options.kind) ? comm::name_of(options.op) : "none"},
               {"algorithm", row.algorithm},
               {"time_us", row.seconds * 1e6},
               {"algbw_GBps", gb},
               {"busbw_GBps", gb * bus_factor(options.kind, ranks)},
               {"avg_us", row.average * 1e6},
               {"min_us", row.least * 1e6},
               {"max_us", row.most * 1e6}};
  if (row.wrong) json["wrong"] = *row.wrong;
  if (row.hidden) json["hidden"] = *row.hidden;
  for (size_t i = 0; i < options.peers.size(); ++i) {
    if (!row.peer_seconds[i]) continue;
    std::string key = options.peers[i]->name;
    std::ranges::transform(key, key.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    json[key + "_us"] = *row.peer_seconds[i] * 1e6;
  }
  return json;
}

}  // namespace tutti::cli
