#pragma once
// FolderLock: one process at a time works in a folder.

#include <filesystem>
#include <string>

namespace tutti {

/// How a folder is locked. A folder has one such set of terms, whoever asks for it.
struct FolderLockTerms {
  std::string file;       ///< the lock's file in the folder, for example "run.lock"
  std::string holder;     ///< who holds it, for messages: "a run"
  std::string other_way;  ///< what else the user can do: "choose another --output-dir"
  double patience = 0;    ///< seconds to wait for the end of who holds it
  bool inherited =
      false;  ///< processes that the holder starts hold it, too. A holder that lives is
              ///< then refused at once, and `patience` is for what an ended one left
};

/// Holds the lock of a folder as long as it lives; the system takes it back when the process ends,
/// however that happens. It is flock(2) on a file in the folder, which also names host and process
/// for the message. On network file systems it holds between hosts where they support such locks
/// (NFS since version 4 does; Lustre with the mount option flock). Where they have none at all, a
/// warning says that nothing keeps a second process out.
class FolderLock {
 public:
  /// Of the folder that has this name when the lock is held, which is made where there is none: the
  /// holder before may have set its own aside. Throws ConfigError naming host and process of the
  /// holder when it does not end in time; IoError when the folder cannot be written.
  FolderLock(const std::filesystem::path& folder, const FolderLockTerms& terms);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;

 private:
  int file_ = -1;
};

}  // namespace tutti
