import ArchiveStore
import Codecs
import SystemIO
import TestSupport

@testable import Interchange

/// Snapshots of snapd, made here according to the description of the format.
struct SnapFixture {
  let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory("snap") }

  /// A member of a tar archive.
  struct Member {
    var entry: ForeignEntry
    var bytes: [UInt8] = []

    static func file(_ path: String, _ text: String) -> Member {
      let bytes = Array(text.utf8)
      return Member(
        entry: ForeignEntry(
          path: path.split(separator: "/").map { ByteString(String($0)) },
          kind: .file(size: UInt64(bytes.count)), modified: Timestamp(seconds: 1_600_000_000)),
        bytes: bytes)
    }
  }

  /// Returns a compressed tar archive.
  static func archive(_ members: [Member]) throws -> [UInt8] {
    var bytes: [UInt8] = []
    var sink = try TarSink(
      to: { span throws(InterchangeError) in bytes += span.indices.map { span[$0] } },
      compression: .gzip)
    for member in members {
      try sink.add(member.entry)
      try member.bytes.withUnsafeBytes { try sink.write($0) }
    }
    try sink.finish()
    return bytes
  }

  /// Returns a zip archive.
  static func zip(
    _ members: [(name: String, bytes: [UInt8])], as form: ArchiveWriter.Form = .storedZip
  ) throws -> [UInt8] {
    var bytes: [UInt8] = []
    var writer = try ArchiveWriter(form)
    for member in members {
      let header = PaxMember(
        path: Array(member.name.utf8), kind: .file(size: UInt64(member.bytes.count)), mode: 0o600)
      try writer.begin(header, to: &bytes)
      try member.bytes.withUnsafeBytes { try writer.write($0, to: &bytes) }
    }
    try writer.finish(to: &bytes)
    return bytes
  }

  static func sum(_ bytes: [UInt8]) -> [UInt8] { MessageDigest.digest(of: bytes.span, .sha3x384) }

  static func metadata(
    _ archives: [SnapArchive: [UInt8]], of name: ByteString = "editor"
  ) -> SnapMetadata {
    var metadata = SnapMetadata(
      name: name, revision: "42", version: "2.0", time: Timestamp(seconds: 1_700_000_000))
    metadata.sums = archives.mapValues(sum)
    metadata.size = archives.values.reduce(0) { $0 + UInt64($1.count) }
    return metadata
  }

  /// Returns the members of a snapshot: archives and metadata.
  static func members(
    _ archives: [SnapArchive: [UInt8]], _ metadata: SnapMetadata
  ) -> [(name: String, bytes: [UInt8])] {
    let text = metadata.text
    return archives.sorted { $0.key.member < $1.key.member }.map { archive, bytes in
      (String(decoding: archive.member.bytes, as: UTF8.self), bytes)
    } + [
      ("meta.json", text), ("meta.sha3_384", Array((Hex.encode(sum(text)) + "\n").utf8)),
    ]
  }

  /// Archives of the system's data and of a user's data.
  static func archives(user: ByteString = "ada") throws -> [SnapArchive: [UInt8]] {
    [
      .system: try archive([.file("42/config", "set"), .file("common/db", "rows")]),
      .user(user): try archive([.file("42/notes", "text"), .file("common/places", "marks")]),
    ]
  }

  /// Opens bytes as a snapshot.
  func source(_ bytes: [UInt8], user: ByteString? = nil) throws -> SnapSource {
    try directory.write(bytes, at: "snapshot")
    return try SnapSource.open(ArchiveFile(path: directory.path("snapshot")), user: user)
  }

  /// The result of reading a source.
  struct Outcome {
    var entries: [ByteString: ForeignEntry] = [:]
    var contents: [ByteString: [UInt8]] = [:]
    var skipped = SkippedEntries()

    var reasons: [String] { skipped.listed.map { "\($0.path): \($0.reason)" } }
  }

  /// Reads a source, as an import does.
  static func read<Source: EntrySource & ~Copyable>(_ source: inout Source) throws -> Outcome {
    var outcome = Outcome()
    var buffer = [UInt8](repeating: 0, count: 1000)
    while let entry = try source.next() {
      var content: [UInt8] = []
      while true {
        let count = try buffer.withUnsafeMutableBytes { try source.read(into: $0) }
        if count == 0 { break }
        content += buffer.prefix(count)
      }
      outcome.entries[entry.joinedPath] = entry
      outcome.contents[entry.joinedPath] = content
    }
    outcome.skipped = source.skipped
    return outcome
  }

  func read(_ bytes: [UInt8], user: ByteString? = nil) throws -> Outcome {
    var source = try source(bytes, user: user)
    return try Self.read(&source)
  }
}
