/// A pseudorandom number generator that is deterministic for a seed on every machine (SplitMix64).
struct SampleRandom: RandomNumberGenerator {
  private var state: UInt64

  /// Creates a generator from a text, hashed with FNV-1a.
  init(_ seed: String) {
    state = seed.utf8.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01b3 }
  }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }

  /// Returns a number below `bound`. The standard library's method may change between versions.
  mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }

  /// Returns incompressible bytes.
  mutating func bytes(_ count: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count + 8)
    while bytes.count < count {
      let word = next()
      for shift in stride(from: UInt64(0), to: 64, by: 8) {
        bytes.append(UInt8(truncatingIfNeeded: word >> shift))
      }
    }
    bytes.removeLast(bytes.count - count)
    return bytes
  }
}

/// Sentences of plain words, deterministic for a seed.
enum SampleText {
  private static let words = """
    about after again against all always among and another any around because before below between \
    both bread bridge bright brown bring calm careful carry change city clear climb clock cloud coast \
    coffee cold copper corner country cover cross daily deep different early earth east empty evening \
    every family farm field first follow forest found garden gentle glass grain green ground harbour \
    heavy high hill honest house idea island journey keep kitchen ladder lake large late leaf learn \
    letter light little long market meadow measure melt middle mill moment morning mountain narrow \
    near never north notebook ocean often old open orange other paper patient people plain plan quiet \
    rain reach ready river road roof round salt sand season second shade ship short silver simple \
    sleep slow small snow soft some south spring square stone story street strong summer table thread \
    through time town train travel tree under until valley village walk warm water weather west wheel \
    while wide wind window winter without wood word work write year yellow young
    """.split(separator: " ").map(String.init)

  /// The content of a CACHEDIR.TAG, which marks its directory as a cache.
  static let cacheTag = """
    Signature: 8a477f597d28d172789f06886806bc55
    # This folder holds what can be made again: https://bford.info/cachedir/

    """

  /// Returns a title of two to four words.
  static func title(_ seed: String) -> String {
    var random = SampleRandom("title " + seed)
    return sentence(&random, words: 2 + random.below(3))
  }

  /// Returns sentences of about `bytes` bytes, with a blank line after every fifth and a final
  /// newline.
  static func text(_ seed: String, bytes: Int) -> String {
    var random = SampleRandom("text " + seed)
    var text = ""
    var count = 0
    while text.utf8.count < bytes {
      text += sentence(&random, words: 6 + random.below(9)) + "."
      count += 1
      text += count % 5 == 0 ? "\n\n" : " "
    }
    return text + sentence(&random, words: 5) + ".\n"
  }

  private static func sentence(_ random: inout SampleRandom, words count: Int) -> String {
    let chosen = (0..<count).map { _ in words[random.below(words.count)] }
    let joined = chosen.joined(separator: " ")
    return joined.prefix(1).uppercased() + joined.dropFirst()
  }
}

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
