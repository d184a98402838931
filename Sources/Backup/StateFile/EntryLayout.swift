internal import Codecs
internal import SystemIO

/// The offsets of an entry's fields (docs/state-file.md, "Entry").
enum EntryLayout {
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
    directory: RecordPointer?, to bytes: inout [UInt8]
  ) -> Bool {
    let total =
      Self.name + name.count + (directory == nil ? 0 : RecordPointer.size) + (encoded?.count ?? 0)
    guard name.count <= UInt16.max, total <= EntryPage.entryLimit else { return false }
    LittleEndian.append(UInt32(total), to: &bytes)
    LittleEndian.append(UInt16(name.count), to: &bytes)
    bytes.append(status.kind.rawValue)
    bytes.append(
      EntryFlags(isStable: isStable, isStored: encoded != nil, hasDirectory: directory != nil)
        .rawValue)
    ReadFile.append(status, to: &bytes)
    bytes.append(name)
    directory?.append(to: &bytes)
    if let encoded { bytes += encoded }
    return true
  }
}

/// The flags of an entry.
struct EntryFlags: OptionSet {
  let rawValue: UInt8
  static let isStable = EntryFlags(rawValue: 1)
  static let isStored = EntryFlags(rawValue: 2)
  static let hasDirectory = EntryFlags(rawValue: 4)

  static let all = EntryFlags(rawValue: 7)
}

extension EntryFlags {
  init(isStable: Bool, isStored: Bool, hasDirectory: Bool) {
    self = []
    if isStable { insert(.isStable) }
    if isStored { insert(.isStored) }
    if hasDirectory { insert(.hasDirectory) }
  }
}
