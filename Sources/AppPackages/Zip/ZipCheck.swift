internal import SandboxModel
internal import SystemIO

/// Checks each entry of a central directory against its local header.
struct ZipCheck {
  /// The entries, sorted by offset.
  let entries: [ZipEntry]
  /// The offset of the central directory.
  let end: UInt64
  let limits: PackageLimits
  let fault: PackageFault

  private static let signature: UInt32 = 0x0403_4b50
  private static let length = 30
  /// The maximum expansion of one byte by deflate, as defined by its format.
  private static let mostPerByte: UInt64 = 1032

  func run(on file: borrowing Descriptor) throws(ModelError) {
    var (reached, packed, size): (UInt64, UInt64, UInt64) = (0, 0, 0)
    for entry in entries {
      try check(entry)
      guard entry.offset >= reached else {
        throw fault.unsafe("its '\(entry.path)' shares bytes with another entry")
      }
      reached = try local(entry, file)
      packed += entry.packedSize
      let sum = size.addingReportingOverflow(entry.size)
      guard !sum.overflow, sum.partialValue <= UInt64(Int64.max) else {
        throw fault.limitExceeded("its files claim to be larger than any volume")
      }
      size = sum.partialValue
    }
    if size > limits.ratioFloor, size / limits.ratio > packed {
      throw fault.limitExceeded(
        "its files have \(size) bytes, compressed to \(packed): more than \(limits.ratio) to 1"
      )
    }
  }

  private func check(_ entry: ZipEntry) throws(ModelError) {
    if entry.isEncrypted {
      throw fault.damaged(
        "its '\(entry.path)' is encrypted with a password",
        hint: "extract it and specify the .app directory")
    }
    guard ZipEntry.methods.contains(entry.method) else {
      throw fault.damaged(
        "its '\(entry.path)' is compressed with method \(entry.method); only stored and deflated "
          + "files are supported", hint: "extract it and specify the .app directory")
    }
    if entry.kind == .special {
      throw fault.unsafe("its '\(entry.path)' is not a file, directory or link")
    }
    if entry.kind == .folder, entry.size > 0 {
      throw fault.unsafe("its '\(entry.path)' is a directory that has \(entry.size) bytes")
    }
    if entry.kind == .link, entry.size > 4095 {
      throw fault.unsafe("its link '\(entry.path)' has a target of more than 4,095 bytes")
    }
    let isPossible =
      entry.method == 0
      ? entry.size == entry.packedSize
      : entry.size / Self.mostPerByte <= entry.packedSize
    if !isPossible {
      throw fault.unsafe(
        "its '\(entry.path)' claims \(entry.size) bytes, which cannot be compressed to "
          + "\(entry.packedSize)")
    }
  }

  /// Checks the local header and returns the offset of the end of the entry's data.
  private func local(_ entry: ZipEntry, _ file: borrowing Descriptor) throws(ModelError) -> UInt64 {
    let room = Self.length + entry.name.count
    guard entry.offset <= end, end - entry.offset >= UInt64(room) else {
      throw fault.damaged("its '\(entry.path)' is beyond its end: the archive is truncated")
    }
    let bytes = try ZipEnd.read(room, at: entry.offset, of: file)
    let fields = Fields(bytes, at: 0)
    guard bytes.count == room, fields.number32(0) == Self.signature else {
      throw fault.damaged("its '\(entry.path)' is not at the offset in its directory")
    }
    let isSame =
      Int(fields.number16(26)) == entry.name.count
      && bytes[Self.length...].elementsEqual(entry.name.bytes)
    if !isSame { throw fault.unsafe("its '\(entry.path)' has two names") }
    try compare(entry, fields)
    let data = entry.offset + UInt64(room) + UInt64(fields.number16(28))
    guard data <= end, entry.packedSize <= end - data else {
      throw fault.damaged("its '\(entry.path)' extends beyond its end: the archive is truncated")
    }
    return data + entry.packedSize
  }

  private func compare(_ entry: ZipEntry, _ fields: Fields) throws(ModelError) {
    let differs =
      fields.number16(6) != entry.flags || fields.number16(8) != entry.method
      || !agrees(fields.number32(14), with: UInt64(entry.checksum), in: entry)
      || !agrees(fields.number32(18), with: entry.packedSize, in: entry)
      || !agrees(fields.number32(22), with: entry.size, in: entry)
    if differs {
      throw fault.unsafe("its '\(entry.path)' does not match its directory")
    }
  }

  /// Whether a number of the local header matches the directory. A number that is too large for the
  /// field is stored as all ones, and a number that follows the data can be 0.
  private func agrees(_ local: UInt32, with number: UInt64, in entry: ZipEntry) -> Bool {
    UInt64(local) == number || local == 0xffff_ffff || local == 0 && entry.hasDescriptor
  }
}
