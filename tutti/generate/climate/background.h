#pragma once
// The fields before events are placed, and what follows from all of them afterwards.

#include "tutti/generate/climate/placement.h"

namespace tutti::data {

/// Fills all channels from averages along parallels and smooth noise drawn from `rng`. What
/// finish_climate makes of other channels holds what it needs for that: QREFHT the relative
/// humidity, TS how much warmer the ground is than the air, PS and Z1000 the height of the ground,
/// TREFHT the temperature reduced to the sea's level.
void fill_background(const ClimateFields& fields, double season, Rng& rng);

/// Makes the channels at the ground from those at the sea's level, and keeps all in their physical
/// bounds.
void finish_climate(const ClimateFields& fields);

}  // namespace tutti::data
