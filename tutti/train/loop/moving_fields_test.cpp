#include "tutti/train/loop/moving_fields.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace tutti::train {
namespace {

constexpr Move3 kView{3, 5, 3}, kDeltas{1, 2, 1}, kWide{5, 9, 5};
constexpr int64_t kViewVoxels = 45, kWideVoxels = 225, kSeeds = 7, kPlaces = 2;

/// Canvases whose voxels encode their sample and position.
class Numbered final : public data::Dataset {
 public:
  Numbered() {
    for (const char* name : {"image", "label", "seed"})
      fields_.push_back({.name = name,
                         .element = data::ElementType::f32,
                         .shape = {1, kWide[0], kWide[1], kWide[2]}});
  }
  int64_t size() const override { return kSeeds; }
  const std::vector<data::Field>& fields() const override { return fields_; }
  void read(int64_t index, data::Sample& sample) const override {
    for (size_t f = 0; f < 3; ++f) {
      auto* x = static_cast<float*>(sample.own(f));
      for (int64_t v = 0; v < kWideVoxels; ++v)
        x[v] = f == 2 ? (v == kWideVoxels / 2 ? 3.0f : -3.0f)
                      : static_cast<float>(1000 * index + v) * (f == 0 ? 1.0f : -1.0f);
    }
  }

 private:
  std::vector<data::Field> fields_;
};

std::vector<data::BatchField> batch_fields(Layout layout = {}) {
  std::vector<data::BatchField> fields;
  for (const char* name : {"image", "seed", "label"})
    fields.push_back({name, {DType::f32, {kPlaces, 1, kView[0], kView[1], kView[2]}, layout}, {}});
  return fields;
}

MovingFields fields_on(const Numbered& canvases, const exchange::ReplicaMap& micro_batches,
                       Layout layout = {}) {
  const std::vector<data::BatchField> batch = batch_fields(layout);
  const std::vector<data::BatchField> wide = canvas_fields(batch, canvases);
  return MovingFields({.deltas = kDeltas, .threshold = 0.9, .seed = 5}, batch, canvases,
                      data::SampleWriter(canvases, wide, {}, 5), micro_batches);
}

/// Stands in for a network: raises the logits of some voxels, depending on its inputs.
float predicted(float image, float seed) {
  return seed + (std::fmod(std::abs(image) * 7.0f, 11.0f) < 6 ? 6.0f : -1.0f);
}

/// Does the same independently, for one place at a time and one canvas.
struct Follower {
  std::vector<float> logits = std::vector<float>(kWideVoxels);
  int64_t index = 0;
  size_t move = 0;

  void start(int64_t sample) {
    index = sample;
    move = 0;
    for (int64_t v = 0; v < kWideVoxels; ++v)
      logits[static_cast<size_t>(v)] = v == kWideVoxels / 2 ? 3.0f : -3.0f;
  }
  static int64_t voxel(const Move3& m, int64_t z, int64_t y, int64_t x) {
    return (z + kDeltas[0] + m[0]) * 45 + (y + kDeltas[1] + m[1]) * 5 + x + kDeltas[2] + m[2];
  }
  template <class Body>
  void each(const Move3& m, Body body) {
    int64_t i = 0;
    for (int64_t z = 0; z < kView[0]; ++z)
      for (int64_t y = 0; y < kView[1]; ++y)
        for (int64_t x = 0; x < kView[2]; ++x) body(i++, voxel(m, z, y, x));
  }
};

TEST(ShuffledMoves, AreAllOfThemInAnOrderOfTheSeed) {
  const std::vector<Move3> moves = shuffled_moves({8, 8, 8}, 1);
  EXPECT_EQ(moves.size(), 27u);
  EXPECT_EQ(moves.front(), (Move3{0, 0, 0}));
  EXPECT_EQ(std::set<Move3>(moves.begin(), moves.end()).size(), 27u);
  EXPECT_EQ(moves, shuffled_moves({8, 8, 8}, 1));
  EXPECT_NE(moves, shuffled_moves({8, 8, 8}, 2));
  EXPECT_EQ(shuffled_moves({0, 4, 4}, 1).size(), 9u);
}

TEST(MovingFields, GoWhereAnIndependentProgramGoes) {
  const Numbered canvases;
  const exchange::ReplicaMap micro_batches(2, 1, 0);
  for (const Layout layout : {Layout::plain(), Layout::channels_last(5)}) {
    MovingFields fields = fields_on(canvases, micro_batches, layout);
    fields.begin();
    const data::Sampler sampler({.seed = 5, .size = kSeeds, .replicas = 2, .local_batch = 1});
    std::array<std::array<Follower, kPlaces>, 2> followers;
    std::array<int64_t, 2> taken{};
    const auto next_of = [&](int micro_batch) {
      const int64_t k = taken[static_cast<size_t>(micro_batch)]++;
      return sampler.index({k / 3, k % 3, micro_batch}, 0);
    };
    for (int micro_batch = 0; micro_batch < 2; ++micro_batch)
      for (Follower& f : followers[static_cast<size_t>(micro_batch)]) f.start(next_of(micro_batch));
    std::vector<float> y(kPlaces * kViewVoxels);
    for (int step = 0; step < 60; ++step)
      for (int micro_batch = 0; micro_batch < 2; ++micro_batch) {
        const data::Batch& batch = fields.next();
        for (int64_t p = 0; p < kPlaces; ++p) {
          Follower& f = followers[static_cast<size_t>(micro_batch)][static_cast<size_t>(p)];
          const Move3 at = fields.moves()[f.move];
          f.each(at, [&](int64_t i, int64_t v) {
            const auto shown = [&](size_t t) {
              return static_cast<const float*>(batch.tensors[t])[p * kViewVoxels + i];
            };
            ASSERT_EQ(shown(0), static_cast<float>(1000 * f.index + v)) << step;
            ASSERT_EQ(shown(2), -static_cast<float>(1000 * f.index + v)) << step;
            ASSERT_EQ(shown(1), f.logits[static_cast<size_t>(v)]) << step;
            y[static_cast<size_t>(p * kViewVoxels + i)] = predicted(shown(0), shown(1));
          });
          f.each(at, [&](int64_t i, int64_t v) {
            f.logits[static_cast<size_t>(v)] = y[static_cast<size_t>(p * kViewVoxels + i)];
          });
        }
        fields.take(y.data());
        for (Follower& f : followers[static_cast<size_t>(micro_batch)]) {
          do ++f.move;
          while (f.move < 27 &&
                 f.logits[static_cast<size_t>(Follower::voxel(fields.moves()[f.move], 1, 2, 1))] <
                     std::log(9.0f));
          if (f.move == 27) f.start(next_of(micro_batch));
        }
      }
    EXPECT_GT(taken[0], 4);
    EXPECT_LT(taken[0], 60);
  }
}

}  // namespace
}  // namespace tutti::train
