internal import ArchiveStore
internal import Codecs
internal import SystemIO

/// The contents that the last import of a source stored, by their versions.
///
/// Safe to use from any thread. Whatever cannot be read or verified is unknown, and is then read
/// from the source.
package final class KnownContents: Sendable {
  private let table: Table?
  private let session: WritingSession
  /// Whether the repository has everything that the record names: the snapshot existed when this
  /// import took its lease, nothing is condemned, and no pack is missing. Otherwise each blob is
  /// looked up. (The rule of backups: docs/state-file.md, "Rules".)
  private let isTrusted: Bool

  /// Opens the record of a source.
  ///
  /// - Parameters:
  ///   - directory: the directory of the repository's files on this host.
  ///   - isReread: whether to read all contents: nothing is known then.
  init(of source: Digest, in directory: ByteString, _ session: WritingSession, isReread: Bool) {
    let table = isReread ? nil : Table(of: source, in: directory)
    self.table = table
    self.session = session
    isTrusted =
      table.map { table in
        session.holds(snapshot: table.snapshot) && session.canRelyOnLists
          && table.packs.isSubset(of: session.indexedPacks.map(\.leadingWord))
      } ?? false
  }

  /// Whether nothing is known, as before the first import.
  var isEmpty: Bool { table == nil }

  /// Returns the stored content of a version, or nil if it has to be read.
  ///
  /// - Parameter version: becomes settled if the earlier one is.
  func content(of version: inout ContentVersion) -> Content? {
    guard let table, let (earlier, content) = table.find(version.name),
      version.isUnchanged(since: earlier), isTrusted || isStored(content)
    else { return nil }
    version.isSettled = version.isSettled || earlier.isSettled
    return content
  }

  /// Whether all blobs of a content are stored. Those of a file with lists of pieces are not looked
  /// up: a host that only writes cannot read the lists.
  private func isStored(_ content: Content) -> Bool {
    content.level == 0
      && content.pieces.allSatisfy { piece in
        piece.digest.map { session.contains(BlobID(kind: .data, digest: $0)) } ?? true
      }
  }
}

extension KnownContents {
  /// The file of the record, in memory that is read on access.
  ///
  /// The bytes of a row are copied before they are verified, since those of a file can change.
  private struct Table: Sendable {
    private let file: MappedFile
    let snapshot: SnapshotID
    /// The first 8 bytes of the packs that the repository had.
    let packs: Set<UInt64>
    private let count: Int
    private let rows: Int
    private let values: Range<Int>

    /// Opens a file; nil if there is none that can be used.
    init?(of source: Digest, in path: ByteString) {
      guard let directory = ContentRecord.open(path),
        let file = try? directory.file(ContentRecord.name(of: source)),
        let status = try? file.status(), status.kind == .file, status.user == Host.userID,
        status.permissions & 0o022 == 0, let map = try? MappedFile(file)
      else { return nil }
      self.init(map)
    }

    private init?(_ map: MappedFile) {
      typealias Head = ContentRecord.Head
      guard map.count >= Head.size else { return nil }
      let head = Self.copy(0..<Head.size, of: map)
      let span = head.span
      let limit = UInt64(map.count)
      let count: UInt64 = LittleEndian.integer(span, at: Head.contents)
      let packCount: UInt64 = LittleEndian.integer(span, at: Head.packs)
      let length: UInt64 = LittleEndian.integer(span, at: Head.values)
      guard head.starts(with: ContentRecord.magic), count <= limit, packCount <= limit,
        length <= limit,
        UInt64(Head.size) + 8 * packCount + UInt64(ContentRecord.Row.size) * count + length == limit
      else { return nil }
      rows = Head.size + 8 * Int(packCount)
      let words = Self.copy(Head.size..<rows, of: map)
      let checked = Array(head[..<Head.checksum]) + words
      guard Blake2b.hash(checked) == Digest(span.extracting(Head.checksum..<Head.size)),
        let snapshot = Digest(span.extracting(Head.snapshot..<Head.contents))
      else { return nil }
      self.snapshot = snapshot
      self.count = Int(count)
      packs = Set(
        stride(from: 0, to: words.count, by: 8).map { LittleEndian.integer(words.span, at: $0) })
      values = (map.count - Int(length))..<map.count
      file = map
    }

    /// Returns bytes of the file, which must exist.
    private static func copy(_ range: Range<Int>, of map: MappedFile) -> [UInt8] {
      map.withBytes { bytes in bytes.extracting(range).withUnsafeBytes { Array($0) } }
    }

    /// Returns the recorded content of a name; nil if there is none, or none that is intact.
    func find(_ name: Digest) -> (version: ContentVersion, content: Content)? {
      guard let row = row(of: name) else { return nil }
      let offset: UInt64 = LittleEndian.integer(row.span, at: ContentRecord.Row.offset)
      let length: UInt32 = LittleEndian.integer(row.span, at: ContentRecord.Row.length)
      guard offset <= values.count, Int(length) <= values.count - Int(offset),
        Int(length) <= ContentRecord.Value.limit
      else { return nil }
      let start = values.lowerBound + Int(offset)
      let value = Self.copy(start..<(start + Int(length)), of: file)
      let checksum: UInt64 = LittleEndian.integer(row.span, at: ContentRecord.Row.checksum)
      guard ContentRecord.checksum(name, value) == checksum,
        let (version, content) = ContentRecord.read(value, of: name)
      else { return nil }
      return (version, content)
    }

    /// Returns the bytes of a name's row, by binary search.
    private func row(of name: Digest) -> [UInt8]? {
      let start = file.withBytes { bytes -> Int? in
        var range = 0..<count
        while !range.isEmpty {
          let middle = (range.lowerBound + range.upperBound) / 2
          let start = rows + middle * ContentRecord.Row.size
          let found = Digest(bytes, at: start)
          if found == name { return start }
          range = found < name ? (middle + 1)..<range.upperBound : range.lowerBound..<middle
        }
        return nil
      }
      return start.map { Self.copy($0..<($0 + ContentRecord.Row.size), of: file) }
    }
  }
}
