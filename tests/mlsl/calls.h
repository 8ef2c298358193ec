#pragma once
// What the parts of the program `calls` share.

#include <cstddef>

#include "mlsl.hpp"

extern int wrong;  // how often something was
void expect(bool right, const char* what);

/// So many calls of AlltoAllv: no descriptor, no mapping and no memory more than after the first
/// thousand.
void blocks(MLSL::Environment& environment, size_t calls);
