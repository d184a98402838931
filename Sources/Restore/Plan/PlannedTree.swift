package import ArchiveStore
internal import DatabaseCapture
package import SystemIO

/// All entries of a restore, in the order of their names, each directory before its children.
///
/// The whole tree is kept, so that each decision is made once: about 130 bytes for an entry,
/// including the names and a file's first piece.
package struct PlannedTree: Sendable {
  /// The action of a restore for one entry of the snapshot.
  package enum Action: UInt8, Sendable, BitwiseCopyable {
    /// The target has no entry of that name.
    case create
    /// The existing entry is replaced; of an existing directory, its metadata.
    case replace
    /// The existing entry matches the snapshot.
    case same
    /// The existing entry is kept although it differs.
    case leave

    /// Whether the entry is written.
    package var isWritten: Bool { self == .create || self == .replace }
  }

  /// An entry of the snapshot in a plan, in 80 bytes: rare properties are in `PlannedTree.details`.
  package struct Entry: Sendable, BitwiseCopyable {
    /// The number of its directory; the first entry is its own parent.
    package let parent: UInt32
    /// The number of levels below the first entry.
    package let depth: UInt16
    package let kind: FileKind
    package var action: Action
    /// Whether the entry is a directory that exists in the target, and is merged into it.
    package var isMerged = false
    /// Whether the entry is a directory and the existing one is not, or the reverse.
    var changesKind = false
    /// Whether there is metadata to set; directories that are not in the snapshot have none.
    var hasMetadata = true
    /// Whether the existing entry is kept beside it under another name.
    var isMovedAside = false
    let permissions: UInt16
    let nameLength: UInt8
    /// The level of a file's pieces (`Content.level`).
    var level: UInt8 = 0
    let nameStart: UInt32
    let owner: UInt32
    let group: UInt32
    let modified: Timestamp
    /// The size of a file in bytes.
    package var size: UInt64 = 0
    /// The index of a file's first piece in `PlannedTree.pieces`.
    var firstPiece: UInt32 = 0
    var pieceCount: UInt32 = 0
    /// The index in `PlannedTree.details`.
    var detail: UInt32?
  }

  /// The properties that few entries have.
  struct Detail: Sendable {
    var attributes: [Attribute] = []
    var flags: UInt32 = 0
    /// The target of a symbolic link.
    var linkTarget: ByteString = ""
    /// The device number of a device file, in Linux encoding.
    var device: UInt64 = 0
    /// The entry that this one is a hard link to.
    var leader: Int?
    /// The content of a generated file, which is not from the snapshot.
    var generated: [UInt8]?
  }

  /// An existing entry that is to be replaced: its identity, and its content as far as size and
  /// time show it. Without its change time, since removing any of its hard links changes it.
  struct Existing: Hashable, Sendable, BitwiseCopyable {
    private let value: Int

    init(_ status: FileStatus) {
      var hasher = Hasher()
      hasher.combine(status.kind)
      hasher.combine(status.identity)
      hasher.combine(status.size)
      hasher.combine(status.modified)
      value = hasher.finalize()
    }
  }

  private struct ExistingRow: Sendable, BitwiseCopyable {
    let number: UInt32
    let existing: Existing
  }

  package var entries = SpillableArray<Entry>()
  /// Ordered by the entries' numbers.
  private var existing = SpillableArray<ExistingRow>()
  private(set) var details: [Detail] = []
  private(set) var pieces = SpillableArray<Piece>()
  private var names = SpillableArray<UInt8>()
  /// The suffix for the names of existing entries that are kept.
  package var asideSuffix: ByteString = ""
  /// The numbers after the suffix, by entry, where a cut name would not be unique otherwise.
  var asideNumbers: [Int: Int] = [:]

  /// Whether the tables may have no room for another entry.
  var isFull: Bool {
    let most = Int(UInt32.max) - Int(UInt16.max)
    return max(entries.count, details.count, pieces.count, names.count) > most
  }

  /// Appends an entry. Returns its number. The format limits a name to 255 bytes. The content of a
  /// kept file is recorded only if the file may still be restored (`mayBeRestored`).
  package mutating func append(
    _ entry: TreeEntry, named name: ByteString, parent: Int?, action: Action,
    hasMetadata: Bool = true, mayBeRestored: Bool = false
  ) -> Int {
    let number = entries.count
    var planned = Entry(
      parent: UInt32(parent ?? number), depth: parent.map { entries[$0].depth + 1 } ?? 0,
      kind: entry.node.kind, action: action, permissions: entry.permissions,
      nameLength: UInt8(truncatingIfNeeded: name.count), nameStart: UInt32(names.count),
      owner: entry.owner, group: entry.group, modified: entry.modified)
    names.append(contentsOf: name.bytes)
    planned.detail = addDetail(of: entry)
    if !hasMetadata { planned.hasMetadata = false }
    if case .file(let content) = entry.node {
      planned.size = content.size
      planned.level = content.level
      planned.firstPiece = UInt32(pieces.count)
      planned.pieceCount = UInt32(content.pieces.count)
      if action.isWritten || mayBeRestored {
        pieces.append(contentsOf: content.pieces)
      } else {
        planned.pieceCount = 0
      }
    }
    entries.append(planned)
    return number
  }

  private mutating func addDetail(of entry: TreeEntry) -> UInt32? {
    var detail = Detail(attributes: entry.attributes, flags: entry.flags)
    switch entry.node {
    case .symlink(let target): detail.linkTarget = target
    case .characterDevice(let device), .blockDevice(let device): detail.device = device.linux
    case .file, .directory, .fifo, .socket:
      if entry.attributes.isEmpty, entry.flags == 0, entry.linkGroup == nil { return nil }
    }
    details.append(detail)
    return UInt32(details.count - 1)
  }

  /// Records the existing entry that an entry may replace. The numbers must ascend.
  mutating func note(_ existing: Existing, of number: Int) {
    self.existing.append(ExistingRow(number: UInt32(number), existing: existing))
  }

  /// Returns the existing entry that an entry replaces, as it was at the plan, or nil if none was
  /// recorded.
  func existing(_ number: Int) -> Existing? {
    var (low, high) = (0, existing.count)
    while low < high {
      let middle = (low + high) / 2
      if existing[middle].number < number { low = middle + 1 } else { high = middle }
    }
    guard low < existing.count, existing[low].number == number else { return nil }
    return existing[low].existing
  }

  /// Marks an entry as a hard link to an earlier one; its content is not read.
  mutating func link(_ number: Int, to leader: Int) {
    guard let detail = entries[number].detail else { return }
    details[Int(detail)].leader = leader
    pieces.removeLast(Int(entries[number].pieceCount))
    entries[number].pieceCount = 0
  }

  /// Sets the content of a file that is not from the snapshot.
  mutating func generate(_ number: Int, _ bytes: [UInt8]) {
    details.append(Detail(generated: bytes))
    entries[number].detail = UInt32(details.count - 1)
    entries[number].size = UInt64(bytes.count)
  }

  /// Changes the properties of an entry.
  mutating func update(_ number: Int, _ change: (inout Entry) -> Void) {
    change(&entries[number])
  }

  /// Returns the entry's name.
  package func name(_ number: Int) -> ByteString {
    let entry = entries[number]
    let start = Int(entry.nameStart)
    return ByteString(names.copy(start..<(start + Int(entry.nameLength))))
  }

  /// Returns the name under which the existing entry is kept.
  func asideName(_ number: Int) -> ByteString {
    asideName(of: name(number), numbered: asideNumbers[number] ?? 0)
  }

  /// Returns the name under which a file is kept; a long name is cut to leave room for a number.
  func asideName(of name: ByteString, numbered number: Int = 0) -> ByteString {
    let room = Int(UInt8.max) - 4 - asideSuffix.count
    return ByteString(name.bytes.prefix(room) + numberedSuffix(number))
  }

  /// Returns the name under which a file of a kept database is kept: the database itself, or a
  /// companion with a suffix. The names of all match, because a number precedes the companion's
  /// suffix, and a long name is cut as for the longest companion.
  func asideName(
    ofDatabase name: ByteString, companion: ArraySlice<UInt8>, numbered number: Int
  ) -> ByteString {
    ByteString(name.bytes.prefix(asideRoomOfDatabase) + numberedSuffix(number) + companion)
  }

  private static let longestCompanionSuffix =
    DatabaseMember.allCases.map(\.suffix.count).max() ?? 0

  /// The length to which the name of a kept database is cut. Shorter names are never cut.
  var asideRoomOfDatabase: Int {
    Int(UInt8.max) - 4 - asideSuffix.count - Self.longestCompanionSuffix
  }

  private func numberedSuffix(_ number: Int) -> [UInt8] {
    Array(asideSuffix.bytes) + (number > 0 ? Array(".\(number)".utf8) : [])
  }

  /// Returns the path below the directory at a depth; it is empty for that directory itself.
  func path(_ number: Int, from top: UInt16) -> ByteString {
    var (above, at) = (AscendingPath(), number)
    names.withSpan { names in
      while entries[at].depth > top {
        let start = Int(entries[at].nameStart)
        above.prepend(names.extracting(start..<(start + Int(entries[at].nameLength))))
        at = Int(entries[at].parent)
      }
    }
    return above.path
  }

  /// Returns the rare properties of an entry; empty ones for most entries.
  func detail(_ number: Int) -> Detail {
    entries[number].detail.map { details[Int($0)] } ?? Detail()
  }

  /// Returns a file's pieces; a hard link to an earlier entry has none.
  func pieces(_ number: Int) -> ArraySlice<Piece> {
    let first = Int(entries[number].firstPiece)
    return pieces.copy(first..<(first + Int(entries[number].pieceCount)))
  }

  /// Returns the size of a file's content in bytes without its holes; a file with piece lists
  /// counts as if it had none.
  func stored(_ number: Int) -> UInt64 {
    if entries[number].level > 0 { return entries[number].size }
    return pieces(number).lazy.map { if case .blob(_, let length) = $0 { length } else { 0 } }
      .clampedSum
  }

  /// Returns the number of the first entry after a directory and all its descendants.
  func end(of directory: Int) -> Int {
    let depth = entries[directory].depth
    var at = directory + 1
    while at < entries.count, entries[at].depth > depth { at += 1 }
    return at
  }

  /// The numbers of the entries that are put in place by themselves, in order: those that are
  /// written and not merged. The entries in a new directory come with it.
  var topmostWritten: some Sequence<Int> {
    sequence(state: 1) { next -> Int? in
      while next < entries.count {
        let (number, entry) = (next, entries[next])
        if entry.action.isWritten, !entry.isMerged {
          next = end(of: number)
          return number
        }
        next += 1
      }
      return nil
    }
  }

  /// Returns the earlier entry that an entry is a hard link to; nil if it is none.
  func leader(_ number: Int) -> Int? { entries[number].detail.flatMap { details[Int($0)].leader } }

  /// Returns for each entry whether it is a directory that is created or in which an entry is
  /// created.
  func directoriesWithWork() -> SpillableArray<Bool> {
    var needed = SpillableArray(repeating: false, count: entries.count)
    for number in entries.indices.reversed() {
      let entry = entries[number]
      let isMade = entry.action.isWritten && !entry.isMerged
      if isMade || needed[number] {
        needed[Int(entry.parent)] = true
        if entry.kind == .directory { needed[number] = true }
      }
    }
    return needed
  }

  /// Returns the attributes with inline values.
  func inlineAttributes(_ number: Int) -> [(name: ByteString, value: [UInt8])] {
    guard entries[number].detail != nil else { return [] }
    return detail(number).attributes.compactMap { attribute in
      attribute.inlineValue.map { (attribute.name, $0) }
    }
  }

  /// Returns the suffix for the names of existing entries that are kept:
  /// `.before-restore-2026-11-01T10.30.05.123456789`, in UTC. The fraction keeps apart the files of
  /// two restores within a second: a log under the name of another state's database would be
  /// applied to it.
  static func asideSuffix(at time: Timestamp) -> ByteString {
    let text = time.rfc3339.prefix { $0 != "Z" }
    return ByteString(".before-restore-" + text.map { $0 == ":" ? "." : String($0) }.joined())
  }
}

extension Piece {
  /// Whether the piece is a blob rather than a hole.
  var isBlob: Bool { if case .blob = self { true } else { false } }
}

extension Attribute {
  /// Whether the value is inline in the entry.
  var isInline: Bool { inlineValue != nil }

  /// The inline value; nil if the value is stored as a blob.
  var inlineValue: [UInt8]? { if case .inline(let value) = value { value } else { nil } }
}
