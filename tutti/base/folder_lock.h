#pragma once
// FolderLock: lets one process at a time work in a folder.

#include <filesystem>
#include <string>

namespace tutti {

/// How a folder is locked. All processes must use the same terms for a folder.
struct FolderLockTerms {
  std::string file;        ///< the lock's file in the folder, for example "run.lock"
  std::string holder;      ///< the holder, for messages: "a run"
  std::string other_way;   ///< an alternative for the user: "choose another --output-dir"
  double patience = 0;     ///< seconds to wait until the holder ends
  bool inherited = false;  ///< processes started by the holder hold it, too. Others are then
                           ///< refused at once while the holder lives; `patience` applies to the
                           ///< processes that an ended one left
};

/// Holds the lock of a folder during its lifetime; the system releases it when the process ends,
/// however that happens. It is flock(2) on a file in the folder, which also names host and process
/// for the message. On network file systems it works between hosts if they support such locks (NFS
/// since version 4 does; Lustre with the mount option flock). If they have no locks at all, a
/// warning says that nothing keeps a second process out.
class FolderLock {
 public:
  /// Locks the folder that has this name at that time, and makes it if there is none, because the
  /// earlier holder may have renamed its own. Throws ConfigError naming host and process of the
  /// holder if it does not end in time; IoError if the folder cannot be written.
  FolderLock(const std::filesystem::path& folder, const FolderLockTerms& terms);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;

 private:
  int file_ = -1;
};

}  // namespace tutti
