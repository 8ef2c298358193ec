#include "tutti/exchange/compression_policy.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"

namespace tutti::exchange {
namespace {

CompressibleEntry parameter(std::string name, Shape shape) {
  return {{std::move(name), static_cast<size_t>(shape.elements()) * sizeof(float)}, shape};
}

// In the order in which backward produces them: from the classifier to the stem.
std::vector<CompressibleEntry> network() {
  return {parameter("fc.bias", {1000}),
          parameter("fc.weight", {1000, 512}),
          parameter("conv3.weight", {512, 256, 3, 3}),
          parameter("bn3.bias", {512}),
          parameter("bn3.weight", {512}),
          parameter("conv2.weight", {256, 64, 3, 3}),
          parameter("big_bias", {100000}),
          parameter("conv1.weight", {16, 3, 3, 3})};
}

std::vector<std::string> chosen(const CompressionPolicy& policy) {
  std::vector<std::string> names;
  for (const CompressibleEntry& p : network())
    if (compresses(policy, p)) names.push_back(p.entry.name);
  return names;
}

using Names = std::vector<std::string>;

TEST(CompressionPolicy, TextAndDataMakeEachOther) {
  for (const char* text : {"none", "int8", "topk:0.01", "auto:topk:0.01", "auto:powersgd:2"})
    EXPECT_EQ(to_string(parse_compression_policy(text)), text);
  EXPECT_TRUE(parse_compression_policy("auto:int8").automatic);
  EXPECT_FALSE(parse_compression_policy("int8").automatic);
  for (const char* text : {"auto:none", "auto:", "auto", "auto:auto:int8"})
    EXPECT_THROW(parse_compression_policy(text), ConfigError) << text;
}

TEST(CompressionPolicy, LargeMatricesAreCompressed) {
  CompressionPolicy policy = parse_compression_policy("int8");
  EXPECT_EQ(chosen(policy), (Names{"fc.weight", "conv3.weight", "conv2.weight"}))
      << "vectors stay dense whatever their size";
  policy.min_bytes = 256 * 64 * 9 * 4;
  EXPECT_EQ(chosen(policy), (Names{"fc.weight", "conv3.weight", "conv2.weight"}));
  ++policy.min_bytes;
  EXPECT_EQ(chosen(policy), (Names{"fc.weight", "conv3.weight"}));
  policy.min_bytes = 0;
  policy.exclude = {"fc.*", "*2.weight"};
  EXPECT_EQ(chosen(policy), (Names{"conv3.weight", "conv1.weight"}));
  EXPECT_EQ(chosen(parse_compression_policy("none")), Names{});
}

TEST(CompressionPolicy, BucketsHoldOneKindInTheOrderOfProduction) {
  CompressionPolicy policy = parse_compression_policy("topk:0.01");
  const std::vector<CompressibleEntry> parameters = network();
  const CompressionLayout layout = partition_by_compression(policy, parameters, 1 << 20);
  ASSERT_EQ(layout.compressed.size(), layout.buckets.buckets.size());
  std::vector<bool> seen(parameters.size(), false);
  size_t at = 0;
  int last = -1;
  for (size_t b = 0; b < layout.compressed.size(); ++b) {
    const Bucket& bucket = layout.buckets.buckets[b];
    EXPECT_EQ(bucket.begin, at) << "buckets tile the arena";
    EXPECT_EQ(bucket.begin % 64, 0u);
    size_t inside = bucket.begin;
    for (const int m : bucket.members) {
      const auto i = static_cast<size_t>(m);
      EXPECT_EQ(compresses(policy, parameters[i]), layout.compressed[b])
          << parameters[i].entry.name;
      EXPECT_FALSE(seen[i]);
      seen[i] = true;
      EXPECT_EQ(layout.buckets.offsets[i], inside);
      EXPECT_EQ(layout.buckets.bucket_of[i], static_cast<int>(b));
      inside += (parameters[i].entry.bytes + 63) / 64 * 64;
    }
    EXPECT_EQ(inside, bucket.begin + bucket.bytes);
    EXPECT_GT(bucket.members.back(), last) << "by their last member";
    last = bucket.members.back();
    at += bucket.bytes;
  }
  EXPECT_EQ(at, layout.buckets.bytes);
  EXPECT_TRUE(std::ranges::all_of(seen, [](bool s) { return s; }));
  EXPECT_TRUE(std::ranges::count(layout.compressed, true) == 3 &&
              std::ranges::count(layout.compressed, false) == 1);
  EXPECT_EQ(layout.to_string(), "3 of 4 buckets, 7.36 of 7.77 MB");
}

TEST(CompressionPolicy, WithoutCompressionNothingChanges) {
  const std::vector<CompressibleEntry> parameters = network();
  std::vector<GradientEntry> entries;
  for (const CompressibleEntry& p : parameters) entries.push_back(p.entry);
  const BucketLayout plain = partition_buckets(entries, 300000);
  const CompressionLayout layout =
      partition_by_compression(parse_compression_policy("none"), parameters, 300000);
  EXPECT_EQ(layout.buckets.to_string(), plain.to_string());
  EXPECT_EQ(layout.buckets.offsets, plain.offsets);
  EXPECT_EQ(std::ranges::count(layout.compressed, true), 0);
}

TEST(CompressionPolicy, APatternThatMatchesNothingIsRefused) {
  CompressionPolicy policy = parse_compression_policy("int8");
  policy.exclude = {"conv9.*"};
  EXPECT_TRUE(throws<ConfigError>(
      {"comm.compression_exclude: nothing is called 'conv9.*'; there are fc.bias"},
      [&] { partition_by_compression(policy, network(), 1 << 20); }));
}

TEST(CompressionPolicy, MatricesAreOutputsByTheRest) {
  CompressionPolicy policy = parse_compression_policy("powersgd:4");
  policy.min_bytes = 0;
  // 5 x 30 has storage for 160 floats, padded by the kernel's layout, which 5 divides; 7 x 30 has
  // storage for 224.
  const std::vector<CompressibleEntry> parameters{
      {{"a", 640}, {5, 30}}, {{"b", 892}, {7, 30}}, parameter("c", {64, 16, 3, 3})};
  const CompressionLayout layout = partition_by_compression(policy, parameters, 1 << 20);
  ASSERT_EQ(layout.buckets.buckets.size(), 1u);
  const std::vector<comm::MatrixBlock> expected{{0, 5, 32}, {160, 14, 15}, {384, 64, 144}};
  EXPECT_EQ(matrices_of(layout.buckets, 0, parameters), expected);
}

TEST(CompressionPolicy, PhasesAreWarmUpRampAndTheRest) {
  const auto text = [](const CompressionPolicy& policy) {
    std::string all;
    for (const CompressionPhase& phase : compression_phases(policy))
      all += std::to_string(phase.first_step) + " " + to_string(phase.compression) + "\n";
    return all;
  };
  EXPECT_EQ(text(parse_compression_policy("none")), "0 none\n");
  CompressionPolicy policy = parse_compression_policy("topk:0.001");
  EXPECT_EQ(text(policy), "0 topk:0.001\n");
  policy.warmup_steps = 10;
  EXPECT_EQ(text(policy), "0 none\n10 topk:0.001\n");
  policy.ramp_steps = 4;
  EXPECT_EQ(text(policy),
            "0 none\n10 topk:0.25\n14 topk:0.0625\n18 topk:0.015625\n22 topk:0.00390625\n26 "
            "topk:0.001\n");
  policy.compression.ratio = 0.25;
  EXPECT_EQ(text(policy), "0 none\n10 topk:0.25\n");
  policy.compression = comm::parse_compression("int8");
  EXPECT_EQ(text(policy), "0 none\n10 int8\n");
}

TEST(CompressionPolicy, AStepIsInTheLastPhaseThatHasBegun) {
  CompressionPolicy policy = parse_compression_policy("hitopk:0.1");
  policy.warmup_steps = 2;
  policy.ramp_steps = 3;
  const auto phases = compression_phases(policy);
  const auto at = [&](int64_t step) { return to_string(compression_at(phases, step)); };
  EXPECT_EQ(at(0), "none");
  EXPECT_EQ(at(1), "none");
  EXPECT_EQ(at(2), "hitopk:0.25");
  EXPECT_EQ(at(4), "hitopk:0.25");
  EXPECT_EQ(at(5), "hitopk:0.1");
  EXPECT_EQ(at(1000000), "hitopk:0.1");
}

}  // namespace
}  // namespace tutti::exchange
