internal import SystemIO

/// The embedded code signature of a Mach-O slice: a "super blob" of blobs with big-endian numbers.
enum CodeSignature {
  private static let superBlob: UInt32 = 0xfade_0cc0
  private static let entitlementsBlob: UInt32 = 0xfade_7171
  private static let entitlementsSlot: UInt32 = 5
  private static let maximumBlobs: UInt32 = 256

  /// Returns the property list of the entitlements, or nil if the signature has none or is damaged.
  static func entitlements<Source: ByteSource & ~Copyable>(
    in source: borrowing Source, at signature: FileExtent, from start: UInt64
  ) throws(SystemError) -> [UInt8]? {
    let head = try part(of: signature, at: 0, length: 12, in: source, from: start)
    guard head.number32(at: 0, bigEndian: true) == superBlob,
      let count = head.number32(at: 8, bigEndian: true), count <= maximumBlobs
    else { return nil }
    let index = try part(of: signature, at: 12, length: UInt64(count) * 8, in: source, from: start)
    for entry in stride(from: 0, to: Int(count) * 8, by: 8) {
      guard index.number32(at: entry, bigEndian: true) == entitlementsSlot,
        let offset = index.number32(at: entry + 4, bigEndian: true)
      else { continue }
      return try blob(of: signature, at: UInt64(offset), source, start)
    }
    return nil
  }

  private static func blob<Source: ByteSource & ~Copyable>(
    of signature: FileExtent, at offset: UInt64, _ source: borrowing Source, _ start: UInt64
  ) throws(SystemError) -> [UInt8]? {
    let head = try part(of: signature, at: offset, length: 8, in: source, from: start)
    guard head.number32(at: 0, bigEndian: true) == entitlementsBlob,
      let length = head.number32(at: 4, bigEndian: true), length > 8
    else { return nil }
    let content = try part(
      of: signature, at: offset + 8, length: UInt64(length) - 8, in: source, from: start)
    return content.count == Int(length) - 8 ? content : nil
  }

  /// Returns a range of the signature; empty if it is too long or exceeds the signature.
  private static func part<Source: ByteSource & ~Copyable>(
    of signature: FileExtent, at offset: UInt64, length: UInt64, in source: borrowing Source,
    from start: UInt64
  ) throws(SystemError) -> [UInt8] {
    guard offset <= signature.length, length <= signature.length - offset else { return [] }
    let extent = FileExtent(offset: signature.offset + offset, length: length)
    return try MachO.content(of: extent, in: source, from: start) ?? []
  }
}
