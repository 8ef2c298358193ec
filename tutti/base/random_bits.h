#pragma once
// Bits that nobody can guess.

#include <cstddef>
#include <span>

namespace tutti {

/// From the kernel's generator. False with errno where a filter of system calls refuses them.
bool fill_random(std::span<std::byte> bits) noexcept;

}  // namespace tutti
