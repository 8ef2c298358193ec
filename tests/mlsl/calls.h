#pragma once
// Shared by the parts of the program `calls`.

#include <cstddef>

#include "mlsl.hpp"

extern int wrong;  // number of failed expectations
void expect(bool right, const char* what);

/// Makes so many calls of AlltoAllv: descriptors, mappings and memory must not grow after the first
/// thousand.
void blocks(MLSL::Environment& environment, size_t calls);
