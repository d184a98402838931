internal import Codecs
internal import SandboxModel
package import SystemIO

/// A file or document package in an inbox, or one that was delivered and is no longer there.
package struct InboxFile: Sendable, Hashable {
  package let name: ByteString
  package let state: State
  /// Whether it is a directory: a document package.
  package let isPackage: Bool
  /// The size in bytes (for a package, the sum of its files); its size at delivery if it is gone.
  package let size: UInt64
  /// The time of the delivery, or of the last change if this program did not deliver it.
  package let time: Timestamp

  /// The changes to a file since its delivery.
  package enum State: String, Sendable, Hashable, CaseIterable {
    /// It is unchanged.
    case unchanged
    /// It was written to: the size or the hash differs, or it is of another kind.
    case changed
    /// It is unchanged, but its mode permits writing.
    case writable
    /// It is gone: the app deleted or moved it, which is permitted.
    case removed
    /// This program did not deliver it.
    case unknown

    /// Whether the state violates the platform's rule that an app does not write in its inbox.
    package var isViolation: Bool { self == .changed || self == .writable }
  }
}

extension Inbox {
  /// Returns the files of the inbox, and the delivered ones that are gone, sorted by name.
  ///
  /// - Throws: `OperationError` if the inbox or its notes cannot be read.
  package func files() throws(OperationError) -> [InboxFile] {
    try files(notes())
  }

  func files(_ notes: InboxNotes) throws(OperationError) -> [InboxFile] {
    var missing = notes.notes
    var files: [InboxFile] = []
    if let directory = try open() {
      do throws(SystemError) {
        for name in try directory.names()
        where !AtomicFile.isTemporary(name) && !OwnNames.has(name) {
          guard let status = try directory.statusIfPresent(name) else { continue }
          files.append(
            try file(name, with: status, missing.removeValue(forKey: name), in: directory))
        }
      } catch { throw OperationError(error) }
    }
    files += missing.values.filter { !$0.isPending }.map { note in
      InboxFile(
        name: note.name, state: .removed, isPackage: note.isPackage, size: note.size,
        time: note.time)
    }
    return files.sorted { $0.name < $1.name }
  }

  private func file(
    _ name: ByteString, with status: FileStatus, _ note: InboxNote?,
    in directory: borrowing Directory
  ) throws(SystemError) -> InboxFile {
    let isDirectory = status.kind == .directory
    let (size, isBounded) =
      isDirectory ? try PackageWalk.size(of: directory.directory(name)) : (status.size, true)
    guard let note else {
      let time = max(status.modified, status.changed)
      return InboxFile(
        name: name, state: .unknown, isPackage: isDirectory, size: size, time: time)
    }
    var isSame =
      status.kind == (note.isPackage ? .directory : .file) && isBounded && size == note.size
    var isWritable = status.permissions & 0o222 != 0
    // Only files that still have their size at delivery are read.
    if isSame, isDirectory {
      let digest = PackageDigest()
      isSame = try digest.add(directory.directory(name)) && digest.finish() == note.hash
      isWritable = digest.isWritable
    } else if isSame {
      isSame = try FileDigest.of(directory.fileUntouched(name)).hash == note.hash
    }
    let state: InboxFile.State = !isSame ? .changed : isWritable ? .writable : .unchanged
    return InboxFile(
      name: name, state: state, isPackage: isDirectory, size: size, time: note.time)
  }
}
