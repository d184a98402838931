import Codecs
import Foundation
import TestSupport
import Testing

/// Invalid and hostile property lists result in an error with a position, never in a crash.
struct PropertyListRefusalTests {
  @Test(arguments: [
    ("<plist>\n <dict>\n  <key>a</key>\n </dict>\n</plist>", 3, 3, "the key 'a' has no value"),
    ("<plist>\n <dict><string>a</string></dict></plist>", 2, 8, "expected <key>"),
    ("<plist>\n é<true/></plist>", 2, 2, "expected an element, found text"),
    ("<plist><string>a<b/></string></plist>", 1, 17, "expected </string>"),
    ("<plist><string>&bogus;</string></plist>", 1, 16, "unknown entity 'bogus'"),
    ("<plist><string>&#0;</string></plist>", 1, 16, "unknown entity '#0'"),
    ("<plist><string>a & b</string></plist>", 1, 18, "does not begin an entity"),
    ("<plist><integer>1x</integer></plist>", 1, 8, "'1x' is not a valid <integer>"),
    ("<plist><integer>18446744073709551616</integer></plist>", 1, 8, "not a valid <integer>"),
    ("<plist><real>0x10</real></plist>", 1, 8, "not a valid <real>"),
    ("<plist><date>2001-02-29T00:00:00Z</date></plist>", 1, 8, "not a valid <date>"),
    ("<plist><data>A!==</data></plist>", 1, 8, "not a valid <data>"),
    ("<plist><array><true/></dict></plist>", 1, 22, "expected </array>"),
    ("<plist><array><true/>", 1, 22, "unexpected end of file"),
    ("<plist><string>abc", 1, 19, "</string> is missing"),
    ("<plist><true/></plist>x", 1, 23, "unexpected content after </plist>"),
    ("<plist><true/><true/></plist>", 1, 15, "expected </plist>"),
    ("<plist><null/></plist>", 1, 8, "unknown element"),
    ("<plist></plist>", 1, 8, "unknown element"),
    ("<plist><!-- <true/></plist>", 1, 8, "a comment is not terminated"),
    ("<plist><string a=\"></string></plist>", 1, 8, "a tag is not terminated"),
    ("<?xml version=\"1.0\" encoding=\"koi8-r\"?><plist><true/></plist>", 1, 1, "'koi8-r'"),
    ("{ a = b; }", 1, 1, "neither an XML nor a binary property list"),
    ("", 1, 1, "neither an XML nor a binary property list"),
  ])
  func namesLineAndColumn(text: String, line: Int, column: Int, reason: String) {
    let error = #expect(throws: CodecError.self) { try PropertyList(reading: Array(text.utf8)) }
    #expect(
      error?.position == .mark(Mark(line: line, column: column)), "\(String(describing: error))")
    #expect(error?.reason.contains(reason) == true, "\(String(describing: error))")
  }

  @Test func garbageIsRefusedWithItsPosition() {
    let error = #expect(throws: CodecError.self) {
      try PropertyList(reading: [0x3c, 0x70, 0xff, 0xfe, 0x00])
    }
    #expect(error?.position == .offset(2))
  }

  @Test func sizeIsLimited() throws {
    let limits = PropertyList.Limits(bytes: 100)
    let error = #expect(throws: CodecError.self) {
      try PropertyList(reading: [UInt8](repeating: 0x20, count: 101), limits: limits)
    }
    #expect(error?.kind == .limit)
    #expect(error?.reason == "it has 101 bytes, more than the limit of 100")
  }

  @Test(arguments: [64, 65])
  func depthIsLimited(depth: Int) throws {
    let xml =
      "<plist>" + String(repeating: "<array>", count: depth)
      + String(repeating: "</array>", count: depth) + "</plist>"
    let binary = Self.nested(depth)
    for bytes in [Array(xml.utf8), binary] {
      if depth <= 64 {
        let value = try PropertyList(reading: bytes)
        #expect(try PropertyList(reading: value.xml()) == value)
      } else {
        let error = #expect(throws: CodecError.self) { try PropertyList(reading: bytes) }
        #expect(error?.kind == .limit)
        #expect(error?.reason == "it is nested more than 64 levels deep")
      }
    }
  }

  @Test func millionOpenTagsDoNotOverflowTheStack() {
    let text = "<plist>" + String(repeating: "<array>", count: 1_000_000)
    let error = #expect(throws: CodecError.self) { try PropertyList(reading: Array(text.utf8)) }
    #expect(error?.kind == .limit)
  }

  @Test func numberOfObjectsIsLimited() {
    // Forty arrays, each containing the next one twice: 2^40 values in 200 bytes.
    var objects = (0..<40).map { [0xa2, UInt8($0 + 1), UInt8($0 + 1)] }
    objects.append([0x09])
    let error = #expect(throws: CodecError.self) {
      try PropertyList(reading: Self.binary(objects), limits: .init(objects: 10_000))
    }
    #expect(error?.reason == "it has more than 10000 values")
    let text = "<plist><array>" + String(repeating: "<true/>", count: 100) + "</array></plist>"
    let second = #expect(throws: CodecError.self) {
      try PropertyList(reading: Array(text.utf8), limits: .init(objects: 100))
    }
    #expect(second?.kind == .limit)
  }

  @Test(
    arguments: [
      ([[0xa1, 0x00]], "an object that contains itself"),
      ([[0xa1, 0x01], [0xd1, 0x02, 0x00], [0x51, 0x61]], "an object that contains itself"),
      ([[0xa1, 0x07]], "a reference to an object that does not exist"),
      ([[0xaf, 0x13, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]], "extends beyond"),
      ([[0x4f, 0x13, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]], "an invalid length"),
      ([[0x4f, 0x12, 0xff, 0xff, 0xff, 0xff]], "extends beyond"),
      ([[0x6f, 0x11, 0x7f, 0xff]], "extends beyond"),
      ([[0x13, 0x00]], "extends beyond"),
      ([[0x52, 0x61, 0xe9]], "a string that is not ASCII"),
      ([[0x61, 0xd8, 0x00]], "a string that is not valid UTF-16"),
      ([[0xd1, 0x01, 0x01], [0x09]], "a key of type boolean, not string"),
      ([[0x00]], "an object of unknown type 0x0"),
      ([[0x14] + [UInt8](repeating: 1, count: 16)], "an integer of more than 64 bits"),
      ([[0xff]], "an object of unknown type 0xff"),
    ] as [([[UInt8]], String)])
  func refusesBrokenObjects(objects: [[UInt8]], reason: String) {
    let error = #expect(throws: CodecError.self) { try PropertyList(reading: Self.binary(objects)) }
    #expect(error?.reason.contains(reason) == true, "\(String(describing: error))")
    guard case .offset = error?.position else {
      Issue.record("no offset in \(String(describing: error))")
      return
    }
  }

  @Test(arguments: [
    (6, UInt8(0)), (6, 9), (7, 0), (8, 0xff), (15, 0), (16, 1), (24, 0x80), (31, 0xff),
  ])
  func refusesBrokenTrailers(position: Int, byte: UInt8) {
    var bytes = Self.binary([[0x09]])
    bytes[bytes.count - 32 + position] = byte
    let error = #expect(throws: CodecError.self) { try PropertyList(reading: bytes) }
    #expect(error?.kind == .malformed)
  }

  @Test func writerRefusesUnreadableValues() {
    #expect(throws: CodecError.self) { try PropertyList.string("\u{1}").xml() }
    #expect(throws: CodecError.self) { try PropertyList.date(.infinity).xml() }
    #expect(throws: CodecError.self) { try PropertyList.date(1e11 * 4).xml() }
    var deep = PropertyList.bool(true)
    for _ in 0..<65 { deep = .array([deep]) }
    let value = deep
    #expect(throws: CodecError.self) { try value.xml() }
    #expect(throws: CodecError.self) { try value.binary() }
  }

  /// A damaged list is refused or is read as another value, which can be written.
  @Test(arguments: 0..<200)
  func neverCrashesOnDamage(seed: Int) throws {
    var generator = PropertyListGenerator(UInt64(seed) + 9000)
    let value = PropertyList.array((0..<3).map { _ in generator.value() })
    var refused = 0
    for original in [try value.xml(), try value.binary()] {
      for _ in 0..<40 {
        var bytes = original
        Self.damage(&bytes, &generator.random)
        do {
          _ = try PropertyList(reading: bytes).binary()
        } catch {
          refused += 1
          #expect(!error.description.isEmpty)
        }
      }
    }
    #expect(refused > 0, "seed \(seed)")
  }

  private static func damage(_ bytes: inout [UInt8], _ random: inout Seeded) {
    for _ in 0..<Int.random(in: 1...4, using: &random) where !bytes.isEmpty {
      let position = Int.random(in: 0..<bytes.count, using: &random)
      switch Int.random(in: 0..<4, using: &random) {
      case 0: bytes[position] = UInt8(truncatingIfNeeded: random.next())
      case 1: bytes[position] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      case 2: bytes.removeSubrange(position..<min(bytes.count, position + 5))
      default: bytes.insert(contentsOf: bytes[position...].prefix(9), at: position)
      }
    }
  }

  /// Returns a binary property list of these objects, the first of which is the root.
  static func binary(_ objects: [[UInt8]]) -> [UInt8] {
    var bytes = Array("bplist00".utf8)
    var offsets: [UInt8] = []
    for object in objects {
      offsets += [UInt8(bytes.count >> 8), UInt8(bytes.count & 255)]
      bytes += object
    }
    let table = bytes.count
    bytes += offsets + [0, 0, 0, 0, 0, 0, 2, 1]
    bytes += [0, 0, 0, 0, 0, 0, UInt8(objects.count >> 8), UInt8(objects.count & 255)]
    bytes += [UInt8](repeating: 0, count: 8)
    return bytes + [0, 0, 0, 0, 0, 0, UInt8(table >> 8), UInt8(table & 255)]
  }

  /// Returns nested arrays, the innermost of which is empty.
  static func nested(_ depth: Int) -> [UInt8] {
    binary((0..<depth).map { $0 + 1 < depth ? [0xa1, UInt8($0 + 1)] : [0xa0] })
  }
}
