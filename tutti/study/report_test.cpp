#include "tutti/study/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tutti/base/error.h"
#include "tutti/study/page.h"

namespace tutti::study {
namespace {

RunSummary make_run(int ranks, int repeat, double epoch_seconds, int to_target) {
  RunSummary run{.log = {}, .repeat = repeat};
  RunStart& start = run.log.start;
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
  start.target = Target{"accuracy", 0.9, true};
  for (int e = 1; e <= 6; ++e) {
    run.log.epochs.push_back({.epoch = e,
                              .step = e * 10,
                              .seconds = epoch_seconds,
                              .samples_per_s = 1000 / epoch_seconds});
    EvalRecord eval;
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

/// n = 1 reaches after 4 epochs of 10 s; n = 2 after 5 of 5.5 s on average; n = 4, oversubscribed,
/// does not.
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

TEST(Report, TheTerminalTableIsExactAndFits120Columns) {
  const std::string text = terminal_report(golden());
  EXPECT_TRUE(
      text.starts_with("resnet20 on lattices, fp32; weak scaling; target accuracy >= 0.9\n"
                       "two cores\n"
                       "\n"
                       "ranks  runs  samples/s       epoch s       S_par  E_par  to target s  "
                       "epochs     S_learn  E_learn  L_rate    best\n"
                       "    1     2      100.0   10.00 ±0.63        1.00  100 %  40.00 ±2.53   "
                       "4.000        1.00    100 %    1.00  1.3500\n"
                       "    2     2      181.9  5.500 ±0.631  1.82 ±0.24   91 %  27.50 ±3.16   "
                       "5.000  1.45 ±0.19     73 %    1.45  1.0800\n"
                       "   4*     1      200.0         5.000        2.00   50 %  not reached       "
                       "-           -        -    0.16  0.1080\n"
                       "* oversubscribed: more threads than cores\n"
                       "± 90 % interval over repeats\n"))
      << text;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    size_t width = 0;
    for (const char c : line) width += (c & 0xC0) != 0x80;
    EXPECT_LE(width, 120u) << line;
  }
}

TEST(Report, CsvHasAHeadingForEveryCellAndEmptyCellsForWhatIsNotKnown) {
  const StudyResult result = golden();
  for (const std::string& csv : {rows_csv(result), runs_csv(result)}) {
    std::istringstream lines(csv);
    std::string heading, line;
    std::getline(lines, heading);
    size_t rows = 0;
    for (; std::getline(lines, line); ++rows)
      EXPECT_EQ(count(line, ","), count(heading, ",")) << line;
    EXPECT_GE(rows, 3u);
  }
  EXPECT_NE(rows_csv(result).find("\n4,1,0,0,1,32,128,"), std::string::npos);
  EXPECT_EQ(rows_csv(result).find("nan"), std::string::npos);
}

TEST(Report, JsonHoldsTheNumbers) {
  const auto json = nlohmann::json::parse(
      json_report(golden(), {.title = "T", .commands = {"a"}, .configuration = "", .made = ""}));
  EXPECT_EQ(json["base_ranks"], 1);
  EXPECT_EQ(json["mode"], "weak");
  EXPECT_NEAR(json["rows"][1]["parallel_speedup"]["value"].get<double>(), 10 / 5.5, 1e-12);
  EXPECT_NEAR(json["rows"][1]["learning_speedup"]["value"].get<double>(), 40 / 27.5, 1e-12);
  EXPECT_TRUE(json["rows"][2]["learning_speedup"]["value"].is_null());
  EXPECT_EQ(json["runs"].size(), 5u);
  EXPECT_EQ(json["runs"][0]["evals"].size(), 6u);
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
  EXPECT_EQ(own.find("http:"), std::string::npos);
  EXPECT_EQ(own.find("https:"), std::string::npos);
  EXPECT_EQ(own.find("{{"), std::string::npos);
  for (const char* reference : {" src=", " href=", "url(http", "@import", "<link"})
    EXPECT_EQ(html.find(reference), std::string::npos) << reference;
  EXPECT_NE(html.find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(count(html, "<script"), 3u);
  EXPECT_EQ(count(html, "</script"), 3u);
  EXPECT_NE(html.find("<title>A &lt; B</title>"), std::string::npos);
  EXPECT_NE(html.find("<td class=\"muted\">not reached</td>"), std::string::npos);
  EXPECT_NE(html.find("<th scope=\"row\">4*</th>"), std::string::npos);
  EXPECT_NE(html.find("<pre>[run]</pre>"), std::string::npos);
  EXPECT_NE(html.find("two cores"), std::string::npos);
}

TEST(Report, TheEmbeddedLibraryIsTheSystemsFile) {
  std::ifstream file(TUTTI_CHART_JS);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_GT(text.size(), 100000u);
  EXPECT_EQ(chart_js(), text);
}

TEST(Report, AStudyWithoutAnyUsableRunStillReports) {
  RunSummary failed = make_run(1, 1, 10, 4);
  failed.failure = "exit code 1\n    | out of memory";
  const StudyResult result = evaluate({failed}, std::nullopt);
  EXPECT_NE(terminal_report(result).find("out of memory"), std::string::npos);
  EXPECT_NE(html_report(result, {}).find("No run is usable"), std::string::npos);
  EXPECT_THROW(write_reports(result, {}, "/no/such/directory"), IoError);
}

}  // namespace
}  // namespace tutti::study
