#pragma once
// Store: a few short texts that the ranks of a job leave for each other before they can send
// messages. Implementations: here, in the memory of one process; tcp_store.h; and the caller's own
// (capi/job.cpp).

#include <condition_variable>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace tutti::comm {

/// Thread-safe. Values are bytes.
class Store {
 public:
  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  static constexpr size_t kLongestKey = 1024;
  static constexpr size_t kLongestValue = size_t{64} << 10;

  /// Sets a key; a second value replaces the first. Throws CommError when the store does not
  /// answer, and for a key or value that is too long.
  virtual void set(const std::string& key, const std::string& value) = 0;
  /// Waits until the key is set and returns its value; none when it is not set within `seconds`,
  /// which may be 0. Throws CommError when the store does not answer.
  virtual std::optional<std::string> get(const std::string& key, double seconds) = 0;

 protected:
  Store() = default;
};

/// Serves ranks that are threads of one process.
class LocalStore final : public Store {
 public:
  void set(const std::string& key, const std::string& value) override;
  std::optional<std::string> get(const std::string& key, double seconds) override;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

}  // namespace tutti::comm
