internal import Codecs
internal import Synchronization
internal import SystemIO

/// A container that the last run to store it recorded.
struct KnownContainer: Sendable {
  /// The snapshot of that run: the record is valid as long as the repository holds it.
  let snapshot: Digest
  /// The location of the list of packs that the repository had then.
  let packs: RecordPointer
  /// The entry of its root, named with the container's logical path.
  let entry: KnownEntry

  /// The container's logical path.
  var path: ByteString { entry.name }
}

extension SourceState {
  /// A container that this run records.
  struct RecordedContainer: Sendable {
    /// The logical path.
    let path: ByteString
    let status: FileStatus
    let isStable: Bool
    /// The result of `TreeEntry.encoded()` for the root.
    let encoded: [UInt8]?
    /// The result of `SourceState.write(_:tree:)` for the root.
    let directory: RecordPointer?
  }
}

/// The table of containers in a state file (docs/state-file.md, "Containers").
enum ContainerTable {
  /// The size of a row before the entries: a digest and a pointer.
  private static let rowSize = Digest.byteCount + RecordPointer.size

  /// Reads a table; returns nil if it is invalid.
  static func read(_ bytes: [UInt8]) -> [KnownContainer]? {
    guard bytes.count >= 4 else { return nil }
    let count = Int(LittleEndian.integer(bytes.span, at: 0, as: UInt32.self))
    let start = 4 + count * rowSize
    guard start <= bytes.count, let page = EntryPage(bytes, from: start), page.count == count
    else { return nil }
    var offset = start
    var containers: [KnownContainer] = []
    for number in 0..<count {
      let at = 4 + number * rowSize
      let packs = at + Digest.byteCount
      guard let snapshot = Digest(bytes.span.extracting(at..<packs)) else { return nil }
      let entry = KnownEntry(bytes, at: offset, isOfInterruptedRun: false)
      containers.append(
        KnownContainer(
          snapshot: snapshot, packs: RecordPointer(bytes.span, at: packs), entry: entry))
      offset = entry.end
    }
    return containers
  }

  /// A row of the table: one container.
  struct Row {
    let path: ByteString
    let snapshot: Digest
    let packs: RecordPointer
    let entry: [UInt8]
  }

  /// Returns the bytes of a table, in the order of the containers' paths.
  static func encode(_ rows: [Row]) -> [UInt8] {
    let rows = rows.sorted { $0.path < $1.path }
    var bytes: [UInt8] = []
    LittleEndian.append(UInt32(rows.count), to: &bytes)
    for row in rows {
      row.snapshot.append(to: &bytes)
      row.packs.append(to: &bytes)
    }
    return bytes + rows.flatMap(\.entry)
  }
}

extension ContainerTable.Row {
  /// Creates the row of a container that this run recorded; returns nil if its entry is too long.
  init?(_ container: SourceState.RecordedContainer, snapshot: Digest, packs: RecordPointer) {
    var entry: [UInt8] = []
    let isWhole = container.path.withSpan { path in
      KnownEntry.Layout.append(
        path, status: container.status, isStable: container.isStable, encoded: container.encoded,
        record: container.directory, to: &entry)
    }
    guard isWhole else { return nil }
    self.init(path: container.path, snapshot: snapshot, packs: packs, entry: entry)
  }

  /// Creates the row of a container of an earlier run, with the current location of its record.
  init(_ known: KnownContainer, directory: RecordPointer?, packs: RecordPointer) {
    self.init(
      path: known.path, snapshot: known.snapshot, packs: packs,
      entry: known.entry.bytes(movingRecordTo: directory))
  }
}

/// The packs that a run can rely on, for comparison with the lists of a state. Containers recorded
/// by one run share a list, which is compared only once.
final class ListedPacks: Sendable {
  private let words: Set<UInt64>
  private let answers = Mutex<[RecordPointer: Bool]>([:])

  init(_ packs: Set<Digest>) { words = Set(packs.map(\.leadingWord)) }

  /// Returns the list of the packs that a repository has when a state is written: the first 8 bytes
  /// of their ids, in order (docs/state-file.md, "Containers").
  static func encode(_ packs: Set<Digest>) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(packs.count * 8)
    for word in packs.map(\.leadingWord).sorted() { LittleEndian.append(word, to: &bytes) }
    return bytes
  }

  /// Whether all packs of a list in a state's file are among these; false if it cannot be read.
  func contains(_ list: RecordPointer, in file: RecordFile) -> Bool {
    if let known = answers.withLock({ $0[list] }) { return known }
    let answer = file.read(list).map { contains($0) } ?? false
    answers.withLock { $0[list] = answer }
    return answer
  }

  /// Whether all packs of a list are among these.
  func contains(_ list: [UInt8]) -> Bool {
    list.count % 8 == 0
      && stride(from: 0, to: list.count, by: 8).allSatisfy {
        words.contains(LittleEndian.integer(list.span, at: $0))
      }
  }
}
