#include "tutti/generate/climate/climate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "tutti/base/numeric/tree_sum.h"
#include "tutti/generate/climate/background.h"
#include "tutti/generate/climate/labels.h"
#include "tutti/generate/climate/planet.h"

namespace tutti::generate {
namespace {

struct Sample {
  ClimateGrid grid;
  std::vector<float> fields;
  std::vector<uint8_t> mask;
  float at(int64_t pixel, ClimateChannel c) const {
    return fields[static_cast<size_t>(pixel * kClimateChannels + c)];
  }
};

Sample empty(const ClimateGrid& grid) {
  return {grid, std::vector<float>(static_cast<size_t>(grid.pixels() * kClimateChannels)),
          std::vector<uint8_t>(static_cast<size_t>(grid.pixels()), 9)};
}

Sample sample(const ClimateSpec& spec, int64_t index) {
  Sample made = empty(spec.grid);
  generate_climate(spec, index, made.fields.data(), made.mask.data());
  return made;
}

constexpr ClimateGrid kSmall{192, 288};

TEST(GenerateClimate, IsAFunctionOfSeedAndIndex) {
  const Sample first = sample({kSmall, 5}, 7);
  EXPECT_EQ(first.fields, sample({kSmall, 5}, 7).fields);
  EXPECT_EQ(first.mask, sample({kSmall, 5}, 7).mask);
  EXPECT_NE(first.fields, sample({kSmall, 5}, 8).fields);
  EXPECT_NE(first.fields, sample({kSmall, 6}, 7).fields);
  EXPECT_NE(first.fields, sample({kSmall, 5}, kFirstTestClimate + 7).fields);
}

TEST(GenerateClimate, DoesNotDependOnOtherThreads) {
  std::vector<Sample> together(4);
  {
    std::vector<std::jthread> threads;
    for (int64_t i = 0; i < 4; ++i)
      threads.emplace_back([&, i] { together[static_cast<size_t>(i)] = sample({{48, 72}, 1}, i); });
  }
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_EQ(together[static_cast<size_t>(i)].fields, sample({{48, 72}, 1}, i).fields);
}

// Every third row and column of a grid three times as fine lies at the places of the coarse one.
TEST(GenerateClimate, IsTheSameWeatherOnAnyGrid) {
  const Sample coarse = sample({{64, 96}, 1}, 3), fine = sample({{192, 288}, 1}, 3);
  int64_t other_class = 0;
  std::array<double, kClimateChannels> worst{};
  for (int row = 0; row < 64; ++row)
    for (int column = 0; column < 96; ++column) {
      const int64_t at = row * 96 + column, there = (3 * row + 1) * 288 + 3 * column + 1;
      other_class += coarse.mask[static_cast<size_t>(at)] != fine.mask[static_cast<size_t>(there)];
      for (int c = 0; c < kClimateChannels; ++c) {
        const auto channel = static_cast<ClimateChannel>(c);
        const double a = coarse.at(at, channel), b = fine.at(there, channel);
        worst[static_cast<size_t>(c)] =
            std::max(worst[static_cast<size_t>(c)], std::abs(a - b) / (1 + std::abs(a)));
      }
    }
  for (const double difference : worst) EXPECT_LT(difference, 1e-3);
  EXPECT_LE(other_class, 1) << "a field may round to the other side of a threshold";
}

TEST(GenerateClimate, HasClassesAsRareAsDeepCams) {
  constexpr int kSamples = 60;
  std::array<double, 3> share{};
  int with_cyclones = 0;
  for (int i = 0; i < kSamples; ++i) {
    const Sample one = sample({kSmall, 1}, i);
    bool cyclone = false;
    for (const uint8_t label : one.mask) {
      ASSERT_LT(label, kClimateClasses);
      share[label] += 1.0 / static_cast<double>(kSamples * kSmall.pixels());
      cyclone |= label == kTropicalCyclone;
    }
    with_cyclones += cyclone;
  }
  EXPECT_NEAR(share[kBackground], 0.986, 0.004);
  EXPECT_GT(share[kTropicalCyclone], 0.0004);
  EXPECT_LT(share[kTropicalCyclone], 0.002);
  EXPECT_NEAR(share[kAtmosphericRiver], 0.0133, 0.004);
  EXPECT_GT(with_cyclones, kSamples / 2);
}

// The ranges of DeepCAM's 121,266 samples, and their means (its stats.h5).
struct PublishedRange {
  ClimateChannel channel;
  double low, high, mean, tolerance;
};

TEST(GenerateClimate, LiesInTheRangesOfDeepCam) {
  std::vector<ClimateStatistics> each;
  for (int i = 0; i < 20; ++i) {
    const Sample one = sample({kSmall, 2}, i);
    EXPECT_TRUE(std::ranges::all_of(one.fields, [](float value) { return std::isfinite(value); }));
    each.push_back(climate_statistics(kSmall, one.fields.data()));
  }
  const ClimateStatistics all =
      tree_sum(0, 20, [&](int64_t i) { return each[static_cast<size_t>(i)]; });
  EXPECT_EQ(all.samples, 20);
  for (const auto& [channel, low, high, mean, tolerance] :
       {PublishedRange{kTmq, 0.026, 109, 18.66, 3},
        {kU850, -88.4, 85.9, 1.57, 2},
        {kV850, -84.7, 89.4, 0.21, 1},
        {kUbot, -78.6, 76.8, 0.12, 2},
        {kVbot, -77.8, 80.6, 0.21, 1},
        {kQrefht, 0, 0.146, 0.00757, 0.002},
        {kPs, 48330, 107251, 96593, 1500},
        {kPsl, 87595, 112040, 100782, 400},
        {kT200, 183, 248.3, 213, 3},
        {kT500, 208.3, 286.1, 252.3, 3},
        {kPrect, -1e-18, 3.74e-5, 3.0e-8, 2e-8},
        {kTs, 109, 352.7, 278.5, 3},
        {kTrefht, 94, 331.8, 278.1, 3},
        {kZ1000, -0.4, 5727, 474.5, 150},
        {kZ200, 9952, 12906, 11699, 150},
        {kZbot, 20.3, 71.7, 61.1, 2}}) {
    const auto c = static_cast<size_t>(channel);
    EXPECT_GE(all.low[c], low) << climate_channel_names()[c];
    EXPECT_LE(all.high[c], high) << climate_channel_names()[c];
    EXPECT_NEAR(all.mean(channel), mean, tolerance) << climate_channel_names()[c];
    EXPECT_GT(all.mean_square(channel), all.mean(channel) * all.mean(channel));
  }
}

// Fields of calm and dry air with a single event.
struct Calm {
  Sample sample = empty({384, 576});
  ClimateFields fields{sample.grid, sample.fields.data()};
  // Returns the pixel nearest to a place.
  int64_t pixel(double latitude, double longitude) const {
    const auto row = static_cast<int64_t>((latitude + 90) / 180 * 384),
               column = static_cast<int64_t>(longitude / 360 * 576);
    return row * 576 + column;
  }
};

TEST(Cyclone, TurnsByItsHemisphereAndIsWarmAndLow) {
  for (const double latitude : {18.0, -18.0}) {
    Calm calm;
    place_cyclone(calm.fields, {{latitude, 200}, 6000, 80, 6, 15});
    // In the north it turns counter-clockwise: northward wind in the east.
    const double sign = latitude > 0 ? 1 : -1;
    EXPECT_GT(sign * calm.sample.at(calm.pixel(latitude, 201.2), kV850), 25);
    EXPECT_LT(sign * calm.sample.at(calm.pixel(latitude, 198.8), kV850), -25);
    EXPECT_LT(sign * calm.sample.at(calm.pixel(latitude + 1.2, 200), kU850), -25);
    EXPECT_LT(calm.sample.at(calm.pixel(latitude, 201.2), kUbot), -3) << "inwards at the ground";
    const int64_t centre = calm.pixel(latitude, 200), far = calm.pixel(latitude, 230);
    EXPECT_LT(calm.sample.at(centre, kPsl), -4500);
    EXPECT_GT(calm.sample.at(centre, kT500), 4);
    EXPECT_GT(calm.sample.at(centre, kTmq), 12);
    for (int c = 0; c < kClimateChannels; ++c)
      EXPECT_EQ(calm.sample.at(far, static_cast<ClimateChannel>(c)), 0);
  }
}

TEST(Low, TurnsLikeACycloneButIsCold) {
  Calm calm;
  place_low(calm.fields, {{-50, 100}, 3000, 600, 5});
  EXPECT_LT(calm.sample.at(calm.pixel(-50, 108), kV850), -8);
  EXPECT_LT(calm.sample.at(calm.pixel(-50, 100), kT500), -4);
}

TEST(Band, BlowsAlongItsPathAcrossTheDateLine) {
  Calm calm;
  Band band{{}, 220, 20, 20, 3, true};
  for (int i = 0; i < 40; ++i) band.path.push_back({30 + 0.5 * i, 340 + 1.0 * i});
  const auto pixels = place_band(calm.fields, band);
  EXPECT_GT(pixels.size(), 1000u);
  const int64_t middle = calm.pixel(40.1, 0.2);
  EXPECT_GT(calm.sample.at(middle, kTmq), 13);
  EXPECT_GT(calm.sample.at(middle, kU850), 10);
  EXPECT_GT(calm.sample.at(middle, kV850), 7);
  EXPECT_GT(calm.sample.at(calm.pixel(37.5, 2), kTrefht), 0.5) << "warm towards the equator";
  EXPECT_LT(calm.sample.at(calm.pixel(43, 358), kTrefht), -0.5);
}

// An event with one ingredient missing is background.
TEST(LabelClimate, NeedsMoreThanOneField) {
  const auto labelled = [](const Weather& weather, float moisture) {
    Calm calm;
    for (int64_t i = 0; i < calm.sample.grid.pixels(); ++i)
      calm.fields.at(i)[kTmq] = static_cast<float>(
          zonal_climate(latitude_of(calm.sample.grid, static_cast<int>(i / 576)), 0).tmq *
          moisture);
    std::vector<std::vector<BandPixel>> rivers;
    for (const Band& band : weather.bands) rivers.push_back(place_band(calm.fields, band));
    for (const Cyclone& cyclone : weather.cyclones) place_cyclone(calm.fields, cyclone);
    label_climate(calm.fields, weather, rivers, calm.sample.mask.data());
    return std::array{std::ranges::count(calm.sample.mask, kTropicalCyclone),
                      std::ranges::count(calm.sample.mask, kAtmosphericRiver)};
  };
  const Cyclone cyclone{{18, 200}, 6000, 80, 6, 15};
  EXPECT_GT(labelled({0, {cyclone}, {}, {}, {}}, 1)[0], 50);
  EXPECT_EQ(labelled({0, {cyclone}, {}, {}, {}}, 0.1f)[0], 0) << "dry";
  Cyclone cold = cyclone, weak = cyclone;
  cold.warm_core = 0;
  weak.deficit = 300;
  EXPECT_EQ(labelled({0, {cold}, {}, {}, {}}, 1)[0], 0);
  EXPECT_EQ(labelled({0, {weak}, {}, {}, {}}, 1)[0], 0);
  Band band{{}, 220, 20, 20, 3, true};
  for (int i = 0; i < 40; ++i) band.path.push_back({28 + 0.5 * i, 40 + 1.0 * i});
  EXPECT_GT(labelled({0, {}, {}, {band}, {}}, 1)[1], 300);
  Band calm = band, dry = band, across = band;
  calm.wind = 1;
  dry.moisture = 1;
  across.wind = -20;
  for (const Band& other : {calm, dry, across})
    EXPECT_EQ(labelled({0, {}, {}, {other}, {}}, 1)[1], 0);
}

TEST(SmoothNoise, HasUnitVarianceAndTrueDerivatives) {
  Rng rng(1, Purpose::test, 4);
  const SmoothNoise noise(rng, 0.6);
  std::vector<double> longitudes;
  for (int j = 0; j < 360; ++j) longitudes.push_back(j + 0.25);
  const NoiseColumns columns(longitudes);
  SmoothNoise::Row row;
  double sum = 0, squares = 0;
  for (int latitude = -89; latitude < 90; ++latitude) {
    noise.gradients(latitude, columns, row);
    for (size_t j = 0; j < 360; ++j) {
      sum += row.value[j];
      squares += row.value[j] * row.value[j];
    }
    constexpr double kStep = 1e-3;
    EXPECT_NEAR(row.value[7], noise.at(latitude, 7.25), 1e-4);
    EXPECT_NEAR(row.by_latitude[7],
                (noise.at(latitude + kStep, 7.25) - noise.at(latitude - kStep, 7.25)) / (2 * kStep),
                1e-3);
    EXPECT_NEAR(row.by_longitude[7],
                (noise.at(latitude, 7.25 + kStep) - noise.at(latitude, 7.25 - kStep)) / (2 * kStep),
                1e-3);
  }
  EXPECT_NEAR(sum / (179 * 360), 0, 0.2);
  EXPECT_NEAR(squares / (179 * 360), 1, 0.25);
  EXPECT_NEAR(noise.at(10, 360.3), noise.at(10, 0.3), 1e-9) << "around the globe";
}

}  // namespace
}  // namespace tutti::generate
