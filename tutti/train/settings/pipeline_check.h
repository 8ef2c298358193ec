#pragma once
// Checks what parallel.pipeline excludes, and describes the pipeline for the log.

#include <string>

#include "tutti/config/config.h"
#include "tutti/train/network/training_graph.h"

namespace tutti::train {

/// Throws ConfigError naming the key and the reason.
void check_pipeline(const config::RunConfig& config);

/// Describes stages, micro-batches and the bubble.
std::string pipeline_line(const config::RunConfig& config);

/// Describes each stage's computation, variables and messages, one line per stage.
std::string stages_text(TrainingGraphSpec spec);

}  // namespace tutti::train
