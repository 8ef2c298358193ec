#pragma once
// Reports this process's memory, as the kernel counts it. Safe from any thread.

#include <cstddef>

namespace tutti::device {

/// Returns the largest number of bytes that were ever resident at a time.
size_t peak_resident_bytes();

/// Returns the bytes resident now; a page that several processes share counts in proportion (the
/// kernel's proportional set size). 0 if the kernel does not report it. Takes a millisecond per
/// GiB.
size_t proportional_bytes();

}  // namespace tutti::device
