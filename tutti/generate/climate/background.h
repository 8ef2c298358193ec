#pragma once
// Makes the fields before events are placed, and the fields that follow from all others afterwards.

#include "tutti/generate/climate/placement.h"

namespace tutti::generate {

/// Fills all channels from averages along parallels and smooth noise drawn from `rng`. Channels
/// that finish_climate computes hold its input: QREFHT the relative humidity, TS how much warmer
/// the ground is than the air, PS and Z1000 the height of the ground, TREFHT the temperature
/// reduced to sea level.
void fill_background(const ClimateFields& fields, double season, Rng& rng);

/// Computes the channels at the ground from values at sea level, and keeps all within their
/// physical bounds.
void finish_climate(const ClimateFields& fields);

}  // namespace tutti::generate
