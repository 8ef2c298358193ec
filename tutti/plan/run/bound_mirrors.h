#pragma once
// BoundMirrors: the copies on a device of the arenas that an executor has been given, and when they
// are brought there and back.

#include <array>
#include <cstddef>
#include <map>
#include <memory>

#include "tutti/device/mirrors.h"
#include "tutti/plan/run/executor.h"

namespace tutti::plan {

/// Not thread-safe. It keeps every mirror that was ever bound, because training comes back to all
/// of them: replicas take turns.
class BoundMirrors {
 public:
  BoundMirrors(device::Mirrors& mirrors, const Variables& variables)
      : mirrors_(mirrors), variables_(variables) {}

  /// Binds an arena of the host, and returns its copy. Allocates where the arena is bound for the
  /// first time. Nothing is copied before upload(): the same arenas are bound for each pass.
  std::byte* bind(Base base, void* host);
  /// Notes that the host may have changed all arenas, also those that are not bound now.
  void note_host_changes();
  /// Copies what is bound to the device, if the host may have changed it since it was copied last
  /// or bound first, and the device's copy is not newer. Waits if there is anything to copy.
  void upload(device::Stream& stream);
  /// Notes that work on the device changes what is bound.
  void note_written(Base base);
  /// Copies back all that is newer on the device. Waits.
  void download(device::Stream& stream, Kept what);

 private:
  struct Held {
    Base base = kParameters;
    std::shared_ptr<device::Mirror> mirror;
    bool stale = true;  // the host may have changed it
  };
  size_t bytes_of(Base base) const;

  device::Mirrors& mirrors_;
  const Variables& variables_;
  std::map<const void*, Held> held_;  // by address on the host
  std::array<Held*, kGradients> bound_{};
};

}  // namespace tutti::plan
