// The central directory of a zip archive, read and checked against the archive before extraction.
//
// A zip archive stores most values twice: in its central directory and before each entry's data.
// Programs that use one or the other extract different content from the same file. Both must
// therefore agree, the directory must be where the end of the archive points, and no two entries
// may share bytes (otherwise an archive of a few kilobytes could claim petabytes). Encrypted
// archives, multi-part archives, and compression methods other than deflate are refused. The data
// itself is decompressed by libarchive, which checks length and checksum.
//
// Source: PKWARE's APPNOTE.TXT 6.3.10; Fifield, A better zip bomb (2019), for the overlap.
internal import Codecs
internal import SandboxModel
internal import SystemIO

/// The entries of a zip archive, in the order of their data.
struct ZipDirectory {
  let entries: [ZipEntry]
  /// The offset of the archive's comment, or the end of the file.
  let archiveEnd: UInt64

  /// Reads and checks the central directory of a file with the given size in bytes.
  ///
  /// - Throws: `package` if the archive is damaged or not supported, `unsafePackage` if it is
  ///   crafted to deceive, `system` for a failed system call.
  init(
    of file: borrowing Descriptor, size: UInt64, limits: PackageLimits, fault: PackageFault
  ) throws(ModelError) {
    let end = try End(of: file, size: size, fault: fault)
    guard end.count <= UInt64(limits.entries) else {
      throw fault.limitExceeded(
        "it claims \(end.count) entries, more than the limit of \(limits.entries)")
    }
    let bytes = try Self.directory(end, of: file, limits: limits, fault: fault)
    var entries: [ZipEntry] = []
    var at = 0
    for _ in 0..<end.count {
      guard let entry = ZipEntry(reading: bytes, at: &at) else {
        throw fault.damaged("its directory is truncated or contains an invalid entry")
      }
      entries.append(entry)
    }
    guard at == bytes.count else {
      throw fault.damaged("its directory has more than the \(end.count) entries that it claims")
    }
    entries.sort { $0.offset < $1.offset }
    try Check(entries: entries, end: end.offset, limits: limits, fault: fault)
      .run(on: file)
    self.entries = entries
    archiveEnd = end.commentOffset
  }

  private static func directory(
    _ end: End, of file: borrowing Descriptor, limits: PackageLimits, fault: PackageFault
  ) throws(ModelError) -> [UInt8] {
    guard end.size <= UInt64(limits.pathBytes) * 2 else {
      throw fault.limitExceeded("its directory has \(end.size) bytes")
    }
    let bytes = try End.read(Int(end.size), at: end.offset, of: file)
    guard bytes.count == Int(end.size) else { throw fault.damaged("it is truncated") }
    return bytes
  }
}

// MARK: - The end record

extension ZipDirectory {
  /// The end of a zip archive, which contains the location of the central directory (APPNOTE.TXT
  /// 4.3.14 to 4.3.16).
  struct End {
    let count: UInt64
    let offset: UInt64
    let size: UInt64
    /// The offset of the comment.
    let commentOffset: UInt64

    private static let length = 22
    private static let signature: UInt32 = 0x0605_4b50
    private static let locatorSignature: UInt32 = 0x0706_4b50
    private static let wideSignature: UInt32 = 0x0606_4b50

    /// Finds the end record of a file with the given size in bytes.
    init(
      of file: borrowing Descriptor, size: UInt64, fault: PackageFault
    ) throws(ModelError) {
      let tail = min(size, UInt64(Self.length + 0xffff))
      let bytes = try Self.read(Int(tail), at: size - tail, of: file)
      guard let position = Self.find(in: bytes) else {
        throw fault.damaged(
          "it is not a zip archive, or its end is missing",
          hint: "specify a .app directory or an .ipa; download a truncated file again")
      }
      if Self.isAmbiguous(bytes, after: position) {
        throw fault.damaged(
          "its comment contains the start of another end record, which other programs would use")
      }
      let start = size - tail + UInt64(position)
      let small = Fields(bytes, at: position)
      guard small.number16(4) == small.number16(6), small.number16(8) == small.number16(10),
        small.number16(4) == 0 || small.number16(4) == 0xffff
      else { throw fault.damaged("it is one part of a multi-part archive") }
      var (count, length, offset, limit) = (
        UInt64(small.number16(10)), UInt64(small.number32(12)), UInt64(small.number32(16)), start
      )
      if let wide = try Self.wide(before: start, of: file, fault) {
        (count, length, offset, limit) = wide
      }
      let end = offset.addingReportingOverflow(length)
      guard !end.overflow, end.partialValue == limit else {
        throw fault.damaged(
          "its directory is not where its end record says: it is truncated or has data before it")
      }
      (self.count, self.offset, self.size) = (count, offset, length)
      commentOffset = start + UInt64(Self.length)
    }

    /// Returns the last end record whose comment extends to the end of the file.
    private static func find(in bytes: [UInt8]) -> Int? {
      guard bytes.count >= length else { return nil }
      for position in stride(from: bytes.count - length, through: 0, by: -1) {
        let fields = Fields(bytes, at: position)
        if fields.number32(0) == signature,
          position + length + Int(fields.number16(20)) == bytes.count
        {
          return position
        }
      }
      return nil
    }

    /// Whether the comment of an end record contains the signature of one. Programs that search
    /// from the end, such as libarchive, use that one.
    private static func isAmbiguous(_ bytes: [UInt8], after position: Int) -> Bool {
      (position + length..<max(position + length, bytes.count - 3)).contains {
        Fields(bytes, at: $0).number32(0) == signature
      }
    }

    /// Returns the Zip64 end record, which precedes the regular one.
    private static func wide(
      before start: UInt64, of file: borrowing Descriptor, _ fault: PackageFault
    ) throws(ModelError) -> (count: UInt64, size: UInt64, offset: UInt64, limit: UInt64)? {
      guard start >= 20 else { return nil }
      let locator = Fields(try read(20, at: start - 20, of: file), at: 0)
      guard locator.number32(0) == locatorSignature else { return nil }
      let position = locator.number64(8)
      guard position <= start - 20, start - 20 - position >= 56 else {
        throw fault.damaged("its end record is not where its locator says")
      }
      let end = Fields(try read(56, at: position, of: file), at: 0)
      guard end.number32(0) == wideSignature, end.number64(24) == end.number64(32),
        end.number32(16) == 0, end.number32(20) == 0
      else { throw fault.damaged("its end record is damaged") }
      return (end.number64(32), end.number64(40), end.number64(48), position)
    }

    /// Reads bytes; returns fewer only at the end of the file.
    static func read(
      _ count: Int, at offset: UInt64, of file: borrowing Descriptor
    ) throws(ModelError) -> [UInt8] {
      do {
        return try file.read(count: count, at: offset)
      } catch {
        throw ModelError(package: error)
      }
    }
  }

  /// The numbers of a record; 0 beyond the end of the bytes, which the check of the record's
  /// signature prevents.
  struct Fields {
    private let bytes: [UInt8]
    private let start: Int

    init(_ bytes: [UInt8], at start: Int) {
      self.bytes = bytes
      self.start = start
    }

    func number16(_ offset: Int) -> UInt16 { number(offset) }
    func number32(_ offset: Int) -> UInt32 { number(offset) }
    func number64(_ offset: Int) -> UInt64 { number(offset) }

    private func number<Value: FixedWidthInteger & BitwiseCopyable>(_ offset: Int) -> Value {
      let first = start + offset
      guard first >= 0, first <= bytes.count - MemoryLayout<Value>.size else { return 0 }
      return LittleEndian.integer(bytes.span, at: first)
    }
  }
}

// MARK: - Local headers

extension ZipDirectory {
  /// Checks each entry of a central directory against its local header.
  private struct Check {
    /// The entries, sorted by offset.
    let entries: [ZipEntry]
    /// The offset of the central directory.
    let end: UInt64
    let limits: PackageLimits
    let fault: PackageFault

    private static let signature: UInt32 = 0x0403_4b50
    private static let length = 30
    /// The maximum expansion of one byte by deflate, as defined by its format.
    private static let maximumPerByte: UInt64 = 1032

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
      if entry.kind == .directory, entry.size > 0 {
        throw fault.unsafe("its '\(entry.path)' is a directory that has \(entry.size) bytes")
      }
      if entry.kind == .link, entry.size > 4095 {
        throw fault.unsafe("its link '\(entry.path)' has a target of more than 4,095 bytes")
      }
      let isPossible =
        entry.method == 0
        ? entry.size == entry.packedSize
        : entry.size / Self.maximumPerByte <= entry.packedSize
      if !isPossible {
        throw fault.unsafe(
          "its '\(entry.path)' claims \(entry.size) bytes, which cannot be compressed to "
            + "\(entry.packedSize)")
      }
    }

    /// Checks the local header and returns the offset of the end of the entry's data.
    private func local(_ entry: ZipEntry, _ file: borrowing Descriptor) throws(ModelError) -> UInt64
    {
      let room = Self.length + entry.name.count
      guard entry.offset <= end, end - entry.offset >= UInt64(room) else {
        throw fault.damaged("its '\(entry.path)' is beyond its end: the archive is truncated")
      }
      let bytes = try End.read(room, at: entry.offset, of: file)
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

    /// Whether a number of the local header matches the directory. A number that is too large for
    /// the field is stored as all ones, and a number that follows the data can be 0.
    private func agrees(_ local: UInt32, with number: UInt64, in entry: ZipEntry) -> Bool {
      UInt64(local) == number || local == 0xffff_ffff || local == 0 && entry.hasDescriptor
    }
  }
}
