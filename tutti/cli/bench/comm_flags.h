#pragma once
// What the flags of `tutti bench comm` say, as values. All throw ConfigError.

#include <cstddef>
#include <string>
#include <vector>

#include "tutti/comm/schedule/element.h"
#include "tutti/comm/schedule/schedule.h"

namespace tutti {

/// "64K", "1.5M", "2GiB", "2640000": at least one byte. `flag` begins the message of an error.
size_t parse_bytes(const std::string& text, const std::string& flag);

/// Which sizes are measured, as nccl-tests has it.
struct SizeRange {
  std::string min = "8", max = "32M";
  double factor = 4;        ///< from a size to the next
  std::string step = "1M";  ///< added to a size instead, where the factor is 1
};

/// min, min * factor, ... up to max; whole bytes, each once.
std::vector<size_t> sizes_in(const SizeRange& range);

/// An element type by our name or by that of nccl-tests: f32 and float, bf16 and bfloat16.
comm::Element element_of_flag(const std::string& name);

/// "allreduce", "allgather,broadcast" or "all".
std::vector<comm::Collective> collectives_named(const std::string& names);

}  // namespace tutti
