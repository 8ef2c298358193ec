#include "tutti/comm/result_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/comm/algorithm/algorithm.h"
#include "tutti/comm/inproc/thread_ranks.h"

namespace tutti::comm {
namespace {

using testing::MatchesRegex;

// A rank whose memory changes by itself: what it received is changed after the checksums of messages were verified. `scale` is multiplied to one
// float of the first message of a round.
class FaultyMemory final : public Channel {
 public:
  FaultyMemory(std::unique_ptr<Channel> inner, std::vector<RoundOfMessages> rounds, size_t round, float scale)
      : inner_(std::move(inner)), rounds_(std::move(rounds)), faulty_(round), scale_(scale) {}
  void rebind(std::vector<RoundOfMessages> rounds) override { inner_->rebind(std::move(rounds)); }
  void post(size_t round) override {
    round_ = round;
    inner_->post(round);
  }
  bool received() override {
    if (!inner_->received()) return false;
    const auto& receives = rounds_[round_].receives;
    if (round_ == faulty_ && !done_ && !receives.empty() && receives[0].bytes >= 1000) reinterpret_cast<float*>(const_cast<std::byte*>(inner_->where(0)))[200] *= scale_;
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
  size_t faulty_, round_ = 0;
  float scale_;
  bool done_ = false;
};

struct Fault {
  int rank = 1;
  size_t round = 0;
  float scale = 3;
};

std::string message_of(const CollectiveSpec& spec, const Fault& fault) {
  try {
    run_ranks(4, [&](Communicator& c) {
      c.set_check();
      if (c.rank() == fault.rank)
        c.decorate_channels([&](Communicator&, std::vector<RoundOfMessages> rounds, const OpenChannel& inner) {
          return std::make_unique<FaultyMemory>(inner(rounds), rounds, fault.round, fault.scale);
        });
      std::vector<float> x(spec.count);
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) - 3 + static_cast<float>(c.rank());
      CollectiveSpec mine = spec;
      mine.output = x.data();
      const auto operation = c.plan(mine);
      for (int run = 0; run < 2; ++run) {
        operation->start();
        operation->wait();
      }
    });
  } catch (const CommError& error) {
    return error.what();
  }
  return "no CommError";
}

TEST(ResultCheck, RightResultsPass) {
  for (const char* algorithm : {"pairwise", "ring", "recursive_doubling", "vector_halving", "double_tree"})
    for (const size_t count : {size_t{1}, size_t{4096}, size_t{50001}})
      for (const size_t chunk : {size_t{0}, size_t{10000}})
        EXPECT_EQ(message_of({.name = "bucket 7", .kind = Collective::allreduce, .op = ReduceOp::mean, .count = count, .algorithm = algorithm, .chunk = chunk}, {.scale = 1}), "no CommError")
            << algorithm << " " << count << " " << chunk;
}

TEST(ResultCheck, RoundingPassesInEveryTypeAndWithSeveralPartsARank) {
  run_ranks(3, [](Communicator& c) {
    c.set_check();
    const auto check = [&](auto zero, Element element, bool leaves) {
      using T = decltype(zero);
      std::vector<T> in(2 * 20000), out(20000);
      for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<T>(1 + 1e-3 * static_cast<double>((i * 7919 + static_cast<size_t>(c.rank()) * 31) % 10007));
      CollectiveSpec spec{.kind = Collective::reduce_scatter, .element = element, .count = out.size(), .parts = balanced_parts(out.size(), 3), .input = in.data(), .output = out.data()};
      if (leaves) spec.leaves = {.replicas = 7, .first = {0, 3, 5, 7}, .stride = 20000};
      const auto operation = c.plan(spec);
      for (int run = 0; run < 2; ++run) {
        operation->start();
        operation->wait();
      }
    };
    check(float{}, Element::f32, false);
    check(double{}, Element::f64, false);
    check(float{}, Element::f32, true);
  });
}

// The sum goes wrong in one place, and everyone is given the wrong one.
TEST(ResultCheck, AWrongSumIsNamedByWhoAddedIt) {
  const std::string message = message_of({.name = "bucket 7", .kind = Collective::allreduce, .count = 40000, .algorithm = "pairwise"}, {.rank = 2, .round = 0});
  EXPECT_THAT(message, MatchesRegex("rank [0-3]/4 on .*: group 'global' .ranks 0-3.: allreduce 'bucket 7' by pairwise number 1: elements .20480, 24576. of the result are not the sum of what "
                                    "the ranks gave: off by [0-9.]+, rounding allows [0-9.e-]+; added last on rank 2 on .*: look for .*"));
}

// Each rank adds by itself, and one of them does so wrongly: also when the change is too small for the sums.
TEST(ResultCheck, AnotherResultThanOnMostRanksIsNamed) {
  const CollectiveSpec spec{.name = "bucket 7", .kind = Collective::allreduce, .count = 40000, .algorithm = "recursive_doubling"};
  EXPECT_THAT(message_of(spec, {.rank = 3, .round = 1}), MatchesRegex(".* allreduce 'bucket 7' by recursive_doubling number 1: elements .0, 4096. of the result .* added last on rank 3 on .*"));
  EXPECT_THAT(message_of(spec, {.rank = 3, .round = 1, .scale = 1.000001f}),
              MatchesRegex(".* allreduce 'bucket 7' by recursive_doubling number 1: another result than on most ranks on rank 3 on [^,]*: look for .*"));
}

TEST(ResultCheck, ABroadcastIsComparedToo) {
  EXPECT_THAT(message_of({.name = "weights", .kind = Collective::broadcast, .count = 5000, .algorithm = "binomial"}, {.rank = 3, .round = 0}),
              MatchesRegex(".* broadcast 'weights' by binomial number 1: another result than on most ranks on rank 3 on .*"));
}

}  // namespace
}  // namespace tutti::comm
