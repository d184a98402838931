package import SandboxModel
package import SystemIO

/// A writer of an app's package into a directory that no process uses yet. It checks the written
/// entries and bytes against the package's own totals.
package struct PackageWriter: ~Copyable {
  private var cursor: DirectoryCursor
  private let isStopping: @Sendable () -> Bool
  private var directories: [PackageEntry] = []
  package private(set) var written = AppPackage.Size()
  private var buffer = [UInt8](repeating: 0, count: 1 << 18)

  /// Prepares to write below a directory.
  package init(
    into directory: borrowing Directory, isStopping: @escaping @Sendable () -> Bool
  ) throws(SystemError) {
    cursor = DirectoryCursor(root: try directory.duplicate())
    self.isStopping = isStopping
  }

  /// Writes all entries.
  ///
  /// - Throws: `ModelError` if the package is damaged; `SystemError`; `OperationError` after a
  ///   request to stop, or if the number of entries or bytes differs from the package's totals.
  package mutating func write<Source: PackageEntrySource & ~Copyable>(
    _ source: inout Source, of package: AppPackage
  ) throws {
    while let entry = try source.next() {
      if isStopping() {
        throw OperationError(
          .interrupted,
          "the unpacking of '\(package.origin.path)' was interrupted: the device is unchanged")
      }
      try write(entry, &source)
      written.entries += 1
      written.allocate(entry.kind)
    }
    // Deepest first, since creating an entry in a directory changes its modification time.
    for directory in directories.reversed() {
      let path = directory.path.components
      try cursor.withDirectory(at: path) { opened throws(SystemError) in
        try opened.setPermissions(directory.permissions)
        try opened.setModified(directory.modified)
      }
    }
    guard written.entries == package.size.entries, written.bytes == package.size.bytes else {
      throw OperationError(
        .failed, code: .invalidPackage,
        "unpack", subject: package.origin.path,
        reason: "it has \(written.entries) entries and "
          + "\(written.bytes) bytes, expected \(package.size.entries) entries and "
          + "\(package.size.bytes) bytes",
        hint: "the package was changed while it was read: try again")
    }
  }

  private mutating func write<Source: PackageEntrySource & ~Copyable>(
    _ entry: PackageEntry, _ source: inout Source
  ) throws {
    let name = entry.path.lastComponent ?? ""
    let above = Array(entry.path.components.dropLast())
    switch entry.kind {
    case .directory:
      directories.append(entry)
      try cursor.withDirectory(at: above) { opened throws(SystemError) in
        try opened.createDirectory(name, permissions: 0o700)
      }
    case .link(let target):
      try cursor.withDirectory(at: above) { opened throws(SystemError) in
        try opened.createLink(name, to: target)
        try opened.setModified(entry.modified, of: name)
      }
    case .file:
      let file = try cursor.withDirectory(at: above) { opened throws(SystemError) in
        try opened.create(name, permissions: 0o600)
      }
      while true {
        let count = try source.read(into: &buffer)
        if count == 0 { break }
        try file.write(count == buffer.count ? buffer : Array(buffer[..<count]))
        written.bytes += UInt64(count)
      }
      try file.setPermissions(entry.permissions)
      try file.setModified(entry.modified)
      try file.close()
    }
  }
}

/// The package of an operation that installs nothing.
package struct NoPackage: PackageEntrySource {
  /// Creates a package without entries.
  package init() {}

  package mutating func next() throws(ModelError) -> PackageEntry? { nil }
  package mutating func read(into buffer: inout [UInt8]) throws(ModelError) -> Int { 0 }
}
