#pragma once
// What parallel.pipeline goes without, and what the log says of it.

#include <string>

#include "tutti/config/config.h"
#include "tutti/train/network/training_graph.h"

namespace tutti {

/// ConfigError naming the key and the reason.
void check_pipeline(const RunConfig& config);

/// Stages, micro-batches and the bubble.
std::string pipeline_line(const RunConfig& config);

/// What each stage computes, has and sends, a line a stage.
std::string stages_text(TrainingGraphSpec spec);

}  // namespace tutti
