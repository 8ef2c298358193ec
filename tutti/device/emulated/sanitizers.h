#pragma once
// The sanitizers of addresses and threads have to be told which memory may be touched, and
// when a thread changes its stack.

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace tutti::device {

#if defined(__SANITIZE_ADDRESS__)

inline void allow_access(const void* at, size_t bytes) { __asan_unpoison_memory_region(at, bytes); }
inline void forbid_access(const void* at, size_t bytes) { __asan_poison_memory_region(at, bytes); }

class StackMarks {
 public:
  /// The caller is about to go to the fiber's stack, and has come back.
  void enter(const void* bottom, size_t bytes) {
    __sanitizer_start_switch_fiber(&outside_, bottom, bytes);
  }
  void came_back() { __sanitizer_finish_switch_fiber(outside_, nullptr, nullptr); }
  /// The fiber has come to its stack, and is about to leave it.
  void entered() { __sanitizer_finish_switch_fiber(inside_, &outside_bottom_, &outside_bytes_); }
  void leave() { __sanitizer_start_switch_fiber(&inside_, outside_bottom_, outside_bytes_); }

 private:
  void *outside_ = nullptr, *inside_ = nullptr;
  const void* outside_bottom_ = nullptr;
  size_t outside_bytes_ = 0;
};

#elif defined(__SANITIZE_THREAD__)

inline void allow_access(const void*, size_t) {}
inline void forbid_access(const void*, size_t) {}

class StackMarks {
 public:
  StackMarks() = default;
  StackMarks(const StackMarks&) = delete;
  StackMarks& operator=(const StackMarks&) = delete;
  ~StackMarks() { __tsan_destroy_fiber(inside_); }
  // The sanitizer follows calls and returns, so these must not be calls themselves.
  [[gnu::always_inline]] void enter(const void*, size_t) {
    outside_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(inside_, 0);
  }
  void came_back() {}
  void entered() {}
  [[gnu::always_inline]] void leave() { __tsan_switch_to_fiber(outside_, 0); }

 private:
  void *inside_ = __tsan_create_fiber(0), *outside_ = nullptr;
};

#else

inline void allow_access(const void*, size_t) {}
inline void forbid_access(const void*, size_t) {}

class StackMarks {
 public:
  void enter(const void*, size_t) {}
  void came_back() {}
  void entered() {}
  void leave() {}
};

#endif

}  // namespace tutti::device
