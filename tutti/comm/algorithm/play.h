#pragma once
// Plays the schedules of all ranks against each other in one thread, on floats: for tests. Places
// of the collective's own type are rounded to bf16 when the task is wide, so a sum that is rounded
// too early shows.

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <map>
#include <vector>

#include "tutti/comm/schedule.h"
#include "tutti/tensor/dtype.h"

namespace tutti::comm {

/// One rank's memory.
struct Board {
  std::vector<float> input, output, staging, accumulator;
  bool in_place = false;  ///< the input is the output
  bool wide = false;

  float& at(Place place, size_t i) {
    switch (place) {
      case Place::input: return in_place ? output.at(i) : input.at(i);
      case Place::output: return output.at(i);
      case Place::staging: return staging.at(i);
      case Place::accumulator: return accumulator.at(i);
    }
    throw std::logic_error("place");
  }
  void put(Place place, size_t i, float value) {
    at(place, i) = wide && place != Place::accumulator ? static_cast<float>(bf16(value)) : value;
  }
};

class Game {
 public:
  Game(std::vector<Schedule> schedules, std::vector<Board>& boards)
      : schedules_(std::move(schedules)), boards_(boards), at_(schedules_.size()),
        posted_(schedules_.size()) {
    for (size_t r = 0; r < boards_.size(); ++r) {
      // NaN: what is read before it is written spoils the result.
      boards_[r].staging.assign(schedules_[r].staging, std::nanf(""));
      boards_[r].accumulator.assign(schedules_[r].accumulator, std::nanf(""));
    }
  }

  /// False when nobody can go on although not everybody is done.
  bool play() {
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t r = 0; r < schedules_.size(); ++r)
        while (step(r)) moved = true;
    }
    for (size_t r = 0; r < schedules_.size(); ++r)
      if (at_[r] < schedules_[r].rounds.size()) return false;
    for (const auto& [pair, queue] : wires_)
      if (!queue.empty()) return false;
    return true;
  }

 private:
  struct Letter {
    std::vector<float> values;
    bool accumulator;
  };

  bool step(size_t r) {
    if (at_[r] == schedules_[r].rounds.size()) return false;
    const Round& round = schedules_[r].rounds[at_[r]];
    if (!posted_[r]) {
      for (const Message& m : round.sends)
        wires_[{static_cast<int>(r), m.peer}].push_back(letter(r, m.block));
      posted_[r] = true;
    }
    std::map<int, size_t> needed;
    for (const Message& m : round.receives) ++needed[m.peer];
    for (const auto& [peer, count] : needed)
      if (wires_[{peer, static_cast<int>(r)}].size() < count) return false;
    for (const Message& m : round.receives) {
      auto& wire = wires_[{m.peer, static_cast<int>(r)}];
      const Letter letter = wire.front();
      wire.pop_front();
      EXPECT_EQ(letter.values.size(), m.block.count());
      const bool same_type =
          letter.accumulator == (m.block.place == Place::accumulator && boards_[r].wide);
      EXPECT_TRUE(same_type || m.block.count() == 0) << "types differ on the wire";
      for (size_t i = 0; i < m.block.count(); ++i)
        boards_[r].put(m.block.place, m.block.slice.begin + i, letter.values.at(i));
    }
    for (const LocalStep& s : round.steps) run(r, s);
    ++at_[r];
    posted_[r] = false;
    return true;
  }

  Letter letter(size_t r, Block block) {
    Letter letter{.values = {},
                  .accumulator = block.place == Place::accumulator && boards_[r].wide};
    for (size_t i = 0; i < block.count(); ++i)
      letter.values.push_back(boards_[r].at(block.place, block.slice.begin + i));
    return letter;
  }

  void run(size_t r, const LocalStep& step) {
    Board& board = boards_[r];
    for (size_t i = 0; i < step.to.count(); ++i) {
      float value = board.at(step.a.place, step.a.slice.begin + i);
      if (step.kind == LocalStep::Kind::reduce)
        value += board.at(step.b.place, step.b.slice.begin + i);
      if (step.kind == LocalStep::Kind::finish) value /= static_cast<float>(schedules_.size());
      board.put(step.to.place, step.to.slice.begin + i, value);
    }
  }

  std::vector<Schedule> schedules_;
  std::vector<Board>& boards_;
  std::vector<size_t> at_;
  std::vector<bool> posted_;
  std::map<std::pair<int, int>, std::deque<Letter>> wires_;
};

}  // namespace tutti::comm
