#include "tutti/comm/transport/inproc/thread_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <latch>
#include <thread>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/base/numeric/tree_sum.h"
#include "tutti/base/patience.h"
#include "tutti/comm/schedule/tree.h"

namespace tutti::comm {
namespace {

// A rank's gradients and their reduction. Values depend on (step, replica, index) alone.
struct SumJob {
  SumJob(Communicator& communicator, int replicas, size_t count, std::string name = "bucket 0")
      : first(first_replicas(replicas, communicator.size())),
        plan(plan_slots(replicas, {first[size_t(communicator.rank())],
                                   first[size_t(communicator.rank()) + 1]})),
        count(count), lo(first[size_t(communicator.rank())]),
        window(communicator.allocate(static_cast<size_t>(plan.slots) * stride() * sizeof(float))) {
    // A sum that all ranks share, unless a test asks for it at a place of its own.
    node = communicator.allocate(communicator.rank() == 0 ? count * sizeof(float) : 0);
    reduction =
        sum_into(communicator, std::move(name), reinterpret_cast<float*>(node->peer(0)), true);
  }
  std::unique_ptr<CollectiveOperation> sum_into(Communicator& communicator, std::string name,
                                                float* output, bool shared) {
    return communicator.plan(
        {.name = std::move(name),
         .kind = Collective::allreduce,
         .count = count,
         .input = slot(0),
         .output = output,
         .reproducible = true,
         .leaves = {.replicas = first.back(), .first = first, .stride = stride()},
         .shared_output = shared});
  }
  const float* result() const { return reinterpret_cast<const float*>(node->peer(0)); }
  size_t stride() const { return (count + 15) / 16 * 16 + 16; }
  float* slot(int i) const {
    return reinterpret_cast<float*>(window->data()) + static_cast<size_t>(i) * stride();
  }
  static float value(int step, int replica, size_t i) {
    Rng rng(static_cast<uint64_t>(step), Purpose::test, static_cast<uint64_t>(replica) << 32 | i);
    return rng.normal() * std::ldexp(1.0f, static_cast<int>(rng.below(12)));
  }
  void backward(int step) {
    for (size_t r = 0; r < plan.replicas.size(); ++r) {
      for (size_t i = 0; i < count; ++i)
        slot(plan.replicas[r].slot)[i] = value(step, lo + static_cast<int>(r), i);
      for (const auto& add : plan.replicas[r].adds)
        for (size_t i = 0; i < count; ++i) slot(add.into)[i] += slot(add.from)[i];
    }
  }
  static std::vector<float> expected(int step, int replicas, size_t count) {
    std::vector<float> sum(count);
    for (size_t i = 0; i < count; ++i)
      sum[i] =
          tree_sum(0, replicas, [&](int64_t r) { return value(step, static_cast<int>(r), i); });
    return sum;
  }

  std::vector<int> first;
  SlotPlan plan;
  size_t count;
  int lo;
  std::unique_ptr<Window> window, node;
  std::unique_ptr<CollectiveOperation> reduction;
};

TEST(ThreadRanks, CollectivesAndPlaces) {
  run_ranks(3, [](Communicator& c) {
    EXPECT_EQ(c.size(), 3);
    EXPECT_EQ(c.local_rank(), c.rank());
    EXPECT_EQ(c.local_size(), 3);
    EXPECT_TRUE(c.one_node());
    for (int root = 0; root < 3; ++root) {
      int value = c.rank() == root ? 100 + root : -1;
      c.broadcast_value(value, root);
      EXPECT_EQ(value, 100 + root);
    }
    EXPECT_EQ(c.allgather_value(c.rank() * 7), (std::vector<int>{0, 7, 14}));
    std::vector<double> v{1.0 + c.rank(), c.rank() == 0 ? 1e16 : c.rank() == 1 ? 1.0 : -1e16};
    c.sum(v);
    EXPECT_EQ(v[0], 6.0);
    EXPECT_EQ(v[1], (1e16 + 1.0) + -1e16);
    c.barrier();
  });
}

TEST(ThreadRanks, WindowsAreZeroedSharedAndOfAnySize) {
  run_ranks(3, [](Communicator& c) {
    const auto window = c.allocate(static_cast<size_t>(c.rank()) * 100);
    EXPECT_EQ(window->neighbours().size(), c.size());
    EXPECT_EQ(window->bytes(), static_cast<size_t>(c.rank()) * 100);
    for (int p = 0; p < 3; ++p) EXPECT_EQ(window->part(p).size(), static_cast<size_t>(p) * 100);
    for (int p = 1; p < 3; ++p) EXPECT_EQ(window->peer(p)[99], std::byte{0});
    EXPECT_EQ(reinterpret_cast<uintptr_t>(window->data()) % 64, 0u);
    c.barrier();
    if (c.rank() > 0) window->data()[0] = static_cast<std::byte>(c.rank());
    c.barrier();
    EXPECT_EQ(window->peer(2)[0], std::byte{2});
  });
}

TEST(SumOverReplicas, IntoAPlaceOfEachRank) {
  for (const int replicas : {2, 5})
    run_ranks(2, [&](Communicator& c) {
      SumJob job(c, replicas, 100);
      std::vector<float> place(100);
      const auto sum = job.sum_into(c, "own place", place.data(), false);
      job.backward(5);
      sum->run();
      EXPECT_EQ(place, SumJob::expected(5, replicas, 100));
    });
}

TEST(SumOverReplicas, OnlyPairwiseDoesWhatTheExchangeNeeds) {
  run_ranks(3, [](Communicator& c) {
    std::vector<float> in(64), out(16);
    CollectiveSpec spec{.kind = Collective::allreduce,
                        .count = 16,
                        .input = in.data(),
                        .output = out.data(),
                        .algorithm = "ring",
                        .leaves = {.replicas = 5, .first = {0, 2, 4, 5}, .stride = 16}};
    const auto plan = [&] { c.plan(spec); };
    EXPECT_TRUE(throws<CommError>({"ring does not sum several parts of a rank"}, plan));
    spec.leaves.first = {0, 3, 4, 6};
    spec.algorithm = "pairwise";
    EXPECT_TRUE(throws<CommError>({"does not cover 5 replicas"}, plan));
    spec.leaves = {};
    spec.shared_output = true;
    spec.algorithm = "ring";
    EXPECT_TRUE(throws<CommError>({"ring does not write an output that ranks share"}, plan));
  });
}

TEST(SumOverReplicas, EqualSharesOfAPowerOfTwoNeedNoParts) {
  EXPECT_TRUE((Leaves{.replicas = 8, .first = {0, 4, 8}}).one_a_rank());
  EXPECT_TRUE((Leaves{.replicas = 6, .first = {0, 2, 4, 6}}).one_a_rank());
  EXPECT_FALSE((Leaves{.replicas = 6, .first = {0, 3, 6}}).one_a_rank());
  EXPECT_FALSE((Leaves{.replicas = 5, .first = {0, 2, 4, 5}}).one_a_rank());
  EXPECT_EQ((Leaves{.replicas = 6, .first = {0, 3, 6}}).parts_of(1), 2u);
}

// Ranks drift apart at random; memory is rewritten as early as the contract allows. ThreadSanitizer
// watches the reuse, and a stale read would show as wrong bits.
TEST(SumOverReplicas, ManyStepsWithRanksOutOfStep) {
  for (const int threads : {0, 1})
    run_ranks(4, [threads](Communicator& c) {
      c.set_progress(std::make_shared<Progress>(threads));
      constexpr int kReplicas = 5;
      constexpr size_t kCount = 333;
      SumJob a(c, kReplicas, kCount, "a");
      SumJob b(c, kReplicas, 64, "b");
      Rng rng(static_cast<uint64_t>(c.rank()), Purpose::test, 99);
      for (int step = 0; step < 60; ++step) {
        SumJob& one = (step + c.rank()) % 2 == 0 ? a : b;  // each rank starts them in another order
        SumJob& other = &one == &a ? b : a;
        one.backward(step);
        one.reduction->start();
        if (rng.below(4) == 0)
          std::this_thread::sleep_for(std::chrono::microseconds(rng.below(300)));
        other.backward(step);
        other.reduction->start();
        one.reduction->wait();
        other.reduction->wait();
        for (const SumJob* job : {&a, &b})
          EXPECT_EQ(std::memcmp(job->result(), SumJob::expected(step, kReplicas, job->count).data(),
                                job->count * 4),
                    0)
              << "step " << step;
      }
    });
}

TEST(SumOverReplicas, ALateRankIsNamed) {
  std::atomic<bool> reported{false};
  run_ranks(3, [&](Communicator& c) {
    SumJob job(c, 3, 100, "bucket 7");
    job.backward(0);
    if (c.rank() == 1) {
      while (!reported) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return;
    }
    c.set_timeout(patience(0.2));
    job.reduction->start();
    const std::string message = message_of<CommError>([&] { job.reduction->wait(); });
    if (c.rank() == 0) {
      for (const std::string& part :
           {"rank 0/3 on " + c.host(),
            std::string("allreduce 'bucket 7' by pairwise number 1: no answer within "),
            std::string("waiting since "), "not arrived: rank 1 on " + c.host()})
        EXPECT_TRUE(has_text(message, part));
      reported = true;
    }
    while (!reported) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
}

// The time-out is for silence: large messages, or a slow link, may take longer.
TEST(Wait, LastsWhileSomethingComes) {
  const auto one = make_single_communicator();
  one->set_timeout(patience(0.3));
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(patience(1));
  const auto done = [&] { return std::chrono::steady_clock::now() >= end; };
  Pending what{.operation = "broadcast", .arrived = {}, .missing = {}};
  EXPECT_NO_THROW(one->wait_for(done, [&] {
    ++what.passed;
    return what;
  }));
  const auto never = [] { return false; };
  EXPECT_TRUE(throws<CommError>({"no answer within "},
                                [&] { one->wait_for(never, [&] { return what; }); }));
}

// Counts the rounds that a wait sees as progress. The ranks alternate: the rank that is first in
// the second round finds the other in the first. They meet at a latch, since a barrier of the
// communicator would let the collective go on.
TEST(Wait, RoundsOfACollectiveAreCounted) {
  std::latch started(2);
  std::atomic<int> turn{0}, done_ranks{0};
  std::atomic<size_t> most{0};
  run_ranks(2, [&](Communicator& c) {
    std::vector<float> sums(300);
    const auto plan = c.plan({.name = "sums",
                              .kind = Collective::allreduce,
                              .count = sums.size(),
                              .output = sums.data(),
                              .algorithm = "ring"});
    plan->start();
    EXPECT_EQ(plan->pending().passed, 0u);
    started.arrive_and_wait();
    for (bool done = false; !done;) {
      if (done_ranks == 0 && turn % 2 != c.rank()) {
        std::this_thread::yield();
        continue;
      }
      done = plan->test();
      if (!done) most = std::max(most.load(), plan->pending().passed);
      ++turn;
    }
    ++done_ranks;
  });
  EXPECT_EQ(most, 1u);
}

TEST(SumOverReplicas, ARankThatFailsIsNamedByTheOthers) {
  for (const int threads : {0, 1}) {
    std::string seen;
    EXPECT_EQ(message_of<NumericError>([&] {
                run_ranks(2, [&](Communicator& c) {
                  c.set_progress(std::make_shared<Progress>(threads));
                  SumJob job(c, 2, 100);
                  if (c.rank() == 1) throw NumericError("the loss is not a number");
                  job.reduction->start();
                  seen = message_of<CommError>([&] { job.reduction->wait(); });
                });
              }),
              "the loss is not a number");
    EXPECT_TRUE(has_text(seen, "rank 1 failed: the loss is not a number"));
  }
}

TEST(SumOverReplicas, DisagreementIsFoundWhenPlanning) {
  std::atomic<int> found{0};
  EXPECT_THROW(run_ranks(2,
                         [&](Communicator& c) {
                           try {
                             SumJob job(c, 2, c.rank() == 0 ? 100 : 101);
                           } catch (const CommError& error) {
                             EXPECT_TRUE(has_text(error.what(), "rank 1"));
                             ++found;
                             throw;
                           }
                         }),
               CommError);
  EXPECT_EQ(found, 2);
}

TEST(ThreadRanks, DifferentOperationsAreNamed) {
  run_ranks(2, [](Communicator& c) {
    int value = 3;
    EXPECT_TRUE(throws<CommError>({"barrier of 0 bytes", "allgather of 4 bytes"}, [&] {
      if (c.rank() == 0)
        c.barrier();
      else
        c.allgather_value(value);
    }));
  });
}

TEST(ThreadRanks, AbortSaysWhoOnce) {
  const auto c = make_single_communicator();
  const std::string plain = message_of<CommError>([&] { c->abort(3, "no more"); });
  EXPECT_EQ(plain, "rank 0/1 on " + c->host() + ": no more (exit code 3)");
  EXPECT_EQ(message_of<CommError>([&] { c->abort(3, c->who() + ": no more"); }), plain);
}

TEST(ThreadRanks, RankListsAreShort) {
  EXPECT_EQ(rank_list(std::vector<int>{0, 1, 2, 5, 7, 8}), "0-2, 5, 7-8");
  EXPECT_EQ(rank_list(std::vector<int>{}), "");
}

}  // namespace
}  // namespace tutti::comm
