internal import Codecs
internal import SystemIO

/// Writes a zip archive: files, directories and symbolic links with permissions, owners and times
/// in seconds.
///
/// Zip has no extended attributes, no ACLs, no device files and no hard links: each name of a
/// hard-linked file becomes a separate file.
package struct ZipSink: ~Copyable, EntrySink {
  private var output: ZipOutput
  package private(set) var skipped = SkippedEntries()
  private var isSkipping = false

  package var holdsHardLinks: Bool { false }

  /// Creates an archive.
  package init(to output: @escaping ByteOutput) throws(InterchangeError) {
    self.output = try ZipOutput(.zip, to: output, action: "write")
  }

  package mutating func add(_ entry: ForeignEntry) throws(InterchangeError) {
    isSkipping = true
    if entry.path.isEmpty { return }
    guard let kind = Self.kind(entry.kind) else {
      skipped.append(
        path: entry.joinedPath, reason: "a zip archive cannot hold \(Self.name(entry.kind))")
      return
    }
    recordDropped(entry)
    var member = PaxMember(
      path: Array(entry.joinedPath.bytes), kind: kind, mode: entry.permissions)
    (member.owner, member.group) = (entry.owner, entry.group)
    (member.modified, member.nanoseconds) = (entry.modified.seconds, entry.modified.nanoseconds)
    if !Self.times.contains(member.modified) {
      member.modified = min(max(member.modified, Self.times.lowerBound), Self.times.upperBound)
      member.nanoseconds = 0
    }
    do throws(InterchangeError) {
      try output.begin(member)
      isSkipping = false
    } catch {
      guard error.kind == .unrepresentable else { throw error }
      skipped.append(
        path: entry.joinedPath, reason: "a zip archive cannot hold it: \(error.reason)")
    }
  }

  package mutating func write(_ bytes: UnsafeRawBufferPointer) throws(InterchangeError) {
    if !isSkipping { try output.write(bytes) }
  }

  package mutating func finish() throws(InterchangeError) { try output.finish() }

  private mutating func recordDropped(_ entry: ForeignEntry) {
    if !entry.attributes.isEmpty {
      let names = entry.attributes.map { "'\($0.name)'" }.joined(separator: ", ")
      skipped.append(
        path: entry.joinedPath, reason: "a zip archive cannot hold the attributes \(names)",
        isPropertyOnly: true)
    }
    if !Self.times.contains(entry.modified.seconds) {
      skipped.append(
        path: entry.joinedPath, reason: "a zip archive cannot hold a time outside of 1970 to 2038",
        isPropertyOnly: true)
    }
  }

  /// The times that all programs read alike, in seconds since 1970. The extended timestamp of
  /// Info-ZIP has 32 bits (extrafld.txt of Info-ZIP, 0x5455), which some programs read as a signed
  /// number and others, such as libarchive, as an unsigned one.
  private static let times = 0...Int64(Int32.max)

  private static func kind(_ kind: ForeignEntry.Kind) -> PaxMember.Kind? {
    switch kind {
    case .file(let size): .file(size: size)
    case .directory: .directory
    case .symlink(let target): .symbolicLink(target: Array(target.bytes))
    case .hardLink, .fifo, .characterDevice, .blockDevice: nil
    }
  }

  private static func name(_ kind: ForeignEntry.Kind) -> String {
    switch kind {
    case .hardLink: "a hard link"
    case .fifo: "a FIFO"
    case .characterDevice, .blockDevice: "a device file"
    case .file, .directory, .symlink: "it"
    }
  }
}
