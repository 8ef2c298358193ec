#include "tutti/study/describe.h"

#include <gtest/gtest.h>

#include "tutti/base/expect_text.h"

namespace tutti::study {
namespace {

ScaleRow scale_row(int ranks, int64_t local, int64_t global) {
  ScaleRow row;
  row.ranks = ranks;
  row.runs = row.reached = 3;
  row.local_batch = local;
  row.global_batch = global;
  return row;
}

StudyResult weak() {
  StudyResult result;
  result.mode = "weak";
  result.target = trace::Target{.metric = "accuracy", .value = 0.9, .higher_is_better = true};
  result.rows = {scale_row(1, 32, 32), scale_row(2, 32, 64)};
  result.base_ranks = 1;
  return result;
}

std::string fact(const Facts& facts, const std::string& what) {
  for (const auto& [name, text] : facts)
    if (name == what) return text;
  return "absent";
}

TEST(Describe, ARatioShowsBothSidesOfItsInterval) {
  EXPECT_EQ(number(Ratio{0.605, 0.032, 11.4}), "0.60 [0.032, 11.4]");
  EXPECT_EQ(number(Ratio{2, kUnknown, kUnknown}), "2.00");
  EXPECT_EQ(number(Ratio{}), "-");
}

TEST(Describe, SmallNumbersKeepTheirDigits) {
  EXPECT_EQ(number(0.0111), "0.011");
  EXPECT_EQ(number(0.0041), "0.0041");
  EXPECT_EQ(number(0.000012), "0.000012");
  EXPECT_EQ(number(0.00000012), "1.2e-07");
  EXPECT_EQ(number(0.0), "0.000");
  EXPECT_EQ(number(spread({0.0004, 0.0004})), "0.00040 ±0.00000");
}

TEST(Describe, TheHeaderSaysWhyWeakScalingNeedsMoreEpochs) {
  ReportText text;
  text.settings = {{"optimizer.lr", "0.1"},
                   {"schedule.name", "\"constant\""},
                   {"schedule.scale_with_batch", "\"none\""}};
  const Facts facts = header_facts(weak(), text);
  EXPECT_EQ(fact(facts, "Batch"), "32 samples a rank and step; 32 on 1 rank, 64 on 2 ranks in all");
  EXPECT_TRUE(
      has_text(fact(facts, "Learning rate"), "the same on all sizes although the global batch"));
  EXPECT_TRUE(has_text(fact(facts, "Target"), "test accuracy ≥ 0.9"));
  EXPECT_TRUE(has_text(fact(facts, "Target"), "test set decides when to stop"));
  EXPECT_EQ(fact(facts, "Runs"), "3 runs on each number of ranks");
  text.settings["schedule.scale_with_batch"] = "\"linear\"";
  EXPECT_TRUE(has_text(fact(header_facts(weak(), text), "Learning rate"), "times a factor"));
}

TEST(Describe, AMissedTargetComesWithWhatCouldBeDone) {
  StudyResult result = weak();
  EXPECT_FALSE(missed_target(result));
  EXPECT_TRUE(advice(result, {}).empty());
  result.rows[1].reached = 1;
  result.rows[1].runs = 2;
  EXPECT_TRUE(missed_target(result));
  const auto lines = advice(result, {{"run.epochs", "12"}});
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_TRUE(has_text(lines[0], "--epochs N (now 12)"));
  EXPECT_TRUE(has_text(lines[0], "another --output-dir"))
      << "a study refuses other epochs in its folder: ";
  EXPECT_TRUE(has_text(lines[1], "schedule.scale_with_batch"));
  EXPECT_TRUE(has_text(lines[2], "--repeats"));
}

TEST(Describe, ProvenanceNamesWhatTheRecordsName) {
  StudyResult result = weak();
  RunSummary run;
  run.log.start.compiler = "GNU 12";
  run.log.start.hosts = {"b", "a", "b"};
  run.log.start.time = 100;
  result.runs = {run, run};
  ReportText text;
  text.command = "tutti study x.toml";
  const Facts facts = provenance(result, text);
  EXPECT_EQ(fact(facts, "Compiler"), "GNU 12");
  EXPECT_EQ(fact(facts, "Hosts"), "a, b");
  EXPECT_EQ(fact(facts, "Command"), "tutti study x.toml");
  EXPECT_EQ(fact(facts, "MPI"), "absent");
  EXPECT_EQ(fact(facts, "Runs from"), "1970-01-01T00:01:40Z");
}

}  // namespace
}  // namespace tutti::study
