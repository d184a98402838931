import Codecs
import Testing

@testable import Interchange

/// The resource table of an APK.
struct AndroidResourcesTests {
  private typealias Builder = ResourceTableBuilder
  private typealias Table = ResourceTableBuilder.Table

  private func value(
    _ resource: UInt32, _ tables: [Table], package: UInt32 = 0x7f
  ) throws -> AndroidResources.Value? {
    try AndroidResources(Builder.build(tables, package: package)).value(of: resource)
  }

  @Test(arguments: ResourceTableBuilder.Form.allCases)
  func valuesAreFound(form: ResourceTableBuilder.Form) throws {
    let tables = [
      Table(
        type: 3, values: [1: .text("res/xml/rules.xml"), 5: .flag(true), 9: .typed(0x04, 7)],
        form: form)
    ]
    #expect(try value(0x7f03_0001, tables) == .text("res/xml/rules.xml"))
    #expect(try value(0x7f03_0005, tables) == .number(.max))
    #expect(try value(0x7f03_0009, tables) == .other)
    for absent: UInt32 in [0x7f03_0000, 0x7f03_0006, 0x7f03_ffff, 0x7f04_0001, 0x0103_0001, 0] {
      #expect(try value(absent, tables) == nil)
    }
  }

  @Test func valuesWithPartsAreNotFiles() throws {
    #expect(try value(0x7f01_0000, [Table(type: 1, values: [0: .complex])]) == .other)
  }

  @Test func referencesAreFollowedWithinABound() throws {
    let last = UInt16(AndroidResources.Limit.references)
    var values: [UInt16: Builder.Value] = [last: .text("end")]
    for index in 0..<last { values[index] = .reference(0x7f01_0001 + UInt32(index)) }
    #expect(try value(0x7f01_0000, [Table(type: 1, values: values)]) == .text("end"))
    values[last] = .reference(0x7f01_0000)
    let circle = [Table(type: 1, values: values)]
    let error = #expect(throws: CodecError.self) { try value(0x7f01_0003, circle) }
    #expect(error?.kind == .limit)
    // A resource of the Android system.
    values[0] = .reference(0x0105_0000)
    #expect(try value(0x7f01_0000, [Table(type: 1, values: values)]) == nil)
  }

  @Test func theNewestVersionWithoutAnotherConditionIsPreferred() throws {
    func table(_ text: String, _ version: UInt16, language: Bool = false) -> Table {
      Table(type: 2, values: [0: .text(text)], version: version, hasLanguage: language)
    }
    let all = [
      table("german", 0, language: true), table("plain", 0), table("31", 31), table("24", 24),
      table("german 35", 35, language: true),
    ]
    #expect(try value(0x7f02_0000, all) == .text("31"))
    #expect(try value(0x7f02_0000, [all[0], all[4]]) == .text("german"))
    #expect(try value(0x7f02_0000, [all[0], all[1]]) == .text("plain"))
  }

  /// Any changed byte and any truncation makes the reader fail with an error, and never in another
  /// way.
  @Test func damageIsAnError() throws {
    let file = Builder.build([
      Table(type: 1, values: [0: .text("a"), 3: .reference(0x7f02_0001)]),
      Table(type: 2, values: [1: .flag(false)], form: .sparse),
      Table(type: 3, values: [1: .text("b")], form: .short),
      Table(type: 4, values: [1: .text("c")], form: .compact),
    ])
    func read(_ bytes: [UInt8]) {
      guard let table = try? AndroidResources(bytes) else { return }
      for type: UInt32 in 1...4 {
        for index: UInt32 in 0...3 { _ = try? table.value(of: 0x7f00_0000 | type << 16 | index) }
      }
    }
    for count in 0..<file.count { read(Array(file.prefix(count))) }
    for position in file.indices {
      for value: UInt8 in [0, 1, 0x7f, 0x80, 0xff] {
        var bytes = file
        bytes[position] = value
        read(bytes)
      }
    }
  }

  @Test func positionsBeyondATableAreErrors() throws {
    let file = Builder.build([Table(type: 1, values: [0: .text("a")])])
    let table = try #require(
      (0..<(file.count - 1)).last { file[$0] == 0x01 && file[$0 + 1] == 0x02 })
    // The number of values, the position of the first one, and the position of the wanted one.
    for position in [12, 16, 84] {
      var bytes = file
      bytes[table + position + 3] = 0x7f
      #expect(throws: CodecError.self) {
        try AndroidResources(bytes).value(of: 0x7f01_0000)
      }
    }
  }

  @Test func otherFilesAreRefused() {
    for bytes: [UInt8] in [[], [2, 0], BinaryXMLBuilder.build(.init(name: "a"))] {
      #expect(throws: CodecError.self) { try AndroidResources(bytes) }
    }
  }
}
