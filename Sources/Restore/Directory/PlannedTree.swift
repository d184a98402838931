package import ArchiveStore
package import SystemIO

/// All entries of a restore, in the order of their names, each directory before its children.
///
/// The whole tree is kept, so that each decision is made once: about 130 bytes for an entry,
/// including the names and a file's first piece.
package struct PlannedTree: Sendable {
  package var entries = SpillableArray<PlannedEntry>()
  private(set) var details: [EntryDetail] = []
  private(set) var pieces = SpillableArray<Piece>()
  private var names = SpillableArray<UInt8>()
  /// The suffix for the names of existing entries that are kept.
  package var asideSuffix: ByteString = ""

  /// Whether the tables may have no room for another entry.
  var isFull: Bool {
    let most = Int(UInt32.max) - Int(UInt16.max)
    return max(entries.count, details.count, pieces.count, names.count) > most
  }

  /// Appends an entry. Returns its number. The format limits a name to 255 bytes. The content of a
  /// kept file is recorded only if the file may still be restored (`mayBeRestored`).
  package mutating func append(
    _ entry: TreeEntry, named name: ByteString, parent: Int?, action: RestoreAction,
    hasMetadata: Bool = true, mayBeRestored: Bool = false
  ) -> Int {
    let number = entries.count
    var planned = PlannedEntry(
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
    var detail = EntryDetail(attributes: entry.attributes, flags: entry.flags)
    switch entry.node {
    case .symlink(let target): detail.linkTarget = target
    case .characterDevice(let device), .blockDevice(let device): detail.device = device.linux
    case .file, .directory, .fifo, .socket:
      if entry.attributes.isEmpty, entry.flags == 0, entry.linkGroup == nil { return nil }
    }
    details.append(detail)
    return UInt32(details.count - 1)
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
    details.append(EntryDetail(generated: bytes))
    entries[number].detail = UInt32(details.count - 1)
    entries[number].size = UInt64(bytes.count)
  }

  /// Changes the properties of an entry.
  mutating func update(_ number: Int, _ change: (inout PlannedEntry) -> Void) {
    change(&entries[number])
  }

  /// Returns the entry's name.
  package func name(_ number: Int) -> ByteString {
    let entry = entries[number]
    let start = Int(entry.nameStart)
    return ByteString(names.copy(start..<(start + Int(entry.nameLength))))
  }

  /// Returns the name under which the existing entry is kept.
  func asideName(_ number: Int) -> ByteString { asideName(of: name(number)) }

  /// Returns the name under which a file is kept; a long name is cut to leave room for a number.
  func asideName(of name: ByteString, followedBy end: ArraySlice<UInt8> = []) -> ByteString {
    let room = Int(UInt8.max) - 4 - asideSuffix.count - end.count
    return ByteString(Array(name.bytes.prefix(room)) + asideSuffix.bytes + end)
  }

  /// Returns the path below the directory at a depth; it is empty for that directory itself.
  func path(_ number: Int, from top: UInt16) -> ByteString {
    var parts: [ByteString] = []
    var at = number
    while entries[at].depth > top {
      parts.append(name(at))
      at = Int(entries[at].parent)
    }
    return ByteString(joining: parts.reversed())
  }

  /// Returns the rare properties of an entry; empty ones for most entries.
  func detail(_ number: Int) -> EntryDetail {
    entries[number].detail.map { details[Int($0)] } ?? EntryDetail()
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
}
