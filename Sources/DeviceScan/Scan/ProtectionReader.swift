internal import DatabaseCapture
internal import PolicyEngine
public import SandboxModel
internal import SystemIO

/// Reads the classes of data protection that the metadata of a container's files states
/// (docs/data-protection.md). No file is opened: attributes are read by name in their directory.
public struct ProtectionReader: ~Copyable {
  private let scan: ContainerScan
  private var files: ScannedFiles

  /// Creates a reader for the entries of a scan.
  public init(_ scan: ContainerScan) {
    self.scan = scan
    files = ScannedFiles(scan)
  }

  /// Returns the class of data protection of an entry: the one that its metadata states, otherwise
  /// the policy's; nil if neither does.
  ///
  /// An attribute that cannot be read or has another value counts as absent. Consecutive calls for
  /// entries of the same directory are cheap.
  public mutating func protection(of index: Int) -> ProtectionClass? {
    stated(on: index) ?? scan.entries[index].verdicts.keep.protection
  }

  /// Returns the class that an entry's metadata states, or nil if it states none.
  public mutating func stated(on index: Int) -> ProtectionClass? { files.stated(on: index) }
}

/// Examines the files of a scan in their directories, if these are still the scanned ones.
/// Consecutive calls for files of the same directory are cheap.
struct ScannedFiles: ~Copyable {
  private let scan: ContainerScan
  private var cursor: DirectoryCursor?
  private var current = -1

  init(_ scan: ContainerScan) { self.scan = scan }

  /// Returns the class of data protection that an entry's metadata states, or nil if it states
  /// none.
  mutating func stated(on index: Int) -> ProtectionClass? {
    withDirectory(of: index) { directory, name in
      let value = try? directory.attributes(of: name).value(of: ProtectionClass.attribute)
      return value.flatMap { ProtectionClass(attribute: $0) }
    }
  }

  /// Returns whether a file begins like a database or has a rollback journal; nil if it cannot be
  /// read.
  mutating func isDatabase(_ index: Int) -> Bool? {
    withDirectory(of: index) { directory, name in
      let begins = try? DatabaseUnit.hasMagic(directory.fileUntouched(name))
      return begins.map { $0 || DatabaseUnit(name).hasJournal(in: directory) }
    }
  }

  /// Calls `body` with the directory of an entry and the entry's name; returns nil if there is no
  /// such directory.
  private mutating func withDirectory<Result>(
    of index: Int, _ body: (borrowing Directory, ByteString) -> Result?
  ) -> Result? {
    guard index > 0, move(to: Int(scan.entries[index].parent)) else { return nil }
    let name = scan.name(index)
    switch cursor {
    case .some(let cursor): return cursor.withDirectory(named: "") { body($0, name) }
    case .none: return nil
    }
  }

  /// Goes to a directory of the scan; returns whether it is the one that the scan found.
  private mutating func move(to directory: Int) -> Bool {
    if current == directory { return cursor != nil }
    current = directory
    if cursor == nil { cursor = Self.openRoot(of: scan) }
    guard var moved = cursor.take() else { return false }
    do throws(DirectoryCursor.NumberedFailure) {
      try moved.move(toNumbered: scan.directories(to: directory)) {
        (scan.name($0), scan.entries[$0].status.identity)
      }
    } catch { return false }
    cursor = consume moved
    return true
  }

  private static func openRoot(of scan: ContainerScan) -> DirectoryCursor? {
    guard let root = try? Directory.open(resolved: scan.container.absolutePath),
      (try? root.status().identity) == scan.entries.first?.status.identity
    else { return nil }
    return DirectoryCursor(root: root)
  }
}
