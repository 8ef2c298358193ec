#include "tutti/generate/climate/climate.h"

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/generate/climate/background.h"
#include "tutti/generate/climate/events.h"
#include "tutti/generate/climate/labels.h"

namespace tutti::generate {

const std::vector<std::string>& climate_channel_names() {
  static const std::vector<std::string> names = {
      "TMQ",  "U850", "V850",  "UBOT", "VBOT",   "QREFHT", "PS",   "PSL",
      "T200", "T500", "PRECT", "TS",   "TREFHT", "Z1000",  "Z200", "ZBOT"};
  return names;
}

void generate_climate(const ClimateSpec& spec, int64_t index, float* fields, uint8_t* mask) {
  CHECK(spec.grid.rows > 0 && spec.grid.columns > 0 && index >= 0, "grid {} x {}, sample {}",
        spec.grid.rows, spec.grid.columns, index);
  Rng rng(spec.seed, Purpose::generate, static_cast<uint64_t>(index));
  const Weather weather = draw_weather(rng);
  const ClimateFields to{spec.grid, fields};
  fill_background(to, weather.season, rng);
  for (const Low& low : weather.lows) place_low(to, low);
  for (const Patch& patch : weather.patches) place_patch(to, patch);
  std::vector<std::vector<BandPixel>> rivers;
  for (const Band& band : weather.bands) {
    std::vector<BandPixel> pixels = place_band(to, band);
    if (band.river) rivers.push_back(std::move(pixels));
  }
  for (const Cyclone& cyclone : weather.cyclones) place_cyclone(to, cyclone);
  finish_climate(to);
  label_climate(to, weather, rivers, mask);
}

double ClimateStatistics::mean(ClimateChannel c) const {
  return mean_sum[static_cast<size_t>(c)] / static_cast<double>(samples);
}

double ClimateStatistics::mean_square(ClimateChannel c) const {
  return square_sum[static_cast<size_t>(c)] / static_cast<double>(samples);
}

ClimateStatistics ClimateStatistics::operator+(const ClimateStatistics& other) const {
  ClimateStatistics both = *this;
  both.samples += other.samples;
  for (size_t c = 0; c < kClimateChannels; ++c) {
    both.mean_sum[c] += other.mean_sum[c];
    both.square_sum[c] += other.square_sum[c];
    both.low[c] = std::min(low[c], other.low[c]);
    both.high[c] = std::max(high[c], other.high[c]);
  }
  return both;
}

ClimateStatistics climate_statistics(const ClimateGrid& grid, const float* fields) {
  ClimateStatistics found;
  found.samples = 1;
  for (int64_t i = 0; i < grid.pixels(); ++i)
    for (size_t c = 0; c < kClimateChannels; ++c) {
      const float value = fields[i * kClimateChannels + static_cast<int64_t>(c)];
      found.mean_sum[c] += value;
      found.square_sum[c] += static_cast<double>(value) * value;
      found.low[c] = std::min(found.low[c], value);
      found.high[c] = std::max(found.high[c], value);
    }
  for (size_t c = 0; c < kClimateChannels; ++c) {
    found.mean_sum[c] /= static_cast<double>(grid.pixels());
    found.square_sum[c] /= static_cast<double>(grid.pixels());
  }
  return found;
}

}  // namespace tutti::generate
