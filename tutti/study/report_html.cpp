#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tutti/base/error.h"
#include "tutti/study/page.h"
#include "tutti/study/report.h"

namespace tutti::study {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  return out;
}

/// JSON inside a script element: no "</script>" or "<!--" may appear in it.
std::string script_safe(const std::string& json) {
  std::string out;
  for (const char c : json) out += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return out;
}

std::string html_table(const TextTable& table) {
  std::string html = "<table><thead><tr>";
  for (const std::string& heading : table.headings)
    html += "<th scope=\"col\">" + escaped(heading) + "</th>";
  html += "</tr></thead><tbody>\n";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) {
      const bool muted = row[i] == "-" || row[i] == "not reached";
      html += i == 0
                  ? "<th scope=\"row\">" + escaped(row[i]) + "</th>"
                  : fmt::format("<td{}>{}</td>", muted ? " class=\"muted\"" : "", escaped(row[i]));
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table>\n";
}

std::string card(const std::string& label, const std::string& value, const std::string& below,
                 const char* kind) {
  return fmt::format(
      "<div class=\"card {}\"><div class=\"label\">{}</div><div class=\"value\">{}</div><div "
      "class=\"below\">{}</div></div>\n",
      kind, escaped(label), escaped(value), escaped(below));
}

/// The headline numbers: at the largest rank count that had its cores, else at the largest.
std::string cards(const StudyResult& result) {
  const ScaleRow* shown = nullptr;
  for (const ScaleRow& row : result.rows)
    if (row.runs && (!row.oversubscribed || !shown)) shown = &row;
  if (!shown) return "";
  const ScaleRow& row = *shown;
  const std::string at =
      fmt::format("{} ranks{}", row.ranks, row.oversubscribed ? ", oversubscribed" : "");
  const auto efficiency = [](double value) {
    return std::isfinite(value) ? fmt::format("efficiency {:.0f} %", 100 * value) : std::string();
  };
  std::string html = card("Parallel speed-up, " + at, fmt::format("{:.2f}", row.parallel.value),
                          efficiency(row.parallel_efficiency), "parallel");
  if (result.target) {
    if (std::isfinite(row.learning.value)) {
      html += card("Learning speed-up, " + at, fmt::format("{:.2f}", row.learning.value),
                   efficiency(row.learning_efficiency), "learning");
      html += card("Epochs to target", fmt::format("{:.1f}", row.epochs_to_target.mean),
                   fmt::format("{:.2f} times the base's", 1 / row.epochs_factor), "");
    } else {
      html += card("Learning speed-up, " + at, "not reached",
                   row.reached ? "the base did not reach the target"
                               : fmt::format("best {:.4g}", row.best.mean),
                   "learning");
      const auto most = std::max_element(result.rows.begin(), result.rows.end(),
                                         [](const ScaleRow& a, const ScaleRow& b) {
                                           return (a.learning.value > 0 ? a.learning.value : 0) <
                                                  (b.learning.value > 0 ? b.learning.value : 0);
                                         });
      if (most->learning.value > 0)
        html += card("Largest learning speed-up", fmt::format("{:.2f}", most->learning.value),
                     fmt::format("at {} ranks", most->ranks), "learning");
    }
  }
  if (std::isfinite(row.step.comm_exposed) && row.step.total > 0)
    html += card("Exposed communication",
                 fmt::format("{:.1f} %", 100 * row.step.comm_exposed / row.step.total),
                 "of a step's time", "");
  return html;
}

std::string notes(const StudyResult& result) {
  if (result.notes.empty()) return "";
  std::string html = "<section class=\"notes\"><h2>Before you believe the numbers</h2><ul>\n";
  for (const std::string& note : result.notes) html += "<li>" + escaped(note) + "</li>\n";
  return html + "</ul></section>\n";
}

std::string facts(const StudyResult& result, const ReportText& text) {
  std::vector<std::pair<std::string, std::string>> lines;
  if (!result.title.empty()) lines.emplace_back("Workload", result.title);
  lines.emplace_back("Scaling", result.mode);
  if (result.target)
    lines.emplace_back(
        "Target", fmt::format("{} {} {}", result.target->metric,
                              result.target->higher_is_better ? "≥" : "≤", result.target->value));
  std::set<std::string> machines, versions;
  for (const RunSummary& run : result.runs) {
    if (!run.log.start.machine.empty()) machines.insert(run.log.start.machine);
    if (!run.log.start.version.empty())
      versions.insert(run.log.start.version + " " + run.log.start.git);
  }
  for (const std::string& machine : machines) lines.emplace_back("Machine", machine);
  for (const std::string& version : versions) lines.emplace_back("Version", version);
  if (!text.made.empty()) lines.emplace_back("Made", text.made);
  std::string html = "<dl>\n";
  for (const auto& [what, value] : lines)
    html += "<dt>" + escaped(what) + "</dt><dd>" + escaped(value) + "</dd>\n";
  return html + "</dl>\n";
}

std::string preformatted(const std::string& heading, const std::string& body) {
  if (body.empty()) return "";
  return "<section><h2>" + escaped(heading) + "</h2><pre>" + escaped(body) + "</pre></section>\n";
}

/// The page's frame with every {{name}} replaced.
std::string filled(std::string_view frame,
                   const std::vector<std::pair<std::string_view, std::string>>& values) {
  std::string html;
  for (size_t at = 0; at < frame.size();) {
    const size_t open = frame.find("{{", at), close = frame.find("}}", open);
    html += frame.substr(at, open - at);
    if (open == std::string_view::npos) break;
    const std::string_view name = frame.substr(open + 2, close - open - 2);
    const auto value =
        std::find_if(values.begin(), values.end(), [&](const auto& v) { return v.first == name; });
    CHECK(value != values.end(), "page/page.html has no value for {}", name);
    html += value->second;
    at = close + 2;
  }
  return html;
}

}  // namespace

std::string html_report(const StudyResult& result, const ReportText& text) {
  std::string commands;
  for (const std::string& command : text.commands) commands += command + '\n';
  const std::string identity = result.target
                                   ? "<section><h2>Why learning lags behind</h2><p>Learning "
                                     "speed-up = parallel speed-up × epochs factor × "
                                     "remainder. The epochs factor is what a larger batch or rarer "
                                     "synchronisation costs; the remainder is "
                                     "evaluation and start-up.</p><div class=\"scroll\">" +
                                         html_table(identity_table(result)) + "</div></section>"
                                   : "";
  return filled(page_frame(), {{"title", escaped(text.title)},
                               {"style", std::string(page_style())},
                               {"facts", facts(result, text)},
                               {"cards", cards(result)},
                               {"notes", notes(result)},
                               {"scaling", html_table(scaling_table(result))},
                               {"identity", identity},
                               {"step", html_table(step_table(result))},
                               {"runs", html_table(runs_table(result))},
                               {"commands", preformatted("Commands", commands)},
                               {"configuration", preformatted("Configuration", text.configuration)},
                               {"data", script_safe(json_report(result, text))},
                               {"chart_js", std::string(chart_js())},
                               {"script", std::string(page_script())}});
}

}  // namespace tutti::study
