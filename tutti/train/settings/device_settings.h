#pragma once
// The meaning of run.device for other keys: which of them are not built for devices yet, and how a
// plan for one is made.

#include <string>

#include "tutti/config/config.h"
#include "tutti/config/run_settings.h"

namespace tutti::train {

/// Whether a device computes, real or emulated, and not the CPU.
bool on_device(const config::RunSection& run);

/// Whether kernels are chosen by running them: a host's clock says nothing of a device.
bool measures_kernels(const config::RunConfig& config);

/// Throws ConfigError for several ranks on devices. Does nothing for the CPU.
void check_device_ranks(const config::RunConfig& config, int64_t ranks);

/// Throws ConfigError, which names the key, for what a training on a device lacks yet: several
/// ranks, parts of samples, layers and stages, schemes but "step", and gradients that are
/// compressed or sharded. Does nothing for the CPU.
void check_device(const config::RunConfig& config, int64_t ranks);

/// Returns the run.device of a run with these settings, as TOML. Runs of earlier versions had the
/// CPU alone.
std::string device_of(const config::RunSettings& settings);

/// Returns the kernels that a checkpoint keeps (plan::Choices::to_string), or nothing where a run
/// with these settings had another device, or on a device another plan.host_kernels: its kernels
/// are not there, and a run that goes on here chooses anew.
std::string choices_of_device(const std::string& plan_choices, const config::RunSettings& settings,
                              const config::RunConfig& config);

/// Returns the kernels that the checkpoint keeps which plan.choices_from names. Throws ConfigError
/// where choices_of_device() takes none of its run's, and IoError as keep::checkpoint_at() and
/// keep::verify_checkpoint() do.
std::string choices_from(const config::RunConfig& config);

}  // namespace tutti::train
