internal import SandboxModel
internal import SystemIO

/// The end of a zip archive, which contains the location of the central directory (APPNOTE.TXT
/// 4.3.14 to 4.3.16).
struct ZipEnd {
  let count: UInt64
  let offset: UInt64
  let size: UInt64

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
    guard let place = Self.find(in: bytes) else {
      throw fault.damaged(
        "it is not a zip archive, or its end is missing",
        hint: "specify a .app directory or an .ipa; download a truncated file again")
    }
    let start = size - tail + UInt64(place)
    let small = Fields(bytes, at: place)
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
  }

  /// Returns the last end record whose comment extends to the end of the file.
  private static func find(in bytes: [UInt8]) -> Int? {
    guard bytes.count >= length else { return nil }
    for place in stride(from: bytes.count - length, through: 0, by: -1) {
      let fields = Fields(bytes, at: place)
      if fields.number32(0) == signature,
        place + length + Int(fields.number16(20)) == bytes.count
      {
        return place
      }
    }
    return nil
  }

  /// Returns the Zip64 end record, which precedes the regular one.
  private static func wide(
    before start: UInt64, of file: borrowing Descriptor, _ fault: PackageFault
  ) throws(ModelError) -> (count: UInt64, size: UInt64, offset: UInt64, limit: UInt64)? {
    guard start >= 20 else { return nil }
    let locator = Fields(try read(20, at: start - 20, of: file), at: 0)
    guard locator.number32(0) == locatorSignature else { return nil }
    let place = locator.number64(8)
    guard place <= start - 20, start - 20 - place >= 56 else {
      throw fault.damaged("its end record is not where its locator says")
    }
    let end = Fields(try read(56, at: place, of: file), at: 0)
    guard end.number32(0) == wideSignature, end.number64(24) == end.number64(32),
      end.number32(16) == 0, end.number32(20) == 0
    else { throw fault.damaged("its end record is damaged") }
    return (end.number64(32), end.number64(40), end.number64(48), place)
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
