package import SystemIO

/// A file that an archive is written to: it appears under its name when it is complete. Only the
/// user can read it, since it contains data that the original protected by its directories.
///
/// Until then it has a temporary name and is locked. Files that a killed process left behind are
/// removed when the next file is created in the directory.
package final class OutputFile {
  private let directory: Directory
  private let name: ByteString
  private var file: AtomicFile?
  /// The number of bytes written.
  package private(set) var size: UInt64 = 0

  private static let action = "write"

  /// Creates the file at a path.
  ///
  /// - Throws: `system`, for example if the path already exists: an existing entry is never
  ///   replaced.
  package convenience init(path: ByteString) throws(InterchangeError) {
    let parent: Directory
    do throws(SystemError) {
      parent = try Directory.open(path: path.dirname)
    } catch { throw InterchangeError(error, Self.action, subject: path) }
    try self.init(in: parent, name: path.lastComponent ?? "")
  }

  /// Creates the file in a directory.
  package init(in directory: borrowing Directory, name: ByteString) throws(InterchangeError) {
    self.name = name
    do throws(SystemError) {
      self.directory = try directory.duplicate()
      if try directory.statusIfPresent(name) == nil {
        AtomicFile.removeAbandoned(in: directory)
        file = try AtomicFile(lockedIn: directory, permissions: 0o600)
      }
    } catch {
      throw InterchangeError(error, Self.action, subject: directory.path.appending(name))
    }
    if file == nil {
      throw InterchangeError(
        .exists, Self.action, subject: directory.path.appending(name),
        reason: "a file of that name exists")
    }
  }

  /// Appends bytes.
  package func write(_ bytes: Span<UInt8>) throws(InterchangeError) {
    do throws(SystemError) {
      try file?.write(bytes)
      size += UInt64(bytes.count)
    } catch { throw fault(error) }
  }

  /// Gives the file its name, synced; and a modification time, if there is one.
  ///
  /// - Parameter other: another name, under which a file is replaced; nil for its own, under which
  ///   none is.
  package func commit(
    replacing other: ByteString? = nil, at time: Timestamp? = nil
  ) throws(InterchangeError) {
    guard let complete = file.take() else { return }
    let target = other ?? name
    do throws(SystemError) {
      try complete.commit(as: target, replacing: other != nil)
      if let time { try directory.setModified(time, of: target) }
    } catch { throw fault(error) }
  }

  private func fault(_ error: SystemError) -> InterchangeError {
    InterchangeError(error, Self.action, subject: directory.path.appending(name))
  }
}
