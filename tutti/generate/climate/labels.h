#pragma once
// Makes the mask of a sample: physical thresholds of the finished fields, within reach of an
// event of the class. An event with fields below them is not in the mask.
//   tropical cyclone    within 600 km of a warm-cored cyclone: wind at 850 hPa of 17 m/s (gale) or
//                       more and 35 kg/m^2 of water vapour or more
//   atmospheric river   within 2.2 widths of a river's path: 6 kg/m^2 more water vapour than the
//                       parallel has on average, a flux (vapour times wind at 850 hPa) of 300
//                       kg/(m s) or more, and 5 m/s or more along the path
// A pixel of both classes counts as the cyclone's.

#include "tutti/generate/climate/placement.h"

namespace tutti::generate {

/// Fills mask[rows][columns]. `rivers` are the pixels of bands that may be labelled.
void label_climate(const ClimateFields& fields, const Weather& weather,
                   const std::vector<std::vector<BandPixel>>& rivers, uint8_t* mask);

}  // namespace tutti::generate
