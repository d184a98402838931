/// A file that is written atomically: it is created under a temporary name, synced and renamed, and
/// the directory is synced. Without `commit()` the temporary file is removed.
public struct AtomicFile: ~Copyable {
  private let directory: Directory
  private let temporary: ByteString
  private let file: Descriptor
  private var isDone = false

  private static let prefix = ".sandboxctl-"
  private static let suffix = ".tmp"

  /// Whether a name is that of a temporary file, which a killed process may have left behind.
  public static func isTemporary(_ name: ByteString) -> Bool {
    guard let text = name.utf8 else { return false }
    return text.hasPrefix(prefix) && text.hasSuffix(suffix)
  }

  /// Creates the file in `directory` under a unique temporary name.
  public init(in directory: borrowing Directory, permissions: UInt16 = 0o666) throws(SystemError) {
    let name = Self.temporaryName()
    let parent = try directory.duplicate()
    let created = try parent.create(name, permissions: permissions)
    self.directory = parent
    temporary = name
    file = created
  }

  /// Returns a unique temporary name.
  static func temporaryName() -> ByteString {
    ByteString(prefix + Host.randomHex(bytes: 8) + suffix)
  }

  deinit {
    if !isDone { try? directory.remove(temporary) }
  }

  /// Appends bytes.
  public func write(_ bytes: borrowing [UInt8]) throws(SystemError) { try file.write(bytes) }

  /// Appends the bytes of a span.
  public func write(_ bytes: Span<UInt8>) throws(SystemError) { try file.write(bytes) }

  /// Syncs the content, renames the file to its final name and syncs the directory. If `replacing`
  /// is false, an existing file is an error. If `durably` is false, nothing is synced: after a
  /// system crash the file may exist with arbitrary content.
  public consuming func commit(
    as name: ByteString, replacing: Bool = true, durably: Bool = true
  ) throws(SystemError) {
    if durably { try file.sync() }
    if replacing {
      try directory.rename(temporary, to: name, in: directory)
    } else {
      try directory.renameWithoutReplacing(temporary, to: name)
    }
    isDone = true
    if durably { try directory.sync() }
  }

  /// Writes a whole small file at once.
  public static func write(
    _ bytes: borrowing [UInt8], as name: ByteString, in directory: borrowing Directory,
    permissions: UInt16 = 0o666, replacing: Bool = true
  ) throws(SystemError) {
    let file = try AtomicFile(in: directory, permissions: permissions)
    try file.write(bytes)
    try file.commit(as: name, replacing: replacing)
  }
}

extension Directory {
  /// Renames a child to a name that must not exist.
  fileprivate func renameWithoutReplacing(
    _ name: ByteString, to newName: ByteString
  ) throws(SystemError) {
    do throws(SystemError) {
      try rename(name, to: newName, in: self, replacing: false)
    } catch {
      // Not every file system, such as NFS, supports a rename that refuses to replace.
      guard error.isUnsupported, try statusIfPresent(newName) == nil else { throw error }
      try rename(name, to: newName, in: self)
    }
  }
}
