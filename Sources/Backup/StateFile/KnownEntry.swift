package import ArchiveStore
internal import Codecs
package import SystemIO

/// An entry that an earlier run recorded, decoded from its page on access.
package struct KnownEntry: Sendable {
  /// The bytes of the page, whose entries were all checked.
  private let page: [UInt8]
  private let place: Int
  /// Whether an interrupted run read it: each of its blobs must be looked up.
  package let isOfInterruptedRun: Bool

  /// Creates the entry that begins at an offset of a checked page.
  init(_ page: [UInt8], at place: Int, isOfInterruptedRun: Bool) {
    self.page = page
    self.place = place
    self.isOfInterruptedRun = isOfInterruptedRun
  }

  private func field<Value: FixedWidthInteger & BitwiseCopyable>(_ offset: Int) -> Value {
    LittleEndian.integer(page.span, at: place + offset)
  }

  private var flags: EntryFlags { EntryFlags(rawValue: field(EntryLayout.flags)) }
  private var nameLength: Int { Int(field(EntryLayout.nameLength) as UInt16) }
  private var directoryAt: Int { place + EntryLayout.name + nameLength }

  /// The kind of the entry.
  package var kind: FileKind { FileKind(rawValue: field(EntryLayout.kind)) ?? .file }
  /// The inode number.
  package var inode: UInt64 { field(EntryLayout.inode) }
  /// The size in bytes.
  package var size: UInt64 { field(EntryLayout.size) }
  /// The modification time.
  package var modified: Timestamp {
    Timestamp(
      seconds: field(EntryLayout.modified), nanoseconds: field(EntryLayout.modifiedNanoseconds))
  }
  /// The change time.
  package var changed: Timestamp {
    Timestamp(
      seconds: field(EntryLayout.changed), nanoseconds: field(EntryLayout.changedNanoseconds))
  }

  /// Whether it was unchanged long enough when it was read (docs/state-file.md, "Rules").
  package var isStable: Bool { flags.contains(.isStable) }
  /// Whether the entry is in a snapshot, or was to be in one.
  package var isStored: Bool { flags.contains(.isStored) }

  /// The location of a directory's own record, or nil if it has none.
  package var directory: RecordPointer? {
    flags.contains(.hasDirectory) ? RecordPointer(page.span, at: directoryAt) : nil
  }

  /// The name.
  package var name: ByteString {
    ByteString(page[(place + EntryLayout.name)..<(place + EntryLayout.name + nameLength)])
  }

  /// The entry in its tree as `TreeEntry.encoded()` returned it, or nil if it is not stored.
  package var encoded: ArraySlice<UInt8>? {
    guard isStored else { return nil }
    let start = directoryAt + (flags.contains(.hasDirectory) ? RecordPointer.size : 0)
    return page[start..<end]
  }

  /// The entry in its tree, or nil if it is not stored or cannot be read.
  package var entry: TreeEntry? { encoded.flatMap { try? TreeEntry(encoded: Array($0)) } }

  /// Returns the bytes of the entry with another location of the directory's own record.
  func bytes(movingDirectoryTo directory: RecordPointer?) -> [UInt8] {
    var bytes = Array(page[place..<directoryAt])
    var flags = flags
    if directory == nil { flags.remove(.hasDirectory) } else { flags.insert(.hasDirectory) }
    bytes[EntryLayout.flags] = flags.rawValue
    directory?.append(to: &bytes)
    bytes += page[(directoryAt + (self.directory == nil ? 0 : RecordPointer.size))..<end]
    let length = UInt32(bytes.count)
    for byte in 0..<4 { bytes[byte] = UInt8(truncatingIfNeeded: length >> (8 * UInt32(byte))) }
    return bytes
  }

  /// The bytes of the entry in the page.
  var bytes: ArraySlice<UInt8> { page[place..<end] }

  var end: Int { place + Int(field(EntryLayout.length) as UInt32) }

  /// Compares the name with another by their bytes: returns a negative number, 0 or a positive
  /// number.
  func order(_ other: Span<UInt8>) -> Int {
    let start = place + EntryLayout.name
    return page.span.extracting(start..<(start + nameLength)).order(other)
  }
}
