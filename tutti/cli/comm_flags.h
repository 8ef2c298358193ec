#pragma once
// What the flags of `tutti bench comm` say, as values. All throw ConfigError.

#include <cstddef>
#include <string>
#include <vector>

#include "tutti/comm/schedule.h"

namespace tutti {

/// "64K", "1.5M", "2GiB", "2640000": at least one byte. `flag` begins the message of an error.
size_t parse_bytes(const std::string& text, const std::string& flag);

/// How many results are checked: "" (the flag alone) is 1.
int parse_checks(const std::string& text);

/// min, min * factor, ... up to max; whole bytes, each once.
std::vector<size_t> sizes_between(const std::string& min, const std::string& max, double factor);

/// "allreduce", "allgather,broadcast" or "all".
std::vector<comm::Collective> collectives_named(const std::string& names);

}  // namespace tutti
