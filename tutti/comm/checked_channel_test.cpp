#include "tutti/comm/checked_channel.h"

#include <gtest/gtest.h>
#include <gmock/gmock.h>

#include <memory>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/comm/algorithm/algorithm.h"
#include "tutti/comm/answer.h"
#include "tutti/comm/inproc/thread_ranks.h"

namespace tutti::comm {
namespace {

using testing::MatchesRegex;

// Flips one bit of the first message that its rank receives in `round`, where the receiver will read it.
class FlippingChannel final : public Channel {
 public:
  FlippingChannel(std::unique_ptr<Channel> inner, std::vector<RoundOfMessages> rounds, size_t round, size_t byte)
      : inner_(std::move(inner)), rounds_(std::move(rounds)), faulty_(round), byte_(byte) {}
  void rebind(std::vector<RoundOfMessages> rounds) override { inner_->rebind(std::move(rounds)); }
  void post(size_t round) override {
    round_ = round;
    inner_->post(round);
  }
  bool received() override {
    if (!inner_->received()) return false;
    if (round_ == faulty_ && !done_) const_cast<std::byte*>(inner_->where(0))[byte_] ^= std::byte{4};
    done_ = done_ || round_ == faulty_;
    return true;
  }
  const std::byte* where(size_t i) const override { return inner_->where(i); }
  void release() override { inner_->release(); }
  bool sent() override { return inner_->sent(); }
  std::vector<int> missing() const override { return inner_->missing(); }

 private:
  std::unique_ptr<Channel> inner_;
  std::vector<RoundOfMessages> rounds_;
  size_t faulty_, byte_, round_ = 0;
  bool done_ = false;
};

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const CommError& error) {
    return error.what();
  }
  return "no CommError";
}

void run(CollectiveOperation& operation) {
  operation.start();
  operation.wait();
}

TEST(CheckedChannel, AgreesWithEveryAlgorithmAndSize) {
  run_ranks(4, [](Communicator& c) {
    c.set_check();
    for (const Algorithm* algorithm : algorithms()) {
      Task task;
      task.kind = Collective::allreduce, task.rank = c.rank(), task.ranks = 4;
      for (const size_t count : {size_t{0}, size_t{1}, size_t{1000}, size_t{70001}}) {
        task.count = count;
        if (!algorithm->refusal(task).empty()) continue;
        std::vector<float> in(count + 1), out(count + 1);
        const auto operation = c.plan({.kind = Collective::allreduce, .count = count, .input = in.data(), .output = out.data(), .algorithm = std::string(algorithm->name)});
        for (uint64_t seed = 0; seed < 3; ++seed) {
          const Answer answer(task, Element::f32, ReduceOp::sum, seed);
          answer.fill(reinterpret_cast<std::byte*>(in.data()));
          run(*operation);
          EXPECT_EQ(answer.count_wrong(reinterpret_cast<const std::byte*>(out.data())), 0u) << algorithm->name << " " << count;
        }
      }
    }
  });
}

// In a lent block (pairwise reads the sender's memory in place) and in a copied one (ring's allgather rounds).
TEST(CheckedChannel, AFlippedBitIsNamedWithOperationRoundRanksAndBytes) {
  struct Case {
    const char* algorithm;
    size_t round, byte;
    const char* message;
  };
  for (const Case& t : {Case{"pairwise", 0, 70000, "round 0, message 0 from rank [0-9] on .* to rank 1 on .*: bytes .65536, 131072. of 400000 are not what was sent"},
                        Case{"ring", 3, 0, "round 3, message 0 from rank 0 on .* to rank 1 on .*: bytes .0, 65536. of 400000 are not what was sent"}}) {
    const std::string message = message_of([&] {
      run_ranks(3, [&](Communicator& c) {
        if (c.rank() == 1)
          c.decorate_channels([&](Communicator&, std::vector<RoundOfMessages> rounds, const OpenChannel& inner) {
            return std::make_unique<FlippingChannel>(inner(rounds), rounds, t.round, t.byte);
          });
        c.set_check();
        std::vector<float> x(300000, 1.0f);
        const auto operation = c.plan({.name = "bucket 7", .kind = Collective::allreduce, .count = x.size(), .output = x.data(), .algorithm = t.algorithm});
        run(*operation);
      });
    });
    EXPECT_THAT(message, MatchesRegex(std::string("rank 1/3 on .*: group 'global' .ranks 0-2.: allreduce 'bucket 7' by ") + t.algorithm + " number 1: " + t.message + ".*"));
  }
}

TEST(CheckedChannel, PartsOfASplitCheckTooAndNameRanksOfTheJob) {
  const std::string message = message_of([&] {
    run_ranks(4, [&](Communicator& c) {
      if (c.rank() == 1)
        c.decorate_channels([](Communicator&, std::vector<RoundOfMessages> rounds, const OpenChannel& inner) {
          return std::make_unique<FlippingChannel>(inner(rounds), rounds, 0, 99);
        });
      c.set_check();
      const auto part = c.split(c.rank() % 2, -c.rank(), c.rank() % 2 == 0 ? "even" : "odd");
      std::vector<float> x(1000, 1.0f);
      const auto operation = part->plan({.kind = Collective::broadcast, .count = x.size(), .output = x.data()});
      run(*operation);
    });
  });
  EXPECT_THAT(message, MatchesRegex("rank 1/4 on .*: group 'odd' .ranks 1, 3.: broadcast by .* number 1: round 0, message 0 from rank 3 on .* to rank 1 on .*: bytes .0, 4000. of 4000.*"));
}

}  // namespace
}  // namespace tutti::comm
