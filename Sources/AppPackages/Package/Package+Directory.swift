internal import DeviceDiscovery
internal import SandboxModel
internal import SystemIO

extension Package {
  /// Opens a bundle's directory.
  static func directory(
    in parentDirectory: borrowing Directory, name: ByteString, limits: PackageLimits,
    fault: PackageFault
  ) throws(ModelError) -> Package {
    guard PackageEntry.Name.isBundle(name) else {
      throw fault.damaged(
        "its name does not end in .app", hint: "specify the .app directory itself or an .ipa")
    }
    let directory = try calling { () throws(SystemError) in try parentDirectory.directory(name) }
    let root = try calling { () throws(SystemError) in try directory.status() }
    let listing = try list(directory, bundle: name, limits: limits, fault: fault)
    var table = PackageTable(bundle: name, limits: limits, fault: fault)
    try table.add(
      PackageEntry(
        path: name, kind: .directory, permissions: root.permissions & 0o777, modified: root.modified
      ),
      ticket: nil)
    for (ticket, found) in listing.enumerated() { try table.add(found.entry, ticket: ticket) }
    try table.finish()
    let bundle = BundleDirectory(directory, listing.map(\.status))
    let reader = try DirectoryReader(bundle.directory, bundle.statuses, fault: fault)
    var inspection = PackageInspection(
      of: AppPackage.Origin(path: fault.path, form: .directory), bundle: name)
    try inspect(table, reader, to: &inspection)
    for path in try inspection.programs() {
      guard let row = table[path], case .file = row.entry.kind else { continue }
      try reader.open(row)
      try calling { () throws(SystemError) in try inspection.examine(path, reader) }
    }
    let size = table.size
    return Package(
      try inspection.description(size: size), table: table, content: .directory(bundle))
  }

  /// Returns the content of a bundle's directory, sorted by the bytes of the paths.
  private static func list(
    _ directory: borrowing Directory, bundle name: ByteString, limits: PackageLimits,
    fault: PackageFault
  ) throws(ModelError) -> [(entry: PackageEntry, status: FileStatus)] {
    var listing = DirectoryReader.Listing(bundle: name, limits: limits, fault: fault)
    var walk = Walk(try calling { () throws(SystemError) in try directory.duplicate() })
    walk.run(&listing, state: ())
    if let failure = listing.failure { throw failure }
    return listing.entries.sorted { $0.entry.path < $1.entry.path }
  }

  /// Passes the files that the inspection requests to it.
  static func inspect(
    _ table: PackageTable, _ reader: some PackageReader, to inspection: inout PackageInspection
  ) throws(ModelError) {
    for row in table.rows {
      guard case .file(let size) = row.entry.kind, inspection.wants(row.entry.path) else {
        continue
      }
      guard size <= UInt64(PackageInspection.fileLimit) else {
        try inspection.skip(row.entry.path, size: size)
        continue
      }
      try reader.open(row)
      var bytes = [UInt8](repeating: 0, count: Int(size))
      let count = try reader.read(into: &bytes)
      bytes.removeLast(bytes.count - count)
      try inspection.add(row.entry.path, bytes)
    }
  }
}

/// Reads the files of a bundle's directory, and fails for files that changed since they were
/// listed.
final class DirectoryReader: PackageReader, ByteSource {
  private var cursor: DirectoryCursor
  private let statuses: [FileStatus]
  private let fault: PackageFault
  private var file: Descriptor?
  private var path: ByteString = ""
  private var remaining: UInt64 = 0
  private var expected: FileStatus?

  init(_ bundle: borrowing Directory, _ statuses: [FileStatus], fault: PackageFault)
    throws(ModelError)
  {
    cursor = DirectoryCursor(root: try calling { () throws(SystemError) in try bundle.duplicate() })
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

  /// Reads bytes of the file that is open, to examine an executable.
  func read(count: Int, at offset: UInt64) throws(SystemError) -> [UInt8] {
    try file?.read(count: count, at: offset) ?? []
  }

  /// Opens a file in the bundle.
  private func open(_ parts: [ByteString]) throws(SystemError) -> Descriptor {
    guard let name = parts.last else { throw SystemError.replaced(path) }
    return try cursor.withDirectory(at: Array(parts.dropLast())) { directory throws(SystemError) in
      try directory.file(name)
    }
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
  /// Lists a bundle's directory: every entry with its status, and the targets of links.
  struct Listing: WalkVisitor {
    let bundle: ByteString
    let limits: PackageLimits
    let fault: PackageFault
    private(set) var entries: [(entry: PackageEntry, status: FileStatus)] = []
    private(set) var failure: ModelError?

    init(bundle: ByteString, limits: PackageLimits, fault: PackageFault) {
      self.bundle = bundle
      self.limits = limits
      self.fault = fault
    }

    var isDone: Bool { failure != nil }

    mutating func visit(
      _ batch: borrowing WalkBatch, of directory: borrowing WalkDirectory, state: Void,
      descent: inout WalkDescent<Void>
    ) {
      do throws(ModelError) {
        for index in batch.entries.indices {
          let entry = batch.entries[index]
          let name = batch.name(entry)
          let path = bundle.appending(directory.relativePath).appending(name)
          try add(path, status: entry.status, name: name, in: directory.directory)
          if entry.status.kind == .directory { descent.enter(index, with: ()) }
        }
      } catch {
        failure = error
      }
    }

    mutating func failed(_ problem: WalkProblem, state: Void) {
      failure = failure ?? ModelError(package: problem.error)
    }

    private mutating func add(
      _ path: ByteString, status: FileStatus, name: ByteString, in directory: borrowing Directory
    ) throws(ModelError) {
      guard entries.count < limits.entries else {
        throw fault.limitExceeded("it has more than \(limits.entries) entries")
      }
      if let reason = PackageEntry.Name.fault(of: path, depth: limits.depth, foreign: false) {
        throw fault.unsafe("its '\(path)' cannot be copied: \(reason)")
      }
      if status.isMountPoint {
        throw fault.unsafe(
          "its '\(path)' is on another file system", hint: "unmount it or specify a copy")
      }
      let kind: PackageEntry.Kind
      switch status.kind {
      case .directory: kind = .directory
      case .file: kind = .file(size: status.size)
      case .symlink:
        do {
          kind = .link(target: try directory.target(of: name))
        } catch {
          throw ModelError(package: error)
        }
      default: throw fault.unsafe("its '\(path)' is not a file, directory or link")
      }
      entries.append(
        (
          PackageEntry(
            path: path, kind: kind, permissions: status.permissions & 0o777,
            modified: status.modified), status
        ))
    }
  }
}
