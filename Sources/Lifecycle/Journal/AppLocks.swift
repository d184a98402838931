internal import ArchiveStore
internal import Codecs
internal import SystemIO

/// The locks of the apps, groups and plain directories that an operation changes, held as long as this
/// value lives: one file each below `.sandboxctl/locks`, named by the hash of the logical path.
final class AppLocks {
  private final class Held {
    private let lock: FileLock
    init(_ lock: consuming FileLock) { self.lock = lock }
  }

  private let held: [Held]

  /// Takes all of them, or none.
  ///
  /// - Throws: `busy` when another operation has one of them.
  init(_ subjects: [ByteString], root: ByteString) throws(LifecycleError) {
    var held: [Held] = []
    var subject: ByteString = ""
    var holder: LockHolder?
    do throws(SystemError) {
      let directory = try ControlDirectory.make(ControlDirectory.locks, root: root)
      for next in Set(subjects).sorted() {
        subject = next
        let name = Self.name(of: next)
        do throws(SystemError) {
          held.append(Held(try FileLock(name, in: directory)))
          try ControlOwner.give(name, in: directory)
        } catch {
          holder = FileLock.holder(of: name, in: directory)
          throw error
        }
      }
    } catch {
      guard error.isBusy else { throw LifecycleError(error) }
      throw LifecycleError(
        .busy,
        "cannot change '\(subject)' of '\(root)': another operation on it is going on"
          + (holder?.words ?? ""),
        hint: "try again when it has ended")
    }
    self.held = held
  }

  /// The first of some subjects that another operation has; nothing is made to find that out.
  static func held(among subjects: [ByteString], root: ByteString) -> ByteString? {
    guard let directory = (try? ControlDirectory.open(ControlDirectory.locks, root: root)) ?? nil
    else {
      return nil
    }
    // A lock that cannot be looked at counts as held.
    return subjects.first { (try? FileLock.isHeld(name(of: $0), in: directory)) ?? true }
  }

  private static func name(of subject: ByteString) -> ByteString {
    var hash = Blake2b()
    hash.update(Array(subject.bytes))
    return ByteString(hash.finish().hex)
  }
}

extension LockHolder {
  /// Who it is, to follow what a message says is going on.
  var words: String { " (process \(process), since \(since.rfc3339))" }
}

extension ByteString {
  /// What is locked for a container: the app, the group or the directory that its logical path begins
  /// with.
  var subject: ByteString {
    ByteString(components.prefix(2).map(\.bytes).joined(separator: [UInt8(ascii: "/")]))
  }
}
