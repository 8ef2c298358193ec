#include "tutti/cli/job/rank_table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tutti/base/refused_calls.h"

namespace tutti::cli {
namespace {

// Runs in a process of its own, because a process has one row for its life.
int in_child(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(RankTable, NeedsNoMemfd) {
  EXPECT_EQ(with_refused({SYS_memfd_create}, EPERM,
                         [] {
                           const RankTable table(2);
                           return in_child([&] {
                                    return own_row::join(table.value(), {1, 2}) ? 0 : 1;
                                  }) == 0 &&
                                  table.row(1).state == RankState::starting;
                         }),
            0);
}

TEST(RankTable, ARankReportsToTheProcessThatMadeIt) {
  const RankTable table(3);
  EXPECT_EQ(table.row(1).state, RankState::absent);
  EXPECT_EQ(in_child([&] {
              if (!own_row::join(table.value(), {1, 3})) return 1;
              if (table.row(1).state != RankState::starting) return 2;
              own_row::set_state(RankState::stoppable);
              if (!own_row::end(3, "the reason")) return 3;
              return own_row::end(1, "a second word") ? 0 : 4;
            }),
            0);
  EXPECT_GT(table.row(1).process, 0);
  EXPECT_EQ(table.row(1).state, RankState::ended);
  EXPECT_EQ(table.row(1).code, 3);
  EXPECT_EQ(table.row(1).order, 1);
  EXPECT_STREQ(table.row(1).message.data(), "the reason");
  EXPECT_EQ(table.row(0).state, RankState::absent);
  EXPECT_EQ(in_child([&] {
              return own_row::join(table.value(), {1, 3}) ? 1 : 0;
            }),
            0);  // taken
                 // already
}

// The main thread, a time-out's thread and a handler may all end the process at the same moment.
TEST(RankTable, OneEndOfManyAtATimeIsLeftWhole) {
  for (int trial = 0; trial < 100; ++trial) {
    const RankTable table(1);
    const int wrong = in_child([&] {
      own_row::join(table.value(), {0, 1});
      constexpr int kThreads = 4;
      std::atomic<int> ready{0}, early{0};
      std::vector<std::thread> threads;
      for (int code = 1; code <= kThreads; ++code)
        threads.emplace_back([&, code] {
          const std::string message(4000, static_cast<char>('0' + code));
          ++ready;
          while (ready < kThreads) {}
          own_row::end(code, message);
          if (table.row(0).state != RankState::ended) ++early;
        });
      for (std::thread& thread : threads) thread.join();
      return early.load();
    });
    EXPECT_EQ(wrong, 0);
    const RankRow& row = table.row(0);
    ASSERT_EQ(row.order, 1);
    ASSERT_EQ(row.message.data(), std::string(4000, static_cast<char>('0' + row.code)));
  }
}

TEST(RankTable, ALongMessageIsCut) {
  const RankTable table(1);
  in_child([&] {
    own_row::join(table.value(), {0, 1});
    return own_row::end(1, std::string(100000, 'x')) ? 0 : 1;
  });
  EXPECT_EQ(std::string(table.row(0).message.data()).size(), table.row(0).message.size() - 1);
}

TEST(RankTable, WithoutOneEveryProcessSpeaksForItself) {
  const RankTable table(3);
  EXPECT_FALSE(own_row::join("", {0, 3}));
  EXPECT_FALSE(own_row::join("1:no:table", {0, 3}));
  EXPECT_FALSE(own_row::join(fmt::format("{}:1000000:0", getpid()), {0, 3}));
  EXPECT_FALSE(own_row::join(table.value(), {0, 2}));
  EXPECT_FALSE(own_row::joined());
  EXPECT_FALSE(own_row::end(1, "text"));
}

// On another host a process and a file of the same numbers may be anything, even the table of
// another job of this size.
TEST(RankTable, AnotherJobsTableIsNotJoined) {
  const RankTable table(2), other(2);
  const std::string value = table.value(), theirs = other.value();
  const std::string mixed = theirs.substr(0, theirs.rfind(':')) + value.substr(value.rfind(':'));
  EXPECT_NE(value, theirs);
  EXPECT_EQ(in_child([&] { return own_row::join(mixed, {0, 2}) ? 1 : 0; }), 0);
  EXPECT_EQ(other.row(0).process, 0);
  EXPECT_EQ(in_child([&] { return own_row::join(value, {0, 2}) ? 0 : 1; }), 0);
}

TEST(RankTable, RanksSayHowManyAreOnThisHost) {
  const RankTable table(4);
  EXPECT_EQ(table.ranks_here(), 4);
  in_child([&] { return own_row::join(table.value(), {2, 4}) ? 0 : 1; });
  EXPECT_EQ(table.ranks_here(), 4);  // the launcher did not tell
  in_child([&] { return own_row::join(table.value(), {3, 4, 2}) ? 0 : 1; });
  EXPECT_EQ(table.ranks_here(), 2);
  in_child([&] { return own_row::join(table.value(), {0, 4, 2}) ? 0 : 1; });
  EXPECT_EQ(table.ranks_here(), 3);
}

TEST(RankTable, ARankThatJoinsLateFindsTheJobCalledOff) {
  const RankTable table(2);
  const auto called_off = [&](int rank) {
    return in_child([&] {
      own_row::join(table.value(), {rank, 2});
      return own_row::called_off() ? 1 : 0;
    });
  };
  EXPECT_EQ(called_off(0), 0);
  table.call_off();
  EXPECT_EQ(called_off(1), 1);
}

}  // namespace
}  // namespace tutti::cli
