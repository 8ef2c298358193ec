#pragma once
// Generates snapshots of weather like DeepCAM's: 16 fields of an atmosphere model on a grid of
// latitudes and longitudes, and a mask of tropical cyclones and atmospheric rivers. Any number of
// samples, each a pure function of (seed, index) on one build. Each field is a function of the
// place alone, so any grid shows the same weather.
//
// The model has only formulas, no simulation:
//   planet     one for all samples: continents, mountains, an ice cap at the south pole (planet.h)
//   season     a day of the year: shifts belts of temperature, moisture, jets and trade winds
//   noise      smooth random fields of five octaves, 15 to 1 degrees (smooth_noise.h): a stream
//              function with wind and pressure in balance, temperature, moisture, rain
//   cyclones   Holland's profile of pressure and wind, turning by hemisphere, warm core, wet
//   rivers     long narrow bands of moisture from the subtropics polewards and east, the wind along
//              them, a front across them (events.h)
//   others     distractors: mid-latitude lows (windy, low pressure, cold core), tropical
//              depressions (wet, weak), moist patches without wind, dry streaks of wind, moist
//              bands too short or too slow for a river
// The mask applies physical thresholds near an event (labels.h). Unlike in DeepCAM, nothing
// evolves, and events are drawn, not found by TECA in a simulation.

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace tutti::generate {

/// The fields in DeepCAM's order, with CAM5's names in lower case.
enum ClimateChannel : int {
  kTmq,     ///< water vapour of the whole column, kg/m^2
  kU850,    ///< wind to the east at 850 hPa, m/s
  kV850,    ///< wind to the north at 850 hPa
  kUbot,    ///< wind to the east at the lowest level
  kVbot,    ///< wind to the north there
  kQrefht,  ///< specific humidity at 2 m, kg/kg
  kPs,      ///< pressure at the ground, Pa
  kPsl,     ///< pressure reduced to sea level, Pa
  kT200,    ///< temperature at 200 hPa, K
  kT500,    ///< temperature at 500 hPa
  kPrect,   ///< rain and snow, m/s of water
  kTs,      ///< temperature of the ground
  kTrefht,  ///< temperature at 2 m
  kZ1000,   ///< height of the 1000 hPa level, or of the ground where it lies deeper, m
  kZ200,    ///< height of the 200 hPa level
  kZbot     ///< height of the lowest level above the ground
};
inline constexpr int kClimateChannels = 16;
const std::vector<std::string>& climate_channel_names();  ///< "TMQ", "U850", ...

/// Classes of the mask.
inline constexpr uint8_t kBackground = 0, kTropicalCyclone = 1, kAtmosphericRiver = 2;
inline constexpr int kClimateClasses = 3;

/// Row i is at latitude -90 + 180 (i + 1/2) / rows degrees, column j at longitude
/// 360 (j + 1/2) / columns.
struct ClimateGrid {
  int rows = 768;
  int columns = 1152;
  int64_t pixels() const { return int64_t{rows} * columns; }
};

struct ClimateSpec {
  ClimateGrid grid;
  uint64_t seed = 1;
};

/// Index of the first sample of a test set. Training sets start at 0, so no sample is in both.
inline constexpr int64_t kFirstTestClimate = int64_t{1} << 40;

/// Fills fields[rows][columns][16] and mask[rows][columns]. Several threads may call it at once.
void generate_climate(const ClimateSpec& spec, int64_t index, float* fields, uint8_t* mask);

/// The statistics of each channel in DeepCAM's stats.h5, as sums: combine samples by + in a fixed
/// order (base/numeric/tree_sum.h) for the same bits on any number of threads.
struct ClimateStatistics {
  static constexpr float kInfinity = std::numeric_limits<float>::infinity();

  int64_t samples = 0;
  std::array<double, kClimateChannels> mean_sum{};    ///< sum of the samples' means
  std::array<double, kClimateChannels> square_sum{};  ///< sum of the samples' mean squares
  std::array<float, kClimateChannels> low = filled(kInfinity), high = filled(-kInfinity);

  double mean(ClimateChannel c) const;
  double mean_square(ClimateChannel c) const;
  ClimateStatistics operator+(const ClimateStatistics& other) const;

 private:
  static constexpr std::array<float, kClimateChannels> filled(float value) {
    std::array<float, kClimateChannels> all{};
    all.fill(value);
    return all;
  }
};

/// Returns the statistics of one sample.
ClimateStatistics climate_statistics(const ClimateGrid& grid, const float* fields);

}  // namespace tutti::generate
