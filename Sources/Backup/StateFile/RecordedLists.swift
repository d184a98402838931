internal import ArchiveStore
internal import Codecs
internal import Synchronization
internal import SystemIO

/// The lists of pieces of large files in a state file, so that a backup can look up the pieces
/// without reading the lists from the repository (docs/state-file.md, "Lists").
///
/// Each list is a record of its own. The record of a file has the pointers to all of its lists.
final class RecordedLists: Sendable {
  private let file: RecordFile?
  /// The lists that this run stored and that are not yet assigned to an entry.
  private let stored = Mutex<[Digest: Stored]>([:])

  private struct Stored {
    let pointer: RecordPointer
    /// The lists that this list consists of.
    let lists: [Digest]
  }

  /// The minimum size in bytes of a file to examine: hardly any smaller one has lists.
  private static let smallestFile: UInt64 = 1 << 20

  init(_ file: RecordFile?) { self.file = file }

  /// Records a list that is being stored.
  func add(_ list: WritingSession.StoredList) {
    guard let pointer = file?.append(list.bytes) else { return }
    stored.withLock { $0[list.digest] = Stored(pointer: pointer, lists: list.lists) }
  }

  /// Writes the record of the lists of a file that was read; returns nil if it has none, or if one
  /// was not recorded.
  ///
  /// - Parameter encoded: the result of `TreeEntry.encoded()` for the file.
  func write(of encoded: [UInt8], _ status: FileStatus) -> RecordPointer? {
    guard status.kind == .file, status.size >= Self.smallestFile,
      !stored.withLock({ $0.isEmpty }), let entry = try? TreeEntry(encoded: encoded),
      case .file(let content) = entry.node, content.level > 0
    else { return nil }
    var bytes: [UInt8] = []
    var next = content.pieces.compactMap(\.digest)
    var written: Set<Digest> = []
    while let digest = next.popLast() {
      guard written.insert(digest).inserted else { continue }
      guard let list = stored.withLock({ $0.removeValue(forKey: digest) }) else { return nil }
      list.pointer.append(to: &bytes)
      next += list.lists
    }
    return file?.append(bytes)
  }

  /// Returns the pointers in the record of a file, or none if it is damaged.
  private static func pointers(at record: RecordPointer, in file: RecordFile) -> [RecordPointer] {
    guard let bytes = file.read(record), bytes.count % RecordPointer.size == 0 else { return [] }
    return stride(from: 0, to: bytes.count, by: RecordPointer.size).map {
      RecordPointer(bytes.span, at: $0)
    }
  }

  /// Copies the record of a file and its lists to another state file; returns nil if a part is
  /// damaged.
  static func copy(
    _ record: RecordPointer, from source: RecordFile, to target: RecordFile
  ) -> RecordPointer? {
    var bytes: [UInt8] = []
    for pointer in pointers(at: record, in: source) {
      guard let copied = source.read(pointer).flatMap({ target.append($0) }) else { return nil }
      copied.append(to: &bytes)
    }
    return bytes.isEmpty ? nil : target.append(bytes)
  }

  /// The lists of one file.
  struct OfFile {
    private let file: RecordFile
    private let pointers: [UInt64: RecordPointer]

    /// Reads the record of a file.
    init(at record: RecordPointer, in file: RecordFile) {
      self.file = file
      // The checksum of a record is the beginning of the hash by which its list is named.
      pointers = Dictionary(
        RecordedLists.pointers(at: record, in: file).map { ($0.sum, $0) }, uniquingKeysWith: { $1 })
    }

    /// Returns the pieces of a list that covers `length` bytes, or nil if it is not recorded.
    func pieces(of list: Digest, level: UInt8, length: UInt64) -> [Piece]? {
      guard let bytes = pointers[list.leadingWord].flatMap({ file.read($0) }),
        Blake2b.hash(bytes) == list
      else { return nil }
      return try? Content.pieces(ofList: bytes, level: level, length: length)
    }
  }
}
