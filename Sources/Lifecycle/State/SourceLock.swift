public import ArchiveStore
internal import Codecs
public import SandboxModel
public import SystemIO

/// The lock of one source of backups in one repository, held as long as this value lives, so that no
/// second run looks at the source or stores it meanwhile.
public final class SourceLock: Sendable {
  private let lock: FileLock
  /// Whether another run had to end first: what was known of the source may be old.
  public let hasWaited: Bool

  private init(
    _ key: StateKey, in cache: ByteString, hasWaited: Bool
  ) throws(SystemError) {
    self.hasWaited = hasWaited
    let directory = try Directory.make(path: key.directory(in: cache), permissions: 0o700)
    lock = try FileLock(key.lock, in: directory)
  }

  /// Seconds between two looks at a lock that another run has.
  private static let interval = 0.1

  /// Takes the lock, waiting at most so many seconds while another run has it.
  ///
  /// Nil where there is no place for a lock: the run goes without, as it goes without a state.
  ///
  /// - Parameters:
  ///   - cache: the directory of caches, as `Host.cacheDirectory`.
  ///   - isStopping: asked while it waits: whether the work is to end.
  /// - Throws: `busy` when another run still has it then; `interrupted`.
  public static func take(
    for device: Device, in repository: Repository, cache: ByteString?, waiting seconds: Double,
    isStopping: () -> Bool
  ) throws(LifecycleError) -> SourceLock? {
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
        if Host.monotonicSeconds() >= deadline { throw .anotherRun(error, key, cache) }
      }
      hasWaited = true
      Host.pause(seconds: interval)
    }
  }
}
