// App packages: a `.app` directory, an `.ipa`, or a zip archive with a `.app` directory.
//
// Opening a package writes nothing. It checks the names, links, sizes and the archive's directory,
// and reads the property lists and entitlements that describe the app. Packages that are not safe
// to extract are refused at this point. `entries()` returns the entries to extract; each file is
// checked while it is read, against its checksum or against the directory's state when it was
// opened.
//
// Not checked: signatures, and the integrity of files that are not read. Not extracted: owners,
// extended attributes, set-user-ID bits, and entries outside the bundle in an .ipa.
package import SandboxModel
package import SystemIO

/// An open app package.
package struct Package: ~Copyable {
  /// The description of the app.
  package let app: AppPackage
  let table: PackageTable
  let content: Content

  /// The source of the content.
  enum Content {
    case directory(BundleDirectory)
    case archive(ZipFile)
  }

  /// An open directory.
  final class BundleDirectory: Sendable {
    let directory: Directory
    let statuses: [FileStatus]

    init(_ directory: consuming Directory, _ statuses: [FileStatus]) {
      self.directory = directory
      self.statuses = statuses
    }
  }

  /// Opens the package at a path, following links.
  ///
  /// - Throws: `package` if it is damaged or not a package, `unsafePackage` if it is not safe to
  ///   extract, `system` for a failed system call.
  package init(
    opening path: ByteString, limits: PackageLimits = PackageLimits()
  ) throws(ModelError) {
    let fault = PackageFault(path: path)
    let (parent, name) = try Self.find(path)
    let parentDirectory = try calling { () throws(SystemError) in try Directory.open(path: parent) }
    switch try calling({ () throws(SystemError) in try parentDirectory.status(name).kind }) {
    case .directory:
      self = try Self.directory(in: parentDirectory, name: name, limits: limits, fault: fault)
    case .file:
      self = try Self.archive(in: parentDirectory, name: name, limits: limits, fault: fault)
    default:
      throw fault.damaged(
        "it is neither a directory nor a file", hint: "specify a .app directory or an .ipa")
    }
  }

  /// Returns the entries, starting at the first one. Can be called repeatedly.
  package func entries() throws(ModelError) -> Entries {
    switch content {
    case .directory(let bundle):
      Entries(
        table.rows,
        directory: try DirectoryReader(bundle.directory, bundle.statuses, fault: table.fault))
    case .archive(let zip):
      Entries(table.rows, archive: try ArchiveReader(zip))
    }
  }

  init(_ app: AppPackage, table: PackageTable, content: Content) {
    self.app = app
    self.table = table
    self.content = content
  }

  /// Returns the directory that contains a package, and the package's name, with links resolved.
  private static func find(
    _ path: ByteString
  ) throws(ModelError) -> (parent: ByteString, name: ByteString) {
    let real = try calling { () throws(SystemError) in try Host.realPath(path) }
    guard let name = real.lastComponent else {
      throw ModelError(
        .package, PackageFault.action, on: path, reason: "it is the root of the file system",
        hint: "specify a .app directory or an .ipa")
    }
    return (real.parent, name)
  }
}

// MARK: - Entries

extension Package {
  /// The entries of a package, in extraction order.
  package struct Entries: PackageEntrySource, ~Copyable {
    /// The reader for the form of the package.
    private enum Reader {
      case directory(DirectoryReader)
      case archive(ArchiveReader)
    }

    private let rows: [PackageTable.Row]
    private let reader: Reader
    private var position = 0
    private var isInFile = false

    init(_ rows: [PackageTable.Row], directory: DirectoryReader) {
      self.rows = rows
      reader = .directory(directory)
    }

    init(_ rows: [PackageTable.Row], archive: ArchiveReader) {
      self.rows = rows
      reader = .archive(archive)
    }

    package mutating func next() throws(ModelError) -> PackageEntry? {
      isInFile = false
      guard position < rows.count else {
        switch reader {
        case .directory(let reader): try reader.finish()
        case .archive(let reader): try reader.finish()
        }
        return nil
      }
      let row = rows[position]
      position += 1
      if case .file = row.entry.kind {
        switch reader {
        case .directory(let reader): try reader.open(row)
        case .archive(let reader): try reader.open(row)
        }
        isInFile = true
      }
      return row.entry
    }

    package mutating func read(into buffer: inout [UInt8]) throws(ModelError) -> Int {
      guard isInFile else { return 0 }
      return switch reader {
      case .directory(let reader): try reader.read(into: &buffer)
      case .archive(let reader): try reader.read(into: &buffer)
      }
    }
  }
}

/// Reads the files of a package by ticket, in the order of the package's table.
protocol PackageReader: AnyObject {
  /// Opens a file.
  func open(_ row: PackageTable.Row) throws(ModelError)
  /// Reads into the buffer and returns the number of bytes: less than the buffer's size only at the
  /// end of the file, and 0 after it.
  func read(into buffer: inout [UInt8]) throws(ModelError) -> Int
  /// Checks after the last entry that the package has not changed.
  func finish() throws(ModelError)
}
