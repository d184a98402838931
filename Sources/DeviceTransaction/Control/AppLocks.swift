internal import ArchiveStore
internal import Codecs
package import SandboxModel
package import SystemIO

/// The locks on the apps, groups and plain directories that an operation changes, held for the
/// lifetime of this value: one file each in `.sandboxctl/locks`, named by the hash of the logical
/// path.
package final class AppLocks {
  private final class HeldLock {
    private let lock: FileLock
    init(_ lock: consuming FileLock) { self.lock = lock }
  }

  private let locks: [HeldLock]

  /// Acquires all locks, or none.
  ///
  /// - Throws: `busy` if another operation holds one of them.
  package init(_ subjects: [ByteString], root: ByteString) throws(OperationError) {
    var held: [HeldLock] = []
    var subject: ByteString = ""
    var holder = ""
    do throws(SystemError) {
      let directory = try ControlDirectory.make(ControlDirectory.locks, root: root)
      for next in Set(subjects).sorted() {
        subject = next
        let name = Self.name(of: next)
        do throws(SystemError) {
          held.append(HeldLock(try FileLock(name, in: directory)))
          try directory.inheritOwner(name)
        } catch {
          holder = LockHolder.words(of: name, in: directory)
          throw error
        }
      }
    } catch {
      guard error.isBusy else { throw OperationError(error) }
      throw Self.busy("change", subject, root: root, holder: holder)
    }
    locks = held
  }

  private static func busy(
    _ action: String, _ subject: ByteString, root: ByteString, holder: String
  ) -> OperationError {
    OperationError(
      .busy, code: .appLocked, action, subject: subject,
      reason: "another operation on it is in progress in '\(root)'" + holder,
      hint: "try again when that operation has ended")
  }

  /// Refuses to read apps, groups and directories that another operation changes. Creates nothing.
  ///
  /// - Parameter action: the operation, as the words after "cannot".
  /// - Throws: `busy` if another operation holds one of the locks.
  package static func requireFree(
    _ subjects: [ByteString], root: ByteString, to action: String
  ) throws(OperationError) {
    guard let subject = heldLocks(among: subjects, root: root) else { return }
    var holder = ""
    if let directory = try? ControlDirectory.open(ControlDirectory.locks, root: root) {
      holder = LockHolder.words(of: name(of: subject), in: directory)
    }
    throw busy(action, subject, root: root, holder: holder)
  }

  /// Returns the first subject that another operation holds, or nil if there is none. Creates
  /// nothing.
  package static func heldLocks(among subjects: [ByteString], root: ByteString) -> ByteString? {
    // An operation of this user needs the directory as well, and says why it cannot open it.
    guard let directory = try? ControlDirectory.open(ControlDirectory.locks, root: root) else {
      return nil
    }
    // A lock that cannot be examined counts as held.
    return subjects.first { (try? FileLock.isHeld(name(of: $0), in: directory)) ?? true }
  }

  private static func name(of subject: ByteString) -> ByteString {
    var hash = Blake2b()
    hash.update(Array(subject.bytes))
    return ByteString(hash.finish().hex)
  }
}

extension LogicalContainer {
  /// Returns the logical path of an app.
  package static func app(_ identifier: BundleIdentifier) -> ByteString {
    LogicalContainer.data(LogicalName(identifier.bytes)).prefix.subject
  }
}
