/// Builds small Mach-O files with entitlements in the places that the platforms use.
package struct MachOBuilder: Sendable {
  /// The entitlements in the code signature.
  package var signature: [UInt8]?
  /// The entitlements in the section of simulator builds.
  package var section: [UInt8]?
  /// The number of bytes between the header and the data.
  package var padding = 0
  /// Whether the code is marked as encrypted.
  package var isEncrypted = false

  /// Makes a builder.
  package init(
    signature: [UInt8]? = nil, section: [UInt8]? = nil, padding: Int = 0, isEncrypted: Bool = false
  ) {
    self.signature = signature
    self.section = section
    self.padding = padding
    self.isEncrypted = isEncrypted
  }

  /// A property list of entitlements with group identifiers.
  package static func entitlements(_ groups: [String]) -> [UInt8] {
    let list = groups.map { "<string>\($0)</string>" }.joined()
    return Array(
      """
      <?xml version="1.0" encoding="UTF-8"?>
      <plist version="1.0"><dict><key>com.apple.security.application-groups</key>\
      <array>\(list)</array></dict></plist>
      """.utf8)
  }

  static func little(_ number: UInt64, _ size: Int) -> [UInt8] {
    (0..<size).map { UInt8(truncatingIfNeeded: number >> UInt64(8 * $0)) }
  }

  static func big(_ number: UInt64, _ size: Int) -> [UInt8] { little(number, size).reversed() }

  /// A super blob: another blob first, then the entitlements.
  private static func superBlob(_ list: [UInt8]) -> [UInt8] {
    let blob = big(0xfade_7171, 4) + big(UInt64(list.count + 8), 4) + list
    let other = big(0xfade_0c02, 4) + big(8, 4)
    return big(0xfade_0cc0, 4) + big(UInt64(28 + other.count + blob.count), 4) + big(2, 4)
      + big(0, 4) + big(28, 4) + big(5, 4) + big(UInt64(28 + other.count), 4) + other + blob
  }

  private static func name(_ text: String) -> [UInt8] {
    Array(text.utf8) + [UInt8](repeating: 0, count: 16 - text.utf8.count)
  }

  /// A thin 64-bit file.
  package func thin() -> [UInt8] {
    let segmentSize = 72 + 80
    let encryption =
      isEncrypted
      ? Self.little(0x2c, 4) + Self.little(24, 4) + Self.little(0, 8) + Self.little(1, 8) : []
    let size = segmentSize + 16 + encryption.count
    let list = section ?? []
    let blob = signature.map { Self.superBlob($0) } ?? []
    let start = UInt64(32 + size + padding)
    var bytes = Self.little(0xfeed_facf, 4) + Self.little(0x0100_000c, 4) + Self.little(0, 4)
    bytes += Self.little(2, 4) + Self.little(isEncrypted ? 3 : 2, 4)
    bytes += Self.little(UInt64(size), 4)
    bytes += Self.little(0, 8)
    bytes += Self.little(0x19, 4) + Self.little(UInt64(segmentSize), 4) + Self.name("__TEXT")
    bytes += Self.little(0, 40) + Self.little(1, 4) + Self.little(0, 4)
    bytes += Self.name(section == nil ? "__text" : "__entitlements") + Self.name("__TEXT")
    bytes += Self.little(0, 8) + Self.little(UInt64(list.count), 8) + Self.little(start, 4)
    bytes += Self.little(0, 28)
    bytes += Self.little(signature == nil ? 0x2a : 0x1d, 4) + Self.little(16, 4)
    bytes += Self.little(start + UInt64(list.count), 4) + Self.little(UInt64(blob.count), 4)
    return bytes + encryption + [UInt8](repeating: 0, count: padding) + list + blob
  }

  /// A universal file with an old 32-bit slice and this one.
  package func universal(is64: Bool) -> [UInt8] {
    let slice = thin()
    var head = Self.big(is64 ? 0xcafe_babf : 0xcafe_babe, 4) + Self.big(2, 4)
    let size = is64 ? 32 : 20
    let first = UInt64(8 + 2 * size)
    for (offset, length) in [(first, UInt64(4)), (first + 4, UInt64(slice.count))] {
      head += Self.big(0, 8) + Self.big(offset, is64 ? 8 : 4) + Self.big(length, is64 ? 8 : 4)
      head += Self.big(0, is64 ? 8 : 4)
    }
    return head + Self.little(0xfeed_face, 4) + slice
  }
}
