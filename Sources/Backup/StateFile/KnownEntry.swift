internal import ArchiveStore
internal import Codecs
internal import SystemIO

/// An entry that an earlier run recorded, decoded from its page on access.
struct KnownEntry: Sendable {
  /// The bytes of the page, whose entries were all checked.
  private let page: [UInt8]
  private let start: Int
  /// Whether an interrupted run read it: each of its blobs must be looked up.
  let isOfInterruptedRun: Bool

  /// Creates the entry that begins at an offset of a checked page.
  init(_ page: [UInt8], at start: Int, isOfInterruptedRun: Bool) {
    self.page = page
    self.start = start
    self.isOfInterruptedRun = isOfInterruptedRun
  }

  private func field<Value: FixedWidthInteger & BitwiseCopyable>(_ offset: Int) -> Value {
    LittleEndian.integer(page.span, at: start + offset)
  }

  private var flags: Flags { Flags(rawValue: field(Layout.flags)) }
  private var nameLength: Int { Int(field(Layout.nameLength) as UInt16) }
  private var recordAt: Int { start + Layout.name + nameLength }

  /// The kind of the entry.
  var kind: FileKind { FileKind(rawValue: field(Layout.kind)) ?? .file }
  /// The inode number.
  var inode: UInt64 { field(Layout.inode) }
  /// The size in bytes.
  var size: UInt64 { field(Layout.size) }
  /// The modification time.
  var modified: Timestamp {
    Timestamp(
      seconds: field(Layout.modified), nanoseconds: field(Layout.modifiedNanoseconds))
  }
  /// The change time.
  var changed: Timestamp {
    Timestamp(
      seconds: field(Layout.changed), nanoseconds: field(Layout.changedNanoseconds))
  }

  /// Whether it was unchanged long enough when it was read (docs/state-file.md, "Rules").
  var isStable: Bool { flags.contains(.isStable) }
  /// Whether the entry is in a snapshot, or was to be in one.
  var isStored: Bool { flags.contains(.isStored) }

  /// The location of the entry's own record, or nil if it has none.
  var record: RecordPointer? {
    flags.contains(.hasRecord) ? RecordPointer(page.span, at: recordAt) : nil
  }

  /// The location of a directory's record of its entries, or nil if it has none.
  var directory: RecordPointer? { kind == .directory ? record : nil }

  /// The location of the record of a file's lists of pieces, or nil if it has none.
  var lists: RecordPointer? { kind == .file ? record : nil }

  /// The name.
  var name: ByteString {
    ByteString(page[(start + Layout.name)..<(start + Layout.name + nameLength)])
  }

  /// The entry in its tree as `TreeEntry.encoded()` returned it, or nil if it is not stored.
  var encoded: ArraySlice<UInt8>? {
    guard isStored else { return nil }
    let first = recordAt + (flags.contains(.hasRecord) ? RecordPointer.size : 0)
    return page[first..<end]
  }

  /// The entry in its tree, or nil if it is not stored or cannot be read.
  var entry: TreeEntry? { encoded.flatMap { try? TreeEntry(encoded: Array($0)) } }

  /// Returns the bytes of the entry with another location of its own record.
  func bytes(movingRecordTo record: RecordPointer?) -> [UInt8] {
    var bytes = Array(page[start..<recordAt])
    var flags = flags
    if record == nil { flags.remove(.hasRecord) } else { flags.insert(.hasRecord) }
    bytes[Layout.flags] = flags.rawValue
    record?.append(to: &bytes)
    bytes += page[(recordAt + (self.record == nil ? 0 : RecordPointer.size))..<end]
    let length = UInt32(bytes.count)
    for byte in 0..<4 { bytes[byte] = UInt8(truncatingIfNeeded: length >> (8 * UInt32(byte))) }
    return bytes
  }

  /// The bytes of the entry in the page.
  var bytes: ArraySlice<UInt8> { page[start..<end] }

  var end: Int { start + Int(field(Layout.length) as UInt32) }

  /// Compares the name with another by their bytes: returns a negative number, 0 or a positive
  /// number.
  func order(_ other: Span<UInt8>) -> Int {
    let first = start + Layout.name
    return page.span.extracting(first..<(first + nameLength)).order(other)
  }
}

extension KnownEntry {
  /// The offsets of an entry's fields (docs/state-file.md, "Entry").
  enum Layout {
    static let length = 0
    static let nameLength = 4
    static let kind = 6
    static let flags = 7
    static let inode = 8
    static let size = 16
    static let modified = 24
    static let changed = 32
    static let modifiedNanoseconds = 40
    static let changedNanoseconds = 44
    static let name = 48

    /// Appends an entry; returns false without a change if it is too long.
    static func append(
      _ name: Span<UInt8>, status: FileStatus, isStable: Bool, encoded: [UInt8]?,
      record: RecordPointer?, to bytes: inout [UInt8]
    ) -> Bool {
      let total =
        Self.name + name.count + (record == nil ? 0 : RecordPointer.size) + (encoded?.count ?? 0)
      guard name.count <= UInt16.max, total <= EntryPage.entryLimit else { return false }
      LittleEndian.append(UInt32(total), to: &bytes)
      LittleEndian.append(UInt16(name.count), to: &bytes)
      bytes.append(status.kind.rawValue)
      bytes.append(
        Flags(isStable: isStable, isStored: encoded != nil, hasRecord: record != nil)
          .rawValue)
      ChunkCheckpoint.FileVersion.append(status, to: &bytes)
      bytes.append(name)
      record?.append(to: &bytes)
      if let encoded { bytes += encoded }
      return true
    }
  }

  /// The flags of an entry.
  struct Flags: OptionSet {
    let rawValue: UInt8
    static let isStable = Flags(rawValue: 1)
    static let isStored = Flags(rawValue: 2)
    static let hasRecord = Flags(rawValue: 4)

    static let all = Flags(rawValue: 7)

    init(rawValue: UInt8) { self.rawValue = rawValue }

    init(isStable: Bool, isStored: Bool, hasRecord: Bool) {
      self = []
      if isStable { insert(.isStable) }
      if isStored { insert(.isStored) }
      if hasRecord { insert(.hasRecord) }
    }
  }
}
