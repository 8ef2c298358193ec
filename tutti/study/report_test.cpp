#include "tutti/study/report.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/json.h"
#include "tutti/study/html.h"
#include "tutti/study/page.h"
#include "tutti/trace/csv.h"

namespace tutti::study {
namespace {

RunSummary make_run(int ranks, int repeat, double epoch_seconds, int to_target) {
  RunSummary run{.log = {}, .repeat = repeat};
  trace::RunStart& start = run.log.start;
  start.model = "resnet20";
  start.dataset = "lattices";
  start.precision = "fp32";
  start.ranks = ranks;
  start.local_batch = 32;
  start.global_batch = 32 * ranks;
  start.cores_per_host = 2;
  start.seed = static_cast<uint64_t>(repeat);
  start.machine = "two cores";
  start.command = "tutti train <base>.toml";
  start.target = trace::Target{"accuracy", 0.9, true};
  for (int e = 1; e <= 6; ++e) {
    run.log.epochs.push_back({.epoch = e,
                              .step = e * 10,
                              .seconds = epoch_seconds,
                              .samples_per_s = 1000 / epoch_seconds});
    trace::EvalRecord eval;
    eval.epoch = e;
    eval.accuracy = 0.9 * e / to_target;
    eval.wall_seconds = e * epoch_seconds;
    run.log.evals.push_back(eval);
  }
  run.log.steps = {{.step = 10,
                    .step_ms = 100,
                    .compute_ms = 80,
                    .comm_exposed_ms = 15,
                    .data_wait_ms = 4,
                    .other_ms = 1}};
  return run;
}

/// n = 1 reaches the target after 4 epochs of 10 s; n = 2 after 5 of 5.5 s on average; n = 4,
/// oversubscribed, does not.
StudyResult golden() {
  return evaluate({make_run(1, 1, 9.9, 4), make_run(1, 2, 10.1, 4), make_run(2, 1, 5.4, 5),
                   make_run(2, 2, 5.6, 5), make_run(4, 1, 5, 50)},
                  std::nullopt);
}

size_t count(const std::string& text, const std::string& what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

TEST(Report, TheTerminalTableIsExactAndFits100Columns) {
  const std::string text = terminal_report(golden());
  EXPECT_TRUE(text.starts_with(
      "resnet20 on lattices, fp32; weak scaling\n"
      "two cores\n"
      "\n"
      "How fast it trains\n"
      "ranks  runs  batch  global batch  samples/s  seconds an epoch  parallel speed-up  "
      "efficiency\n"
      "    1     2     32            32      100.0       10.00 ±0.63               1.00       100 "
      "%\n"
      "    2     2     32            64      181.9      5.500 ±0.631  1.82 [1.59, 2.07]        91 "
      "%\n"
      "   4*     1     32           128      200.0             5.000               2.00        50 "
      "%\n"
      "\n"
      "How soon it has learned: test accuracy ≥ 0.9\n"
      "ranks  seconds to target  epochs  core-hours  learning speed-up  efficiency  gain/s  mean "
      "best\n"
      "    1        40.00 ±2.53   4.000       0.011               1.00       100 %    1.00     "
      "1.3500\n"
      "    2        27.50 ±3.16   5.000       0.015  1.45 [1.28, 1.66]        73 %    1.45     "
      "1.0800\n"
      "   4*        not reached       -           -                  -           -    0.16     "
      "0.1080\n"
      "\n"
      "Why learning gains less or more than training\n"
      "ranks  learning speed-up  = parallel speed-up  x epochs factor  x rest\n"
      "    1               1.00                 1.00            1.000   1.000\n"
      "    2               1.45                 1.82            0.800   1.000\n"
      "   4*        not reached                 2.00                -       -\n"
      "\n"
      "Where the time of a step goes, ms\n"
      "ranks  step ms       compute  exposed communication  waiting for data        other\n"
      "    1    100.0  80.00 (80 %)           15.00 (15 %)       4.000 (4 %)  1.000 (1 %)\n"
      "    2    100.0  80.00 (80 %)           15.00 (15 %)       4.000 (4 %)  1.000 (1 %)\n"
      "   4*    100.0  80.00 (80 %)           15.00 (15 %)       4.000 (4 %)  1.000 (1 %)\n"
      "\n"
      "± and [low, high]: 90 % intervals over repeats\n"
      "* oversubscribed: more threads than cores\n"))
      << text;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    size_t width = 0;
    for (const char c : line) width += (c & 0xC0) != 0x80;
    EXPECT_LE(width, 100u) << line;
  }
}

TEST(Report, AReplaySaysWhoseClockItIsAndNothingOfEvaluationsIncluded) {
  RunSummary run = make_run(2, 1, 5, 5);
  run.log.start.replayed_on = "a machine";
  const StudyResult result = evaluate({run}, std::nullopt);
  EXPECT_EQ(learning_table(result).headings[3], "device-hours");
  const std::string html = html_report(result, {.title = "T"});
  EXPECT_TRUE(has_text(html, "The clock is the virtual one of the replayed machine"));
  EXPECT_FALSE(has_text(html, "Core-hours are"));
  EXPECT_TRUE(parse_json(json_report(result, {.title = "T"}))["replayed"].get<bool>());
  EXPECT_FALSE(parse_json(json_report(golden(), {.title = "T"}))["replayed"].get<bool>());
  EXPECT_TRUE(has_text(html_report(golden(), {.title = "T"}), "Core-hours are"));
}

TEST(Report, WhatMakesTimesDoubtfulStandsBeforeThem) {
  RunSummary run = make_run(1, 1, 5, 5);
  run.log.machine = {{.seconds = 5, .other_work = 0.4}};
  const StudyResult result = evaluate({run}, std::nullopt);
  const std::string text = terminal_report(result),
                    sentence = "Other work took 40 % of the processors";
  EXPECT_LT(text.find(sentence), text.find("How fast it trains")) << text;
  EXPECT_EQ(count(text, sentence), 1u);
  const auto json = parse_json(json_report(result, {.title = "T"}));
  EXPECT_TRUE(json["notes"][0].get<std::string>().starts_with(sentence));
  EXPECT_EQ(json["runs"][0]["other_work"], 0.4);
  const std::string html = html_report(result, {.title = "T"});
  EXPECT_LT(html.find(sentence), html.find("class=\"cards\""));
}

TEST(Report, CsvHasAHeadingForEveryCellAndEmptyCellsForWhatIsNotKnown) {
  const StudyResult result = golden();
  for (const std::string& csv : {rows_csv(result), runs_csv(result, "")}) {
    std::istringstream lines(csv);
    std::string heading, line;
    std::getline(lines, heading);
    size_t rows = 0;
    for (; std::getline(lines, line); ++rows)
      EXPECT_EQ(count(line, ","), count(heading, ",")) << line;
    EXPECT_GE(rows, 3u);
  }
  EXPECT_TRUE(has_text(rows_csv(result), "\n4,1,0,0,1,32,128,"));
  EXPECT_FALSE(has_text(rows_csv(result), "nan"));
}

TEST(Report, JsonHoldsTheNumbers) {
  const auto json = parse_json(json_report(golden(), {.title = "T"}));
  EXPECT_EQ(json["base_ranks"], 1);
  EXPECT_EQ(json["mode"], "weak");
  EXPECT_NEAR(json["rows"][1]["parallel_speedup"]["value"].get<double>(), 10 / 5.5, 1e-12);
  EXPECT_NEAR(json["rows"][1]["learning_speedup"]["value"].get<double>(), 40 / 27.5, 1e-12);
  EXPECT_TRUE(json["rows"][2]["learning_speedup"]["value"].is_null());
  EXPECT_EQ(json["runs"].size(), 5u);
  EXPECT_EQ(json["runs"][0]["evals"].size(), 6u);
  // It holds everything that the page draws.
  EXPECT_EQ(json["rows"][1]["curve"].size(), 6u);
  EXPECT_EQ(json["rows"][1]["target_core_seconds"]["mean"], 55);
  EXPECT_EQ(json["rows"][1]["local_batch"], 32);
  EXPECT_TRUE(json["rows"][1]["arrivals"].is_null());
  EXPECT_EQ(json["metric_words"], "test accuracy");
  EXPECT_EQ(json["header"][0]["what"], "Scaling");
}

TEST(Report, HtmlIsSelfContained) {
  const std::string html = html_report(golden(), {.title = "A < B",
                                                  .commands = {"tutti study </script>"},
                                                  .configuration = "[run]",
                                                  .made = "now"});
  std::string own = html;
  const size_t library = own.find(chart_js());
  ASSERT_NE(library, std::string::npos);
  own.erase(library, chart_js().size());
  const std::string kSvgNamespace = "http://www.w3.org/2000/svg";  // a name, never fetched
  ASSERT_TRUE(has_text(own, kSvgNamespace));
  own.erase(own.find(kSvgNamespace), kSvgNamespace.size());
  EXPECT_FALSE(has_text(own, "http:"));
  EXPECT_FALSE(has_text(own, "https:"));
  EXPECT_FALSE(has_text(own, "{{"));
  for (const char* reference : {" src=", "url(http", "@import", "<link"})
    EXPECT_FALSE(has_text(html, reference)) << reference;
  EXPECT_TRUE(has_text(html, "default-src 'none'"));
  EXPECT_EQ(count(html, "<script"), 3u);
  EXPECT_EQ(count(html, "</script"), 3u);
  EXPECT_TRUE(has_text(html, "<title>A &lt; B</title>"));
  EXPECT_TRUE(has_text(html, "<td class=\"muted\">not reached</td>"));
  EXPECT_TRUE(has_text(html, "<th scope=\"row\">4*</th>"));
  EXPECT_TRUE(has_text(html, "<pre>[run]</pre>"));
  EXPECT_TRUE(has_text(html, "prefers-color-scheme: dark"));
  // Links lead to files beside the page only.
  for (size_t at = html.find("href=\""); at != std::string::npos;
       at = html.find("href=\"", at + 1)) {
    const std::string target = html.substr(at + 6, html.find('"', at + 6) - at - 6);
    EXPECT_EQ(target.find(':'), std::string::npos) << target;
    EXPECT_FALSE(target.starts_with("/")) << target;
  }
  EXPECT_TRUE(has_text(html, "two cores"));
}

TEST(Report, CardsSayHowSureTheirNumbersAre) {
  const std::string html = html_report(golden(), {});
  EXPECT_TRUE(has_text(html, "Parallel speed-up, 2 ranks"));
  EXPECT_TRUE(has_text(html, "90 % interval"));
  const StudyResult single = evaluate({make_run(1, 1, 10, 4), make_run(2, 1, 5, 4)}, std::nullopt);
  EXPECT_TRUE(has_text(html_report(single, {}), "from 1 run, so without an interval"));
  EXPECT_FALSE(has_text(html_report(golden(), {}), "1 ranks"));
}

TEST(Report, SaysWhereSamplesCameFrom) {
  EXPECT_TRUE(samples_table(golden()).rows.empty());
  RunSummary run = make_run(1, 1, 10, 4);
  run.log.epochs[1].data_wait_seconds = 0.25;
  run.log.staging = trace::StagingRecord{
      .files = 9, .bytes = 9 << 20, .copied_files = 8, .copied_bytes = 8 << 20, .seconds = 1.5};
  const auto line = [](int64_t epoch, std::vector<int64_t> samples) {
    return trace::DataRecord{.epoch = epoch,
                             .levels = {"memory", "node", "peers", "files"},
                             .samples = std::move(samples),
                             .bytes = {1 << 20, 0, 0, 3 << 20},
                             .seconds = {0.5, 0, 0, 2}};
  };
  for (int64_t epoch = 1; epoch <= 6; ++epoch)
    run.log.data.push_back(line(epoch, {epoch == 1 ? 0 : 75, 0, 0, 25}));
  run.log.data.push_back(line(6, {0, 0, 0, 100}));  // at the end of the run
  const StudyResult result = evaluate({run}, std::nullopt);
  using Row = std::vector<std::string>;
  const TextTable table = samples_table(result);
  ASSERT_EQ(table.rows.size(), 9u);  // staging, and two levels of the epochs 1, 2, 3 and 6
  EXPECT_EQ(table.rows[0], (Row{"1", "before", "staging", "8 files", "-", "8.0", "1.50", "-"}));
  EXPECT_EQ(table.rows[3], (Row{"1", "2", "memory", "75", "75.0 %", "1.0", "0.50", "0.25"}));
  EXPECT_EQ(table.rows[4], (Row{"1", "2", "files", "25", "25.0 %", "3.0", "2.00", ""}));
  EXPECT_EQ(table.rows[8], (Row{"1", "6", "files", "125", "62.5 %", "6.0", "4.00", ""}));
  EXPECT_TRUE(has_text(terminal_report(result), "\nWhere samples came from\n"));
  EXPECT_TRUE(has_text(html_report(result, {}), "<h2>Where samples came from</h2>"));
}

TEST(Report, ARunThatEndedAtItsOwnTargetIsNotSaidToHaveMissedAnother) {
  RunSummary ended = make_run(1, 1, 10, 4), unmeasured;
  ended.log.target_reached = trace::TargetReached{.epoch = 4, .value = 0.9};
  ended.log.evals.resize(4);
  unmeasured.log.start.ranks = 2;
  unmeasured.failure = "stopped";
  const StudyResult result = evaluate({ended, unmeasured}, trace::Target{"accuracy", 0.95, true});
  const std::string html = html_report(result, {});
  EXPECT_TRUE(
      has_text(html, "ended at its own target test accuracy ≥ 0.9, which says nothing about 0.95"));
  EXPECT_TRUE(has_text(html, "It is not the one that the runs had"));
  EXPECT_FALSE(has_text(html, "A run ends at the first evaluation"));
  EXPECT_FALSE(has_text(html, ">not reached<"));
  EXPECT_FALSE(has_text(terminal_report(result), "not reached"));
  // A size whose run never began has no batch instead of one of 0.
  EXPECT_EQ(speed_table(result).rows[1][2], "-");
  EXPECT_TRUE(parse_json(json_report(result, {}))["rows"][1]["local_batch"].is_null());
}

TEST(Report, WhereOneRunMissedAndOneEndedEarlierTheAnswerIsOpen) {
  RunSummary ended = make_run(2, 1, 5, 8);
  ended.log.target_reached = trace::TargetReached{};
  const StudyResult open =
      evaluate({make_run(1, 1, 10, 4), ended, make_run(2, 2, 5, 8)}, std::nullopt);
  ASSERT_EQ(open.rows[1].missed(), 1);
  EXPECT_EQ(learning_table(open).rows[1][1], "(0/2), 1 unknown");
  EXPECT_EQ(identity_table(open).rows[1][1], "-");
  EXPECT_TRUE(has_text(html_report(open, {}), "runs ended at a target of their own"));
  // If the base missed it, no run of this size is the reason.
  const StudyResult missed =
      evaluate({make_run(1, 1, 10, 8), ended, make_run(2, 2, 5, 4)}, std::nullopt);
  EXPECT_TRUE(has_text(html_report(missed, {}), "1 rank did not reach the target"));
}

TEST(Report, LinksAreRelativeToTheStudysFolder) {
  EXPECT_EQ(relative_path("/a/b/runs/n0001-r1/record.jsonl", "/a/b"), "runs/n0001-r1/record.jsonl");
  EXPECT_EQ(relative_path("out/runs/x/record.jsonl", "out"), "runs/x/record.jsonl");
  StudyResult result = golden();
  for (RunSummary& run : result.runs) run.log.path = "out/runs/n1/record.jsonl";
  ReportText text;
  text.directory = "out";
  const std::string html = html_report(result, text);
  EXPECT_TRUE(has_text(html, "href=\"./runs/n1/record.jsonl\""));
  EXPECT_TRUE(has_text(html, "href=\"./runs/n1/console.log\""));
  EXPECT_TRUE(has_text(runs_csv(result, "out"), ",runs/n1/record.jsonl,"));
}

/// A report that collects other people's folders contains their names.
TEST(Report, NamesOfFoldersAreNeitherLinksOfTheirOwnNorFormulas) {
  StudyResult result = golden();
  result.runs[0].log.path = "out/javascript:alert(1)/record.jsonl";
  result.runs[1].log.path = "out/=cmd|' calc'!A1/a#b?c%20d/record.jsonl";
  result.runs[1].failure = "=1+1\rnext";
  ReportText text;
  text.directory = "out";
  const std::string html = html_report(result, text);
  EXPECT_TRUE(has_text(html, "href=\"./javascript%3Aalert%281%29/record.jsonl\""));
  EXPECT_TRUE(has_text(html, "/a%23b%3Fc%2520d/console.log\""));
  EXPECT_FALSE(has_text(html, "href=\"javascript"));
  EXPECT_EQ(escaped("'\"<"), "&#39;&quot;&lt;");
  const std::string csv = runs_csv(result, "out");
  EXPECT_TRUE(has_text(csv, ",./=cmd|' calc'!A1/a#b?c%20d/record.jsonl,"));
  EXPECT_TRUE(has_text(csv, ",\"'=1+1 next\","));
  EXPECT_EQ(trace::csv_cell("-5"), "\"'-5\"");
  EXPECT_EQ(trace::csv_cell("x = -5"), "x = -5");
}

TEST(Report, TheEmbeddedLibraryIsTheSystemsFile) {
  std::ifstream file(TUTTI_CHART_JS);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_GT(text.size(), 100000u);
  EXPECT_EQ(chart_js(), text);
}

TEST(Report, AStudyWithoutAnyUsableRunStillReports) {
  RunSummary failed = make_run(1, 1, 10, 4);
  failed.failure = "exit code 1: out of memory";
  const StudyResult result = evaluate({failed}, std::nullopt);
  EXPECT_TRUE(has_text(terminal_report(result), "out of memory"));
  EXPECT_TRUE(has_text(html_report(result, {}), "No run is usable"));
  EXPECT_THROW(write_reports(result, {}, "/no/such/directory"), IoError);
}

}  // namespace
}  // namespace tutti::study
