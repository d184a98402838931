public import ArchiveStore
internal import Codecs
public import SystemIO

/// What an earlier run knew of an entry, read where it lies.
public struct KnownEntry: Sendable {
  /// The bytes of the page, whose entries are all known to be whole.
  private let page: [UInt8]
  private let place: Int
  /// Whether it was read by a run that did not come to its end: each of its blobs is to be looked up.
  public let isOfInterruptedRun: Bool

  /// The entry that begins at a place of a checked page.
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

  /// What it was.
  public var kind: FileKind { FileKind(rawValue: field(EntryLayout.kind)) ?? .file }
  /// Its inode's number.
  public var inode: UInt64 { field(EntryLayout.inode) }
  /// Its size in bytes, as the end of the file said.
  public var size: UInt64 { field(EntryLayout.size) }
  /// When its content was changed last.
  public var modified: Timestamp {
    Timestamp(
      seconds: field(EntryLayout.modified), nanoseconds: field(EntryLayout.modifiedNanoseconds))
  }
  /// When its content or metadata were changed last.
  public var changed: Timestamp {
    Timestamp(
      seconds: field(EntryLayout.changed), nanoseconds: field(EntryLayout.changedNanoseconds))
  }

  /// Whether it had stood still long enough when it was read (docs/state-file.md, "Rules").
  public var isStable: Bool { flags.contains(.isStable) }
  /// Whether it is in a snapshot, or was to be in one.
  public var isStored: Bool { flags.contains(.isStored) }

  /// What a directory's own record is, if it has one.
  public var directory: RecordPointer? {
    flags.contains(.hasDirectory) ? RecordPointer(page.span, at: directoryAt) : nil
  }

  /// The name.
  public var name: ByteString {
    ByteString(page[(place + EntryLayout.name)..<(place + EntryLayout.name + nameLength)])
  }

  /// The entry as it stood in its tree, as `TreeEntry.encoded()` gave it; nothing when it is not
  /// stored.
  public var encoded: ArraySlice<UInt8>? {
    guard isStored else { return nil }
    let start = directoryAt + (flags.contains(.hasDirectory) ? RecordPointer.size : 0)
    return page[start..<end]
  }

  /// The entry as it stood in its tree; nothing when it is not stored, or cannot be read.
  public var entry: TreeEntry? { encoded.flatMap { try? TreeEntry(encoded: Array($0)) } }

  /// The entry with another place of the directory's own record.
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

  /// All of the entry as it lies in the page.
  var bytes: ArraySlice<UInt8> { page[place..<end] }

  var end: Int { place + Int(field(EntryLayout.length) as UInt32) }

  /// Orders the name and another by their bytes: below, at or above 0.
  func order(_ other: Span<UInt8>) -> Int {
    let bytes = page.span
    let start = place + EntryLayout.name
    let count = nameLength
    for index in 0..<min(count, other.count) {
      let difference = Int(bytes[start + index]) - Int(other[index])
      if difference != 0 { return difference }
    }
    return count - other.count
  }
}
