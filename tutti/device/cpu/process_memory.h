#pragma once
// What memory this process holds, from the kernel's books. Safe from any thread.

#include <cstddef>

namespace tutti {

/// The most bytes that were ever resident at a time.
size_t peak_resident_bytes();

/// Bytes resident now; of a page that several processes share, this process's part (the kernel's
/// proportional set size). 0 where the kernel does not tell. Takes a millisecond for each GiB.
size_t proportional_bytes();

}  // namespace tutti
