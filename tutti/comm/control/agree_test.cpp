#include "tutti/comm/control/agree.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cfenv>
#include <stdexcept>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/patience.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"
#include "tutti/device/cpu/topology.h"

namespace tutti::comm {
namespace {

TEST(Decide, EveryRankGetsRankZerosBytes) {
  run_ranks(3, [](Communicator& c) {
    for (const std::string& text : {std::string("7"), std::string("a\0b\n", 4), std::string()})
      EXPECT_EQ(decide(c, "choosing", [&] { return c.rank() == 0 ? text : "not mine"; }), text);
  });
  const auto single = make_single_communicator();
  EXPECT_EQ(decide(*single, "choosing", [] { return "alone"; }), "alone");
}

TEST(Decide, WorkThatTakesLongerThanTheTimeoutIsWaitedFor) {
  run_ranks(3, [](Communicator& c) {
    c.set_timeout(patience(3));
    EXPECT_EQ(decide(c, "sleeping",
                     [] {
                       sleep_patiently(5);
                       return "awake";
                     }),
              "awake");
  });
}

TEST(Decide, AWaitThatFailsSaysWhatRankZeroWasDoing) {
  EXPECT_TRUE(throws<CommError>({" is measuring kernels: nothing was heard of it yet"}, [] {
    run_ranks(2, [](Communicator& c) {
      c.set_timeout(patience(1));
      if (c.rank() == 0)
        sleep_patiently(4);  // it does not come, and gives no sign
      else
        decide(c, "measuring kernels", [] { return ""; });
    });
  }));
}

TEST(Decide, TheWorkHasTheCallersAffinityAndFloatingPointModes) {
  run_ranks(2, [](Communicator& c) {
    const std::string mine = device::affinity_list();
    std::fesetround(FE_TOWARDZERO);
    const std::string works = decide(c, "looking", [] {
      return device::affinity_list() +
             (std::fegetround() == FE_TOWARDZERO ? " to zero" : " elsewhere");
    });
    EXPECT_EQ(works, mine + " to zero");
  });
}

// The text on this rank of an error of `rank`: others add its name, except to a ConfigError.
std::string as_reported(const Communicator& c, int rank, ExitCode code, const std::string& text) {
  if (c.rank() == rank || code == ExitCode::usage) return text;
  return fmt::format("rank {}/{} on {}: {}", rank, c.size(), c.host(rank), text);
}

template <class Type>
void expect_error_everywhere(const Type& thrown, ExitCode code) {
  run_ranks(3, [&](Communicator& c) {
    try {
      decide(c, "failing", [&]() -> std::string { throw thrown; });
      ADD_FAILURE() << "no error on rank " << c.rank();
    } catch (const Type& error) {
      EXPECT_EQ(error.what(), as_reported(c, 0, code, thrown.what()));
      EXPECT_EQ(error.exit_code(), code);
    }
    EXPECT_EQ(decide(c, "going on", [] { return "as before"; }), "as before");
  });
}

TEST(Decide, AnErrorHasItsTypeAndTextOnEveryRank) {
  expect_error_everywhere(ConfigError("no such key"), ExitCode::usage);
  expect_error_everywhere(IoError("disk full"), ExitCode::failure);
  expect_error_everywhere(DeviceError("no kernel"), ExitCode::failure);
  expect_error_everywhere(CommError("a rank"), ExitCode::failure);
  expect_error_everywhere(NumericError("no number"), ExitCode::failure);
  expect_error_everywhere(InternalError("a bug"), ExitCode::failure);
}

TEST(Decide, AnErrorOfAnotherTypeKeepsItsText) {
  run_ranks(2, [](Communicator& c) {
    EXPECT_EQ(message_of<std::exception>([&] {
                decide(c, "failing",
                       []() -> std::string { throw std::invalid_argument("from a library"); });
              }),
              as_reported(c, 0, ExitCode::failure, "from a library"));
  });
}

TEST(OnEach, EveryRankWorksAndAllWaitForTheLast) {
  std::atomic<int> done{0};
  run_ranks(5, [&](Communicator& c) {
    c.set_timeout(patience(1));
    on_each(c, "writing", [&] {
      if (c.rank() == 2) sleep_patiently(2.5);  // longer than the time-out
      ++done;
    });
    EXPECT_EQ(done.load(), 5);
  });
}

TEST(OnEach, WhatFailsOnOneRankFailsOnAll) {
  run_ranks(4, [](Communicator& c) {
    for (const bool several : {false, true}) {
      const std::string message = message_of<IoError>([&] {
        on_each(c, "writing", [&] {
          if (c.rank() == 2) throw IoError("the disk of rank 2 is full");
          if (c.rank() == 3 && several) throw ConfigError("rank 3 is wrong");
        });
      });
      EXPECT_EQ(message, as_reported(c, 2, ExitCode::failure, "the disk of rank 2 is full"));
      on_each(c, "going on", [] {});
    }
  });
}

// The message of agree() on every one of these ranks.
std::vector<std::string> disagreements(const std::vector<std::string>& texts) {
  std::vector<std::string> messages(texts.size());
  run_ranks(static_cast<int>(texts.size()), [&](Communicator& c) {
    const auto rank = static_cast<size_t>(c.rank());
    messages[rank] =
        message_of<ConfigError>("", [&] { agree(c, "the configuration", texts[rank]); });
  });
  return messages;
}

TEST(Agree, SaysNothingWhereAllTextsAreEqual) {
  EXPECT_EQ(disagreements({"a = 1\nb = 2", "a = 1\nb = 2"}), (std::vector<std::string>{"", ""}));
}

TEST(Agree, NamesKeyValuesAndRank) {
  const auto messages =
      disagreements({"a = 1\nlr = 0.1\nz = 3", "a = 1\nlr = 0.1\nz = 3", "a = 1\nlr = 0.2\nz = 4"});
  EXPECT_TRUE(
      messages[0].starts_with("the configuration: the ranks were given different ones: lr "
                              "is '0.1' for rank 0 on "))
      << messages[0];
  EXPECT_TRUE(has_text(messages[0], " and '0.2' for rank 2 on "));
  EXPECT_EQ(messages[1], messages[0]);
  EXPECT_EQ(messages[2], messages[0]);
}

TEST(Agree, NamesAKeyThatOneRankLacksAndAllRanksThatDiffer) {
  const auto lacks = disagreements({"a = 1\nb = ", "a = 1", "a = 2"});
  EXPECT_TRUE(has_text(lacks[0], ": b is '' for rank 0 on "));
  EXPECT_TRUE(has_text(lacks[0], " and not given for rank 1 on "));
  EXPECT_TRUE(has_text(lacks[0], "(ranks 1-2 differ from rank 0)"));
  const auto adds = disagreements({"a = 1", "a = 1\nb = x = y"});
  EXPECT_TRUE(has_text(adds[1], ": b is not given for rank 0 on "));
  EXPECT_TRUE(has_text(adds[1], " and 'x = y' for rank 1 on "));
}

}  // namespace
}  // namespace tutti::comm
