#include "tutti/comm/compress/codec/error_feedback.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <thread>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/base/shared_work.h"
#include "tutti/comm/compress/codec/codec_samples.h"

namespace tutti::comm {
namespace {

constexpr const char* kSpecs[] = {"bf16", "fp16", "int8", "onebit", "topk:0.01", "topk:0.3"};
constexpr size_t kLength = 3001;

// A codec with its residual and its message.
struct Sender {
  explicit Sender(const char* spec, Floats first = Floats(kLength, 0.0f))
      : codec(make_codec(spec)), residual(std::move(first)),
        out(codec->encoded_bytes(residual.size())) {}
  double encode(const Floats& gradient, uint64_t step = 0) {
    return ErrorFeedback(residual).encode(*codec, gradient, out, step).ratio();
  }
  Floats decoded() const {
    Floats values(residual.size());
    codec->decode(out, values);
    return values;
  }

  std::unique_ptr<Codec> codec;
  Floats residual;
  Bytes out;
};

TEST(ErrorFeedback, TheResidualIsWhatWasNotSent) {
  for (const char* spec : kSpecs) {
    Sender sender(spec, random_values(kLength, 1));
    const Floats gradient = random_values(kLength, 2);
    Floats acc(kLength), rest(kLength);
    for (size_t i = 0; i < kLength; ++i) acc[i] = sender.residual[i] + gradient[i];
    const double cost = sender.encode(gradient);
    const Floats decoded = sender.decoded();
    for (size_t i = 0; i < kLength; ++i) rest[i] = acc[i] - decoded[i];
    EXPECT_TRUE(same_bits(rest, sender.residual)) << spec;
    EXPECT_NEAR(cost, squares_of(rest) / squares_of(acc), 1e-12) << spec;
    EXPECT_GT(cost, 0) << spec;
    EXPECT_LT(cost, 1) << spec;
  }
}

TEST(ErrorFeedback, PiecesOfAGranuleMakeTheEncodingOfTheWhole) {
  for (const char* spec : {"bf16", "fp16", "int8", "onebit"}) {
    const auto codec = make_codec(spec);
    const size_t count = 9 * 1024 + 77;
    const Floats x = random_values(count, 3), y = random_values(count, 4);
    Floats sum(count);
    for (size_t i = 0; i < count; ++i) sum[i] = x[i] + y[i];
    Bytes whole(codec->encoded_bytes(count)), out(whole.size());
    codec->encode(sum, whole);
    Floats residual(count, 0.0f);
    const float* const parts[] = {x.data(), y.data()};
    ErrorFeedback(residual).encode(*codec, parts, out);
    EXPECT_EQ(out, whole) << spec;
  }
}

// Several pieces, and a thread that waits and helps with them.
TEST(ErrorFeedback, NoBitDependsOnThreadsThatHelp) {
  constexpr size_t kCount = 3 * (64 << 10) + 777;
  SharedWork work;
  std::atomic<bool> over{false};
  std::jthread waiting([&] {
    while (!over) work.help();
  });
  for (const char* spec : kSpecs) {
    const auto codec = make_codec(spec);
    const Floats x = random_values(kCount, 5);
    Floats alone(kCount, 0.0f), together(kCount, 0.0f), sum_alone(kCount), sum_together(kCount);
    Bytes out(codec->encoded_bytes(kCount)), shared(out.size());
    for (uint64_t step = 1; step <= 20; ++step) {
      const Loss a = ErrorFeedback(alone).encode(*codec, x, out, step);
      const Loss b = ErrorFeedback(together).encode(*codec, x, shared, step, &work);
      ASSERT_EQ(out, shared) << spec;
      ASSERT_EQ(alone, together) << spec;
      ASSERT_EQ(a.lost, b.lost) << spec;
      ASSERT_EQ(a.whole, b.whole) << spec;
      Bytes both = out;
      both.insert(both.end(), shared.begin(), shared.end());
      sum_contributions(*codec, both, sum_alone);
      sum_contributions(*codec, both, sum_together, &work);
      ASSERT_EQ(sum_alone, sum_together) << spec;
    }
  }
  over = true;
}

TEST(ErrorFeedback, TopkClearsWhatItSends) {
  Sender sender("topk:0.4", {0.5f, 0, -1, 0, 3});
  EXPECT_NEAR(sender.encode({1, 1, -4, 2, -3}), (1.5 * 1.5 + 1) / (1.5 * 1.5 + 1 + 25 + 4), 1e-15);
  EXPECT_EQ(sender.residual, (Floats{1.5f, 1, 0, 0, 0}));
}

TEST(ErrorFeedback, EverythingIsSentInTheLongRun) {
  for (const char* spec : kSpecs) {
    Sender sender(spec);
    Floats sent(kLength, 0.0f);
    std::vector<double> given(kLength, 0.0);
    for (uint64_t step = 0; step < 40; ++step) {
      const Floats gradient = random_values(kLength, 10 + step);
      sender.encode(gradient, step);
      sender.codec->add_decoded(sender.out, sent);
      for (size_t i = 0; i < kLength; ++i) given[i] += gradient[i];
    }
    for (size_t i = 0; i < kLength; ++i)
      ASSERT_NEAR(static_cast<double>(sent[i]) + sender.residual[i], given[i], 3e-5)
          << spec << " " << i;
  }
}

// Whole numbers are added without rounding, and top-k sends them as they are.
TEST(ErrorFeedback, TopkLosesNothingToTheLastBit) {
  for (const char* spec : {"topk:0.01", "topk:0.3"}) {
    Sender sender(spec);
    Floats sent(kLength, 0.0f), given(kLength, 0.0f);
    for (uint64_t step = 0; step < 40; ++step) {
      Floats gradient = random_values(kLength, 10 + step);
      for (float& g : gradient) g = std::round(100 * g);
      sender.encode(gradient, step);
      sender.codec->add_decoded(sender.out, sent);
      for (size_t i = 0; i < kLength; ++i) given[i] += gradient[i];
    }
    Floats together(kLength);
    for (size_t i = 0; i < kLength; ++i) together[i] = sent[i] + sender.residual[i];
    EXPECT_EQ(together, given) << spec;
    EXPECT_NE(sent, given) << spec << " would test nothing";
  }
}

TEST(ErrorFeedback, ZeroCostsNothing) {
  for (const char* spec : kSpecs) {
    Sender sender(spec);
    EXPECT_EQ(sender.encode(Floats(kLength, 0.0f)), 0) << spec;
    EXPECT_EQ(sender.residual, Floats(kLength, 0.0f)) << spec;
  }
}

TEST(ErrorFeedback, AStepThatIsNotFiniteIsReportedAndDoesNotSpoilTheNext) {
  for (const char* spec : kSpecs)
    for (const float bad : {kNan, -kInf}) {
      Sender sender(spec, random_values(kLength, 1));
      Floats gradient(kLength, 0.0f);
      std::fill(gradient.begin() + 5, gradient.begin() + 100, bad);
      EXPECT_FALSE(std::isfinite(sender.encode(gradient))) << spec;
      EXPECT_FALSE(all_finite(sender.decoded())) << spec;
      EXPECT_TRUE(all_finite(sender.residual)) << spec;
      EXPECT_EQ(sender.residual[5], 0) << spec;
      EXPECT_TRUE(std::isfinite(sender.encode(random_values(kLength, 2)))) << spec;
    }
}

TEST(ErrorFeedback, AnOverflowOfFp16IsReported) {
  Sender sender("fp16", Floats(3, 0.0f));
  EXPECT_FALSE(std::isfinite(sender.encode({1, 1e6f, 2})));
  EXPECT_EQ(sender.residual, Floats(3, 0.0f));
}

TEST(ErrorFeedback, SizesMustAgree) {
  const auto codec = make_codec("bf16");
  Floats residual(3);
  Bytes out(8);
  EXPECT_THROW(ErrorFeedback(residual).encode(*codec, Floats(4), out), InternalError);
}

// Four workers, each with its own minimum, so that near the common one the workers' gradients are
// large and cancel: minimise mean_w 1/2 sum_i a_i (x_i - b_wi)^2. Returns the objective's distance
// from its minimum, relative to the distance at the beginning.
enum class Exchange { dense, compressed, compressed_without_feedback };
double descend(Exchange exchange) {
  constexpr size_t kWorkers = 4, kSize = 200;
  constexpr int kSteps = 3000;
  const auto codec = make_codec("topk:0.01");
  const Floats centre = random_values(kSize, 1);
  Floats a(kSize), x(kSize, 0.0f), b[kWorkers], residual[kWorkers];
  for (size_t i = 0; i < kSize; ++i) a[i] = 0.2f + 0.8f * static_cast<float>(i) / kSize;
  for (size_t w = 0; w < kWorkers; ++w) {
    b[w] = random_values(kSize, 2 + w / 2);
    for (size_t i = 0; i < kSize; ++i) b[w][i] = centre[i] + (w % 2 == 0 ? 3.0f : -3.0f) * b[w][i];
    residual[w].assign(kSize, 0.0f);
  }
  Bytes out(codec->encoded_bytes(kSize));
  for (int step = 0; step < kSteps; ++step) {
    Floats sum(kSize, 0.0f), gradient(kSize);
    for (size_t w = 0; w < kWorkers; ++w) {
      for (size_t i = 0; i < kSize; ++i) gradient[i] = a[i] * (x[i] - b[w][i]);
      if (exchange == Exchange::compressed_without_feedback) std::ranges::fill(residual[w], 0.0f);
      if (exchange == Exchange::dense) {
        for (size_t i = 0; i < kSize; ++i) sum[i] += gradient[i];
      } else {
        ErrorFeedback(residual[w]).encode(*codec, gradient, out, static_cast<uint64_t>(step));
        codec->add_decoded(out, sum);
      }
    }
    const float rate = 0.01f * (1 - static_cast<float>(step) / kSteps);
    for (size_t i = 0; i < kSize; ++i) x[i] -= rate * sum[i] / kWorkers;
  }
  double left = 0, first = 0;
  for (size_t i = 0; i < kSize; ++i) {
    left += a[i] * std::pow(x[i] - centre[i], 2);
    first += a[i] * std::pow(centre[i], 2);
  }
  return left / first;
}

TEST(ErrorFeedback, DescentWithOnePercentComesNearTheDenseOneAndWithoutFeedbackItDoesNot) {
  const double dense = descend(Exchange::dense);
  const double compressed = descend(Exchange::compressed);
  const double without = descend(Exchange::compressed_without_feedback);
  RecordProperty("dense", std::to_string(dense));
  RecordProperty("compressed", std::to_string(compressed));
  RecordProperty("without", std::to_string(without));
  EXPECT_LT(dense, 0.01);
  EXPECT_LT(compressed, dense + 0.01);
  EXPECT_GT(without, 20 * compressed);
}

}  // namespace
}  // namespace tutti::comm
