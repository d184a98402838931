internal import SandboxModel
internal import SystemIO

extension Package {
  /// Opens a bundle's directory.
  static func directory(
    in place: borrowing Directory, name: ByteString, limits: PackageLimits, fault: PackageFault
  ) throws(ModelError) -> Package {
    guard PackageName.isBundle(name) else {
      throw fault.damaged(
        "its name does not end in .app", hint: "specify the .app directory itself or an .ipa")
    }
    let directory = try calling { () throws(SystemError) in try place.directory(name) }
    let root = try calling { () throws(SystemError) in try directory.status() }
    let listing = try list(directory, bundle: name, limits: limits, fault: fault)
    var table = PackageTable(bundle: name, limits: limits, fault: fault)
    try table.add(
      PackageEntry(
        path: name, kind: .folder, permissions: root.permissions & 0o777, modified: root.modified),
      ticket: nil)
    for (ticket, found) in listing.enumerated() { try table.add(found.entry, ticket: ticket) }
    try table.finish()
    let bundle = BundleDirectory(directory, listing.map(\.status))
    let reader = try DirectoryReader(bundle.directory, bundle.statuses, fault: fault)
    var inspection = PackageInspection(
      of: PackageOrigin(path: fault.path, form: .folder), bundle: name)
    try give(table, reader, to: &inspection)
    for path in try inspection.programs() {
      guard let row = table[path], case .file = row.entry.kind else { continue }
      try reader.open(row)
      try calling { () throws(SystemError) in try reader.examine(path, &inspection) }
    }
    let size = table.size
    return Package(try inspection.description(size: size), table: table, content: .folder(bundle))
  }

  /// Returns the content of a bundle's directory, sorted by the bytes of the paths.
  private static func list(
    _ directory: borrowing Directory, bundle name: ByteString, limits: PackageLimits,
    fault: PackageFault
  ) throws(ModelError) -> [(entry: PackageEntry, status: FileStatus)] {
    var listing = DirectoryListing(bundle: name, limits: limits, fault: fault)
    var walk = Walk(try calling { () throws(SystemError) in try directory.duplicate() })
    walk.run(&listing, state: ())
    if let failure = listing.failure { throw failure }
    return listing.entries.sorted { $0.entry.path < $1.entry.path }
  }

  /// Passes the files that the inspection wants to it.
  static func give(
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
