#pragma once

/// Adds the model "two-scales" and the metric "confidence" to those that Tutti has.
void register_workload();
