internal import SandboxModel
internal import SystemIO

extension Package {
  /// Opens an archive.
  static func archive(
    in place: borrowing Directory, name: ByteString, limits: PackageLimits, fault: PackageFault
  ) throws(ModelError) -> Package {
    let file = try calling { () throws(SystemError) in try place.file(name) }
    return try archive(file, limits: limits, fault: fault)
  }

  /// Opens an archive given as a file.
  static func archive(
    _ file: consuming Descriptor, limits: PackageLimits, fault: PackageFault
  ) throws(ModelError) -> Package {
    let zip = try ZipFile(file, limits: limits, fault: fault)
    let place = try BundleLocation(in: zip, limits: limits)
    let table = try table(of: zip, place, limits)
    var inspection = PackageInspection(
      of: PackageOrigin(path: fault.path, form: .archive), bundle: place.bundle)
    try give(table, try ArchiveReader(zip), to: &inspection)
    for path in try inspection.programs() {
      guard let row = table[path], case .file = row.entry.kind, let ticket = row.ticket else {
        continue
      }
      let program = ArchivedExecutable(zip, ticket)
      try calling { () throws(SystemError) in try inspection.examine(path, program) }
      if let failure = program.failure { throw failure }
    }
    try zip.checkUnchanged()
    let size = table.size
    return Package(try inspection.description(size: size), table: table, content: .archive(zip))
  }

  /// Returns the table of the entries that belong to the bundle.
  private static func table(
    of zip: ZipFile, _ place: BundleLocation, _ limits: PackageLimits
  ) throws(ModelError) -> PackageTable {
    var table = PackageTable(bundle: place.bundle, limits: limits, fault: zip.fault)
    // Opened for the first link; few apps contain any.
    var links: ZipStream?
    for (ticket, entry) in zip.entries.enumerated() {
      guard let path = place.path(of: entry.path) else { continue }
      let kind: PackageEntry.Kind
      switch entry.kind {
      case .folder: kind = .folder
      case .file, .special: kind = .file(size: entry.size)
      case .link:
        let stream: ZipStream
        if let links { stream = links } else { stream = try ZipStream(zip) }
        links = stream
        try stream.go(to: ticket)
        kind = .link(target: try stream.target())
      }
      try table.add(
        PackageEntry(
          path: path, kind: kind, permissions: entry.permissions, modified: entry.modified),
        ticket: ticket)
    }
    try table.finish()
    return table
  }
}

/// The location of the bundle in an archive.
struct BundleLocation {
  /// The bundle's directory, `Example.app`.
  let bundle: ByteString
  /// The path above it: `Payload` in an .ipa, otherwise empty.
  let above: ByteString

  private static let payload: ByteString = "Payload"

  /// Finds the only bundle and checks all names, including those outside the bundle.
  init(in zip: ZipFile, limits: PackageLimits) throws(ModelError) {
    var bundles: Set<ByteString> = []
    var seen: Set<ByteString> = []
    for entry in zip.entries {
      let path = entry.path
      if let reason = PackageName.fault(of: path, depth: limits.depth, foreign: true) {
        throw zip.fault.unsafe("its '\(entry.name)' cannot be extracted safely: \(reason)")
      }
      guard seen.insert(path).inserted else {
        throw zip.fault.unsafe("it contains '\(path)' twice")
      }
      if let bundle = Self.bundle(of: path) { bundles.insert(bundle) }
    }
    guard let found = bundles.first, let name = found.lastComponent else {
      throw zip.fault.damaged(
        "it contains no app: neither Payload/X.app nor X.app",
        hint: "specify an .ipa or a zip archive of one .app directory")
    }
    guard bundles.count == 1 else {
      let names = bundles.sorted().prefix(3).map { "'\($0)'" }.joined(separator: ", ")
      throw zip.fault.unsafe(
        "it contains \(bundles.count) apps: \(names)", hint: "specify a package of one app")
    }
    bundle = name
    above = found.components.count > 1 ? Self.payload : ""
  }

  /// Returns the bundle that contains a path: `Payload/X.app`, or `X.app` at the top level.
  private static func bundle(of path: ByteString) -> ByteString? {
    let parts = path.components
    guard let first = parts.first else { return nil }
    if first == payload, parts.count > 1, PackageName.isBundle(parts[1]) {
      return payload.appending(parts[1])
    }
    return PackageName.isBundle(first) ? first : nil
  }

  /// Returns the path relative to the directory that contains the bundle, or nil if it is outside
  /// the bundle.
  func path(of path: ByteString) -> ByteString? {
    let root = above.appending(bundle)
    guard path.isWithin(root) else { return nil }
    return path.relative(to: above)
  }
}
