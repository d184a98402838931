/// A picture in PNG format (RFC 2083) with incompressible noise, like a photograph.
struct SampleImage {
  private let width: Int
  private let height: Int
  private let pixels: [UInt8]

  /// Creates a picture with three bytes a pixel, deterministic for a seed.
  init(_ seed: String, width: Int, height: Int) {
    (self.width, self.height) = (width, height)
    var random = SampleRandom("image " + seed)
    let row = 3 * width
    var pixels: [UInt8] = []
    for _ in 0..<height {
      pixels.append(0)  // no filter
      pixels += random.bytes(row)
    }
    self.pixels = pixels
  }

  /// The bytes of the file: signature, header, one data chunk, end.
  var file: [UInt8] {
    let header =
      UInt32(width).bigEndianBytes() + UInt32(height).bigEndianBytes() + [8, 2, 0, 0, 0]
    return [0x89] + Array("PNG\r\n\u{1a}\n".utf8) + Self.chunk("IHDR", header)
      + Self.chunk("IDAT", stream) + Self.chunk("IEND", [])
  }

  /// A zlib stream (RFC 1950) of stored blocks (RFC 1951, 3.2.4).
  private var stream: [UInt8] {
    var stream: [UInt8] = [0x78, 0x01]
    var rest = pixels[...]
    while !rest.isEmpty {
      let block = rest.prefix(0xffff)
      rest = rest.dropFirst(block.count)
      let size = UInt16(block.count).byteSwapped  // the low byte comes first
      stream.append(rest.isEmpty ? 1 : 0)
      stream += size.bigEndianBytes() + (~size).bigEndianBytes()
      stream += block
    }
    return stream + Self.adler32(pixels).bigEndianBytes()
  }

  private static func chunk(_ type: String, _ content: [UInt8]) -> [UInt8] {
    let checked = Array(type.utf8) + content
    return UInt32(content.count).bigEndianBytes() + checked + crc32(checked).bigEndianBytes()
  }

  private static let remainders: [UInt32] = (0..<256).map { index in
    (0..<8).reduce(UInt32(index)) { rest, _ in
      rest & 1 == 1 ? 0xedb8_8320 ^ (rest >> 1) : rest >> 1
    }
  }

  private static func crc32(_ bytes: [UInt8]) -> UInt32 {
    var crc = UInt32.max
    for byte in bytes {
      crc = remainders[Int(UInt8(truncatingIfNeeded: crc) ^ byte)] ^ (crc >> 8)
    }
    return ~crc
  }

  private static func adler32(_ bytes: [UInt8]) -> UInt32 {
    var (low, high) = (UInt32(1), UInt32(0))
    for byte in bytes {
      low = (low + UInt32(byte)) % 65_521
      high = (high + low) % 65_521
    }
    return high << 16 | low
  }
}
