internal import Codecs
internal import SystemIO

/// Writes a POSIX archive (pax), which GNU tar and bsdtar extract with nanoseconds, extended
/// attributes, ACLs and holes.
package struct TarSink: EntrySink {
  private let output: ByteOutput
  private let compressed: CompressedOutput?
  private let names: OwnerNames
  package let skipped = SkippedEntries()
  /// The content of the current file.
  private var content = Content()

  /// The state of the current file.
  private struct Content {
    /// The bytes that have not arrived yet, holes included.
    var remaining: UInt64 = 0
    var position: UInt64 = 0
    /// The stored ranges that do not end before the position; nil if all bytes are stored.
    var ranges: ArraySlice<Range<UInt64>>?
    /// The number of zeros after the content.
    var padding = 0
  }

  /// The maximum number of ranges in the map of a file with holes; one with more is written with
  /// its zeros.
  static let rangeLimit = 100_000

  /// Creates an archive.
  ///
  /// - Parameter names: the names of owners, which extracting programs prefer to the numbers.
  package init(
    to output: @escaping ByteOutput, compression: ArchiveCompression = .none,
    names: OwnerNames = OwnerNames()
  ) throws(InterchangeError) {
    self.output = output
    self.names = names
    compressed = try CompressedOutput(compression, to: output)
  }

  package mutating func add(_ entry: ForeignEntry) throws(InterchangeError) {
    let member = member(of: entry)
    try put(member.header())
    content = Content()
    guard case .file(let size) = member.kind else { return }
    content.remaining = size
    content.ranges = member.dataRanges?[...]
    content.padding = PaxMember.padding(after: member.storedSize)
    try finishIfComplete()
  }

  package mutating func write(_ bytes: UnsafeRawBufferPointer) throws(InterchangeError) {
    let range = content.position..<(content.position + UInt64(bytes.count))
    while let next = content.ranges?.first, next.lowerBound < range.upperBound {
      let stored = next.clamped(to: range)
      let start = Int(stored.lowerBound - range.lowerBound)
      try put(UnsafeRawBufferPointer(rebasing: bytes[start..<(start + stored.count)]))
      if next.upperBound > range.upperBound { break }
      content.ranges?.removeFirst()
    }
    if content.ranges == nil { try put(bytes) }
    content.position = range.upperBound
    content.remaining -= min(content.remaining, UInt64(bytes.count))
    try finishIfComplete()
  }

  package mutating func writeHole(_ count: UInt64) throws(InterchangeError) -> Bool {
    guard let ranges = content.ranges else { return false }
    let end = content.position + count
    if let next = ranges.first, next.lowerBound < end { return false }
    content.position = end
    content.remaining -= min(content.remaining, count)
    try finishIfComplete()
    return true
  }

  package mutating func finish() throws(InterchangeError) {
    try put(PaxMember.end)
    try compressed?.finish()
  }

  private mutating func finishIfComplete() throws(InterchangeError) {
    guard content.remaining == 0, content.padding > 0 else { return }
    try put([UInt8](repeating: 0, count: content.padding))
    content.padding = 0
  }

  private func put(_ bytes: [UInt8]) throws(InterchangeError) {
    guard let compressed else { return try output(bytes.span) }
    try bytes.span.withUnsafeBytes { (raw) throws(InterchangeError) in try compressed.write(raw) }
  }

  private func put(_ bytes: UnsafeRawBufferPointer) throws(InterchangeError) {
    if let compressed { return try compressed.write(bytes) }
    let typed = bytes.assumingMemoryBound(to: UInt8.self)
    try output(typed.span)
  }
}

// MARK: - Members

extension TarSink {
  private mutating func member(of entry: ForeignEntry) -> PaxMember {
    let path = entry.path.isEmpty ? [UInt8(ascii: ".")] : Array(entry.joinedPath.bytes)
    var member = PaxMember(path: path, kind: Self.kind(entry.kind), mode: entry.permissions)
    (member.owner, member.group) = (entry.owner, entry.group)
    member.userName = names.users[entry.owner] ?? ""
    member.groupName = names.groups[entry.group] ?? ""
    (member.modified, member.nanoseconds) = (entry.modified.seconds, entry.modified.nanoseconds)
    member.attributes = entry.attributes.map {
      .init(name: Array($0.name.bytes), value: $0.value)
    }
    if case .file(let size) = entry.kind {
      member.dataRanges = Self.dataRanges(size: size, holes: entry.holes)
    }
    return member
  }

  /// Returns the ranges between holes; nil if there are no holes, or too many.
  private static func dataRanges(size: UInt64, holes: [Range<UInt64>]) -> [Range<UInt64>]? {
    if holes.isEmpty || holes.count > rangeLimit { return nil }
    var ranges: [Range<UInt64>] = []
    var end: UInt64 = 0
    for hole in holes {
      if hole.lowerBound > end { ranges.append(end..<hole.lowerBound) }
      end = hole.upperBound
    }
    if end < size { ranges.append(end..<size) }
    return ranges
  }

  private static func kind(_ kind: ForeignEntry.Kind) -> PaxMember.Kind {
    switch kind {
    case .file(let size): .file(size: size)
    case .directory: .directory
    case .symlink(let target): .symbolicLink(target: Array(target.bytes))
    case .hardLink(let target): .hardLink(target: Array(ByteString(joining: target).bytes))
    case .fifo: .fifo
    case .characterDevice(let major, let minor): .characterDevice(major: major, minor: minor)
    case .blockDevice(let major, let minor): .blockDevice(major: major, minor: minor)
    }
  }
}
