#pragma once
// Reads the flags of `tutti bench comm` as values. All functions throw ConfigError.

#include <cstddef>
#include <string>
#include <vector>

#include "tutti/comm/schedule/element.h"
#include "tutti/comm/schedule/schedule.h"

namespace tutti::cli {

/// Reads "64K", "1.5M", "2GiB", "2640000": at least one byte. `flag` begins an error's message.
size_t parse_bytes(const std::string& text, const std::string& flag);

/// The sizes that are measured, as in nccl-tests.
struct SizeRange {
  std::string min = "8", max = "32M";
  double factor = 4;        ///< from one size to the next
  std::string step = "1M";  ///< added to each size instead, where the factor is 1
};

/// Returns min, min * factor, ... up to max; whole bytes, each once.
std::vector<size_t> sizes_in(const SizeRange& range);

/// Returns an element type by our name or by nccl-tests' name: f32 and float, bf16 and bfloat16.
comm::Element element_of_flag(const std::string& name);

/// Reads "allreduce", "allgather,broadcast" or "all".
std::vector<comm::Collective> collectives_named(const std::string& names);

}  // namespace tutti::cli
