/// A file that appears whole or not at all: written beside its place, synced, renamed, and the
/// directory synced. Without `commit()` its temporary is removed.
public struct AtomicFile: ~Copyable {
  private let directory: Directory
  private let temporary: ByteString
  private let file: Descriptor
  private var isDone = false

  private static let prefix = ".sandboxctl-"
  private static let suffix = ".tmp"

  /// Whether a name is that of such a temporary, which a program that was killed may have left.
  public static func isTemporary(_ name: ByteString) -> Bool {
    guard let text = name.utf8 else { return false }
    return text.hasPrefix(prefix) && text.hasSuffix(suffix)
  }

  /// Begins a file in `folder`, under a temporary name that nobody else uses.
  public init(in directory: borrowing Directory, permissions: UInt16 = 0o666) throws(SystemError) {
    let name = Self.temporaryName()
    let place = try directory.duplicate()
    let created = try place.create(name, permissions: permissions)
    self.directory = place
    temporary = name
    file = created
  }

  /// A name that nobody else uses.
  static func temporaryName() -> ByteString {
    ByteString(prefix + Host.randomHex(bytes: 8) + suffix)
  }

  deinit {
    if !isDone { try? directory.remove(temporary) }
  }

  /// Writes all bytes behind those written before.
  public func write(_ bytes: borrowing [UInt8]) throws(SystemError) { try file.write(bytes) }

  /// Makes the content durable, gives it its name and makes the name durable. With `replacing`
  /// false a file that is there already is an error. With `durably` false nothing waits for the
  /// disk, and after a crash of the machine the file may be there and hold anything.
  public consuming func commit(
    as name: ByteString, replacing: Bool = true, durably: Bool = true
  ) throws(SystemError) {
    if durably { try file.sync() }
    try directory.rename(temporary, to: name, in: directory, replacing: replacing)
    isDone = true
    if durably { try directory.sync() }
  }

  /// Writes a whole small file in one call.
  public static func write(
    _ bytes: borrowing [UInt8], as name: ByteString, in directory: borrowing Directory,
    permissions: UInt16 = 0o666, replacing: Bool = true
  ) throws(SystemError) {
    let file = try AtomicFile(in: directory, permissions: permissions)
    try file.write(bytes)
    try file.commit(as: name, replacing: replacing)
  }
}
