#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tutti/study/describe.h"
#include "tutti/study/html.h"
#include "tutti/study/notes.h"
#include "tutti/study/page.h"
#include "tutti/study/report.h"

namespace tutti::study {
namespace {

/// Returns a link to a file beside the report. It works while the page lies in the study's folder.
std::string link(const std::string& path, const std::string& words) {
  return fmt::format("<a href=\"{}\">{}</a>", link_target(path), escaped(words));
}

std::string card(const std::string& label, const std::string& value, const std::string& below,
                 const char* kind) {
  return fmt::format(
      "<div class=\"card {}\"><div class=\"label\">{}</div><div class=\"value\">{}</div><div "
      "class=\"below\">{}</div></div>\n",
      kind, escaped(label), escaped(value), escaped(below));
}

/// Returns "90 % interval 1.60 to 2.06 from 3 runs", "from 1 run, so without an interval".
std::string certainty(const Ratio& ratio, int count, bool is_base) {
  if (is_base) return "by definition: other sizes are compared with this one";
  const std::string runs = fmt::format("{} {}", count, count == 1 ? "run" : "runs");
  if (!std::isfinite(ratio.low)) return fmt::format("from {}, so without an interval", runs);
  return fmt::format("90 % interval {:.3g} to {:.3g} from {}", ratio.low, ratio.high, runs);
}

std::string learning_cards(const StudyResult& result, const ScaleRow& row, const std::string& at) {
  const bool is_base = row.is_base;
  std::string html;
  if (std::isfinite(row.learning.value)) {
    html += card("Learning speed-up" + at, fmt::format("{:.2f}", row.learning.value),
                 fmt::format("efficiency {}; {}", percent(row.learning_efficiency),
                             certainty(row.learning, row.reached, is_base)),
                 "learning");
    html += card("Epochs to target" + at, fmt::format("{:.1f}", row.epochs_to_target.mean),
                 is_base ? ""
                         : fmt::format("{:.2f} times as many as on {}", 1 / row.epochs_factor,
                                       ranks_words(result.base_ranks)),
                 "");
    return html;
  }
  const bool unknown = row.open() || std::ranges::any_of(result.rows, [&](const ScaleRow& base) {
                         return base.is_base && base.open();
                       });
  html = card("Learning speed-up" + at, unknown ? "unknown" : "not reached",
              unknown ? "runs ended at a target of their own before this one"
              : row.reached
                  ? fmt::format("{} did not reach the target", ranks_words(result.base_ranks))
                  : fmt::format("best {} {:.4g} in the mean",
                                metric_words(result.target->metric, result.judge), row.best.mean),
              "learning");
  const ScaleRow* most = nullptr;
  for (const ScaleRow& other : result.rows)
    if (!other.is_base && std::isfinite(other.learning.value) &&
        (!most || other.learning.value > most->learning.value))
      most = &other;
  if (most)
    html += card("Largest learning speed-up", fmt::format("{:.2f}", most->learning.value),
                 fmt::format("on {}; {}", most->size().words(),
                             certainty(most->learning, most->reached, false)),
                 "learning");
  return html;
}

/// Returns the headline numbers: for the largest rank count that had its cores, or else for the
/// largest.
std::string cards(const StudyResult& result) {
  const ScaleRow* shown = nullptr;
  for (const ScaleRow& row : result.rows)
    if (row.runs && (!row.oversubscribed || !shown)) shown = &row;
  if (!shown) return "";
  const ScaleRow& row = *shown;
  const std::string at = fmt::format(", {}{}", row.size().words(),
                                     row.oversubscribed ? ", more threads than cores" : "");
  std::string html = card("Parallel speed-up" + at, fmt::format("{:.2f}", row.parallel.value),
                          fmt::format("efficiency {}; {}", percent(row.parallel_efficiency),
                                      certainty(row.parallel, row.runs, row.is_base)),
                          "parallel");
  if (result.target) html += learning_cards(result, row, at);
  if (std::isfinite(row.step.comm_exposed) && row.step.total > 0)
    html += card("Exposed communication" + at,
                 fmt::format("{:.1f} %", 100 * row.step.comm_exposed / row.step.total),
                 "of the time of a step, not hidden behind computing", "");
  return html;
}

std::string learning(const StudyResult& result) {
  if (!result.target) return "";
  const std::string clock =
      result.replayed()
          ? "The clock is the virtual one of the replayed machine: it starts at the first weight "
            "update and leaves evaluations out. Device-hours are the seconds to the target × "
            "replicas. "
          : "The clock starts at the first weight update and runs on during evaluations. "
            "Core-hours are the seconds to the target × ranks × threads of a rank. ";
  const std::string below =
      "Learning speed-up on n ranks = (seconds to the target on the smallest number of ranks) ÷ "
      "(seconds to the target on n ranks), times that smallest number. " +
      clock +
      "Gain/s says how fast this value improves per second, compared with the smallest size, over "
      "the epochs that all runs have: it can be given even where the target was not reached. ± is "
      "a 90&nbsp;% interval of a mean, [low, high] of a ratio: its sides differ. * is "
      "oversubscribed: more threads than cores.";
  return section("How soon it has learned: " + escaped(target_words(*result.target, result.judge)),
                 html_table(learning_table(result)), below.c_str());
}

std::string identity(const StudyResult& result) {
  if (!result.target || result.rows.size() < 2) return "";
  return section(
      "Why learning gains less, or more, than training", html_table(identity_table(result)),
      "Learning speed-up = parallel speed-up × epochs factor × rest. The epochs factor is (epochs "
      "to the target on the smallest number of ranks) ÷ (epochs on n ranks): below 1, a larger "
      "size needs more epochs, as larger batches often do. The rest is what evaluations, "
      "checkpoints and epochs of unequal length add; without them it is 1.");
}

std::string arrivals(const StudyResult& result) {
  const TextTable table = arrivals_table(result);
  if (table.rows.empty()) return "";
  return section(
      "Who waits for whom", html_table(table),
      "When a step's gradients are exchanged, each rank waits for the others. The second number "
      "is the part of the waiting before the last rank had even begun its exchange: imbalance "
      "between ranks. What is left is communication. If one rank is last in nearly all steps, look "
      "at its core or node.");
}

std::string samples(const StudyResult& result) {
  const TextTable table = samples_table(result);
  if (table.rows.empty()) return "";
  return section(
      "Where samples came from", html_table(table),
      "Of the first run of each size, its first epochs and its last, all ranks together. memory "
      "and node are the caches of the node in memory and on disk, peers those of other nodes, "
      "files what is left: from the second epoch on, what the caches have no room for. Readers' "
      "seconds are summed over reader threads, which work while the network computes; waiting is "
      "what training stood still for. Bytes of files are all that was read from them.");
}

/// Returns the table of runs; its last column links to the record, or to the log of a failed run.
std::string runs(const StudyResult& result, const ReportText& text) {
  const TextTable table = runs_table(result);
  std::vector<std::string> last;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const std::string record = relative_path(result.runs[i].log.path, text.directory);
    const std::string log = record.substr(0, record.rfind('/') + 1) + kConsoleFile;
    last.push_back(escaped(table.rows[i].back()) + " (" +
                   (result.runs[i].usable() ? link(record, "record") + ", " : std::string()) +
                   link(log, "log") + ")");
  }
  return html_table(table, last);
}

std::string files(const std::string& directory) {
  return "<p>Beside this page: " + link("study.csv", "study.csv") +
         " (one line for each number of "
         "ranks), " +
         link("runs.csv", "runs.csv") + " (one line for each run), " +
         link("study.json", "study.json") + " (all that this page shows)" +
         (study_runs(directory).empty()
              ? std::string()
              : ", and " + link("runs/", "runs") +
                    " (record, log, configuration and checkpoints of each run)") +
         ". The links work while the page lies in the study's folder.</p>\n";
}

std::string preformatted(const std::string& heading, const std::string& body) {
  if (body.empty()) return "";
  return "<section><details><summary>" + escaped(heading) + "</summary><pre>" + escaped(body) +
         "</pre></details></section>\n";
}

}  // namespace

std::string html_report(const StudyResult& result, const ReportText& text) {
  std::string commands;
  for (const std::string& command : text.commands) commands += command + '\n';
  return filled(page_frame(),
                {{"title", escaped(text.title)},
                 {"style", std::string(page_style())},
                 {"facts", definitions(header_facts(result, text))},
                 {"cards", cards(result)},
                 {"notes", notes_html(all_notes(result))},
                 {"speed", html_table(speed_table(result))},
                 {"learning", learning(result)},
                 {"identity", identity(result)},
                 {"step", html_table(step_table(result))},
                 {"arrivals", arrivals(result)},
                 {"samples", samples(result)},
                 {"runs", runs(result, text)},
                 {"files", files(text.directory)},
                 {"provenance", definitions(provenance(result, text))},
                 {"commands", preformatted("Commands of the runs", commands)},
                 {"configuration", preformatted("Configuration of the first run, without defaults",
                                                text.configuration)},
                 {"data", script_safe(json_report(result, text))},
                 {"chart_js", std::string(chart_js())},
                 {"svg", std::string(page_svg())},
                 {"draw", std::string(page_draw())},
                 {"script", std::string(page_places()) + std::string(page_figures()) +
                                std::string(page_script())}});
}

}  // namespace tutti::study
