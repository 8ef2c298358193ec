// Requests that a collective refuses, and its reports of ranks that do not come.

#include <gtest/gtest.h>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/patience.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"

namespace tutti::comm {
namespace {

// A rank that has no memory for its part is an error on all of them, not a time-out of the others.
// The leaves of a binomial tree need no memory for a reduction.
TEST(Collective, ARankWithoutMemoryIsAnErrorOnAllRanks) {
  run_ranks(2, [](Communicator& c) {
    float nothing = 0;
    EXPECT_TRUE(throws<PlanError>({c.rank() == 0 ? "no memory for" : "rank 0 on " + c.host()}, [&] {
      c.plan({.kind = Collective::reduce,
              .count = size_t{1} << 50,
              .input = &nothing,
              .output = &nothing,
              .algorithm = "binomial"});
    }));
    c.barrier();
  });
}

// Whether sums are ordered decides which messages travel, also where the algorithm is the same.
TEST(Collective, ReproducibleOnOneRankAloneIsRefused) {
  run_ranks(6,
            [](Communicator& c) {
              std::vector<float> x(1000);
              EXPECT_TRUE(throws<PlanError>({"reproducible"},
                                            [&] {
                                              c.plan({.kind = Collective::allreduce,
                                                      .count = x.size(),
                                                      .output = x.data(),
                                                      .algorithm = "two_level",
                                                      .reproducible = c.rank() == 0});
                                            }))
                  << "rank " << c.rank();
            },
            {0, 0, 0, 1, 1, 1});
}

TEST(Collective, WhatIsWrongIsSaidAtPlanTime) {
  run_ranks(2, [](Communicator& c) {
    float x[4] = {};
    using enum Collective;
    const std::pair<const char*, CollectiveSpec> wrong[] = {
        {"bytes can be moved",
         {.kind = allreduce, .element = Element::byte, .count = 4, .output = x}},
        {"no output", {.kind = allreduce, .count = 4}},
        {"no input", {.kind = allgather, .count = 4, .output = x}},
        {"dealt out equally", {.kind = allgather, .count = 3, .input = x, .output = x}},
        {"root 2 of 2", {.kind = broadcast, .count = 4, .root = 2, .output = x}},
        {"ring does not do broadcast",
         {.kind = broadcast, .count = 4, .output = x, .algorithm = "ring"}},
        {"rank 1", {.kind = allreduce, .count = c.rank() == 0 ? 4u : 3u, .output = x}}};
    for (const auto& [why, spec] : wrong)
      EXPECT_TRUE(throws<CommError>({why}, [&, &given = spec] { c.plan(given); })) << why;
  });
  run_ranks(3, [](Communicator& c) {
    float x[4] = {};
    EXPECT_TRUE(throws<CommError>({"order of the tree"}, [&] {
      c.plan({.kind = Collective::allreduce,
              .count = 4,
              .output = x,
              .algorithm = "ring",
              .reproducible = true});
    }));
  });
}

// Two plans whose descriptions differ only in the parts.
TEST(Collective, PartsThatDifferAreNamed) {
  run_ranks(3, [](Communicator& c) {
    float x[8] = {}, y[8] = {};
    const size_t mine = c.rank() == 2 ? 3 : 2;
    const std::vector<Slice> parts{{0, 1}, {1, mine}, {1 + mine, 4 - mine}};
    for (const Collective kind : {Collective::reduce_scatter, Collective::allgather}) {
      EXPECT_TRUE(throws<CommError>(
          {"gives rank 1 of it 3 elements (counts[1]), rank 0 on ", "gives it 2;"},
          [&] { c.plan({.kind = kind, .count = 5, .parts = parts, .input = x, .output = y}); }));
    }
    const std::string count = message_of<CommError>(
        [&] { c.plan({.kind = Collective::allreduce, .count = 3 + mine, .output = x}); });
    EXPECT_FALSE(has_text(count, "my part"));
  });
}

TEST(Collective, BlocksThatOverlapInTheOutputAreRefusedOnAllRanks) {
  run_ranks(2, [](Communicator& c) {
    float x[4] = {}, y[4] = {};
    CollectiveSpec spec{.kind = Collective::all_to_all, .input = x, .output = y};
    spec.sends = {{0, 2}, {0, 2}};  // these may be the same elements
    spec.receives = {{0, 2}, {2, 2}};
    c.plan(spec);
    if (c.rank() == 1) spec.receives = {{1, 2}, {0, 2}};
    EXPECT_TRUE(throws<CommError>({c.rank() == 1 ? "on rank 1 the blocks from ranks 0 and 1 overlap"
                                                 : "cannot do what it was asked for"},
                                  [&] { c.plan(spec); }));
  });
}

TEST(Collective, WhatOneRankRefusesAllRefuseAndThenGoOn) {
  run_ranks(3, [](Communicator& c) {
    c.set_timeout(kHangSeconds);
    float x[4] = {1, 2, 3, 4};
    EXPECT_TRUE(throws<CommError>({c.rank() == 1 ? "no output on rank 1" : "rank 1 on"}, [&] {
      c.plan({.kind = Collective::allreduce, .count = 4, .output = c.rank() == 1 ? nullptr : x});
    }));
    EXPECT_THROW(
        c.plan({.kind = Collective::allreduce, .count = c.rank() == 0 ? 4u : 3u, .output = x}),
        PlanError);
    EXPECT_THROW(
        c.plan({.kind = Collective::allreduce, .count = 4, .output = x, .algorithm = "star"}),
        ConfigError);
    c.plan({.kind = Collective::allreduce, .count = 4, .output = x})->run();
    EXPECT_EQ(x[3], 12);
  });
}

TEST(Collective, ALateRankIsNamed) {
  for (const int threads : {0, 1, 2})
    run_ranks(3, [threads](Communicator& c) {
      c.set_progress(std::make_shared<Progress>(threads));
      c.set_timeout(patience(0.3));
      float x = 0;
      const auto operation = c.plan({.name = "gradient",
                                     .kind = Collective::allreduce,
                                     .count = 1,
                                     .output = &x,
                                     .algorithm = "pairwise"});
      if (c.rank() == 2) return;
      operation->start();
      EXPECT_TRUE(throws<CommError>({"'gradient' by pairwise number 1", "not arrived: rank 2 on"},
                                    [&] { operation->wait(); }));
    });
}

TEST(Collective, BuffersThatMoveAreGivenBeforeTheFirstStart) {
  run_ranks(2, [](Communicator& c) {
    float x = 1;
    const auto moving = c.plan({.kind = Collective::allreduce, .count = 1, .rebindable = true});
    EXPECT_THROW(moving->rebind(&x, nullptr), CommError);
    const auto fixed = c.plan({.kind = Collective::allreduce, .count = 1, .output = &x});
    EXPECT_THROW(fixed->rebind(nullptr, &x), InternalError);
    EXPECT_THROW(moving->start(), InternalError);
  });
}

TEST(Collective, OverlapsThatAreNoneOfTheContractAreRefused) {
  run_ranks(2, [](Communicator& c) {
    std::vector<float> data(20);
    const auto refusal = [&](Collective kind, size_t output) -> std::string {
      return message_of<PlanError>("", [&] {
        c.plan({.kind = kind, .count = 8, .input = data.data(), .output = data.data() + output});
      });
    };
    using enum Collective;
    const size_t own = c.rank() == 0 ? 0 : 4;
    for (const Collective kind : {allreduce, reduce, broadcast, reduce_scatter})
      EXPECT_EQ(refusal(kind, 0), "") << name_of(kind);
    EXPECT_EQ(refusal(reduce_scatter, own), "");
    for (const Collective kind : {allreduce, reduce_scatter, all_to_all})
      EXPECT_TRUE(has_text(refusal(kind, 3), "overlap")) << name_of(kind);
    EXPECT_TRUE(has_text(refusal(all_to_all, 0), "they lie apart"));
    EXPECT_EQ(refusal(all_to_all, 8), "");
    // Rank 1's part is not at the beginning of the long vector: rank 1 gets this error, and rank 0
    // the report that rank 1 refused.
    EXPECT_NE(refusal(allgather, 0), "");
    c.plan({.kind = allgather, .count = 8, .input = data.data() + own, .output = data.data()});
  });
}

}  // namespace
}  // namespace tutti::comm
