internal import Codecs
internal import SystemIO

/// A file in this host's cache of a repository. It is used only if no other user can have written
/// it; its content can always be made again.
struct CacheFile: Sendable {
  /// The directory, which is created with its parents if it is missing.
  let directory: ByteString
  let name: ByteString

  private func open() -> Directory? {
    guard let directory = try? Directory.make(path: directory, permissions: 0o700),
      let status = try? directory.status(), status.user == Host.userID,
      status.permissions & 0o022 == 0
    else { return nil }
    return directory
  }

  /// Returns the content of at most `limit` bytes, or nil if there is no usable file.
  func load(limit: Int) -> [UInt8]? {
    guard let directory = open(), let file = try? directory.file(name),
      let status = try? file.status(), status.kind == .file, status.user == Host.userID
    else { return nil }
    return try? file.readAll(limit: limit)
  }

  /// Replaces the file. Returns whether that succeeded.
  @discardableResult
  func save(_ bytes: [UInt8]) -> Bool {
    guard let directory = open() else { return false }
    do throws(SystemError) {
      let file = try AtomicFile(in: directory, permissions: 0o600)
      try file.write(bytes)
      try file.commit(as: name, durably: false)
      return true
    } catch { return false }
  }

  /// Removes the file, which is possible on a full volume as well.
  func remove() {
    guard let directory = open() else { return }
    // Usually there is no file. One that stays is read as before.
    try? directory.remove(name)
  }
}
