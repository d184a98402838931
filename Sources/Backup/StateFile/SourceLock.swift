internal import ArchiveStore
internal import Codecs
internal import DeviceDiscovery
internal import DeviceScan
internal import SandboxModel
internal import Synchronization
internal import SystemIO

/// The lock of one source of backups in one repository, held as long as this value lives, so that
/// no second run scans or stores the source meanwhile.
final class SourceLock: Sendable {
  private let lock: FileLock
  /// Whether another run had to end first: data read before then may be outdated.
  let hasWaited: Bool

  private init(
    _ key: StateKey, in cache: ByteString, hasWaited: Bool
  ) throws(SystemError) {
    self.hasWaited = hasWaited
    lock = try key.acquireLock(in: cache)
  }

  /// The number of seconds between two attempts.
  private static let interval = 0.1

  /// Takes the lock, waiting at most `seconds` while another run holds it.
  ///
  /// Returns nil if there is no directory for a lock: the run continues without one, as without a
  /// state.
  ///
  /// - Parameters:
  ///   - cache: the cache directory, as in `Host.cacheDirectory`.
  ///   - isStopping: whether the work should end. Called while waiting.
  /// - Throws: `busy` if another run still holds the lock then; `interrupted`.
  static func acquire(
    for device: Device, in repository: Repository, cache: ByteString?, waiting seconds: Double,
    isStopping: () -> Bool
  ) throws(OperationError) -> SourceLock? {
    guard let cache else { return nil }
    let key = StateKey(repository: repository.id, source: SourceIdentity.digest(of: device))
    let deadline = Host.monotonicSeconds() + seconds
    var hasWaited = false
    while true {
      do throws(SystemError) {
        return try SourceLock(key, in: cache, hasWaited: hasWaited)
      } catch {
        guard error.isBusy else { return nil }
        if isStopping() { throw .interrupted }
        if Host.monotonicSeconds() >= deadline { throw .anotherRun(error, of: key, in: cache) }
      }
      hasWaited = true
      Host.pause(seconds: interval)
    }
  }
}

extension OperationError {
  /// Another run holds the lock of the source.
  static func anotherRun(
    _ error: SystemError, of key: StateKey, in cache: ByteString
  ) -> OperationError {
    let directory = try? Directory.open(path: key.directory(in: cache))
    var holder = ""
    if let directory { holder = LockHolder.words(of: key.lock, in: directory) }
    return OperationError(
      .busy, code: .sourceLocked, "back up",
      reason: "another backup of the same source is in progress"
        + (holder.isEmpty ? " (\(error.path))" : holder),
      hint: "wait until it has ended, or use '--lock-wait 10m' to wait for it")
  }

  /// The backup was asked to stop before it created its snapshot.
  static let interrupted = OperationError(
    .interrupted, "the backup was interrupted: no snapshot was created",
    hint: "run it again to continue: data that is already stored is not stored again")
}
