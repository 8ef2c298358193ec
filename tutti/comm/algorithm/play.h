#pragma once
// Plays the schedules of all ranks against each other in one thread, on floats: for tests. When the
// task is wide, values of the collective's own type are rounded to bf16, so a sum that is rounded
// too early shows. No message is buffered: a round ends when its messages have been received, so
// ranks that wait for each other in a circle show too.

#include <fmt/format.h>

#include <cmath>
#include <deque>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "tutti/comm/schedule/schedule.h"
#include "tutti/tensor/dtype.h"

namespace tutti::comm {

/// One rank's memory.
struct Board {
  std::vector<float> input, output, staging, accumulator;
  bool in_place = false;  ///< the input is the output
  bool wide = false;
  std::vector<float>* shared = nullptr;  ///< the output, where the ranks of a node share one

  std::vector<float>& result() { return shared == nullptr ? output : *shared; }
  float& at(Space space, size_t i) {
    switch (space) {
      case Space::input: return in_place ? result().at(i) : input.at(i);
      case Space::output: return result().at(i);
      case Space::staging: return staging.at(i);
      case Space::accumulator: return accumulator.at(i);
    }
    throw std::logic_error("space");
  }
  void put(Space space, size_t i, float value) {
    at(space, i) = wide && space != Space::accumulator ? static_cast<float>(bf16(value)) : value;
  }
};

class Game {
 public:
  Game(std::vector<Schedule> schedules, std::vector<Board>& boards)
      : schedules_(std::move(schedules)), boards_(boards), at_(schedules_.size()),
        posted_(schedules_.size()), queued_(schedules_.size()) {
    for (size_t r = 0; r < boards_.size(); ++r) {
      // NaN: memory that is read before it is written spoils the result.
      boards_[r].staging.assign(schedules_[r].staging, std::nanf(""));
      boards_[r].accumulator.assign(schedules_[r].accumulator, std::nanf(""));
    }
  }

  /// Returns an error; empty when all ranks are done and every receiver got what it expects.
  std::string play() {
    for (size_t r = 0; r < schedules_.size(); ++r) wake(r);
    while (!turn_.empty()) {
      const size_t r = turn_.front();
      turn_.pop_front();
      queued_[r] = false;
      while (step(r)) {}
    }
    for (size_t r = 0; r < schedules_.size() && wrong_.empty(); ++r)
      if (at_[r] < schedules_[r].rounds.size())
        wrong_ = fmt::format("rank {} waits forever in round {}\n{}", r, at_[r],
                             to_string(schedules_[r]));
    for (const auto& [pair, wire] : wires_)
      if (wrong_.empty() && wire.taken != wire.letters.size())
        wrong_ = fmt::format("rank {} sends to {} what that one does not expect", pair >> 32,
                             pair & 0xFFFFFFFF);
    return wrong_;
  }

 private:
  struct Letter {
    std::vector<float> values;
    bool accumulator = false;
  };
  // Messages from one rank to another. Receives are asked for when their round begins, and taken at
  // its end.
  struct Wire {
    std::vector<Letter> letters;
    size_t asked = 0, taken = 0;
  };
  static uint64_t pair(size_t from, size_t to) { return static_cast<uint64_t>(from) << 32 | to; }

  void wake(size_t r) {
    if (queued_[r]) return;
    queued_[r] = true;
    turn_.push_back(r);
  }

  // Begins or ends a round, if possible.
  bool step(size_t r) {
    if (at_[r] == schedules_[r].rounds.size() || !wrong_.empty()) return false;
    const Round& round = schedules_[r].rounds[at_[r]];
    if (!posted_[r]) {
      for (const Message& m : round.receives) ++wires_[pair(static_cast<size_t>(m.peer), r)].asked;
      for (const Message& m : round.sends)
        wires_[pair(r, static_cast<size_t>(m.peer))].letters.push_back(letter(r, m.block));
      for (const Message& m : round.receives) wake(static_cast<size_t>(m.peer));
      for (const Message& m : round.sends) wake(static_cast<size_t>(m.peer));
      return posted_[r] = true;
    }
    for (const Message& m : round.receives) {
      const Wire& wire = wires_[pair(static_cast<size_t>(m.peer), r)];
      if (wire.letters.size() < wire.asked) return false;
    }
    for (const Message& m : round.sends) {
      const Wire& wire = wires_[pair(r, static_cast<size_t>(m.peer))];
      if (wire.asked < wire.letters.size()) return false;
    }
    for (const Message& m : round.receives) take(r, m);
    for (const LocalStep& s : round.steps) run(r, s);
    ++at_[r];
    posted_[r] = false;
    return true;
  }

  void take(size_t r, const Message& m) {
    Wire& wire = wires_[pair(static_cast<size_t>(m.peer), r)];
    const Letter letter = std::move(wire.letters[wire.taken++]);
    const size_t count = m.block.count();
    if (letter.values.size() != count)
      wrong_ = fmt::format("rank {} sends {} elements to {}, which expects {}", m.peer,
                           letter.values.size(), r, count);
    else if (count > 0 &&
             letter.accumulator != (m.block.space == Space::accumulator && boards_[r].wide))
      wrong_ = fmt::format("rank {} sends another type to {} than that one expects", m.peer, r);
    else
      for (size_t i = 0; i < count; ++i)
        boards_[r].put(m.block.space, m.block.slice.begin + i, letter.values[i]);
  }

  Letter letter(size_t r, Block block) {
    Letter letter{.values = {},
                  .accumulator = block.space == Space::accumulator && boards_[r].wide};
    letter.values.reserve(block.count());
    for (size_t i = 0; i < block.count(); ++i)
      letter.values.push_back(boards_[r].at(block.space, block.slice.begin + i));
    return letter;
  }

  void run(size_t r, const LocalStep& step) {
    Board& board = boards_[r];
    for (size_t i = 0; i < step.to.count(); ++i) {
      float value = board.at(step.a.space, step.a.slice.begin + i);
      if (step.kind == LocalStep::Kind::reduce)
        value += board.at(step.b.space, step.b.slice.begin + i);
      if (step.kind == LocalStep::Kind::finish) value /= static_cast<float>(schedules_.size());
      board.put(step.to.space, step.to.slice.begin + i, value);
    }
  }

  std::vector<Schedule> schedules_;
  std::vector<Board>& boards_;
  std::vector<size_t> at_;
  std::vector<bool> posted_, queued_;
  std::deque<size_t> turn_;
  std::string wrong_;
  std::unordered_map<uint64_t, Wire> wires_;
};

}  // namespace tutti::comm
