#include "tutti/trace/span.h"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "tutti/base/error.h"
#include "tutti/base/json.h"
#include "tutti/base/scratch_directory.h"

namespace tutti::trace {
namespace {

Json read(const std::string& path) {
  std::ifstream file(path);
  return parse_json(file);
}

TEST(Spans, ThreadsRecordAndTheFileHoldsNamesLanesAndDurations) {
  const ScratchDirectory scratch;
  const std::string path = (scratch.path() / "spans.json").string();
  Spans spans;
  const auto conv = spans.name("conv1 \"forward\"");
  EXPECT_EQ(spans.name("conv1 \"forward\""), conv);
  const int lanes[2] = {spans.lane("compute"), spans.lane("network")};
  {
    std::jthread other([&] {
      for (int i = 0; i < 100; ++i) spans.record(conv, lanes[1], 1000, 2500);
    });
    for (int i = 0; i < 100; ++i) spans.record(conv, lanes[0], 0, 7000);
  }
  EXPECT_EQ(spans.size(), 200u);
  spans.write(path, 3);
  double total = 0;
  int titles = 0;
  const auto trace = read(path);
  for (const auto& event : trace["traceEvents"]) {
    EXPECT_EQ(event["pid"], 3);
    if (event["ph"] == "M") ++titles;
    if (event["ph"] != "X") continue;
    EXPECT_EQ(event["name"], "conv1 \"forward\"");
    total += event["dur"].get<double>();
  }
  EXPECT_EQ(titles, 3);
  EXPECT_DOUBLE_EQ(total, 100 * 7.0 + 100 * 1.5);
}

TEST(Spans, ScopedSpanCoversItsScopeAndNullDoesNothing) {
  Spans spans;
  const auto name = spans.name("step");
  { const ScopedSpan span(&spans, name, spans.lane("main")); }
  { const ScopedSpan span(nullptr, name, 0); }
  EXPECT_EQ(spans.size(), 1u);
}

TEST(Spans, ALimitedStoreCountsWhatItDropsAndMergeKeepsTheCount) {
  const ScratchDirectory scratch;
  const std::string first = (scratch.path() / "0.json").string(),
                    second = (scratch.path() / "1.json").string(),
                    merged = (scratch.path() / "all.json").string();
  Spans spans(2);
  const auto name = spans.name("x");
  for (int i = 0; i < 5; ++i) spans.record(name, spans.lane("l"), i, i + 1);
  EXPECT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans.dropped(), 3u);
  spans.write(first, 0);
  spans.write(second, 1);
  merge_traces({first, second}, merged);
  const auto trace = read(merged);
  EXPECT_EQ(trace["traceEvents"].size(), 2u * (2 + 2));
  EXPECT_EQ(trace["otherData"]["dropped_spans"], 6);
  EXPECT_THROW(spans.write("/no/such/directory/t.json", 0), IoError);
  EXPECT_THROW(merge_traces({"/no/such/file"}, merged), IoError);
}

}  // namespace
}  // namespace tutti::trace
