import Codecs
import Testing

struct CBORTests {
  static func encode(_ body: (inout CBOREncoder) -> Void) -> String {
    var encoder = CBOREncoder()
    body(&encoder)
    return Hex.encode(encoder.finish())
  }

  static func decoder(_ hex: String, depthLimit: Int = 32) throws -> CBORDecoder {
    CBORDecoder(try #require(Hex.decode(hex)), depthLimit: depthLimit)
  }

  /// RFC 8949, appendix A.
  static let integers: [(Int64, String)] = [
    (0, "00"), (1, "01"), (10, "0a"), (23, "17"), (24, "1818"), (25, "1819"), (100, "1864"),
    (255, "18ff"), (256, "190100"), (1000, "1903e8"), (65_535, "19ffff"), (65_536, "1a00010000"),
    (1_000_000, "1a000f4240"), (4_294_967_295, "1affffffff"), (4_294_967_296, "1b0000000100000000"),
    (1_000_000_000_000, "1b000000e8d4a51000"), (.max, "1b7fffffffffffffff"), (-1, "20"),
    (-10, "29"), (-24, "37"), (-25, "3818"), (-100, "3863"), (-256, "38ff"), (-257, "390100"),
    (-1000, "3903e7"), (.min, "3b7fffffffffffffff"),
  ]

  @Test func writesAndReadsIntegersInTheirShortestForm() throws {
    for (value, hex) in Self.integers {
      #expect(Self.encode { $0.integer(value) } == hex)
      var decoder = try Self.decoder(hex)
      #expect(try decoder.integer() == value)
      #expect(throws: Never.self) { try decoder.finish() }
    }
    #expect(Self.encode { $0.unsigned(.max) } == "1bffffffffffffffff")
    var decoder = try Self.decoder("1bffffffffffffffff")
    #expect(try decoder.unsigned() == .max)
  }

  @Test func writesTheGivenBytes() {
    #expect(Self.encode { $0.bool(false) } == "f4")
    #expect(Self.encode { $0.bool(true) } == "f5")
    #expect(Self.encode { $0.null() } == "f6")
    #expect(Self.encode { $0.bytes([UInt8]()) } == "40")
    #expect(Self.encode { $0.bytes([1, 2, 3, 4].span) } == "4401020304")
    #expect(Self.encode { $0.text("") } == "60")
    #expect(Self.encode { $0.text("ü") } == "62c3bc")
    #expect(Self.encode { $0.text("𐅑") } == "64f0908591")
    let nested = Self.encode { encoder in
      encoder.beginArray()
      encoder.integer(1)
      encoder.beginMap(count: 2)
      encoder.key(1)
      encoder.text("a")
      encoder.key(-1)
      encoder.beginArray(count: 0)
      encoder.endArray()
      encoder.endMap()
      encoder.encoded([0xF6])
      encoder.endArray()
    }
    #expect(nested == "83" + "01" + "a2" + "016161" + "2080" + "f6")
  }

  @Test(arguments: [0, 1, 23, 24, 255, 256, 70_000])
  func writesElementCountsAfterwards(count: Int) throws {
    var later = CBOREncoder()
    later.beginArray()
    for number in 0..<count { later.integer(Int64(number)) }
    later.endArray()
    var before = CBOREncoder()
    before.beginArray(count: count)
    for number in 0..<count { before.integer(Int64(number)) }
    before.endArray()
    let bytes = later.finish()
    #expect(bytes == before.finish())
    var decoder = CBORDecoder(bytes)
    #expect(try decoder.beginArray() == count)
    var sum: Int64 = 0
    while try decoder.nextElement() { sum += try decoder.integer() }
    #expect(sum == Int64(count) * Int64(count - 1) / 2)
    #expect(throws: Never.self) { try decoder.finish() }
  }

  static let entry: [UInt8] = {
    var encoder = CBOREncoder()
    encoder.beginMap()
    encoder.key(0)
    encoder.bytes([0xFF, 0x61])
    encoder.key(3)
    encoder.integer(-5)
    encoder.key(24)
    encoder.beginArray()
    for flag in [true, false] { encoder.bool(flag) }
    encoder.null()
    encoder.endArray()
    encoder.key(200)
    encoder.beginMap()
    encoder.key(-1)
    encoder.text("é")
    encoder.endMap()
    encoder.endMap()
    return encoder.finish()
  }()

  @Test func readsAMapAndKeepsUnknownEntries() throws {
    var decoder = CBORDecoder([9, 9] + Self.entry + [9], range: 2..<(2 + Self.entry.count))
    #expect(try decoder.kind() == .map)
    #expect(try decoder.beginMap() == 4)
    var keys: [Int64] = []
    var kept = CBOREncoder()
    kept.beginMap()
    while let key = try decoder.nextKey() {
      keys.append(key)
      switch key {
      case 0: #expect(try decoder.bytes() == [0xFF, 0x61])
      case 3: #expect(try decoder.integer() == -5)
      case 24: try decoder.skip()
      default:
        kept.key(key)
        kept.encoded(try decoder.item())
      }
    }
    kept.endMap()
    try decoder.finish()
    #expect(keys == [0, 3, 24, 200])
    #expect(decoder.offset == Self.entry.count)
    #expect(Hex.encode(kept.finish()) == "a118c8a12062c3a9")
  }

  @Test func writesAndReadsDigests() throws {
    let digest = Blake2b.hash([1])
    #expect(Self.encode { $0.digest(digest) } == "5820" + digest.hex)
    var decoder = try Self.decoder("5820" + digest.hex)
    #expect(try decoder.wholeDigest() == digest)
    var short = try Self.decoder("581f" + digest.hex.dropLast(2))
    #expect(try short.wholeDigest() == nil)
    var long = try Self.decoder("5821" + digest.hex + "00")
    #expect(failure { () throws(CodecError) in try long.wholeDigest() }?.kind == .limit)
  }

  @Test func distinguishesNullFromOtherValues() throws {
    var decoder = try Self.decoder("82f601")
    try decoder.beginArray()
    #expect(try decoder.nextElement())
    #expect(try decoder.null())
    #expect(try decoder.nextElement())
    #expect(try !decoder.null())
    #expect(try decoder.unsigned() == 1)
    #expect(try !decoder.nextElement())
  }

  @Test(arguments: [
    // Not in the shortest form.
    ("1800", CodecError.Kind.malformed, 0), ("1817", .malformed, 0), ("1900ff", .malformed, 0),
    ("1a0000ffff", .malformed, 0), ("1b00000000ffffffff", .malformed, 0), ("3817", .malformed, 0),
    ("5801ff", .malformed, 0), ("980100", .malformed, 0), ("b801000000", .malformed, 0),
    // Indefinite or reserved lengths.
    ("5f4100ff", .unsupported, 0), ("7f6161ff", .unsupported, 0), ("9fff", .unsupported, 0),
    ("bfff", .unsupported, 0), ("1c", .unsupported, 0), ("1f", .unsupported, 0),
    ("ff", .unsupported, 0),
    // Tags, fractions, other simple values.
    ("c000", .unsupported, 0), ("f7", .unsupported, 0), ("f90000", .unsupported, 0),
    ("fb3ff0000000000000", .unsupported, 0), ("f820", .unsupported, 0), ("e0", .unsupported, 0),
    // Keys.
    ("a201000000", .malformed, 3), ("a200000000", .malformed, 3), ("a220000000", .malformed, 3),
    ("a22000" + "2000", .malformed, 3), ("a1616100", .malformed, 1), ("a18000", .malformed, 1),
    ("a1f400", .malformed, 1), ("a11bffffffffffffffff00", .unsupported, 1),
    // Truncated, or with a length beyond the end of the input.
    ("", .truncated, 0), ("18", .truncated, 0), ("19ff", .truncated, 0), ("41", .truncated, 0),
    ("5b7fffffffffffffff00", .truncated, 0), ("7bffffffffffffffff00", .truncated, 0),
    ("82" + "00", .truncated, 0), ("8200" + "18", .truncated, 2), ("a2" + "0000", .truncated, 0),
    ("9b7fffffffffffffff00", .truncated, 0), ("bb7fffffffffffffff0000", .truncated, 0),
    // Trailing bytes.
    ("0000", .malformed, 1), ("8000", .malformed, 1),
    // Invalid text.
    ("61ff", .malformed, 1), ("62c080", .malformed, 1), ("63eda080", .malformed, 1),
  ])
  func refusesInvalidEncodings(hex: String, kind: CodecError.Kind, offset: Int) throws {
    var decoder = try Self.decoder(hex)
    let error = failure { () throws(CodecError) in
      try decoder.skip()
      try decoder.finish()
    }
    #expect(error?.kind == kind, "\(hex): \(error?.description ?? "")")
    #expect(error?.offset == offset, "\(hex): \(error?.description ?? "")")
  }

  @Test func refusesAnotherTypeThanExpected() throws {
    func kind(_ hex: String, _ body: (inout CBORDecoder) throws(CodecError) -> Void) throws
      -> CodecError.Kind?
    {
      var decoder = try Self.decoder(hex)
      return failure { () throws(CodecError) in try body(&decoder) }?.kind
    }
    #expect(try kind("20") { (d) throws(CodecError) in _ = try d.unsigned() } == .malformed)
    #expect(try kind("40") { (d) throws(CodecError) in _ = try d.integer() } == .malformed)
    #expect(try kind("60") { (d) throws(CodecError) in _ = try d.bytes() } == .malformed)
    #expect(try kind("40") { (d) throws(CodecError) in _ = try d.text() } == .malformed)
    #expect(try kind("a0") { (d) throws(CodecError) in try d.beginArray() } == .malformed)
    #expect(try kind("80") { (d) throws(CodecError) in try d.beginMap() } == .malformed)
    #expect(try kind("f6") { (d) throws(CodecError) in _ = try d.bool() } == .malformed)
    #expect(
      try kind("1b8000000000000000") { (d) throws(CodecError) in _ = try d.integer() }
        == .unsupported)
    #expect(
      try kind("430102" + "03") { (d) throws(CodecError) in _ = try d.bytes(limit: 2) } == .limit)
  }

  @Test func nestingBeyondTheLimitIsRefused() throws {
    let deep = String(repeating: "81", count: 31) + "80"
    var decoder = try Self.decoder(deep)
    #expect(throws: Never.self) { try decoder.skip() }
    var deeper = try Self.decoder("81" + deep)
    let error = failure { () throws(CodecError) in try deeper.skip() }
    #expect(error?.kind == .limit)
    #expect(error?.offset == 32)
    var endless = CBORDecoder([UInt8](repeating: 0x81, count: 1 << 20))
    #expect(failure { () throws(CodecError) in try endless.skip() }?.kind == .limit)
  }

  /// Every encoding that is accepted is the only one of its value.
  @Test(arguments: [UInt64(1), 2, 3])
  func acceptsOnlyCanonicalEncodings(seed: UInt64) {
    var random = Seeded(seed)
    var accepted = 0
    for round in 0..<20_000 {
      let bytes =
        round % 2 == 0
        ? random.damage(Self.entry) : random.bytes(Int.random(in: 1...6, using: &random))
      var decoder = CBORDecoder(bytes)
      var encoder = CBOREncoder()
      do throws(CodecError) {
        try Self.copy(&decoder, &encoder)
        try decoder.finish()
        accepted += 1
        #expect(encoder.finish() == bytes, "seed \(seed)")
      } catch {
        #expect((0...bytes.count).contains(error.offset ?? -1), "seed \(seed)")
      }
    }
    #expect(accepted > 100, "seed \(seed)")
  }

  static func copy(
    _ decoder: inout CBORDecoder, _ encoder: inout CBOREncoder
  ) throws(CodecError) {
    switch try decoder.kind() {
    case .unsigned: encoder.unsigned(try decoder.unsigned())
    case .negative, .null: encoder.encoded(try decoder.item())
    case .bytes: encoder.bytes(try decoder.bytes())
    case .text: encoder.text(try decoder.text())
    case .bool: encoder.bool(try decoder.bool())
    case .array:
      try decoder.beginArray()
      encoder.beginArray()
      while try decoder.nextElement() { try copy(&decoder, &encoder) }
      encoder.endArray()
    case .map:
      try decoder.beginMap()
      encoder.beginMap()
      while let key = try decoder.nextKey() {
        encoder.key(key)
        try copy(&decoder, &encoder)
      }
      encoder.endMap()
    }
  }
}
