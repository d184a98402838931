import Codecs
import Foundation
import TestSupport
import Testing

struct PropertyListTests {
  @Test(arguments: 0..<300)
  func readsListsWrittenByFoundation(seed: Int) throws {
    var generator = PropertyListGenerator(UInt64(seed))
    let value = PropertyList.array([generator.value(), generator.value()])
    let expected = PropertyListOracle.sorted(value)
    let xml = try PropertyList(reading: PropertyListOracle.xml(value))
    #expect(PropertyListOracle.sorted(xml) == expected, "seed \(seed)")
    let binary = try PropertyList(reading: PropertyListOracle.binary(value))
    #expect(PropertyListOracle.sorted(binary) == expected, "seed \(seed)")
  }

  @Test(arguments: 0..<300)
  func foundationReadsWrittenLists(seed: Int) throws {
    var generator = PropertyListGenerator(UInt64(seed) + 1000)
    let value = PropertyList.dictionary([
      PropertyList.Member("a", generator.value()), PropertyList.Member("b", generator.value()),
    ])
    let expected = PropertyListOracle.sorted(value)
    #expect(try PropertyListOracle.read(value.xml()) == expected, "seed \(seed)")
    #expect(try PropertyListOracle.read(value.binary()) == expected, "seed \(seed)")
  }

  @Test(arguments: 0..<100)
  func writtenListIsReadBackInOrder(seed: Int) throws {
    var generator = PropertyListGenerator(UInt64(seed) + 5000)
    let value = generator.value()
    #expect(try PropertyList(reading: value.xml()) == value, "seed \(seed)")
    #expect(try PropertyList(reading: value.binary()) == value, "seed \(seed)")
    #expect(try value.xml() == value.xml())
    // The encoded bytes are compared, because `==` does not distinguish composed and decomposed
    // characters.
    #expect(try PropertyList(reading: value.xml()).binary() == value.binary())
    #expect(try PropertyList(reading: value.binary()).binary() == value.binary())
  }

  @Test func keepsArchiveReferences() throws {
    let value = PropertyList.array([.uid(1), .uid(300), .uid(70_000), .uid(1 << 40)])
    #expect(try PropertyList(reading: value.binary()) == value)
    #expect(try PropertyList(reading: value.xml()) == value)
  }

  @Test(
    .enabled(if: Shared.has("fixtures/info-plists")),
    arguments: ["delta", "vlc-ios-share", "vlc-ios"])
  func readsRealInfoPlistsAsFoundationDoes(name: String) throws {
    let bytes = try Shared.bytes("fixtures/info-plists/\(name).plist")
    let value = try PropertyList(reading: bytes)
    let expected = try PropertyListOracle.read(bytes)
    #expect(PropertyListOracle.sorted(value) == expected)
    let binary = try PropertyList(reading: PropertyListOracle.binary(value))
    #expect(PropertyListOracle.sorted(binary) == expected)
    #expect((value.dictionaryValue?.count ?? 0) > 1)
  }

  /// One of the real files contains preprocessor lines, and Foundation refuses it as well.
  @Test(.enabled(if: Shared.has("fixtures/info-plists")))
  func refusesARealFileWithPreprocessorLines() throws {
    let bytes = try Shared.bytes("fixtures/info-plists/keepassium.plist")
    #expect(throws: (any Error).self) { try PropertyListOracle.read(bytes) }
    let error = #expect(throws: CodecError.self) { try PropertyList(reading: bytes) }
    #expect(error?.position == .mark(Mark(line: 206, column: 1)))
  }

  @Test func readsMoreThan256ObjectsAndLongStrings() throws {
    let long = String(repeating: "x", count: 70_000)
    let value = PropertyList.array(
      (0..<70_000).map { PropertyList.integer(Int64($0)) } + [.string(long), .string("é")])
    #expect(try PropertyList(reading: value.binary()) == value)
    #expect(try PropertyListOracle.read(value.binary()) == value)
  }

  @Test func readsUTF16AndByteOrderMarks() throws {
    let text = "<plist version=\"1.0\"><string>é😀</string></plist>"
    for (mark, isBig) in [([UInt8(0xfe), 0xff], true), ([0xff, 0xfe], false)] {
      let bytes = text.utf16.flatMap { unit -> [UInt8] in
        isBig ? [UInt8(unit >> 8), UInt8(unit & 255)] : [UInt8(unit & 255), UInt8(unit >> 8)]
      }
      #expect(try PropertyList(reading: mark + bytes) == .string("é😀"))
    }
    #expect(try PropertyList(reading: [0xef, 0xbb, 0xbf] + Array(text.utf8)) == .string("é😀"))
  }

  @Test func lastOfTwoEqualKeysIsUsed() throws {
    let value = try read("<dict><key>a</key><true/><key>b</key><true/><key>a</key><false/></dict>")
    #expect(value.dictionaryValue?.map(\.key) == ["a", "b"])
    #expect(value["a"] == .bool(false))
    #expect(value["c"] == nil)
  }

  /// Large dictionaries are searched in a different way than small ones.
  @Test(arguments: [1, 15, 16, 17, 40])
  func lastValueOfAKeyIsUsedAtItsFirstPlace(_ count: Int) throws {
    let keys = (0..<count).map { "key \($0)" }
    let members = (keys.map { ($0, "old") } + keys.reversed().map { ($0, "new") })
      .map { "<key>\($0.0)</key><string>\($0.1)</string>" }
    let list = try PropertyList(
      reading: Array("<plist><dict>\(members.joined())</dict></plist>".utf8))
    #expect(list == .dictionary(keys.map { PropertyList.Member($0, .string("new")) }))
  }

  @Test func composedAndDecomposedKeysDiffer() throws {
    let value = try read("<dict><key>\u{e9}</key><true/><key>e\u{301}</key><false/></dict>")
    #expect(value.dictionaryValue?.count == 2)
    #expect(value["\u{e9}"] == .bool(true))
    #expect(value["e\u{301}"] == .bool(false))
  }

  @Test(arguments: [
    ("<string>a<![CDATA[<&>]]>b</string>", PropertyList.string("a<&>b")),
    ("<string>&#65;&#x1F600;&apos;&quot;&lt;&gt;&amp;</string>", .string("A😀'\"<>&")),
    ("<string/>", .string("")), ("<true></true>", .bool(true)), ("<dict />", .dictionary([])),
    ("<integer> +0x1F </integer>", .integer(31)), ("<integer>- 5</integer>", .integer(-5)),
    ("<integer>-9223372036854775808</integer>", .integer(.min)),
    ("<integer>18446744073709551615</integer>", .unsigned(.max)),
    ("<!-- c --><?pi x?><real>-1.5e3</real><!-- d -->", .real(-1500)),
    ("<real>+infinity</real>", .real(.infinity)),
    ("<date>2000-12-31T23:59:59Z</date>", .date(-1)),
    ("<date>1600-02-29T00:00:00Z</date>", .date(-12_649_305_600)),
    ("<data>\n AA\tE= </data>", .data([0, 1])), ("<data></data>", .data([])),
  ])
  func readsXML(text: String, expected: PropertyList) throws {
    #expect(try read(text) == expected)
  }

  @Test func acceptsOnlyApplesDocumentTypes() throws {
    let good = [
      "PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\"",
      "PUBLIC \"-//Apple Computer//DTD PLIST 1.0//EN\" \"http://x\"",
      "SYSTEM \"file://localhost/System/Library/DTDs/PropertyList.dtd\"",
    ]
    for type in good {
      let text = "<!DOCTYPE plist \(type)><plist><true/></plist>"
      #expect(try PropertyList(reading: Array(text.utf8)) == .bool(true))
    }
    for type in [
      "[<!ENTITY a 'b'>]", "SYSTEM \"file:///etc/passwd\"", good[0] + " [<!ENTITY a 'b'>]",
    ] {
      let text = "<!DOCTYPE plist \(type)><plist><true/></plist>"
      let error = #expect(throws: CodecError.self) { try PropertyList(reading: Array(text.utf8)) }
      #expect(error?.kind == .malformed)
    }
  }

  private func read(_ body: String) throws -> PropertyList {
    try PropertyList(reading: Array("<plist version=\"1.0\">\(body)</plist>".utf8))
  }
}
