import Codecs
import Foundation
import Testing

struct JSONTests {
  let sample: JSON = [
    "name": "a\"b\\c\n\u{1}é\u{7F}\u{2028}😀", "list": [1, -2, 2.5, 1e21, true, nil, [:], []],
    "zero": 0, "a": ["deep": [["x": false]]],
  ]

  @Test func writesOneLineInTheGivenOrder() {
    #expect(
      sample.compact
        == #"{"name":"a\"b\\c\n\u0001é\u007f\u2028😀","list":[1,-2,2.5,1e+21,true,null,{},[]],"#
        + #""zero":0,"a":{"deep":[{"x":false}]}}"#)
    #expect("\(sample)" == sample.compact)
    #expect(JSON.double(.infinity).compact == "null")
  }

  @Test func writesSeveralLines() {
    let value: JSON = ["a": [1, ["b": nil]], "e": [], "o": [:]]
    #expect(
      value.pretty == """
        {
          "a": [
            1,
            {
              "b": null
            }
          ],
          "e": [],
          "o": {}
        }
        """)
  }

  @Test func readsWhatItWrites() throws {
    #expect(try JSON(parsing: sample.compact) == sample)
    #expect(try JSON(parsing: sample.pretty) == sample)
    for value in [Int64.min, Int64.max, 0, -1] {
      #expect(try JSON(parsing: JSON.integer(value).compact) == .integer(value))
    }
    for value in [0.1, -0.0, Double.leastNonzeroMagnitude, 1.7976931348623157e308, 1e100, 100] {
      let read = try JSON(parsing: JSON.double(value).compact)
      #expect(read.double?.bitPattern == value.bitPattern)
    }
  }

  /// Members that are not wanted are validated, but not kept.
  @Test func onlyWantedMembersAreKept() throws {
    let text = #"{"a":[1,{"b":2}],"n\u00e9":"\ud83d\ude00","b":{"a":3},"c":null}"#
    let read = try JSON(parsing: Array(text.utf8), keeping: ["b", "c", "né"])
    #expect(read == ["né": "😀", "b": ["a": 3], "c": nil])
    #expect(try JSON(parsing: Array("[1,[2]]".utf8), keeping: []) == [1, [2]])
    for bad in [
      #"{"a":[1,}"#, #"{"a":"\ud83d"}"#, #"{"a":01}"#, #"{"a":{"b" 1}}"#, #"{"a":1,"a":2}"#,
      #"{"a":99999999999999999999}"#,
    ] {
      #expect(throws: CodecError.self, "\(bad)") { try JSON(parsing: Array(bad.utf8), keeping: []) }
    }
  }

  /// Small values need more memory than their text, so the number of values is limited, whether
  /// they are kept or not.
  @Test func numberOfValuesIsLimited() throws {
    let text = Array("{\"a\":[1,[2,3],{\"b\":4}]}".utf8)
    for wanted: Set<String>? in [nil, []] {
      #expect(throws: Never.self) {
        try JSON(parsing: text, limits: .init(values: 8), keeping: wanted)
      }
      let error = #expect(throws: CodecError.self) {
        try JSON(parsing: text, limits: .init(values: 7), keeping: wanted)
      }
      #expect(error?.kind == .limit && error?.reason.contains("7 values") == true)
    }
  }

  @Test func isReadByFoundation() throws {
    let foreign = try JSONSerialization.jsonObject(with: Data(sample.compactBytes))
    let object = try #require(foreign as? [String: Any])
    #expect(object["name"] as? String == "a\"b\\c\n\u{1}é\u{7F}\u{2028}😀")
    #expect((object["list"] as? [Any])?.count == 8)
  }

  @Test func readsEscapesAndSpaces() throws {
    let value = try JSON(parsing: " [ \"\\u00e9\\ud83d\\ude00\\/\\b\\f\\r\\t\" , 1E2 ,\t-0 ]\r\n")
    #expect(value[0]?.string == "é😀/\u{8}\u{C}\r\t")
    #expect(value[1]?.double == 100)
    #expect(value[2]?.double?.sign == .minus)
  }

  @Test func returnsItsParts() {
    #expect(sample["zero"]?.integer == 0)
    #expect(sample["zero"]?.double == 0)
    #expect(sample["list"]?[4]?.bool == true)
    #expect(sample["list"]?.array?.count == 8)
    #expect(sample["list"]?[8] == nil)
    #expect(sample["nothing"] == nil)
    #expect(sample.members?.map(\.name) == ["name", "list", "zero", "a"])
    #expect(sample["name"]?.integer == nil)
    #expect(sample.string == nil)
  }

  @Test func comparesNamesByTheirBytes() throws {
    let value = try JSON(parsing: "{\"\u{E9}\": 1, \"e\u{301}\": 2}")
    #expect(value["\u{E9}"]?.integer == 1)
    #expect(value["e\u{301}"]?.integer == 2)
  }

  @Test(arguments: [
    ("", "1:1"), ("  \n ", "2:2"), ("{", "1:2"), ("[1,", "1:4"), ("[1,]", "1:4"),
    ("{\"a\":1,}", "1:8"), ("[1 2]", "1:4"), ("{\"a\" 1}", "1:6"), ("{a:1}", "1:2"),
    ("tru", "1:1"), ("nulll", "1:5"), ("01", "1:2"), ("-", "1:2"), ("1.", "1:3"), ("1e", "1:3"),
    (".5", "1:1"), ("+1", "1:1"), ("\"a", "1:1"), ("\"\\x\"", "1:2"), ("\"\\u12g4\"", "1:6"),
    ("\"\\ud800\"", "1:2"), ("\"\\ud800\\u0041\"", "1:2"), ("\"\\udc00\"", "1:2"),
    ("\"a\nb\"", "1:3"), ("{\"é\":1,\n \"é\":2}", "2:2"), ("[1]\n x", "2:2"), ("\u{FEFF}1", "1:1"),
    ("9223372036854775808", "1:1"), ("[1e999]", "1:2"), ("'a'", "1:1"), ("[NaN]", "1:2"),
    ("// c\n1", "1:1"),
  ])
  func refusesInvalidText(text: String, location: String) {
    let error = failure { () throws(CodecError) in try JSON(parsing: text) }
    #expect(error?.mark?.description == location, "\(text): \(error?.description ?? "")")
    #expect(error?.format == .json)
  }

  @Test func refusesInvalidUTF8() {
    for bytes: [UInt8] in [[0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80]] {
      let text = Array("[1,\n\"".utf8) + bytes + Array("\"]".utf8)
      let error = failure { () throws(CodecError) in try JSON(parsing: text) }
      #expect(error?.mark == Mark(line: 2, column: 2))
    }
  }

  @Test func limitsDepthAndSize() throws {
    let deep = String(repeating: "[", count: 128) + String(repeating: "]", count: 128)
    #expect(throws: Never.self) { try JSON(parsing: deep) }
    let error = failure { () throws(CodecError) in try JSON(parsing: "[" + deep + "]") }
    #expect(error?.kind == .limit)
    #expect(error?.mark == Mark(line: 1, column: 129))
    let endless = String(repeating: "[", count: 1_000_000)
    #expect(failure { () throws(CodecError) in try JSON(parsing: endless) }?.kind == .limit)
    let limits = JSON.Limits(bytes: 3)
    #expect(
      failure { () throws(CodecError) in try JSON(parsing: "1234", limits: limits) }?.kind == .limit
    )
  }

  @Test func findsADuplicateAmong10000Names() throws {
    let names = (0..<10_000).map { "\"n\($0)\":0" }.joined(separator: ",")
    #expect(try JSON(parsing: "{\(names)}").members?.count == 10_000)
    let error = failure { () throws(CodecError) in try JSON(parsing: "{\(names),\"n77\":1}") }
    #expect(error?.reason == "duplicate name 'n77'")
  }

  @Test(arguments: [UInt64(1), 2, 3])
  func neverTrapsOnDamage(seed: UInt64) {
    var random = Seeded(seed)
    var read = 0
    for _ in 0..<2_000 {
      let text = random.damage(sample.compactBytes)
      if let value = try? JSON(parsing: text) {
        read += 1
        #expect((try? JSON(parsing: value.compact)) == value, "seed \(seed)")
      }
    }
    #expect(read < 2_000, "seed \(seed)")
  }

  // MARK: - Streams

  /// The elements are created while the object is written: only few exist before the first piece is
  /// written.
  @Test func longArraysAreWrittenInPieces() {
    let path = String(repeating: "p", count: 100)
    var (made, pieces) = (0, [(bytes: Int, made: Int)]())
    let elements = (0..<10_000).lazy.map { number -> JSON in
      made += 1
      return ["path": .string(path), "number": .integer(Int64(number))]
    }
    var inner = JSONStream([JSON.Member("a", 1)])
    inner.add("none", .elements([JSON]()))
    var stream = JSONStream([JSON.Member("first", "\n")])
    stream.add("paths", .elements(elements))
    stream.add("inner", .object(inner))
    stream.add([JSON.Member("last", .null)])
    var text: [UInt8] = []
    stream.write {
      text += $0
      pieces.append(($0.count, made))
    }
    let whole: JSON = [
      "first": "\n",
      "paths": .array(
        (0..<10_000).map { ["path": .string(path), "number": .integer(Int64($0))] }),
      "inner": ["a": 1, "none": []], "last": .null,
    ]
    #expect(text == whole.compactBytes)
    #expect(pieces.count > 15 && pieces.allSatisfy { $0.bytes < 70_000 })
    #expect(pieces[0].made < 1000)
    var empty: [UInt8] = []
    JSONStream([]).write { empty += $0 }
    #expect(empty == Array("{}".utf8))
  }

  @Test func writingEndsWithTheFirstError() {
    struct Full: Error {}
    var pieces = 0
    var stream = JSONStream([])
    stream.add("numbers", .elements((0..<100_000).lazy.map { .integer(Int64($0)) }))
    #expect(throws: Full.self) {
      try stream.write { _ in
        pieces += 1
        throw Full()
      }
    }
    #expect(pieces == 1)
  }
}
