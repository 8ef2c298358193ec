#include "tutti/cli/data/run_data_path.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/patience.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"
#include "tutti/data/file/file_bytes.h"
#include "tutti/data/format/array/row_writer.h"
#include "tutti/generate/sample_sets.h"

namespace tutti::cli {
namespace {

/// Lattices of 4096 bytes and a label.
config::RunConfig cached_lattices(int64_t train, int64_t test) {
  config::RunConfig config;
  config.data.dataset = "lattices";
  config.data.generate_train = train;
  config.data.generate_test = test;
  config.run.threads = 1;
  config.cache.memory = int64_t{64} << 20;
  return config;
}

std::string data_path_error(const config::RunConfig& config) {
  return message_of<ConfigError>("", [&] { check_data_path(config); });
}

/// Counts the names of this process's caches.
int names_left() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    count += entry.path().filename().string().starts_with(fmt::format("tutti-{}-", ::getpid()));
  return count;
}

TEST(DataPath, VolumesOfNeuronsHaveNoCacheOnDisk) {
  config::RunConfig config;
  config.data.dataset = "neurons";
  config.data.quarantine = 1;
  config.cache.memory = 1;
  EXPECT_EQ(data_path_error(config), "");
  config.cache.disk = 1;
  config.cache.dir = "/tmp";
  EXPECT_TRUE(has_text(data_path_error(config), "data.cache.disk is not for"));
}

/// Two volumes for training and one for validation.
config::RunConfig generated_neurons(const std::filesystem::path& folder) {
  generate::write_neurons(folder, {.side = 24, .radius = 4, .seed = 1}, {.train = 2, .test = 1}, 1);
  config::RunConfig config;
  config.data.dataset = "neurons";
  config.data.dir = folder.string();
  config.tracing.fov = {9, 9, 9};
  config.tracing.deltas = {2, 2, 2};
  config.tracing.min_object = 1;
  config.cache.memory = int64_t{64} << 20;
  return config;
}

/// Checks the first fields of the first samples of a set.
void expect_samples(const data::Dataset& set, const data::Dataset& plain, int64_t count,
                    size_t fields) {
  data::Sample sample(set.fields()), expected(set.fields());
  for (int64_t i = 0; i < count; ++i) {
    set.read(i, sample);
    plain.read(i, expected);
    for (size_t f = 0; f < fields; ++f)
      EXPECT_EQ(std::memcmp(sample.at(f), expected.at(f), set.fields()[f].bytes()), 0) << i;
  }
}

TEST(DataPath, VolumesOfNeuronsAreReadOnceANode) {
  const ScratchDirectory scratch;
  const config::RunConfig config = generated_neurons(std::filesystem::path(scratch.path()));
  const ConfiguredData plain = open_configured(config);
  const auto body = [&](comm::Communicator& communicator) {
    const PreparedData prepared = prepare_data(config, communicator);
    ASSERT_EQ(prepared.data.train->size(), plain.train->size());
    expect_samples(*prepared.data.canvases, *plain.canvases, 50, 3);
  };
  const int64_t before = data::FileBytes::bytes_read();
  comm::run_ranks(4, body, {0, 0, 0, 0});
  const int64_t once = data::FileBytes::bytes_read() - before;
  comm::run_ranks(4, body, {0, 0, 1, 1});
  EXPECT_EQ(data::FileBytes::bytes_read() - before, 3 * once);
  EXPECT_EQ(names_left(), 0);
  config::RunConfig small = config;
  small.cache.memory = 1000;
  const auto alone = comm::make_single_communicator();
  EXPECT_THROW(prepare_data(small, *alone), ConfigError);
  EXPECT_EQ(names_left(), 0);
}

TEST(DataPath, ABadVolumeIsLeftOutAndCounted) {
  const ScratchDirectory scratch;
  config::RunConfig config = generated_neurons(std::filesystem::path(scratch.path()));
  std::filesystem::path bad;
  for (const auto& file : std::filesystem::directory_iterator(scratch.path() / "train"))
    bad = std::max(bad, file.path());
  std::filesystem::resize_file(bad, std::filesystem::file_size(bad) / 2);
  const auto body = [&](comm::Communicator& communicator) {
    EXPECT_THROW(prepare_data(config, communicator), IoError);
    config::RunConfig lenient = config;
    lenient.data.quarantine = 1;
    const PreparedData prepared = prepare_data(lenient, communicator);
    EXPECT_EQ(prepared.counts->left_out(), communicator.rank() == 0 ? 1 : 0);
    if (communicator.rank() == 0) {
      EXPECT_TRUE(has_text(prepared.counts->reasons()[0], bad.filename().string()));
    }
  };
  for (const int64_t memory : {int64_t{0}, int64_t{64} << 20}) {
    config.cache.memory = memory;
    comm::run_ranks(2, body, {0, 0});
  }
}

TEST(DataPath, NodesThatShareAFolderHaveCachesOfTheirOwn) {
  const ScratchDirectory shared;
  config::RunConfig config = cached_lattices(6, 2);
  config.cache.memory = 0;
  config.cache.disk = int64_t{1} << 20;
  config.cache.dir = shared.path().string();
  config.cache.exchange = false;
  const auto body = [&](comm::Communicator& communicator) {
    const PreparedData prepared = prepare_data(config, communicator);
    const data::Dataset& set = *prepared.data.train;
    const ConfiguredData plain = open_configured(config);
    data::Sample sample(set.fields());
    // Ranks read one after the other, each in its own order: the second rank reads samples that the
    // first has cached from its files.
    for (int turn = 0; turn < communicator.size(); ++turn) {
      communicator.barrier();
      for (int64_t i = 0; turn == communicator.rank() && i < set.size(); ++i)
        set.read(turn == 0 ? i : set.size() - 1 - i, sample);
    }
    communicator.barrier();
    EXPECT_EQ(prepared.counts->levels()[3].samples, set.size());
    expect_samples(set, *plain.train, set.size(), set.fields().size());
    EXPECT_EQ(prepared.counts->levels()[1].samples, set.size());
  };
  comm::run_ranks(2, body, {0, 1});
  EXPECT_TRUE(std::filesystem::is_empty(shared.path()));
  EXPECT_EQ(names_left(), 0);
}

TEST(DataPath, NodesExchangeSamplesInsteadOfReadingThemAgain) {
  const config::RunConfig config = cached_lattices(40, 2);
  const auto body = [&](comm::Communicator& communicator) {
    const PreparedData prepared = prepare_data(config, communicator);
    ASSERT_NE(prepared.server, nullptr);
    const data::Dataset& set = *prepared.data.train;
    const ConfiguredData plain = open_configured(config);
    for (int epoch = 0; epoch < 2; ++epoch) {
      communicator.barrier();
      std::vector<std::jthread> readers;  // like a pipeline's readers: two at a time
      for (int64_t half = 0; half < 2; ++half)
        readers.emplace_back([&, half, own = data::Sample(set.fields())]() mutable {
          for (int64_t i = half; i < set.size(); i += 2) set.read(i, own);
        });
    }
    expect_samples(set, *plain.train, set.size(), set.fields().size());
    communicator.barrier();
    std::array<double, 2> sums = {static_cast<double>(prepared.counts->levels()[2].samples),
                                  static_cast<double>(prepared.counts->levels()[3].samples)};
    communicator.sum(sums);
    EXPECT_EQ(sums[0], 40);  // every node has space: each requests its half once
    // Each sample is read once, and once more where two ranks request one that is being read.
    EXPECT_GE(sums[1], 40);
    EXPECT_LT(sums[1], 80);
  };
  comm::run_ranks(2, body, {0, 1});
}

TEST(DataPath, WhereTheOtherNodeIsGoneFilesAreRead) {
  const config::RunConfig config = cached_lattices(10, 2);
  const auto body = [&](comm::Communicator& communicator) {
    PreparedData prepared = prepare_data(config, communicator);
    const data::Dataset& set = *prepared.data.train;
    data::Sample sample(set.fields());
    if (communicator.rank() == 1) prepared.server.reset();
    communicator.barrier();
    if (communicator.rank() == 0) {
      for (int64_t i = 0; i < set.size(); ++i) set.read(i, sample);
      EXPECT_EQ(prepared.counts->levels()[2].samples, 0);
      EXPECT_EQ(prepared.counts->levels()[3].samples, 10);
    }
    communicator.barrier();
  };
  comm::run_ranks(2, body, {0, 1});
}

TEST(DataPath, WhoDoesNotKnowTheSecretGetsNothing) {
  const config::RunConfig config = cached_lattices(4, 2);
  const auto communicator = comm::make_single_communicator();
  const PreparedData prepared = prepare_data(config, *communicator);
  SampleServer server("secret", "127.0.0.1");
  EXPECT_EQ(server.hosts(), std::vector<std::string>{"127.0.0.1"});
  server.answer_from(dynamic_cast<const data::CachedSet&>(*prepared.data.train));
  std::vector<std::byte> packed;
  SampleClients friendly(*communicator, "secret", server);
  EXPECT_TRUE(friendly.get(0, packed));
  EXPECT_FALSE(friendly.get(4, packed));  // beyond the set
  EXPECT_TRUE(friendly.get(1, packed));
  SampleClients stranger(*communicator, "guess", server);
  EXPECT_FALSE(stranger.get(0, packed));
}

/// Counts the connections that the other side has ended.
int64_t ended_of(const std::vector<comm::Socket>& sockets) {
  return std::ranges::count_if(sockets, [](const comm::Socket& socket) {
    std::array<std::byte, 64> greeting;
    ssize_t n = 0;
    do n = ::recv(socket.descriptor(), greeting.data(), greeting.size(), 0);
    while (n > 0);
    return n == 0 || errno != EAGAIN;
  });
}

// Strangers have no thread and few descriptors; a client that knows the secret is served beside
// them.
TEST(DataPath, StrangersTakeNeitherThreadsNorDescriptors) {
  constexpr int kStrangers = 200;
  const config::RunConfig config = cached_lattices(4, 2);
  const auto communicator = comm::make_single_communicator();
  const PreparedData prepared = prepare_data(config, *communicator);
  SampleServer server("secret", "127.0.0.1");
  server.answer_from(dynamic_cast<const data::CachedSet&>(*prepared.data.train));
  const auto count = [](const char* folder) {
    return std::distance(std::filesystem::directory_iterator(folder), {});
  };
  const auto threads = count("/proc/self/task"), files = count("/proc/self/fd");
  std::vector<comm::Socket> strangers;
  for (int i = 0; i < kStrangers; ++i)
    strangers.push_back(comm::begin_connect(comm::resolve("127.0.0.1", server.port()).front()));
  constexpr int64_t kMost = comm::Listener::kMost;
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(kHangSeconds);
  while (ended_of(strangers) < kStrangers - kMost && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_GE(ended_of(strangers), kStrangers - kMost);
  EXPECT_EQ(count("/proc/self/task"), threads);
  EXPECT_LE(count("/proc/self/fd") - files - kStrangers, kMost);
  std::vector<std::byte> packed;
  SampleClients friendly(*communicator, "secret", server);
  EXPECT_TRUE(friendly.get(0, packed));
}

TEST(DataPath, ANodeThatWasLostIsAskedAgain) {
  const config::RunConfig config = cached_lattices(4, 2);
  const auto communicator = comm::make_single_communicator();
  const PreparedData prepared = prepare_data(config, *communicator);
  const auto& set = dynamic_cast<const data::CachedSet&>(*prepared.data.train);
  auto server = std::make_unique<SampleServer>("secret", "127.0.0.1");
  server->answer_from(set);
  const int port = server->port();
  SampleClients patient(*communicator, "secret", *server, std::chrono::hours(1));
  SampleClients soon(*communicator, "secret", *server, std::chrono::milliseconds(1));
  std::vector<std::byte> packed;
  EXPECT_TRUE(patient.get(0, packed));
  EXPECT_TRUE(soon.get(0, packed));
  server.reset();
  EXPECT_FALSE(patient.get(0, packed));
  EXPECT_FALSE(soon.get(0, packed));
  server = std::make_unique<SampleServer>("secret", "127.0.0.1", port);
  server->answer_from(set);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_TRUE(soon.get(0, packed));
  EXPECT_TRUE(soon.get(1, packed));
  EXPECT_FALSE(patient.get(0, packed)) << "an hour is not over";
}

/// Writes files with one number per sample, 100 * file + sample.
void write_files(const std::filesystem::path& folder, const std::vector<int64_t>& samples) {
  std::filesystem::create_directories(folder);
  for (size_t f = 0; f < samples.size(); ++f) {
    const auto writer = data::open_row_writer(folder / fmt::format("{}.npy", f),
                                              {.shape = {samples[f], 1}}, "test");
    for (int64_t i = 0; i < samples[f]; ++i) {
      const auto value = static_cast<float>(100 * static_cast<int64_t>(f) + i);
      writer->append(&value, 1);
    }
    writer->close();
  }
}

TEST(DataPath, ANodeStagesTheFilesOfItsShard) {
  const ScratchDirectory scratch;
  const std::filesystem::path shared = std::filesystem::path(scratch.path()) / "shared";
  write_files(shared / "train", {3, 2, 4, 2, 1});  // node 0: 4 + 2 = files 2, 3; node 1: 0, 1, 4
  write_files(shared / "validation", {2, 2});      // a part for each rank
  config::RunConfig config;
  config.data.dataset = "arrays";
  config.data.dir = shared.string();
  config.data.train_files = {"train"};
  config.data.validation_files = {"validation"};
  config.data.fields = {"x: from array axis 0"};
  config.data.shuffle = config::Shuffle::shard;
  const auto body = [&](comm::Communicator& communicator) {
    config::RunConfig own = config;
    const auto node =
        std::filesystem::path(scratch.path()) / fmt::format("node{}", communicator.rank());
    own.staging.dir = node.string();
    PreparedData prepared = prepare_data(own, communicator);
    EXPECT_EQ(prepared.staging->copied_files, 7);
    EXPECT_EQ(prepared.staging->linked_files, 7);
    const std::vector<std::vector<int>> copied = {{2, 3}, {0, 1, 4}};
    for (int f = 0; f < 5; ++f)
      EXPECT_EQ(std::filesystem::is_symlink(node / "train" / fmt::format("{}.npy", f)),
                std::ranges::count(copied[static_cast<size_t>(communicator.rank())], f) == 0)
          << communicator.rank() << " " << f;
    for (int f = 0; f < 2; ++f)
      EXPECT_EQ(std::filesystem::is_symlink(node / "validation" / fmt::format("{}.npy", f)),
                f != communicator.rank());
    // All samples are there under their numbers, also the other node's.
    const std::vector<float> expected = {0, 1, 2, 100, 101, 200, 201, 202, 203, 300, 301, 400};
    data::Sample sample(prepared.data.train->fields());
    for (size_t i = 0; i < expected.size(); ++i) {
      prepared.data.train->read(static_cast<int64_t>(i), sample);
      EXPECT_EQ(*static_cast<const float*>(sample.at(0)), expected[i]);
    }
    prepared = {};
    EXPECT_EQ(prepare_data(own, communicator).staging->copied_files, 0);
  };
  comm::run_ranks(2, body, {0, 1});
}

TEST(DataPath, APartWithoutRoomLeavesNoNameOfTheOthers) {
  // The first part's memory is below the limit and the second's above it.
  const config::RunConfig config = cached_lattices(2, 200);
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &usual), 0);
  rlimit small = usual;
  small.rlim_cur = 200'000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string message = message_of<IoError>([&] {
    const auto communicator = comm::make_single_communicator();
    prepare_data(config, *communicator);
  });
  ::setrlimit(RLIMIT_FSIZE, &usual);
  std::signal(SIGXFSZ, before);
  EXPECT_TRUE(has_text(message, "data.cache.memory"));
  EXPECT_EQ(names_left(), 0);
}

}  // namespace
}  // namespace tutti::cli
