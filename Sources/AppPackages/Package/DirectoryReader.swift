internal import DeviceDiscovery
internal import SandboxModel
internal import SystemIO

/// Reads the files of a bundle's directory, and fails for files that changed since they were
/// listed.
final class DirectoryReader: PackageReader {
  private var ladder: DirectoryCursor
  /// The components of the current directory, relative to the bundle.
  private var here: [ByteString] = []
  private let statuses: [FileStatus]
  private let fault: PackageFault
  private var file: Descriptor?
  private var path: ByteString = ""
  private var remaining: UInt64 = 0
  private var expected: FileStatus?

  init(_ bundle: borrowing Directory, _ statuses: [FileStatus], fault: PackageFault)
    throws(ModelError)
  {
    ladder = DirectoryCursor(
      root: try calling { () throws(SystemError) in try bundle.duplicate() })
    self.statuses = statuses
    self.fault = fault
  }

  func open(_ row: PackageTable.Row) throws(ModelError) {
    guard let ticket = row.ticket else { return }
    path = row.entry.path
    do throws(SystemError) {
      let opened = try open(Array(path.components.dropFirst()))
      let status = try opened.status()
      guard Self.isSame(status, statuses[ticket]) else { throw SystemError.replaced(path) }
      expected = status
      remaining = status.size
      file = consume opened
    } catch {
      throw failure(error)
    }
  }

  func read(into buffer: inout [UInt8]) throws(ModelError) -> Int {
    guard remaining > 0 else { return 0 }
    do throws(SystemError) {
      let wanted = Int(min(UInt64(buffer.count), remaining))
      guard let offset = expected.map({ $0.size - remaining }),
        let count = try file?.read(into: &buffer, from: 0, to: wanted, at: offset),
        count == wanted
      else { throw SystemError.replaced(path) }
      remaining -= UInt64(count)
      if remaining == 0, let now = try file?.status(), let expected,
        !Self.isSame(now, expected)
      {
        throw SystemError.replaced(path)
      }
      return count
    } catch {
      throw failure(error)
    }
  }

  func finish() throws(ModelError) {}

  /// Opens a file in the bundle, starting at the current directory.
  private func open(_ parts: [ByteString]) throws(SystemError) -> Descriptor {
    let directories = Array(parts.dropLast())
    let common = zip(here, directories).prefix { $0 == $1 }.count
    try ladder.ascend(to: common)
    here.removeLast(here.count - common)
    for name in directories.dropFirst(common) {
      try ladder.descend(name)
      here.append(name)
    }
    guard let name = parts.last else { throw SystemError.replaced(path) }
    return try ladder.withDirectory { directory throws(SystemError) in try directory.file(name) }
  }

  private static func isSame(_ one: FileStatus, _ other: FileStatus) -> Bool {
    one.identity == other.identity && one.size == other.size && one.modified == other.modified
      && one.changed == other.changed && one.kind == .file
  }

  private func failure(_ error: SystemError) -> ModelError {
    error.isStale || error.isMissing || error.isLink
      ? fault.changed(path) : ModelError(package: error)
  }
}

extension DirectoryReader {
  /// Examines the executable that is open.
  func examine(
    _ path: ByteString, _ inspection: inout PackageInspection
  ) throws(SystemError) {
    try inspection.examine(path, OpenProgram(self))
  }

  fileprivate func bytes(count: Int, at offset: UInt64) throws(SystemError) -> [UInt8] {
    try file?.read(count: count, at: offset) ?? []
  }
}

/// The content of the file that a reader has open.
private struct OpenProgram: ByteSource {
  private let reader: DirectoryReader

  init(_ reader: DirectoryReader) { self.reader = reader }

  func read(count: Int, at offset: UInt64) throws(SystemError) -> [UInt8] {
    try reader.bytes(count: count, at: offset)
  }
}
