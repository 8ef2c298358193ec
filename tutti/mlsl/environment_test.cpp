#include "tutti/mlsl/environment.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <thread>

#include "tutti/comm/transport/inproc/thread_ranks.h"

namespace tutti::mlsl {
namespace {

using Variables = std::map<std::string, std::string>;
using Floats = std::vector<float>;
using comm::Collective;

comm::Environment given(Variables variables) {
  return [variables = std::move(variables)](const char* name) {
    const auto at = variables.find(name);
    return at == variables.end() ? nullptr : at->second.c_str();
  };
}

// body(environment, rank) on so many ranks, each with an environment of its own.
void run(int ranks, const Variables& variables,
         const std::function<void(Environment&, int)>& body) {
  comm::run_ranks(ranks, [&](comm::Communicator& communicator) {
    communicator.set_timeout(20);
    Variables all = variables;
    all.try_emplace("MLSL_TIMEOUT", "20");
    all.try_emplace("MLSL_HEAP_SIZE_GB", "0.001");
    Environment environment(given(all));
    environment.init(communicator);
    body(environment, communicator.rank());
    environment.finalize();
  });
}

float value(int rank, size_t i, int round) {
  return static_cast<float>((rank + 1) * 1000 + static_cast<int>(i) * 7 + round);
}

Floats values(int rank, size_t count, int round) {
  Floats all;
  for (size_t i = 0; i < count; ++i) all.push_back(value(rank, i, round));
  return all;
}

// The kernel would end some process or other: two heaps of 30 GB on 23 GB of memory.
TEST(MlslSettings, HeapsThatDoNotFitTheMemoryAreRefused) {
  constexpr size_t kGib = size_t{1} << 30;
  check_heap(10 * kGib, 2, int64_t{23} << 30);
  check_heap(0, 64, 0);
  try {
    check_heap(30 * kGib, 2, int64_t{23} << 30);
    ADD_FAILURE() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_TRUE(std::string(error.what())
                    .starts_with("MLSL_HEAP_SIZE_GB: 2 ranks of this node ask for 30 GiB each, and "
                                 "23 GiB of memory are free; set it to less than 11.5"))
        << error.what();
  }
}

TEST(MlslSettings, DefaultsValuesAndMistakes) {
  const Settings usual = read_settings(given({}));
  EXPECT_FALSE(usual.newest_first);
  EXPECT_EQ(usual.priority_threshold, 10000u);
  EXPECT_TRUE(usual.ignored.empty());
  const Settings set = read_settings(given({{"MLSL_MSG_PRIORITY", "1"},
                                            {"MLSL_HEAP_SIZE_GB", "0.5"},
                                            {"MLSL_NUM_SERVERS", "4"},
                                            {"MLSL_HOSTNAME", "n1"},
                                            {"MLSL_LARGE_MSG_SIZE_MB", "2"}}));
  EXPECT_TRUE(set.newest_first);
  EXPECT_EQ(set.heap_bytes, size_t{1} << 29);
  EXPECT_EQ(set.large_bytes, size_t{2} << 20);
  EXPECT_EQ(set.servers, 4);
  EXPECT_EQ(set.ignored, std::vector<std::string>{"MLSL_HOSTNAME"});
  EXPECT_FALSE(read_settings(given({{"MLSL_MSG_PRIORITY", "1"}, {"MLSL_MSG_PRIORITY_MODE", "0"}}))
                   .newest_first);
  for (const char* bad : {"2", "-1", "1x", "yes"}) {
    try {
      read_settings(given({{"MLSL_STATS", bad}}));
      ADD_FAILURE() << bad;
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find("MLSL_STATS"), std::string::npos);
    }
  }
}

TEST(MlslSettings, ServersHaveTheCoresOfTheList) {
  using Cores = std::vector<int>;
  const auto cores = [](const char* servers, const char* list, int local_rank) {
    return cores_of_servers(
        read_settings(given({{"MLSL_NUM_SERVERS", servers}, {"MLSL_SERVER_AFFINITY", list}})),
        local_rank);
  };
  EXPECT_EQ(cores("2", "", 0), (Cores{comm::Progress::kNoCore, comm::Progress::kNoCore}));
  EXPECT_EQ(cores("2", "12,13,14,15", 0), (Cores{12, 13}));
  EXPECT_EQ(cores("2", "12,13,14,15", 1), (Cores{14, 15}));
  EXPECT_EQ(cores("1", "7", 1), (Cores{7}));
  EXPECT_EQ(cores("0", "7", 0), Cores{});
  EXPECT_EQ(read_settings(given({{"MLSL_SERVER_AFFINITY", "7"}})).ignored.size(), 1u);
  for (const char* bad : {"x", "1,", ",1", "1,,2", "-1", "1-3"})
    EXPECT_THROW(cores("2", bad, 0), ConfigError) << bad;
  EXPECT_THROW(cores("17", "", 0), ConfigError);
}

TEST(MlslHeap, PiecesAreAlignedApartAndUsedAgain) {
  run(1, {{"MLSL_HEAP_SIZE_GB", "0.0001"}}, [](Environment& environment, int) {  // 107,374 bytes
    Heap heap(environment.job().world().allocate(64 << 10));
    std::vector<char*> pieces;
    for (int i = 0; i < 16; ++i) pieces.push_back(static_cast<char*>(heap.allocate(4000, 128)));
    for (size_t i = 0; i < pieces.size(); ++i) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(pieces[i]) % 128, 0u);
      EXPECT_TRUE(heap.visible(pieces[i]));
      for (size_t j = 0; j < i; ++j) EXPECT_GE(std::abs(pieces[i] - pieces[j]), 4000);
    }
    void* const outside = heap.allocate(4000, 4096);  // the heap is full
    EXPECT_FALSE(heap.visible(outside));
    heap.free(outside);
    for (char* piece : pieces) heap.free(piece);
    void* const whole =
        heap.allocate(60 << 10, 64);  // only if the pieces have grown together again
    EXPECT_TRUE(heap.visible(whole));
    heap.free(whole);
    heap.free(nullptr);
    EXPECT_THROW(heap.free(whole), ConfigError);
    EXPECT_THROW(heap.allocate(1, 3), ConfigError);
  });
}

// Every call with buffers at new addresses, on some ranks only, and often enough to use every plan
// again.
void call_every_collective(const Variables& variables) {
  run(3, variables, [](Environment& environment, int rank) {
    Distribution& all = environment.create_distribution(3, 1);
    RequestTable& requests = environment.requests();
    const auto global = api::GT_GLOBAL;
    constexpr size_t kCount = 5;
    std::vector<Floats> kept(40);  // memory that is not given back, so that addresses differ
    for (int round = 0; round < 40; ++round) {
      if (round % (rank + 2) == 0) kept[static_cast<size_t>(round)].resize(100);
      const Floats mine = values(rank, 3 * kCount, round);
      Floats got(3 * kCount, -1);
      const auto wait = [&](api::CommReq* request) { requests.wait(request); };

      Floats sent = rank == 1 ? mine : Floats(kCount, -1);
      wait(all.broadcast(sent.data(), kCount, api::DT_FLOAT, 1, global));
      for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(sent[i], value(1, i, round));

      wait(all.start({.kind = Collective::allreduce, .count = kCount, .reduction = api::RT_MIN},
                     mine.data(), got.data()));
      for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(got[i], value(0, i, round));

      wait(all.start({.kind = Collective::reduce, .count = kCount, .root = 2}, mine.data(),
                     rank == 2 ? got.data() : nullptr));
      for (size_t i = 0; rank == 2 && i < kCount; ++i)
        ASSERT_EQ(got[i], value(0, i, round) + value(1, i, round) + value(2, i, round));

      wait(all.start_equal(
          {.kind = Collective::reduce_scatter, .count = kCount, .reduction = api::RT_MAX},
          mine.data(), got.data()));
      for (size_t i = 0; i < kCount; ++i)
        ASSERT_EQ(got[i], value(2, static_cast<size_t>(rank) * kCount + i, round));

      wait(all.start_equal({.kind = Collective::allgather, .count = kCount}, mine.data(),
                           got.data()));
      for (size_t i = 0; i < 3 * kCount; ++i)
        ASSERT_EQ(got[i], value(static_cast<int>(i / kCount), i % kCount, round));

      std::ranges::fill(got, -1.f);
      wait(all.start_equal({.kind = Collective::gather, .count = kCount, .root = 1}, mine.data(),
                           rank == 1 ? got.data() : nullptr));
      for (size_t i = 0; rank == 1 && i < 3 * kCount; ++i)
        ASSERT_EQ(got[i], value(static_cast<int>(i / kCount), i % kCount, round));

      wait(all.start_equal({.kind = Collective::scatter, .count = kCount, .root = 2},
                           rank == 2 ? mine.data() : nullptr, got.data()));
      for (size_t i = 0; i < kCount; ++i)
        ASSERT_EQ(got[i], value(2, static_cast<size_t>(rank) * kCount + i, round));

      wait(all.start_equal({.kind = Collective::all_to_all, .count = kCount}, mine.data(),
                           got.data()));
      for (size_t i = 0; i < 3 * kCount; ++i)
        ASSERT_EQ(got[i], value(static_cast<int>(i / kCount),
                                static_cast<size_t>(rank) * kCount + i % kCount, round));

      // Rank r gives r + 1 elements.
      const std::vector<size_t> counts = {1, 2, 3};
      wait(all.allgather_parts(mine.data(), counts[static_cast<size_t>(rank)], got.data(),
                               counts.data(), api::DT_FLOAT, global));
      for (size_t i = 0; i < 6; ++i) {
        const int from = i < 1 ? 0 : i < 3 ? 1 : 2;
        ASSERT_EQ(got[i], value(from, i - (from == 0 ? 0u : from == 1 ? 1u : 3u), round));
      }

      // Rank r sends r + 1 elements to each, from places two apart.
      const auto n = static_cast<size_t>(rank) + 1;
      const std::vector<size_t> send_counts(3, n), send_offsets = {0, n + 2, 2 * (n + 2)},
                                                   receive_offsets = {0, 1, 3};
      std::ranges::fill(got, -1.f);
      wait(all.all_to_all_blocks(mine.data(), {send_counts.data(), send_offsets.data()}, got.data(),
                                 {counts.data(), receive_offsets.data()}, api::DT_FLOAT, global));
      for (int p = 0; p < 3; ++p)
        for (size_t i = 0; i <= static_cast<size_t>(p); ++i)
          ASSERT_EQ(got[receive_offsets[static_cast<size_t>(p)] + i],
                    value(p, static_cast<size_t>(rank) * (static_cast<size_t>(p) + 3) + i, round));
      all.barrier(global);
    }
  });
}

TEST(MlslDistribution, CollectivesGiveTheRightAnswer) { call_every_collective({}); }

TEST(MlslDistribution, ServersGiveTheSameAnswer) {
  call_every_collective({{"MLSL_NUM_SERVERS", "2"}, {"MLSL_MSG_PRIORITY", "1"}});
}

// Counts that no rank can know of another one; planned collectives between them.
TEST(MlslDistribution, AlltoAllvKeepsNothing) {
  run(3, {}, [](Environment& environment, int rank) {
    Distribution& all = environment.create_distribution(3, 1);
    RequestTable& requests = environment.requests();
    const auto count = [](int from, int to, int round) {
      return static_cast<size_t>((from + 2 * to + round) % 7 * (round % 3));
    };
    size_t channels = 0;
    for (int round = 0; round < 300; ++round) {
      std::vector<size_t> sends, receives;
      const std::vector<size_t> offsets = {0, 20, 40};
      for (int p = 0; p < 3; ++p) {
        sends.push_back(count(rank, p, round));
        receives.push_back(count(p, rank, round));
      }
      const Floats mine = values(rank, 60, round);
      Floats got(60, -1), sum(100, 1);
      api::CommReq* const blocks =
          all.all_to_all_blocks(mine.data(), {sends.data(), offsets.data()}, got.data(),
                                {receives.data(), offsets.data()}, api::DT_FLOAT, api::GT_GLOBAL);
      api::CommReq* const other =
          all.start({.kind = Collective::allreduce, .count = 100}, sum.data(), sum.data());
      requests.wait(rank == 1 ? blocks : other);
      requests.wait(rank == 1 ? other : blocks);
      ASSERT_EQ(sum[99], 3);
      for (size_t p = 0; p < 3; ++p)
        for (size_t i = 0; i < 20; ++i)
          ASSERT_EQ(got[offsets[p] + i],
                    i < receives[p]
                        ? value(static_cast<int>(p), offsets[static_cast<size_t>(rank)] + i, round)
                        : -1);
      const size_t taken = environment.job().world().channels().taken();
      if (round == 20) channels = taken;  // the allreduce has all its plans
      ASSERT_EQ(taken, round > 20 ? channels : taken);
    }
  });
}

// Of large ones the one that was started last goes first, and small ones before all of them.
TEST(MlslJob, PrioritiesFollowFromSizeAndOrder) {
  const auto priorities = [](const Variables& variables) {
    std::vector<int> all;
    run(1, variables, [&](Environment& environment, int) {
      Job& job = environment.job();
      const auto operation = job.world().plan({.kind = Collective::barrier});
      for (const size_t bytes : {10'000, 20'000, 9'999, 10'000}) {
        job.start(*operation, bytes);
        operation->wait();
        all.push_back(operation->priority());
      }
    });
    return all;
  };
  EXPECT_EQ(priorities({}), (std::vector<int>{0, 0, 0, 0}));
  const std::vector<int> newest_first = priorities({{"MLSL_MSG_PRIORITY", "1"}});
  EXPECT_LT(newest_first[0], newest_first[1]);
  EXPECT_LT(newest_first[1], newest_first[3]);
  EXPECT_LT(newest_first[3], newest_first[2]);
  EXPECT_EQ(priorities({{"MLSL_MSG_PRIORITY", "1"}, {"MLSL_MSG_PRIORITY_MODE", "0"}}),
            (std::vector<int>{0, 0, 0, 0}));
}

// Where the input lies in the output, or the other way round.
TEST(MlslDistribution, BuffersMayOverlap) {
  run(3, {}, [](Environment& environment, int rank) {
    Distribution& all = environment.create_distribution(3, 1);
    const auto me = static_cast<size_t>(rank);
    for (int round = 0; round < 3; ++round) {
      const auto wait = [&](api::CommReq* request) { environment.requests().wait(request); };
      Floats both = values(rank, 6, round);
      wait(all.start_equal({.kind = Collective::all_to_all, .count = 2}, both.data(), both.data()));
      for (size_t i = 0; i < 6; ++i)
        ASSERT_EQ(both[i], value(static_cast<int>(i / 2), 2 * me + i % 2, round));

      both = values(rank, 6, round);
      const std::vector<size_t> counts = {2, 2, 2}, offsets = {0, 2, 4}, backwards = {4, 2, 0};
      wait(all.all_to_all_blocks(both.data(), {counts.data(), offsets.data()}, both.data(),
                                 {counts.data(), backwards.data()}, api::DT_FLOAT, api::GT_GLOBAL));
      for (size_t i = 0; i < 6; ++i)
        ASSERT_EQ(both[i], value(2 - static_cast<int>(i / 2), 2 * me + i % 2, round));

      both = values(rank, 6, round);
      wait(all.start_equal(
          {.kind = Collective::reduce_scatter, .count = 2, .reduction = api::RT_MAX}, both.data(),
          both.data() + 1));
      for (size_t i = 0; i < 2; ++i) ASSERT_EQ(both[1 + i], value(2, 2 * me + i, round));

      both = values(rank, 6, round);
      wait(all.start_equal({.kind = Collective::allgather, .count = 2}, both.data() + 3,
                           both.data()));
      for (size_t i = 0; i < 6; ++i)
        ASSERT_EQ(both[i], value(static_cast<int>(i / 2), 3 + i % 2, round));
      both = values(rank, 6, round);
      wait(all.start_equal({.kind = Collective::allgather, .count = 2}, both.data() + 2 * me,
                           both.data()));  // MPI_IN_PLACE
      for (size_t i = 0; i < 6; ++i) ASSERT_EQ(both[i], value(static_cast<int>(i / 2), i, round));
    }
  });
}

// More of one kind in flight than there are plans; ranks wait in different orders, and one asks
// with Test.
TEST(MlslDistribution, RequestsMayBeCompletedInAnyOrder) {
  for (const char* priority : {"0", "1"})
    run(3, {{"MLSL_MSG_PRIORITY", priority}}, [](Environment& environment, int rank) {
      Distribution& all = environment.create_distribution(3, 1);
      for (const size_t count :
           {size_t{3},
            size_t{700'000}}) {  // the larger has two plans, and is cut into chunks under priority
        const int many = count > 1000 ? 5 : 40;
        std::vector<Floats> buffers;
        std::vector<api::CommReq*> requests;
        for (int k = 0; k < many; ++k) buffers.emplace_back(count, static_cast<float>(rank + k));
        for (int k = 0; k < many; ++k) {
          float* const buffer = buffers[static_cast<size_t>(k)].data();
          requests.push_back(
              all.start({.kind = Collective::allreduce, .count = count}, buffer, buffer));
        }
        if (rank == 0) std::ranges::reverse(requests);
        for (api::CommReq* request : requests) {
          if (rank == 2)
            while (!environment.requests().test(request)) continue;
          else
            environment.requests().wait(request);
        }
        for (int k = 0; k < many; ++k)
          for (const float got : buffers[static_cast<size_t>(k)])
            ASSERT_EQ(got, static_cast<float>(3 + 3 * k));
        EXPECT_THROW(environment.requests().wait(requests[0]), ConfigError);
      }
    });
}

// Ranks that wait in one group move what is in flight in another: else these would wait for each
// other in a circle, because an allreduce of this size has two rounds, and nobody starts while
// another is between its two starts.
TEST(MlslDistribution, WaitsInOneGroupMoveTheOthers) {
  run(4, {}, [](Environment& environment, int rank) {
    Distribution& grid = environment.create_distribution(2, 2);
    EXPECT_EQ(grid.process_index(api::GT_DATA), static_cast<size_t>(rank / 2));
    EXPECT_EQ(grid.process_index(api::GT_MODEL), static_cast<size_t>(rank % 2));
    constexpr size_t kCount = 100'000;
    for (int round = 0; round < 20; ++round) {
      Floats along(kCount, static_cast<float>(rank)), across(kCount, static_cast<float>(rank));
      std::this_thread::sleep_for(std::chrono::milliseconds(rank));
      api::CommReq* const first =
          grid.start({.kind = Collective::allreduce, .count = kCount, .group = api::GT_DATA},
                     along.data(), along.data());
      api::CommReq* const second =
          grid.start({.kind = Collective::allreduce, .count = kCount, .group = api::GT_MODEL},
                     across.data(), across.data());
      const bool swap = rank == 1 || rank == 2;
      environment.requests().wait(swap ? second : first);
      environment.requests().wait(swap ? first : second);
      ASSERT_EQ(along[kCount - 1], static_cast<float>(rank % 2 * 2 + 2));
      ASSERT_EQ(across[kCount - 1], static_cast<float>(rank / 2 * 4 + 1));
    }
  });
}

TEST(MlslDistribution, ColoursMakeGroups) {
  run(4, {}, [](Environment& environment, int rank) {
    Distribution& odd =
        environment.create_distribution(layout::Colours{.data = rank == 3 ? 1 : 0, .model = 5});
    EXPECT_EQ(odd.process_count(api::GT_DATA), rank == 3 ? 1u : 3u);
    EXPECT_EQ(odd.process_count(api::GT_MODEL), 4u);
    float sum = 1;
    environment.requests().wait(
        odd.start({.kind = Collective::allreduce, .count = 1, .group = api::GT_DATA}, &sum, &sum));
    EXPECT_EQ(sum, rank == 3 ? 1 : 3);
    environment.remove_distribution(&odd);
    EXPECT_THROW(environment.remove_distribution(&odd), ConfigError);
  });
}

TEST(MlslEnvironment, ColourSplitsTheWorld) {
  comm::run_ranks(4, [](comm::Communicator& communicator) {
    Environment environment(given({{"MLSL_HEAP_SIZE_GB", "0"}}));
    EXPECT_THROW(environment.configure("colour=1"), ConfigError);
    EXPECT_THROW(environment.configure("color=1x"), ConfigError);
    environment.configure(communicator.rank() < 3 ? "color=7" : "color=0");
    environment.init(communicator);
    EXPECT_EQ(environment.process_count(), communicator.rank() < 3 ? 3u : 1u);
    EXPECT_EQ(environment.process_index(),
              communicator.rank() < 3 ? static_cast<size_t>(communicator.rank()) : 0u);
    EXPECT_THROW(environment.configure("color=1"), ConfigError);
    EXPECT_THROW(environment.init(communicator), ConfigError);
    environment.finalize();
    EXPECT_FALSE(environment.initialized());
    EXPECT_THROW(environment.create_distribution(1, 1), ConfigError);
    environment.init(
        communicator);  // who communicates outside MPI may start anew: without the colour
    EXPECT_EQ(environment.process_count(), 4u);
    environment.finalize();
  });
}

TEST(MlslEnvironment, MistakesAreNamed) {
  run(2, {}, [](Environment& environment, int) {
    EXPECT_THROW(environment.create_distribution(3, 1), ConfigError);
    EXPECT_THROW(environment.create_distribution(0, 2), ConfigError);
    Distribution& all = environment.create_distribution(2, 1);
    float x = 0;
    EXPECT_THROW(all.broadcast(&x, 1, api::DT_FLOAT, 2, api::GT_DATA), ConfigError);
    EXPECT_THROW(
        all.start({.kind = Collective::allreduce, .count = 4, .data = api::DT_BYTE}, &x, &x),
        CommError);
    api::QuantParams params{};
    EXPECT_THROW(environment.set_quantization(&params), ConfigError);
    char missing[] = "/nowhere/libquant.so", name[] = "f";
    params = {missing, name, name, name, 268, 256};
    EXPECT_THROW(environment.set_quantization(&params), ConfigError);
    EXPECT_EQ(environment.quantization(), nullptr);
  });
}

}  // namespace
}  // namespace tutti::mlsl
