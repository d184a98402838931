internal import DeviceDiscovery
internal import SandboxModel
internal import SystemIO

extension Package {
  /// Opens an archive.
  static func archive(
    in parentDirectory: borrowing Directory, name: ByteString, limits: PackageLimits,
    fault: PackageFault
  ) throws(ModelError) -> Package {
    let file = try calling { () throws(SystemError) in try parentDirectory.file(name) }
    return try archive(file, limits: limits, fault: fault)
  }

  /// Opens an archive given as a file.
  static func archive(
    _ file: consuming Descriptor, limits: PackageLimits, fault: PackageFault
  ) throws(ModelError) -> Package {
    let zip = try ZipFile(file, limits: limits, fault: fault)
    let root = try BundleRoot(in: zip, limits: limits)
    let table = try table(of: zip, root, limits)
    var inspection = PackageInspection(
      of: AppPackage.Origin(path: fault.path, form: .archive), bundle: root.bundle)
    try inspect(table, try ArchiveReader(zip), to: &inspection)
    for path in try inspection.programs() {
      guard let row = table[path], case .file = row.entry.kind, let ticket = row.ticket else {
        continue
      }
      let program = ArchiveReader.Executable(zip, ticket)
      try calling { () throws(SystemError) in try inspection.examine(path, program) }
      if let failure = program.failure { throw failure }
    }
    try zip.checkUnchanged()
    let size = table.size
    return Package(try inspection.description(size: size), table: table, content: .archive(zip))
  }

  /// Returns the table of the entries that belong to the bundle.
  private static func table(
    of zip: ZipFile, _ root: BundleRoot, _ limits: PackageLimits
  ) throws(ModelError) -> PackageTable {
    var table = PackageTable(bundle: root.bundle, limits: limits, fault: zip.fault)
    // Opened for the first link; few apps contain any.
    var links: ZipStream?
    for (ticket, entry) in zip.entries.enumerated() {
      guard let path = root.path(of: entry.path) else { continue }
      let kind: PackageEntry.Kind
      switch entry.kind {
      case .directory: kind = .directory
      case .file, .special: kind = .file(size: entry.size)
      case .link:
        let stream: ZipStream
        if let links { stream = links } else { stream = try ZipStream(zip) }
        links = stream
        try stream.move(to: ticket)
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

extension Package {
  /// The location of the bundle in an archive.
  private struct BundleRoot {
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
        if let reason = PackageEntry.Name.fault(of: path, depth: limits.depth, foreign: true) {
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
      if first == payload, parts.count > 1, PackageEntry.Name.isBundle(parts[1]) {
        return payload.appending(parts[1])
      }
      return PackageEntry.Name.isBundle(first) ? first : nil
    }

    /// Returns the path relative to the directory that contains the bundle, or nil if it is outside
    /// the bundle.
    func path(of path: ByteString) -> ByteString? {
      let root = above.appending(bundle)
      guard path.isWithin(root) else { return nil }
      return path.relative(to: above)
    }
  }
}

/// Reads the files of an archive.
final class ArchiveReader: PackageReader {
  private let zip: ZipFile
  private let stream: ZipStream

  init(_ zip: ZipFile) throws(ModelError) {
    self.zip = zip
    stream = try ZipStream(zip)
  }

  func open(_ row: PackageTable.Row) throws(ModelError) {
    if let ticket = row.ticket { try stream.move(to: ticket) }
  }

  func read(into buffer: inout [UInt8]) throws(ModelError) -> Int { try stream.read(into: &buffer) }

  func finish() throws(ModelError) { try zip.checkUnchanged() }
}

extension ArchiveReader {
  /// An executable in an archive, of which only some parts are read.
  ///
  /// It is decompressed from the start, without storing the result. Reading backwards restarts at
  /// the beginning; the number of restarts is limited to what executables require. Nothing is
  /// written, and memory use is small.
  final class Executable: ByteSource {
    private let zip: ZipFile
    private let index: Int
    private let size: UInt64
    private var stream: ZipStream?
    private var position: UInt64 = 0
    private var starts = 0
    /// The error that ended reading.
    private(set) var failure: ModelError?

    /// The maximum number of restarts. Each slice requires the header, the commands, the signature,
    /// and the section before it; a universal executable has several slices.
    private static let maximumStarts = 12

    init(_ zip: ZipFile, _ index: Int) {
      self.zip = zip
      self.index = index
      size = zip.entries[index].size
    }

    func read(count: Int, at offset: UInt64) throws(SystemError) -> [UInt8] {
      guard failure == nil, offset < size else { return [] }
      do throws(ModelError) {
        return try bytes(Int(min(UInt64(count), size - offset)), at: offset)
      } catch {
        failure = error
        return []
      }
    }

    private func bytes(_ count: Int, at offset: UInt64) throws(ModelError) -> [UInt8] {
      let stream = try stream(for: offset)
      while position < offset {
        var passed = [UInt8](repeating: 0, count: Int(min(offset - position, 256 << 10)))
        position += UInt64(try stream.read(into: &passed))
      }
      var bytes = [UInt8](repeating: 0, count: count)
      let filled = try stream.read(into: &bytes)
      position += UInt64(filled)
      bytes.removeLast(count - filled)
      return bytes
    }

    private func stream(for offset: UInt64) throws(ModelError) -> ZipStream {
      if let stream, offset >= position { return stream }
      starts += 1
      guard starts <= Self.maximumStarts else {
        throw zip.fault.damaged(
          "its executable '\(zip.entries[index].path)' has an invalid structure")
      }
      let new = try ZipStream(zip)
      try new.move(to: index)
      stream = new
      position = 0
      return new
    }
  }
}
