#include "tutti/generate/climate/labels.h"

#include <algorithm>

#include "tutti/generate/climate/planet.h"

namespace tutti::generate {

void label_climate(const ClimateFields& fields, const Weather& weather,
                   const std::vector<std::vector<BandPixel>>& rivers, uint8_t* mask) {
  const ClimateGrid& grid = fields.grid;
  std::fill_n(mask, grid.pixels(), kBackground);
  std::vector<double> average;  // water vapour of each row
  for (int row = 0; row < grid.rows; ++row)
    average.push_back(zonal_climate(latitude_of(grid, row), weather.season).tmq);
  for (const auto& river : rivers)
    for (const BandPixel& near : river) {
      const float* p = fields.at(near.pixel);
      const double wind = std::hypot(p[kU850], p[kV850]),
                   along = p[kU850] * near.east + p[kV850] * near.north,
                   usual = average[static_cast<size_t>(near.pixel / grid.columns)];
      if (near.offset < 2.2f && near.strength > 0.05f && p[kTmq] >= usual + 6 &&
          p[kTmq] * wind >= 300 && along >= 5)
        mask[near.pixel] = kAtmosphericRiver;
    }
  for (const Cyclone& cyclone : weather.cyclones) {
    if (cyclone.warm_core < 1.2) continue;
    for_pixels_around(grid, cyclone.centre, 600, [&](int64_t at, double, double) {
      const float* p = fields.at(at);
      if (std::hypot(p[kU850], p[kV850]) >= 17 && p[kTmq] >= 35) mask[at] = kTropicalCyclone;
    });
  }
}

}  // namespace tutti::generate
