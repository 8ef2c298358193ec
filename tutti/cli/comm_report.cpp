#include "tutti/cli/comm_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

namespace tutti {

std::string comm_header(CommColumns columns, const CommBenchOptions& options) {
  if (columns == CommColumns::osu)
    return fmt::format("# Tutti {}\n{:<10}{:>20}{:>20}{:>20}{:>12}", comm::name_of(options.kind),
                       "# Size", "Avg Latency(us)", "Min Latency(us)", "Max Latency(us)",
                       "Iterations");
  std::string line = fmt::format("# {}\n#{:>11} {:>12} {:>6} {:>6} {:<19} {:>10} {:>8} {:>8} {:>7}",
                                 comm::name_of(options.kind), "size(B)", "count", "type", "redop",
                                 "algorithm", "time(us)", "algbw", "busbw", "#wrong");
  for (const OpenPeer* peer : options.peers) line += fmt::format(" {:>11}", peer->name + "(us)");
  if (options.overlap) line += fmt::format(" {:>8}", "hidden");
  return line;
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

nlohmann::ordered_json comm_json(const CommBenchOptions& options, const CommBenchRow& row,
                                 int ranks) {
  const double gb = row.algorithm_bandwidth() / 1e9;
  nlohmann::ordered_json json = {
      {"collective", comm::name_of(options.kind)},
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

}  // namespace tutti
