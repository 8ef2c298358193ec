// Tests the collectives of a distribution.
#include "tutti/mlsl/distribution.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tutti/mlsl/thread_environments.h"

namespace tutti::mlsl {
namespace {

using comm::Collective;

// Makes every call with buffers at new addresses, on some ranks only, and often enough to reuse
// every plan.
void call_every_collective(const Variables& variables) {
  run_environments(3, variables, [](Environment& environment, int rank) {
    Distribution& all = environment.create_distribution(3, 1);
    RequestTable& requests = environment.requests();
    const auto global = api::GT_GLOBAL;
    constexpr size_t kCount = 5;
    std::vector<Floats> kept(40);  // memory that is not freed, so that addresses differ
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

      // Rank r contributes r + 1 elements.
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

// The counts are unknown to other ranks; planned collectives run in between.
TEST(MlslDistribution, AlltoAllvKeepsNothing) {
  run_environments(3, {}, [](Environment& environment, int rank) {
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
      if (round == 20) channels = taken;  // the allreduce now has all its plans
      ASSERT_EQ(taken, round > 20 ? channels : taken);
    }
  });
}

// The input lies in the output, or the output in the input.
TEST(MlslDistribution, BuffersMayOverlap) {
  run_environments(3, {}, [](Environment& environment, int rank) {
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

// More requests of one kind are in flight than there are plans; ranks wait in different orders, and
// one polls with Test.
TEST(MlslDistribution, RequestsMayBeCompletedInAnyOrder) {
  for (const char* priority : {"0", "1"})
    run_environments(3, {{"MLSL_MSG_PRIORITY", priority}}, [](Environment& environment, int rank) {
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

}  // namespace
}  // namespace tutti::mlsl
