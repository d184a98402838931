import Interchange

@testable import Codecs
@testable import SystemIO

extension Target {
  /// Archives of other programs, which libarchive reads.
  static let foreignArchiveTargets = [Target(name: "archive", run: archive)]

  /// An archive in any format. Its members must be the same as a file and as a stream if their
  /// names are bytes, and the entries of an import must have valid paths.
  @Sendable private static func archive(_ bytes: [UInt8]) {
    let file = ArchiveContent(of: MemoryInput(bytes, isStream: false))
    let stream = ArchiveContent(of: MemoryInput(bytes, isStream: true))
    if file.isWhole, stream.isWhole, file.keepsNames, stream.keepsNames {
      require(
        file.members == stream.members && file.bytes == stream.bytes,
        "a stream has other members than a file")
    }
    let zip = ArchiveContent(of: MemoryInput(bytes, isStream: false), format: .zip)
    let parts = ArchiveContent(
      of: MemoryInput(bytes, isStream: false), format: .zip, partSize: 1)
    if zip.isWhole, parts.isWhole {
      require(
        zip.members == parts.members && zip.bytes == parts.bytes,
        "the parts of a zip archive have other members")
    }
    readEntries(of: bytes)
  }

  private static func readEntries(of bytes: [UInt8]) {
    guard let memory = try? Descriptor.inMemory(bytes),
      let file = try? ArchiveFile(path: ByteString("/proc/self/fd/\(memory.raw)")),
      var source = try? ArchiveSource(file)
    else { return }
    var buffer = [UInt8](repeating: 0, count: 4096)
    var (entries, total) = (0, 0)
    while entries < ArchiveContent.memberLimit, total < ArchiveContent.byteLimit,
      let entry = try? source.next()
    {
      entries += 1
      require(PathComponents.fault(in: entry.path) == nil, "an entry has an invalid path")
      if case .hardLink(let target) = entry.kind {
        require(
          !target.isEmpty && PathComponents.fault(in: target) == nil,
          "a hard link has an invalid target")
      }
      guard case .file = entry.kind else { continue }
      while total < ArchiveContent.byteLimit, (try? source.skipHole()) != nil,
        let count = try? buffer.withUnsafeMutableBytes({ try source.read(into: $0) }), count > 0
      {
        total += count
      }
    }
    withExtendedLifetime(memory) {}
  }
}

/// The members of an archive with their contents, as far as they can be read.
private struct ArchiveContent {
  private(set) var members: [ArchiveMember] = []
  private(set) var bytes: [UInt8] = []
  private(set) var keepsNames = false
  /// Whether the end of the archive was reached without an error.
  private(set) var isWhole = false

  /// The limits on the members that are read, because nested archives can be endless.
  static let memberLimit = 1000
  static let byteLimit = 4 << 20

  init(
    of input: MemoryInput, format: ArchiveReader.Format = .any, partSize: Int = ZipPart.members
  ) {
    guard var reader = try? ArchiveReader(input, format: format, partSize: partSize) else { return }
    do {
      while let member = try reader.next() {
        require(member.mode <= 0o7777, "a member has more than permission bits")
        require(member.nanoseconds < 1_000_000_000, "a member has more than a second")
        members.append(member)
        guard members.count < Self.memberLimit, try read(member, from: &reader) else { return }
      }
      isWhole = true
    } catch {}
    keepsNames = reader.keepsNames
  }

  /// Reads the content of a file, including one that comes with a hard link. Returns false once the
  /// limit is reached.
  private mutating func read(
    _ member: ArchiveMember, from reader: inout ArchiveReader
  ) throws -> Bool {
    switch member.kind {
    case .file, .hardLink: break
    // The size of other members is not that of a content.
    default: return true
    }
    var buffer = [UInt8](repeating: 0, count: 4096)
    var size: UInt64 = 0
    while bytes.count < Self.byteLimit {
      size &+= try reader.skipHole()
      let count = try buffer.withUnsafeMutableBytes { try reader.read(into: $0) }
      if count == 0 {
        if case .file(let claimed?) = member.kind {
          require(size >= claimed, "a content is shorter than its size, without an error")
        }
        return true
      }
      bytes += buffer[..<count]
      size &+= UInt64(count)
    }
    return false
  }
}

/// The bytes of an archive in memory.
private final class MemoryInput: ArchiveInput {
  private let bytes: [UInt8]
  private var position = 0
  let size: UInt64?

  init(_ bytes: [UInt8], isStream: Bool) {
    self.bytes = bytes
    size = isStream ? nil : UInt64(bytes.count)
  }

  func read(into buffer: inout [UInt8]) -> Int {
    let count = min(buffer.count, bytes.count - min(position, bytes.count))
    buffer.replaceSubrange(0..<count, with: bytes.dropFirst(position).prefix(count))
    position += count
    return count
  }

  func seek(to offset: UInt64) { position = Int(clamping: offset) }
}
