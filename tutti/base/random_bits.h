#pragma once
// Random bits that nobody can guess.

#include <cstddef>
#include <span>

namespace tutti {

/// Fills `bits` from the kernel's generator. False with errno if a filter of system calls refuses
/// it.
bool fill_random(std::span<std::byte> bits) noexcept;

}  // namespace tutti
