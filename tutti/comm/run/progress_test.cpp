#include "tutti/comm/run/progress.h"

#include <gtest/gtest.h>

#include <functional>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/patience.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"

namespace tutti::comm {
namespace {

std::unique_ptr<Communicator> single_with(int threads) {
  auto c = make_single_communicator();
  c->set_progress(std::make_shared<Progress>(threads));
  return c;
}

// An operation of one rank that is complete when `body` returns true.
class Scripted final : public Operation {
 public:
  Scripted(Communicator& communicator, std::function<bool()> body)
      : Operation(communicator, "scripted"), body_(std::move(body)) {}
  ~Scripted() override { withdraw(); }
  int advances() const { return advances_; }

 protected:
  void begin() override { advances_ = 0; }
  bool advance() override {
    EXPECT_FALSE(inside_.exchange(true)) << "two threads inside advance()";
    ++advances_;
    const struct Leave {
      std::atomic<bool>& inside;
      ~Leave() { inside = false; }  // also with an exception, whose message calls describe()
    } leave{inside_};
    return body_();
  }
  Pending describe() const override {
    EXPECT_FALSE(inside_);
    return {.operation = "scripted",
            .sequence = sequence(),
            .arrived = std::vector<int>(advances_ > 0 ? 1 : 0),
            .missing = {}};
  }

 private:
  std::function<bool()> body_;
  std::atomic<bool> inside_{false};
  int advances_ = 0;  // not atomic: the thread sanitizer reports it if advance() is not ordered
};

TEST(Progress, WithoutThreadsPollingMovesTheMostUrgentFirst) {
  const auto c = make_single_communicator();
  std::vector<int> order;
  Scripted low(*c, [&] { return order.push_back(0), true; });
  Scripted high(*c, [&] { return order.push_back(2), true; });
  Scripted middle(*c, [&] { return order.push_back(1), order.size() > 3; });
  high.set_priority(2);
  middle.set_priority(1);
  low.start(), middle.start(), high.start();
  c->progress();
  EXPECT_EQ(order, (std::vector<int>{2, 1, 0}));
  EXPECT_TRUE(high.test());
  EXPECT_TRUE(middle.test());
  EXPECT_EQ(order, (std::vector<int>{2, 1, 0, 1}));
}

// test() is a load then: completion shows that a thread was at work.
TEST(Progress, AThreadFinishesWhatNobodyPolls) {
  for (const int threads : {1, 2}) {
    const auto c = single_with(threads);
    int left = 0;
    Scripted operation(*c, [&] { return --left == 0; });
    for (int run = 0; run < 5; ++run) {
      left = 20;
      operation.start();
      c->progress();  // leaves the operation to the threads
      while (!operation.test()) std::this_thread::yield();
      EXPECT_EQ(operation.advances(), 20);
      std::this_thread::sleep_for(
          std::chrono::milliseconds(1));  // long enough that the threads go to sleep
    }
  }
}

TEST(Progress, OneThreadAtATimeIsInsideAnOperation) {
  const auto c = single_with(3);
  std::vector<std::unique_ptr<Scripted>> operations;
  std::vector<int> left(8, 0);
  for (int& n : left)
    operations.push_back(std::make_unique<Scripted>(*c, [&n] { return --n == 0; }));
  for (int run = 0; run < 50; ++run) {
    for (size_t k = 0; k < operations.size(); ++k) {
      left[k] = 1 + static_cast<int>(k) * 3;
      operations[k]->set_priority(static_cast<int>(k * 5 % 8));
      operations[k]->start();
    }
    EXPECT_LE(operations[7]->pending().arrived.size(), 1u);
    for (const auto& operation : operations) operation->wait();
    for (size_t k = 0; k < operations.size(); ++k)
      EXPECT_EQ(operations[k]->advances(), 1 + static_cast<int>(k) * 3);
  }
}

TEST(Progress, WhatGoesWrongIsSaidByTheOperationItself) {
  for (const int threads : {0, 1, 2}) {
    const auto c = single_with(threads);
    Scripted broken(*c, []() -> bool { throw CommError("no route"); });
    Scripted sound(*c, [] { return true; });
    broken.start();
    sound.run();
    for (int again = 0; again < 2; ++again) {
      const std::string message = message_of<CommError>([&] { broken.wait(); });
      EXPECT_TRUE(message.ends_with("scripted number 1: no route")) << message;
    }
    EXPECT_TRUE(broken.in_flight());
  }
}

// Nothing moves it forward then, so no thread but this one can report the error.
TEST(Progress, WhatCannotBeginIsNotWaitedFor) {
  class Unable final : public Operation {
   public:
    explicit Unable(Communicator& c) : Operation(c, "unable") { set_patient(true); }
    ~Unable() override { withdraw(); }

   private:
    void begin() override { throw CommError("no road"); }
    bool advance() override { return false; }
    Pending describe() const override {
      return {.operation = "unable", .arrived = {}, .missing = {}};
    }
  };
  for (const int threads : {0, 1}) {
    const auto c = single_with(threads);
    Unable operation(*c);
    EXPECT_THROW(operation.start(), CommError);
    EXPECT_THROW(operation.wait_for(0.5), CommError);
  }
}

TEST(Progress, AWaitOnAThreadTimesOut) {
  for (const int threads : {0, 1}) {
    const auto c = single_with(threads);
    c->set_timeout(patience(0.1));
    Scripted never(*c, [] { return false; });
    never.start();
    EXPECT_THROW(never.wait(), CommError);
    EXPECT_EQ(never.pending().arrived.size(), 1u);
  }
}

TEST(Progress, OperationsMayBeDestroyedInFlight) {
  for (const int threads : {0, 1, 2}) {
    const auto c = single_with(threads);
    for (int run = 0; run < 50; ++run) {
      std::atomic<int> looks = 0;  // destroyed after this run
      std::vector<std::unique_ptr<Scripted>> operations;
      for (int k = 0; k < 3; ++k)
        operations.push_back(std::make_unique<Scripted>(*c, [&] { return ++looks, false; }));
      for (const auto& operation : operations) operation->start();
      c->progress();
      while (run % 2 == 0 && looks == 0) std::this_thread::yield();
      operations.erase(operations.begin() + 1);
    }
    Scripted after(*c, [] { return true; });
    after.run();
  }
}

TEST(Progress, ThreadsAreBoundToTheirProcessor) {
  const std::vector<int> here{sched_getcpu()};
  const auto c = make_single_communicator();
  c->set_progress(std::make_shared<Progress>(here));
  int processor = -1;
  Scripted operation(*c, [&] { return processor = sched_getcpu(), true; });
  operation.start();
  while (!operation.test()) std::this_thread::yield();
  EXPECT_EQ(processor, here[0]);
  EXPECT_THROW(Progress(std::vector<int>{1000}), DeviceError);
}

TEST(Progress, NothingMayBeInFlightWhenItChanges) {
  const auto c = make_single_communicator();
  Scripted operation(*c, [] { return false; });
  operation.start();
  EXPECT_THROW(c->set_progress(std::make_shared<Progress>(1)), InternalError);
}

}  // namespace
}  // namespace tutti::comm
