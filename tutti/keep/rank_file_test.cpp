#include "tutti/keep/rank_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <optional>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/comm/control/agree.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"
#include "tutti/exchange/replicas.h"
#include "tutti/train/loop/resume.h"
#include "tutti/train/network/weights.h"

namespace tutti::keep {
namespace {

namespace fs = std::filesystem;

constexpr int kReplicas = 12;
constexpr size_t kFloats = 1000;  // size of the only bucket

/// Two statistics, 8 and 24 floats, without parameters.
plan::Variables statistics_only() {
  plan::Variables variables;
  variables.statistics = {{"bn.mean", {DType::f32, {8}, {}}, 0, {}},
                          {"bn.variance", {DType::f32, {24}, {}}, 64, {}}};
  variables.statistic_bytes = 64 + 96;
  return variables;
}

float value_at(int replica, size_t i) {
  return static_cast<float>(1000 * replica) + static_cast<float>(i);
}

std::span<float> floats_of(const train::Weights& weights, int local) {
  return {reinterpret_cast<float*>(weights.statistics(local)),
          weights.variables().statistic_bytes / sizeof(float)};
}

comm::StateLayout state_layout(int ranks) {
  comm::StateLayout layout;
  layout.add(comm::StatePiece::Kind::gradient, {0, kFloats}, ranks);
  return layout;
}

class RankFileTest : public testing::Test {
 protected:
  /// Writes kReplicas replicas from `ranks` ranks; returns the sizes of their files.
  std::vector<uint64_t> write(int ranks, int64_t step, int replicas = kReplicas) {
    std::vector<uint64_t> sizes(static_cast<size_t>(ranks));
    CheckpointInfo info;
    info.step = step;
    info.replicas = replicas;
    info.ranks = ranks;
    CheckpointWriter writer(directory_, info, ranks);
    comm::run_ranks(ranks, [&](comm::Communicator& c) {
      const exchange::ReplicaMap map(replicas, ranks, c.rank());
      train::Weights weights(variables_, map.local_count());
      for (int local = 0; local < map.local_count(); ++local)
        for (size_t i = 0; i < floats_of(weights, local).size(); ++i)
          floats_of(weights, local)[i] = value_at(map.replica(local), i);
      std::vector<float> residual(kFloats, static_cast<float>(c.rank() + 1));
      const std::vector<NamedTensor> statistics = materialise(weights.row_tensors());
      std::vector<TensorRef> tensors;
      for (const NamedTensor& tensor : statistics) tensors.push_back(tensor.ref());
      for (const comm::SavedPiece& piece :
           comm::save_state(state_layout(ranks), c.rank(), "bucket 0", residual))
        tensors.push_back({piece.name,
                           {DType::f32, Shape{static_cast<int64_t>(piece.values.size())}, {}},
                           std::as_bytes(piece.values)});
      comm::on_each(c, "writing", [&] {
        sizes[static_cast<size_t>(c.rank())] =
            write_rank_file(writer.path(), writer.rank_files(), c.rank(), tensors);
      });
    });
    writer.write({}, {});
    last_ = writer.publish(false, 0);
    return sizes;
  }
  static std::string damage_of(const fs::path& checkpoint, int64_t rank) {
    return message_of<IoError>(
        "", [&] { verify_rank_file(checkpoint, rank_files_of(checkpoint), rank); });
  }

  const plan::Variables variables_ = statistics_only();
  const ScratchDirectory scratch_;
  const fs::path directory_ = scratch_.path() / "checkpoints";
  fs::path last_;
};

TEST_F(RankFileTest, EveryReplicaFindsItsStatisticsOnAnyNumberOfRanks) {
  for (const int before : {1, 2, 5, 12}) {
    write(before, before);
    const Checkpoint checkpoint = open_checkpoint(last_);
    for (const int after : {1, 3, 5, 12})
      for (int rank = 0; rank < after; ++rank) {
        const exchange::ReplicaMap map(kReplicas, after, rank);
        train::Weights weights(variables_, map.local_count());
        train::restore_rows(checkpoint, map, weights);
        for (int local = 0; local < map.local_count(); ++local)
          for (const plan::Variable& variable : variables_.statistics)
            for (size_t i = 0; i < static_cast<size_t>(variable.desc.elements()); ++i) {
              const size_t at = variable.offset / sizeof(float) + i;
              ASSERT_EQ(floats_of(weights, local)[at], value_at(map.replica(local), at))
                  << before << " -> " << after << ", replica " << map.replica(local);
            }
      }
  }
}

TEST_F(RankFileTest, CompressionStateGoesOnOnAnyNumberOfRanks) {
  for (const int before : {2, 3, 5}) {
    write(before, before);
    for (const int after : {1, 2, 3}) {
      comm::run_ranks(after, [&](comm::Communicator& c) {
        const Checkpoint checkpoint = open_checkpoint(last_);
        SavedCompression saved(checkpoint);
        std::vector<float> state(kFloats);
        const comm::Restored restored =
            comm::restore_state(c, saved, state_layout(after), "bucket 0", kFloats, state);
        EXPECT_EQ(restored, before == after ? comm::Restored::exact : comm::Restored::dealt);
        const float sum = static_cast<float>(before * (before + 1)) / 2;
        const float expected =
            before == after ? static_cast<float>(c.rank() + 1) : sum / static_cast<float>(after);
        EXPECT_EQ(state, std::vector<float>(kFloats, expected)) << before << " -> " << after;
      });
    }
  }
}

TEST_F(RankFileTest, WhatARankWritesDoesNotGrowWithTheNumberOfRanks) {
  constexpr int kLocal = 2;
  const uint64_t alone = write(1, 1, kLocal)[0];
  for (const int ranks : {2, 8, 32}) {
    const std::vector<uint64_t> sizes = write(ranks, ranks, kLocal * ranks);
    // A file holds its rank's state, and a header with the digits of its rank.
    for (const uint64_t size : sizes) EXPECT_LE(size, alone + 64) << ranks;
    // The files that all ranks share hold none of it; the manifest gives the number of rank files.
    uint64_t same = 0;
    for (const char* file : {"weights.safetensors", "state.safetensors", "manifest.json"})
      same += fs::file_size(last_ / file);
    EXPECT_LE(same, 2048u) << ranks;
  }
}

/// Returns the bytes that this thread has read from files since it began; nothing where the system
/// does not count them.
std::optional<uint64_t> bytes_read() {
  std::ifstream counts("/proc/thread-self/io");
  std::string name;
  uint64_t value = 0;
  while (counts >> name >> value)
    if (name == "rchar:") return value;
  return std::nullopt;
}

TEST_F(RankFileTest, WhatARankReadsDoesNotGrowWithTheNumberOfRanks) {
  if (!bytes_read()) GTEST_SKIP() << "the system does not count";
  constexpr int kLocal = 2;
  // Resumes one rank alone: it reads to verify, for headers, and for its own state.
  const auto read_by = [&](int rank, int ranks) {
    const uint64_t size = write(ranks, ranks, kLocal * ranks)[0], before = *bytes_read();
    const Checkpoint checkpoint = open_checkpoint(last_);
    verify_rank_files(last_, checkpoint.rank_files, rank, ranks);
    const exchange::ReplicaMap map(kLocal * ranks, ranks, rank);
    train::Weights weights(variables_, kLocal);
    train::restore_rows(checkpoint, map, weights);
    SavedCompression saved(checkpoint);
    for (const std::string& name : saved.names(rank))
      if (name.starts_with("compression.")) saved.read(rank, name);
    const uint64_t read = *bytes_read() - before;
    EXPECT_GE(read, size);
    return read;
  };
  const uint64_t alone = read_by(0, 1);
  EXPECT_LE(alone, 6 * kFloats * sizeof(float));
  for (const int ranks : {2, 8, 32}) {
    EXPECT_LE(read_by(0, ranks), alone + 512) << ranks;
    EXPECT_LE(read_by(ranks - 1, ranks), alone + 512) << ranks;
  }
}

TEST_F(RankFileTest, DamageIsFound) {
  write(3, 1);
  const fs::path earlier = last_;
  write(3, 2);
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(damage_of(last_, rank), "");
  const fs::path file = rank_file_path(last_, 1);
  const uint64_t size = fs::file_size(file);
  // Every byte of the tensors counts, and so do the header's bytes that describe them.
  for (const uint64_t at : {size - 1, size - 1500, uint64_t{20}, uint64_t{120}}) {
    std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekg(static_cast<std::streamoff>(at));
    const char good = static_cast<char>(bytes.get());
    const auto put = [&](char c) {
      bytes.seekp(static_cast<std::streamoff>(at));
      bytes.put(c).flush();
    };
    put(static_cast<char>(good ^ 1));
    EXPECT_TRUE(has_text(damage_of(last_, 1), "ranks/1.safetensors")) << at;
    put(good);
    EXPECT_EQ(damage_of(last_, 1), "");
  }
  EXPECT_NO_THROW(verify_checkpoint(last_));
  EXPECT_NO_THROW(verify_rank_files(last_, rank_files_of(last_), 0, 1));
  // The file comes from another checkpoint, or from another rank.
  fs::copy_file(rank_file_path(earlier, 1), file, fs::copy_options::overwrite_existing);
  EXPECT_TRUE(has_text(damage_of(last_, 1), "not of this checkpoint"));
  fs::copy_file(rank_file_path(last_, 0), file, fs::copy_options::overwrite_existing);
  EXPECT_TRUE(has_text(damage_of(last_, 1), "not of this checkpoint"));
  EXPECT_THROW(verify_rank_files(last_, rank_files_of(last_), 1, 2), IoError);
  EXPECT_NO_THROW(verify_rank_files(last_, rank_files_of(last_), 0, 2)) << "another rank's";
  fs::remove(file);
  EXPECT_THROW(verify_checkpoint(last_), IoError);
  testing::internal::CaptureStderr();
  EXPECT_EQ(find_latest_valid(directory_), earlier);
  EXPECT_TRUE(has_text(testing::internal::GetCapturedStderr(), "ranks/1.safetensors: is missing"));
}

TEST_F(RankFileTest, WhatOneRankCannotWriteIsAnErrorOnAllAndLeavesNothing) {
  write(3, 1);
  std::optional<CheckpointWriter> writer;
  CheckpointInfo info;
  info.step = 2;
  writer.emplace(directory_, info, 3);
  fs::create_directory(rank_file_path(writer->path(), 1));  // as if there were no space
  comm::run_ranks(3, [&](comm::Communicator& c) {
    EXPECT_TRUE(throws<IoError>({"ranks/1.safetensors: cannot be written"},
                                [&] {
                                  comm::on_each(c, "writing a checkpoint", [&] {
                                    write_rank_file(writer->path(), writer->rank_files(), c.rank(),
                                                    {});
                                  });
                                }))
        << "no error on rank " << c.rank();
  });
  writer.reset();
  EXPECT_EQ(list_checkpoints(directory_).size(), 1u);
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_), fs::directory_iterator()), 2)
      << "the earlier one and latest";
}

TEST_F(RankFileTest, OneFromBeforeThereWereSuchFilesCanBeRead) {
  std::vector<NamedTensor> tensors;
  for (int replica = 0; replica < 3; ++replica)
    for (const plan::Variable& variable : variables_.statistics) {
      NamedTensor tensor{fmt::format("replica {}/{}", replica, variable.name), variable.desc, {}};
      std::vector<float> values(static_cast<size_t>(variable.desc.elements()),
                                static_cast<float>(replica + 1));
      const auto bytes = std::as_bytes(std::span(values));
      tensor.bytes.assign(bytes.begin(), bytes.end());
      tensors.push_back(std::move(tensor));
    }
  for (int rank = 0; rank < 3; ++rank) {
    const std::vector<float> residual(kFloats, static_cast<float>(rank + 1));
    const auto bytes = std::as_bytes(std::span(residual));
    tensors.push_back({fmt::format("compression.rank{}.bucket 0.gradient@0", rank),
                       {DType::f32, {static_cast<int64_t>(kFloats)}, {}},
                       {bytes.begin(), bytes.end()}});
  }
  CheckpointContent content;
  content.info.step = 1;
  content.info.replicas = content.info.ranks = 3;
  for (const NamedTensor& tensor : tensors) content.state.push_back(tensor.ref());
  const fs::path path = write_checkpoint(directory_, content, 0);
  for (const int ranks : {2, 3})
    comm::run_ranks(ranks, [&](comm::Communicator& c) {
      const Checkpoint checkpoint = open_checkpoint(path);
      const exchange::ReplicaMap map(3, ranks, c.rank());
      train::Weights weights(variables_, map.local_count());
      train::restore_rows(checkpoint, map, weights);
      for (int local = 0; local < map.local_count(); ++local)
        EXPECT_EQ(floats_of(weights, local)[20], static_cast<float>(map.replica(local) + 1));
      SavedCompression saved(checkpoint);
      std::vector<float> state(kFloats);
      comm::restore_state(c, saved, state_layout(ranks), "bucket 0", kFloats, state);
      EXPECT_EQ(state[7], ranks == 3 ? static_cast<float>(c.rank() + 1) : 3.0f);
    });
}

}  // namespace
}  // namespace tutti::keep
