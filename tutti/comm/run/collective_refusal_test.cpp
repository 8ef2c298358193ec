// Requests that a collective refuses, and its reports of ranks that do not come.

#include <gtest/gtest.h>

#include "tutti/base/error.h"
#include "tutti/base/patience.h"
#include "tutti/comm/run/collective_cases.h"

namespace tutti::comm {
namespace {

// A rank that has no memory for its part is an error on all of them, not a time-out of the others.
// The leaves of a binomial tree need no memory for a reduction.
TEST(Collective, ARankWithoutMemoryIsAnErrorOnAllRanks) {
  run_ranks(2, [](Communicator& c) {
    float nothing = 0;
    std::string message = "no error";
    try {
      c.plan({.kind = Collective::reduce,
              .count = size_t{1} << 50,
              .input = &nothing,
              .output = &nothing,
              .algorithm = "binomial"});
    } catch (const PlanError& error) {
      message = error.what();
    }
    EXPECT_NE(message.find(c.rank() == 0 ? "no memory for" : "rank 0 on " + c.host()),
              std::string::npos)
        << message;
    c.barrier();
  });
}

// Whether sums are ordered decides which messages travel, also where the algorithm is the same.
TEST(Collective, ReproducibleOnOneRankAloneIsRefused) {
  run_ranks(6,
            [](Communicator& c) {
              std::vector<float> x(1000);
              try {
                c.plan({.kind = Collective::allreduce,
                        .count = x.size(),
                        .output = x.data(),
                        .algorithm = "two_level",
                        .reproducible = c.rank() == 0});
                ADD_FAILURE() << "rank " << c.rank();
              } catch (const PlanError& error) {
                EXPECT_NE(std::string(error.what()).find("reproducible"), std::string::npos)
                    << error.what();
              }
            },
            {0, 0, 0, 1, 1, 1});
}

TEST(Collective, WhatIsWrongIsSaidAtPlanTime) {
  run_ranks(2, [](Communicator& c) {
    float x[4] = {};
    const auto planned = [&](const CollectiveSpec& spec) {
      return message_of_comm_error([&] { c.plan(spec); });
    };
    EXPECT_NE(
        planned({.kind = Collective::allreduce, .element = Element::byte, .count = 4, .output = x})
            .find("bytes can be moved"),
        std::string::npos);
    EXPECT_NE(planned({.kind = Collective::allreduce, .count = 4}).find("no output"),
              std::string::npos);
    EXPECT_NE(planned({.kind = Collective::allgather, .count = 4, .output = x}).find("no input"),
              std::string::npos);
    EXPECT_NE(planned({.kind = Collective::allgather, .count = 3, .input = x, .output = x})
                  .find("dealt out equally"),
              std::string::npos);
    EXPECT_NE(planned({.kind = Collective::broadcast, .count = 4, .root = 2, .output = x})
                  .find("root 2 of 2"),
              std::string::npos);
    EXPECT_NE(planned({.kind = Collective::broadcast, .count = 4, .output = x, .algorithm = "ring"})
                  .find("ring does not do broadcast"),
              std::string::npos);
    const std::string other =
        planned({.kind = Collective::allreduce, .count = c.rank() == 0 ? 4u : 3u, .output = x});
    EXPECT_NE(other.find("rank 1"), std::string::npos) << other;
  });
  run_ranks(3, [](Communicator& c) {
    float x[4] = {};
    EXPECT_NE(message_of_comm_error([&] {
                c.plan({.kind = Collective::allreduce,
                        .count = 4,
                        .output = x,
                        .algorithm = "ring",
                        .reproducible = true});
              }).find("order of the tree"),
              std::string::npos);
  });
}

// Two plans whose descriptions differ only in the parts.
TEST(Collective, PartsThatDifferAreNamed) {
  run_ranks(3, [](Communicator& c) {
    float x[8] = {}, y[8] = {};
    const size_t mine = c.rank() == 2 ? 3 : 2;
    const std::vector<Slice> parts{{0, 1}, {1, mine}, {1 + mine, 4 - mine}};
    for (const Collective kind : {Collective::reduce_scatter, Collective::allgather}) {
      const std::string why = message_of_comm_error(
          [&] { c.plan({.kind = kind, .count = 5, .parts = parts, .input = x, .output = y}); });
      EXPECT_NE(why.find("gives rank 1 of it 3 elements (counts[1]), rank 0 on "),
                std::string::npos)
          << why;
      EXPECT_NE(why.find("gives it 2;"), std::string::npos) << why;
    }
    const std::string count = message_of_comm_error(
        [&] { c.plan({.kind = Collective::allreduce, .count = 3 + mine, .output = x}); });
    EXPECT_EQ(count.find("my part"), std::string::npos) << count;
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
    const std::string why = message_of_comm_error([&] { c.plan(spec); });
    EXPECT_NE(why.find(c.rank() == 1 ? "on rank 1 the blocks from ranks 0 and 1 overlap"
                                     : "cannot do what it was asked for"),
              std::string::npos)
        << why;
  });
}

TEST(Collective, WhatOneRankRefusesAllRefuseAndThenGoOn) {
  run_ranks(3, [](Communicator& c) {
    c.set_timeout(kHangSeconds);
    float x[4] = {1, 2, 3, 4};
    const auto planned = [&](const CollectiveSpec& spec) {
      return message_of_comm_error([&] { c.plan(spec); });
    };
    const std::string why =
        planned({.kind = Collective::allreduce, .count = 4, .output = c.rank() == 1 ? nullptr : x});
    EXPECT_NE(why.find(c.rank() == 1 ? "no output on rank 1" : "rank 1 on"), std::string::npos)
        << why;
    EXPECT_THROW(
        c.plan({.kind = Collective::allreduce, .count = c.rank() == 0 ? 4u : 3u, .output = x}),
        PlanError);
    EXPECT_THROW(
        c.plan({.kind = Collective::allreduce, .count = 4, .output = x, .algorithm = "star"}),
        ConfigError);
    const auto sum = c.plan({.kind = Collective::allreduce, .count = 4, .output = x});
    sum->start();
    sum->wait();
    EXPECT_EQ(x[3], 12);
  });
}

TEST(Collective, ALateRankIsNamed) {
  for (const int threads : {0, 1, 2})
    run_ranks_with(threads, 3, [](Communicator& c) {
      c.set_timeout(patience(0.3));
      float x = 0;
      const auto operation = c.plan({.name = "gradient",
                                     .kind = Collective::allreduce,
                                     .count = 1,
                                     .output = &x,
                                     .algorithm = "pairwise"});
      if (c.rank() == 2) return;
      operation->start();
      const std::string message = message_of_comm_error([&] { operation->wait(); });
      EXPECT_NE(message.find("'gradient' by pairwise number 1"), std::string::npos) << message;
      EXPECT_NE(message.find("not arrived: rank 2 on"), std::string::npos) << message;
    });
}

TEST(Collective, OverlapsThatAreNoneOfTheContractAreRefused) {
  run_ranks(2, [](Communicator& c) {
    std::vector<float> data(20);
    const auto refusal = [&](Collective kind, size_t output) -> std::string {
      try {
        c.plan({.kind = kind, .count = 8, .input = data.data(), .output = data.data() + output});
      } catch (const PlanError& error) {
        return error.what();
      }
      return "";
    };
    using enum Collective;
    const size_t own = c.rank() == 0 ? 0 : 4;
    for (const Collective kind : {allreduce, reduce, broadcast, reduce_scatter})
      EXPECT_EQ(refusal(kind, 0), "") << name_of(kind);
    EXPECT_EQ(refusal(reduce_scatter, own), "");
    for (const Collective kind : {allreduce, reduce_scatter, all_to_all})
      EXPECT_NE(refusal(kind, 3).find("overlap"), std::string::npos) << name_of(kind);
    EXPECT_NE(refusal(all_to_all, 0).find("they lie apart"), std::string::npos);
    EXPECT_EQ(refusal(all_to_all, 8), "");
    // Rank 1's part is not at the beginning of the long vector: rank 1 gets this error, and rank 0
    // the report that rank 1 refused.
    EXPECT_NE(refusal(allgather, 0), "");
    c.plan({.kind = allgather, .count = 8, .input = data.data() + own, .output = data.data()});
  });
}

}  // namespace
}  // namespace tutti::comm
