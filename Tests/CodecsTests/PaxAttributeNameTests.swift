import Testing

@testable import Codecs

/// The names of extended attributes in pax records.
struct PaxAttributeNameTests {
  private static func text(_ text: String) -> [UInt8] { Array(text.utf8) }

  private static func attributes(_ names: String...) -> [PaxMember.Attribute] {
    names.map { .init(name: text($0), value: [1]) }
  }

  /// The encoding that GNU tar 1.34 uses.
  @Test(arguments: [
    ("user.plain", "user.plain"), ("user.a=b", "user.a%3Db"), ("user.c%d", "user.c%25d"),
    ("user.e%3Df", "user.e%253Df"), ("%", "%25"), ("==", "%3D%3D"), ("é g", "é g"),
  ])
  func namesAreEncodedAsByGNUTar(name: String, encoded: String) {
    #expect(PaxAttributeName.encode(Self.text(name)) == Self.text(encoded))
    #expect(PaxAttributeName.decode(Self.text(encoded)) == Self.text(name))
  }

  /// star does not encode names.
  @Test(arguments: ["user.50%", "user.%3d", "user.%2", "user.%C3%A9"])
  func otherNamesAreNotDecoded(name: String) {
    #expect(PaxAttributeName.decode(Self.text(name)) == Self.text(name))
  }

  @Test func headerHasTheEncodedName() {
    var member = PaxMember(path: Self.text("x"), kind: .fifo, mode: 0o644)
    member.attributes = Self.attributes("user.a=b%")
    let record = Self.text("32 SCHILY.xattr.user.a%3Db%25=\u{1}\n")
    #expect(Array(member.header()[512..<512 + record.count]) == record)
  }

  /// bsdtar writes each attribute under two keys, one of which libarchive decodes.
  @Test func attributesStoredUnderTwoKeysAreReadOnce() {
    let read = Self.attributes(
      "user.a=b", "user.a%3Db", "user.e%3Df", "user.e%253Df", "user.é g", "user.%C3%A9%20g",
      "user.x")
    #expect(
      PaxAttributeName.decoded(read)
        == Self.attributes("user.a=b", "user.e%3Df", "user.é g", "user.x"))
    var other = Self.attributes("user.é", "user.%C3%A9")
    other[1].value = [2]
    #expect(PaxAttributeName.decoded(other) == other, "these are two attributes")
  }
}
