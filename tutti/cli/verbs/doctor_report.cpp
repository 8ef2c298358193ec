#include "tutti/cli/verbs/doctor_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tutti/base/json.h"
#include "tutti/cli/bench/measure.h"
#include "tutti/cli/job/compute_backend.h"

namespace tutti::cli {
namespace {

constexpr size_t kMostGroups = 8;  // groups of differing ranks; only the first of more are shown
constexpr int kTitle = 16;

const Fact* find(const Findings& findings, const std::string& key) {
  for (const Fact& fact : findings.facts)
    if (fact.key == key) return &fact;
  return nullptr;
}

/// Ranks that report the same. Ranks that report nothing are in no group: only rank 0 reports facts
/// that change from moment to moment.
struct Group {
  std::string message;
  std::vector<int> ranks;
};

void add_to_group(std::vector<Group>& groups, const std::string& message, size_t rank) {
  auto at = std::ranges::find(groups, message, &Group::message);
  if (at == groups.end()) at = groups.insert(at, {message, {}});
  at->ranks.push_back(static_cast<int>(rank));
}

std::vector<Group> group(const std::vector<Findings>& ranks, const std::string& key,
                         std::string Fact::*member) {
  std::vector<Group> groups;
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    if (const Fact* fact = find(ranks[rank], key)) add_to_group(groups, fact->*member, rank);
  return groups;
}

std::string ranks_named(const std::vector<int>& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", rank_list(ranks));
}

std::string line(const std::string& title, const std::string& text) {
  return fmt::format("{:<{}} {}\n", title, kTitle, text);
}

std::string fact_text(const std::vector<Findings>& ranks, const Fact& first) {
  const auto groups = group(ranks, first.key, &Fact::text);
  if (groups.size() == 1) return line(first.title, first.text);
  std::string out;
  for (size_t i = 0; i < std::min(groups.size(), kMostGroups); ++i)
    out += line(i == 0 ? first.title : "",
                fmt::format("{}: {}", ranks_named(groups[i].ranks), groups[i].message));
  if (groups.size() > kMostGroups)
    out += line("", fmt::format("and {} further kinds of ranks", groups.size() - kMostGroups));
  return out;
}

/// Returns each warning once, with the ranks that it concerns unless it concerns all.
std::vector<std::string> all_warnings(const std::vector<Findings>& ranks) {
  std::vector<Group> groups;
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    for (const std::string& warning : ranks[rank].warnings) add_to_group(groups, warning, rank);
  std::vector<std::string> out;
  for (const Group& each : groups)
    out.push_back(each.ranks.size() == ranks.size()
                      ? each.message
                      : fmt::format("{}: {}", ranks_named(each.ranks), each.message));
  return out;
}

}  // namespace

void Findings::add(std::string title, std::string text, std::string key, const Json& value) {
  facts.push_back({std::move(title), std::move(text), std::move(key), print_json(value)});
}

void Findings::add(std::string title, std::string text, std::string key) {
  const Json value = text;
  add(std::move(title), std::move(text), std::move(key), value);
}

void Findings::append(const Findings& more) {
  facts.insert(facts.end(), more.facts.begin(), more.facts.end());
  warnings.insert(warnings.end(), more.warnings.begin(), more.warnings.end());
}

void add_gpus(Findings& findings, const device::CudaReport& report) {
  std::vector<std::string> lines;
  Json list = Json::array();
  for (const device::DeviceFacts& facts : report.devices) {
    lines.push_back(device_line(facts));
    list.push_back(device_json(facts));
  }
  findings.add("GPUs",
               lines.empty() ? fmt::format("none ({})", report.problem)
                             : fmt::format("{}", fmt::join(lines, "; ")),
               "gpus", list);
  const auto known = [](const std::string& version) { return version.empty() ? "none" : version; };
  findings.add("CUDA",
               report.library.empty() ? "no libtutti_cuda.so"
                                      : fmt::format("{}, runtime {}, driver {}, {}", report.library,
                                                    known(report.runtime), known(report.driver),
                                                    known(report.libraries)),
               "cuda",
               {{"library", report.library},
                {"runtime", report.runtime},
                {"driver", report.driver},
                {"libraries", report.libraries},
                {"problem", report.problem}});
}

std::string to_text(const Findings& findings) {
  Json out = {{"warnings", findings.warnings}, {"facts", Json::array()}};
  for (const Fact& fact : findings.facts)
    out["facts"].push_back({fact.title, fact.text, fact.key, fact.value});
  return print_json(out);
}

Findings findings_from(const std::string& text) {
  const Json in = parse_json(text);
  Findings findings;
  findings.warnings = in["warnings"].get<std::vector<std::string>>();
  for (const Json& fact : in["facts"])
    findings.facts.push_back({fact[0], fact[1], fact[2], fact[3]});
  return findings;
}

std::string rank_list(const std::vector<int>& ranks) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < ranks.size();) {
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    parts.push_back(last == i ? std::to_string(ranks[i])
                              : fmt::format("{}-{}", ranks[i], ranks[last]));
    i = last + 1;
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string slow_threads_warning(double one, double all, int threads) {
  if (threads < 2 || all >= kExpectedRate * one * threads) return "";
  return fmt::format(
      "{} threads reach {:.1f} GFLOP/s together, one alone {:.1f}: they share cores (hardware "
      "threads of one core), or other work or a limit of power holds them back. Try fewer with "
      "--threads, and compare",
      threads, all * 1e-9, one * 1e-9);
}

std::string doctor_text(const std::vector<Findings>& ranks) {
  std::string out;
  for (const Fact& fact : ranks.front().facts) out += fact_text(ranks, fact);
  const auto warnings = all_warnings(ranks);
  if (warnings.empty()) return out + line("verdict", "nothing to improve");
  for (size_t i = 0; i < warnings.size(); ++i) out += line(i == 0 ? "TO IMPROVE" : "", warnings[i]);
  return out;
}

Json doctor_json(const std::vector<Findings>& ranks) {
  Json out;
  for (const Fact& first : ranks.front().facts) {
    const auto groups = group(ranks, first.key, &Fact::value);
    if (groups.size() == 1) {
      out[first.key] = parse_json(first.value);
      continue;
    }
    for (const Group& each : groups)
      out[first.key].push_back({{"ranks", each.ranks}, {"value", parse_json(each.message)}});
  }
  out["warnings"] = all_warnings(ranks);
  return out;
}

}  // namespace tutti::cli
