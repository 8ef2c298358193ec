#pragma once
// Service: does other ranks' requests in this rank's exposed memory. It is in flight as long as the
// memory lives. Internal to capi/remote.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <list>
#include <memory>

#include "tutti/capi/remote/own_memory.h"
#include "tutti/capi/remote/request.h"
#include "tutti/capi/remote/transfer.h"
#include "tutti/comm/run/operation.h"

namespace tutti::capi::remote {

/// Its memory is bounded for any number of ranks: kSlots requests are served at a time, and their
/// data take at most kRoom bytes, or the size of one request where that is larger. The others wait,
/// each with a message of at most kMessage bytes, and send no data.
class Service final : public comm::Operation {
 public:
  static constexpr size_t kSlots = 64;
  static constexpr size_t kRoom = size_t{32} << 20;

  /// `ways` and `own` outlive this.
  Service(const Ways& ways, OwnMemory& own, std::unique_ptr<comm::Wire::Inbox> inbox);
  ~Service() override;
  /// Lets answers leave, after the last request. Returns whether nothing else was under way.
  bool finish();

  size_t most_slots() const { return most_slots_.load(std::memory_order_relaxed); }
  size_t most_room() const { return most_room_.load(std::memory_order_relaxed); }

 private:
  enum class Stage { admit, take, apply, answer, leave };
  struct Slot {  // members are ordered by which uses another's memory
    int origin = 0;
    Request request;
    Stage stage = Stage::admit;
    std::chrono::steady_clock::time_point since{};
    std::unique_ptr<std::byte[]> room = nullptr;  // space for its data
    size_t room_bytes = 0;                        // bytes of it that count towards kRoom
    Note note = {};                               // the last answer
    std::unique_ptr<comm::Wire::Messages> answers = nullptr;
    std::unique_ptr<Transfer> transfer = nullptr;
  };
  void begin() override {}
  bool advance() override;
  comm::Pending describe() const override;
  bool idle() const override { return slots_.empty(); }
  bool serves() const override { return true; }

  void take_requests();
  void drop_lost();
  bool step(Slot& slot);
  bool admit(Slot& slot);
  std::byte* data_of(const Slot& slot) const;
  void answer(Slot& slot, Answer text, const std::byte* data, size_t bytes);
  void begin_transfer(Slot& slot, Transfer::Way way);

  const Ways& ways_;
  OwnMemory& own_;
  std::unique_ptr<comm::Wire::Inbox> inbox_;
  std::list<Slot> slots_;  // by priority, then in the order in which they came
  size_t room_ = 0;        // bytes in use
  bool room_wanted_ = false;
  std::chrono::steady_clock::time_point next_look_{};
  std::atomic<size_t> most_slots_{0}, most_room_{0};
};

}  // namespace tutti::capi::remote
