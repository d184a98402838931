internal import ArchiveStore
internal import Codecs
internal import SystemIO

/// Removes the files of sources that are no longer backed up from the directory of a repository's
/// files. The states of deleted devices, and of directories whose paths have dates, would
/// accumulate, as would the contents of imports and the stamps of former rules.
///
/// An entry that cannot be examined or removed stays: it only takes space.
enum UnusedStates {
  /// The number of seconds since the last run of a source after which its files are removed: a
  /// source that is backed up each quarter keeps them.
  static let patience = 100 * 86_400.0
  /// The age in seconds from which a temporary file must be that of a killed process.
  static let longestWriting = 86_400.0

  /// Removes the files of sources that have not been used for a long time, and of killed processes.
  ///
  /// - Parameters:
  ///   - own: the source whose files stay.
  ///   - now: the current time by the clock of the file system.
  static func remove(besides own: Digest, from directory: borrowing Directory, now: Timestamp) {
    guard let names = try? directory.names() else { return }
    var sources: [Digest: [ByteString]] = [:]
    for name in names {
      if let source = StateKey.source(ofFile: name) {
        if source != own { sources[source, default: []].append(name) }
      } else if let age = age(at: name), areUnused([name], since: now, for: age, in: directory) {
        try? directory.remove(name)
      }
    }
    for (source, files) in sources
    where areUnused(files, since: now, for: patience, in: directory) {
      try? remove(files, of: source, from: directory, now: now)
    }
  }

  /// The number of seconds without a change after which a file of no source is removed; nil to keep
  /// it. Imports and removals of snapshots write theirs with each run, without a lock.
  private static func age(at name: ByteString) -> Double? {
    if AtomicFile.isTemporary(name) { return longestWriting }
    return RunStamp.isFile(name) ? patience : nil
  }

  /// Whether all are regular files that have not been written to for some time.
  private static func areUnused(
    _ files: [ByteString], since now: Timestamp, for seconds: Double,
    in directory: borrowing Directory
  ) -> Bool {
    for name in files {
      guard let status = try? directory.statusIfPresent(name), status.kind == .file,
        now.since(status.modified) > seconds
      else { return false }
    }
    return true
  }

  /// Removes the files of a source that no run is using.
  private static func remove(
    _ files: [ByteString], of source: Digest, from directory: borrowing Directory, now: Timestamp
  ) throws(SystemError) {
    let name = StateKey.lock(of: source)
    let lock = try FileLock.acquire(removable: name, in: directory)
    try remove(files.filter { $0 != name }, from: directory, under: lock, named: name, now: now)
  }

  /// Removes the files under the lock, and the lock last: without its name it would exclude no run.
  private static func remove(
    _ files: [ByteString], from directory: borrowing Directory, under lock: borrowing FileLock,
    named name: ByteString, now: Timestamp
  ) throws(SystemError) {
    // A run may have used them before the lock was taken.
    guard areUnused(files, since: now, for: patience, in: directory) else { return }
    for file in files { try directory.remove(file) }
    try directory.remove(name)
  }
}
