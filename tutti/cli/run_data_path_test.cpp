#include "tutti/cli/run_data_path.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <string>

#include "tutti/base/error.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"

namespace tutti {
namespace {

/// Lattices of 4096 bytes and a label.
RunConfig cached_lattices(int64_t train, int64_t test) {
  RunConfig config;
  config.data.dataset = "lattices";
  config.data.generate_train = train;
  config.data.generate_test = test;
  config.run.threads = 1;
  config.cache.memory = int64_t{64} << 20;
  return config;
}

std::string data_path_error(const RunConfig& config) {
  try {
    check_data_path(config);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

/// Names of caches of this process.
int names_left() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    count += entry.path().filename().string().starts_with(fmt::format("tutti-{}-", ::getpid()));
  return count;
}

TEST(DataPath, SetsThatTrainingReadsOtherwiseAreRefused) {
  for (const char* set : {"neurons", "imagenet"}) {
    RunConfig config;
    config.data.dataset = set;
    EXPECT_EQ(data_path_error(config), "");
    config.data.quarantine = 1;
    EXPECT_NE(data_path_error(config).find("data.quarantine is not for"), std::string::npos);
    config.data.quarantine = 0;
    config.cache.memory = 1;
    EXPECT_NE(data_path_error(config).find("data.cache is not for"), std::string::npos);
    config.cache.memory = 0;
    config.cache.disk = 1;
    config.cache.dir = "/tmp";
    EXPECT_NE(data_path_error(config).find("data.cache is not for"), std::string::npos);
  }
}

TEST(DataPath, NodesThatShareAFolderHaveCachesOfTheirOwn) {
  const ScratchDirectory shared;
  RunConfig config = cached_lattices(6, 2);
  config.cache.memory = 0;
  config.cache.disk = int64_t{1} << 20;
  config.cache.dir = shared.path().string();
  const auto body = [&](comm::Communicator& communicator) {
    const PreparedData prepared = prepare_data(config, communicator);
    const data::Dataset& set = *prepared.data.train;
    const ConfiguredData plain = open_configured(config);
    data::Sample sample(set.fields()), expected(set.fields());
    // One after the other, each in an order of its own: what the first has kept the second reads
    // from its files.
    for (int turn = 0; turn < communicator.size(); ++turn) {
      communicator.barrier();
      for (int64_t i = 0; turn == communicator.rank() && i < set.size(); ++i)
        set.read(turn == 0 ? i : set.size() - 1 - i, sample);
    }
    communicator.barrier();
    EXPECT_EQ(prepared.counts->levels()[2].samples, set.size());
    for (int64_t i = 0; i < set.size(); ++i) {
      set.read(i, sample);
      plain.train->read(i, expected);
      for (size_t f = 0; f < set.fields().size(); ++f)
        EXPECT_EQ(std::memcmp(sample.at(f), expected.at(f), set.fields()[f].bytes()), 0) << i;
    }
    EXPECT_EQ(prepared.counts->levels()[1].samples, set.size());
  };
  comm::run_ranks(2, body, {0, 1});
  EXPECT_TRUE(std::filesystem::is_empty(shared.path()));
  EXPECT_EQ(names_left(), 0);
}

TEST(DataPath, APartWithoutRoomLeavesNoNameOfTheOthers) {
  // The first part's memory is below the limit and the second's above it.
  const RunConfig config = cached_lattices(2, 200);
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &usual), 0);
  rlimit small = usual;
  small.rlim_cur = 200'000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string message;
  try {
    const auto communicator = comm::make_single_communicator();
    prepare_data(config, *communicator);
  } catch (const IoError& error) {
    message = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &usual);
  std::signal(SIGXFSZ, before);
  EXPECT_NE(message.find("data.cache.memory"), std::string::npos) << message;
  EXPECT_EQ(names_left(), 0);
}

}  // namespace
}  // namespace tutti
