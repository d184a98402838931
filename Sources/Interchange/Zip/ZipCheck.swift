internal import SandboxModel
internal import SystemIO

/// Holds each entry of a central directory against what stands before its data.
struct ZipCheck {
  /// Sorted by offset.
  let entries: [ZipEntry]
  /// Where the central directory begins.
  let end: UInt64
  let limits: PackageLimits
  let fault: PackageFault

  private static let signature: UInt32 = 0x0403_4b50
  private static let length = 30
  /// What deflate makes at most of one byte, by its format.
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
        throw fault.tooMuch("its files claim more bytes than any volume has")
      }
      size = sum.partialValue
    }
    if size > limits.ratioFloor, size / limits.ratio > packed {
      throw fault.tooMuch(
        "its files have \(size) bytes, packed in \(packed): more than \(limits.ratio) times as many"
      )
    }
  }

  private func check(_ entry: ZipEntry) throws(ModelError) {
    if entry.isEncrypted {
      throw fault.damaged(
        "its '\(entry.path)' is encrypted with a password", hint: "unpack it, and give the .app")
    }
    guard ZipEntry.methods.contains(entry.method) else {
      throw fault.damaged(
        "its '\(entry.path)' is packed by method \(entry.method), and only stored and deflated "
          + "files are read", hint: "unpack it, and give the .app")
    }
    if entry.kind == .special {
      throw fault.unsafe("its '\(entry.path)' is neither a file nor a directory nor a link")
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
        "its '\(entry.path)' claims \(entry.size) bytes, which cannot be packed in "
          + "\(entry.packedSize)")
    }
  }

  /// Checks the local header; gives where the entry's data ends.
  private func local(_ entry: ZipEntry, _ file: borrowing Descriptor) throws(ModelError) -> UInt64 {
    let room = Self.length + entry.name.count
    guard entry.offset <= end, end - entry.offset >= UInt64(room) else {
      throw fault.damaged("its '\(entry.path)' lies beyond its end: it is cut off")
    }
    let bytes = try ZipEnd.read(room, at: entry.offset, of: file)
    let fields = Fields(bytes, at: 0)
    guard bytes.count == room, fields.number32(0) == Self.signature else {
      throw fault.damaged("its '\(entry.path)' is not where its directory says")
    }
    let isSame =
      Int(fields.number16(26)) == entry.name.count
      && bytes[Self.length...].elementsEqual(entry.name.bytes)
    if !isSame { throw fault.unsafe("its '\(entry.path)' has two names") }
    try compare(entry, fields)
    let data = entry.offset + UInt64(room) + UInt64(fields.number16(28))
    guard data <= end, entry.packedSize <= end - data else {
      throw fault.damaged("its '\(entry.path)' reaches beyond its end: it is cut off")
    }
    return data + entry.packedSize
  }

  private func compare(_ entry: ZipEntry, _ fields: Fields) throws(ModelError) {
    let differs =
      fields.number16(6) != entry.flags || fields.number16(8) != entry.method
      || !agrees(fields.number32(14), UInt64(entry.checksum), entry)
      || !agrees(fields.number32(18), entry.packedSize, entry)
      || !agrees(fields.number32(22), entry.size, entry)
    if differs {
      throw fault.unsafe("its '\(entry.path)' is not what its directory says of it")
    }
  }

  /// Whether a number of the local header is the directory's; one that is too large for it is all
  /// ones, and one that follows the data may be 0.
  private func agrees(_ local: UInt32, _ number: UInt64, _ entry: ZipEntry) -> Bool {
    UInt64(local) == number || local == 0xffff_ffff || local == 0 && entry.hasDescriptor
  }
}
