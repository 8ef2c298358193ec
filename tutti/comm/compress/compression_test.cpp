#include "tutti/comm/compress/compression.h"

#include <gtest/gtest.h>

#include <limits>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/comm/compress/report.h"

namespace tutti::comm {
namespace {

std::string mistake_in(std::string_view text) {
  return message_of<ConfigError>([&] { parse_compression(text); });
}

TEST(Compression, TextAndDataMakeEachOther) {
  for (const char* text : {"none", "bf16", "fp16", "int8", "onebit", "topk:0.01", "topk:1",
                           "hitopk:0.001", "powersgd:4"}) {
    EXPECT_EQ(to_string(parse_compression(text)), text);
    EXPECT_EQ(parse_compression(to_string(parse_compression(text))), parse_compression(text));
  }
  EXPECT_EQ(to_string(parse_compression("topk:1e-3")), "topk:0.001");
}

TEST(Compression, MistakesAreExplained) {
  EXPECT_TRUE(has_text(mistake_in("zip"), "unknown compression 'zip'; one of none, bf16"));
  EXPECT_TRUE(has_text(mistake_in(""), "one of none"));
  for (const char* text :
       {"topk", "hitopk", "topk:0", "topk:1.5", "hitopk:-1", "topk:", "topk:0.1x", "topk:nan"})
    EXPECT_TRUE(has_text(mistake_in(text), "above 0 and at most 1")) << text;
  for (const char* text : {"powersgd", "powersgd:0", "powersgd:1.5", "powersgd:"})
    EXPECT_TRUE(has_text(mistake_in(text), "integer of at least 1")) << text;
  EXPECT_TRUE(has_text(mistake_in("int8:4"), "int8 takes no number"));
}

TEST(CompressionReport, BreaksEvenWhereSavedTransferIsCodecTime) {
  CompressionReport report{.runs = 10,
                           .bytes = 1000,
                           .dense_bytes = 9000,
                           .codec_seconds = 0.5,
                           .exchange_seconds = 2,
                           .loss = {1, 4}};
  EXPECT_EQ(break_even_bandwidth(report), 16000);
  const double bandwidth = break_even_bandwidth(report);
  EXPECT_EQ(9000 / bandwidth, 1000 / bandwidth + 0.5);
  EXPECT_EQ(report.error(), 0.5);
  EXPECT_EQ(report.reduction(), 9);
  report += report;
  EXPECT_EQ(break_even_bandwidth(report), 16000);
  EXPECT_EQ(report.error(), 0.5);
  report.bytes = report.dense_bytes;
  EXPECT_EQ(break_even_bandwidth(report), 0) << "nothing saved";
  EXPECT_EQ(break_even_bandwidth({.bytes = 1, .dense_bytes = 2}),
            std::numeric_limits<double>::infinity());
  EXPECT_EQ(to_string(CompressionReport{.runs = 2,
                                        .bytes = 2000000,
                                        .dense_bytes = 32000000,
                                        .codec_seconds = 0.003,
                                        .exchange_seconds = 0.002,
                                        .loss = {1, 4}},
                      2),
            "moved 1 of 16 MB a step (16.0 times less), codec 1.5 ms, exchange 1 ms, relative "
            "error 0.5; breaks even at 10 GB/s a rank");
}

}  // namespace
}  // namespace tutti::comm
