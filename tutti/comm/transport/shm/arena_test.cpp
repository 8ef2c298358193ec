#include "tutti/comm/transport/shm/arena.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

namespace tutti::comm {
namespace {

struct Memory {
  alignas(Arena::kLine) std::array<std::byte, 64 * Arena::kLine> bytes{};
};

TEST(Arena, HandsOutAlignedPiecesUntilThereAreNone) {
  Memory memory;
  Arena arena;
  EXPECT_EQ(arena.take(1), nullptr);
  arena.add(memory.bytes);
  std::byte* const first = arena.take(1);
  EXPECT_EQ(first, memory.bytes.data());
  EXPECT_EQ(arena.take(Arena::kLine + 1), first + Arena::kLine);
  EXPECT_EQ(arena.take(62 * Arena::kLine), nullptr);
  EXPECT_NE(arena.take(61 * Arena::kLine), nullptr);
  EXPECT_EQ(arena.free_bytes(), 0u);
}

TEST(Arena, WhatComesBackIsOnePieceAgain) {
  Memory memory;
  Arena arena;
  arena.add(memory.bytes);
  std::mt19937 random(1);
  std::vector<std::pair<std::byte*, size_t>> taken;
  for (int k = 0; k < 2000; ++k) {
    const size_t bytes = random() % (6 * Arena::kLine) + 1;
    if (std::byte* const data = arena.take(bytes)) taken.emplace_back(data, bytes);
    if (taken.empty() || random() % 2 == 0) continue;
    const size_t i = random() % taken.size();
    arena.give_back(taken[i].first, taken[i].second);
    taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(i));
  }
  for (const auto& [data, bytes] : taken) arena.give_back(data, bytes);
  EXPECT_EQ(arena.free_bytes(), memory.bytes.size());
  EXPECT_NE(arena.take(memory.bytes.size()), nullptr);
}

}  // namespace
}  // namespace tutti::comm
