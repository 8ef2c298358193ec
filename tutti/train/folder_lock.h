#pragma once
// FolderLock: at most one run at a time in a folder.

#include <filesystem>

namespace tutti {

/// Holds the lock of a folder as long as it lives; the system takes it back when the process ends,
/// however that happens. It is flock(2) on the file run.lock in the folder, which also names host
/// and process for the message. On network file systems it holds between hosts where they support
/// such locks (NFS since version 4 does; Lustre with the mount option flock). Where they have none
/// at all, a warning says that nothing keeps a second run out.
class FolderLock {
 public:
  /// Of the folder that has this name when the lock is held, which is made where there is none: the
  /// run before may have set its own aside. Throws ConfigError naming host and process of the run
  /// that holds it, after waiting `patience` seconds for that run to end; IoError when the folder
  /// cannot be written.
  explicit FolderLock(const std::filesystem::path& folder, double patience = 0);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;

 private:
  int file_ = -1;
};

}  // namespace tutti
