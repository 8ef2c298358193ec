#include "tutti/cli/verbs/doctor_report.h"

#include <gtest/gtest.h>

#include "tutti/base/expect_text.h"
#include "tutti/base/json.h"
#include "tutti/cli/bench/measure.h"

namespace tutti::cli {
namespace {

Findings rank(const std::string& host, int cores, std::vector<std::string> warnings = {}) {
  Findings findings;
  findings.add("host", host, "host");
  findings.add("cores", std::to_string(cores), "cores", cores);
  findings.warnings = std::move(warnings);
  return findings;
}

TEST(DoctorReport, WhatAllShareIsSaidOnce) {
  const std::vector<Findings> ranks = {rank("a", 4), rank("a", 4), rank("a", 4)};
  EXPECT_EQ(doctor_text(ranks),
            "host             a\ncores            4\nverdict          nothing to improve\n");
  EXPECT_EQ(print_json(doctor_json(ranks)), R"({"host":"a","cores":4,"warnings":[]})");
}

TEST(DoctorReport, DifferencesNameTheRanks) {
  const std::vector<Findings> ranks = {rank("a", 4), rank("a", 4), rank("b", 2, {"too small"}),
                                       rank("a", 4)};
  EXPECT_EQ(doctor_text(ranks),
            "host             ranks 0-1, 3: a\n"
            "                 rank 2: b\n"
            "cores            ranks 0-1, 3: 4\n"
            "                 rank 2: 2\n"
            "TO IMPROVE       rank 2: too small\n");
  const auto json = doctor_json(ranks);
  EXPECT_EQ(print_json(json["cores"][1]["ranks"]), "[2]");
  EXPECT_EQ(json["cores"][1]["value"], 2);
}

TEST(DoctorReport, RankZeroMaySpeakAlone) {
  std::vector<Findings> ranks = {rank("a", 4), rank("a", 4)};
  ranks[0].add("load", "0.1", "load", 0.1);
  EXPECT_EQ(doctor_text(ranks),
            "host             a\ncores            4\nload             0.1\n"
            "verdict          nothing to improve\n");
  EXPECT_EQ(doctor_json(ranks)["load"], 0.1);
}

TEST(DoctorReport, ManyKindsAreCutOff) {
  std::vector<Findings> ranks;
  for (int i = 0; i < 20; ++i) ranks.push_back(rank("n" + std::to_string(i), 4));
  EXPECT_TRUE(has_text(doctor_text(ranks), "and 12 further kinds of ranks"));
}

TEST(DoctorReport, PairsSlowerThanOneAreNoted) {
  EXPECT_NE(slow_threads_warning(119.8e9, 97e9, 2), "") << "the case of the review";
  EXPECT_EQ(slow_threads_warning(129e9, 257e9, 2), "");
  EXPECT_EQ(slow_threads_warning(129e9, 129e9, 1), "");
}

TEST(DoctorReport, ABadRateIsMeasuredAgain) {
  std::vector<double> of_two = {10, 10, 19};  // both threads on one core at first
  size_t tries = 0;
  const auto measure = [&](int threads) { return threads == 1 ? 10 : of_two.at(tries++); };
  EXPECT_EQ(peak_rates(2, measure).all, 19);
  EXPECT_EQ(tries, 3u);
  tries = 2;
  EXPECT_EQ(peak_rates(2, measure).all, 19);
  EXPECT_EQ(tries, 3u);  // a good one is enough
  of_two = {10, 11, 10};
  tries = 0;
  EXPECT_NE(slow_threads_warning(10, peak_rates(2, measure).all, 2), "");
  EXPECT_EQ(peak_rates(1, measure).all, 10);
}

TEST(DoctorReport, GpusAreNamedOrWhyThereAreNone) {
  Findings none, two;
  add_gpus(none, {.library = {},
                  .driver = {},
                  .runtime = {},
                  .libraries = {},
                  .devices = {},
                  .problem = "why"});
  EXPECT_TRUE(doctor_text({none}).starts_with("GPUs             none (why)\n"));
  EXPECT_EQ(print_json(doctor_json({none})["gpus"]), "[]");
  EXPECT_EQ(doctor_json({none})["cuda"]["problem"], "why");
  device::DeviceFacts facts;
  facts.kind = "cuda";
  facts.name = "H100";
  facts.driver = "580.159";
  facts.runtime = "13.0";
  facts.libraries = "cuDNN 9.19.0";
  facts.memory_bytes = size_t{80} << 30;
  device::CudaReport report{.library = "/lib/libtutti_cuda.so",
                            .driver = facts.driver,
                            .runtime = facts.runtime,
                            .libraries = facts.libraries,
                            .devices = {facts},
                            .problem = {}};
  facts.number = 1;
  report.devices.push_back(facts);
  add_gpus(two, report);
  EXPECT_TRUE(doctor_text({two}).starts_with(
      "GPUs             H100 (cuda 0, driver 580.159, runtime 13.0, cuDNN 9.19.0), 80.0 GiB; H100 "
      "(cuda 1, driver 580.159, runtime 13.0, cuDNN 9.19.0), 80.0 GiB\n"
      "CUDA             /lib/libtutti_cuda.so, runtime 13.0, driver 580.159, cuDNN 9.19.0\n"));
  EXPECT_EQ(doctor_json({two})["gpus"][1]["number"], 1);
}

TEST(DoctorReport, TravelsAsText) {
  const Findings before = rank("a \"quoted\"", 3, {"w"}), after = findings_from(to_text(before));
  EXPECT_EQ(to_text(after), to_text(before));
}

}  // namespace
}  // namespace tutti::cli
