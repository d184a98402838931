import Codecs
import TestSupport
import Testing

struct YAMLTests {
  let sample = """
    # a policy
    policy: ios
    schema: 1
    extends: [common, apple]
    classes:
      cache:   {backup: never, purge: {order: 20, when: under-pressure}}
    rules:
      - id: documents
        match: "Documents/**"
        why: >
          folded
          text
      - {id: 'it''s', versions: ">=5.1", no: no}
    """

  @Test func readsAPolicyInOrder() throws {
    let root = try YAML.parse(sample)
    #expect(root.mapping?.map(\.name) == ["policy", "schema", "extends", "classes", "rules"])
    #expect(root["policy"]?.string == "ios")
    #expect(root["schema"]?.integer == 1)
    #expect(root["extends"]?.sequence?.map(\.string) == ["common", "apple"])
    #expect(root["classes"]?["cache"]?["purge"]?["order"]?.integer == 20)
    let rules = try #require(root["rules"]?.sequence)
    #expect(rules[0]["match"]?.scalar == YAMLNode.Scalar("Documents/**", style: .quoted))
    #expect(rules[0]["why"]?.scalar == YAMLNode.Scalar("folded text\n", style: .block))
    #expect(rules[1]["id"]?.text == "it's")
    #expect(rules[1]["no"]?.string == "no")
    #expect(rules[1]["nothing"] == nil)
  }

  /// Editors on Windows may write a byte order mark.
  @Test func byteOrderMarkIsIgnored() throws {
    let root = try YAML.parse("\u{feff}" + sample.replacing("\n", with: "\r\n"))
    #expect(root.mapping?.map(\.name) == ["policy", "schema", "extends", "classes", "rules"])
    #expect(root["schema"]?.mark == Mark(line: 3, column: 9))
    for (text, location) in [("a: 1\nb: \u{1}", "2:4"), ("a: 1\n b: 2", "2:3"), ("", "1:1")] {
      let error = failure { () throws(CodecError) in try YAML.parse("\u{feff}" + text) }
      #expect(error?.mark?.description == location, "\(text): \(error?.description ?? "")")
    }
  }

  @Test func marksEveryNodeAndKey() throws {
    let root = try YAML.parse(sample)
    #expect(root.mark == Mark(line: 2, column: 1))
    let schema = try #require(root.mapping?[1])
    #expect(schema.keyMark == Mark(line: 3, column: 1))
    #expect(schema.value.mark == Mark(line: 3, column: 9))
    let purge = try #require(root["classes"]?["cache"]?.mapping?[1])
    #expect(purge.keyMark == Mark(line: 6, column: 28))
    #expect(purge.value["when"]?.mark == Mark(line: 6, column: 53))
    #expect(root["rules"]?.sequence?[1].mark == Mark(line: 13, column: 5))
    let accents = try YAML.parse("ééé: [ü, x]")
    #expect(accents["ééé"]?.sequence?[1].mark == Mark(line: 1, column: 10))
  }

  @Test(
    arguments: [
      ("yes", .string("yes")), ("no", .string("no")), ("on", .string("on")), ("y", .string("y")),
      ("true", .bool(true)), ("False", .bool(false)), ("TRUE", .bool(true)),
      ("tRue", .string("tRue")),
      ("", .null), ("~", .null), ("null", .null), ("nil", .string("nil")),
      ("0", .integer(0)), ("-12", .integer(-12)), ("+7", .integer(7)), ("0o17", .integer(15)),
      ("0xFf", .integer(255)), ("010", .integer(10)), ("0x", .string("0x")),
      ("0x-1", .string("0x-1")),
      ("1_000", .string("1_000")), ("12:30", .string("12:30")), ("0b1", .string("0b1")),
      ("1.5", .double(1.5)), ("1e3", .double(1000)), (".5", .double(0.5)), ("5.", .double(5)),
      (".", .string(".")), ("1.2.3", .string("1.2.3")), ("1e", .string("1e")), ("+", .string("+")),
      ("-.inf", .double(-.infinity)), ("+1.5", .double(1.5)), ("20GiB", .string("20GiB")),
      ("9223372036854775808", .double(9_223_372_036_854_775_808)), ("31d", .string("31d")),
      ("0o8", .string("0o8")), ("2026-11-01", .string("2026-11-01")), ("nan", .string("nan")),
    ] as [(String, YAMLNode.Resolved)])
  func resolvesPlainScalars(text: String, meaning: YAMLNode.Resolved) throws {
    let node = try #require(try YAML.parse("k: \(text)")["k"])
    #expect(node.scalar?.resolved == meaning)
    #expect(node.text == text)
    #expect(try YAML.parse("k: \"\(text)\"")["k"]?.string == text)
  }

  @Test func kindsOfValuesHaveNames() throws {
    let root = try YAML.parse("{a: [], b: {}, c: x, d: 1, e: true, f: }")
    #expect(
      root.mapping?.map(\.value.kindName)
        == ["a list", "a mapping", "text", "a number", "true or false", "nothing"])
    #expect(root["e"]?.bool == true)
    #expect(root["f"]?.isNull == true)
  }

  @Test(arguments: [
    ("a: &x 1", "1:4", CodecError.Kind.unsupported), ("a: *x", "1:4", .unsupported),
    ("a: !!str 1", "1:4", .unsupported), ("a: ! 1", "1:4", .unsupported),
    ("- !t [1]", "1:3", .unsupported), ("a:\n  <<: {b: 1}", "2:3", .unsupported),
    ("a: 1\n---\nb: 2", "2:1", .unsupported), ("? [a]\n: 1", "1:3", .unsupported),
    ("%TAG ! tag:x,2000:\n---\na", "1:1", .unsupported), ("a: &x [1]", "1:4", .unsupported),
    ("a: 1\nb: 2\n'a': 3", "3:1", .malformed), ("{a: 1, a: 2}", "1:8", .malformed),
    ("a: [1, 2", "2:1", .malformed), ("a: b: c", "1:5", .malformed), ("a: 'x", "1:6", .malformed),
    ("a:\n\t- b", "2:1", .malformed), ("a: 1\n b: 2", "2:3", .malformed), ("", "1:1", .malformed),
    ("# only\n", "2:1", .malformed), ("a: \u{7}", "1:4", .malformed), ("a: @x", "1:4", .malformed),
    ("x: \"\\q\"", "1:5", .malformed), ("%YAML 9.0\n---\na", "1:1", .malformed),
  ])
  func refusesInvalidText(text: String, location: String, kind: CodecError.Kind) {
    let error = failure { () throws(CodecError) in try YAML.parse(text) }
    #expect(error?.mark?.description == location, "\(text): \(error?.description ?? "")")
    #expect(error?.kind == kind, "\(text): \(error?.description ?? "")")
  }

  @Test func reportsTheStartOfAnUnfinishedNode() {
    let error = failure { () throws(CodecError) in try YAML.parse("a:\n  b: [1, 2\nc: 3") }
    #expect(
      error?.description == "cannot read YAML: did not find expected ',' or ']', "
        + "while parsing a flow sequence that begins at 2:6, at line 3, column 2")
    #expect(error?.hint == "correct the text at that position")
  }

  @Test func refusesInvalidUTF8AndOtherEncodings() {
    let invalid = Array("a: 1\nbc: ".utf8) + [0xFF]
    #expect(
      failure { () throws(CodecError) in try YAML.parse(invalid) }?.mark
        == Mark(line: 2, column: 5))
    let utf16: [UInt8] = [0xFF, 0xFE, 0x61, 0x00]
    #expect(failure { () throws(CodecError) in try YAML.parse(utf16) }?.kind == .malformed)
  }

  @Test func limitsSizeDepthAndNodes() throws {
    let long = "a: " + String(repeating: "x", count: 4 << 20)
    #expect(failure { () throws(CodecError) in try YAML.parse(long) }?.kind == .limit)
    func nested(_ depth: Int) -> String {
      String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
    }
    #expect(throws: Never.self) { try YAML.parse(nested(64)) }
    let error = failure { () throws(CodecError) in try YAML.parse(nested(65)) }
    #expect(error?.kind == .limit)
    #expect(error?.mark == Mark(line: 1, column: 65))
    let bomb = String(repeating: "[", count: 4 << 20)
    #expect(failure { () throws(CodecError) in try YAML.parse(bomb) }?.kind == .limit)
    let blocks = String(repeating: "- ", count: 2 << 20)
    #expect(failure { () throws(CodecError) in try YAML.parse(blocks) }?.kind == .limit)
    let limits = YAML.Limits(nodes: 3)
    #expect(throws: Never.self) { try YAML.parse("[1, 2]", limits: limits) }
    let many = failure { () throws(CodecError) in try YAML.parse("[1, 2, 3]", limits: limits) }
    #expect(many?.kind == .limit)
    #expect(many?.mark == Mark(line: 1, column: 8))
  }

  @Test func reads10000RulesInOrder() throws {
    let text = "rules:\n" + (0..<10_000).map { "  - {id: r\($0), match: 'a/\($0)/**'}\n" }.joined()
    let rules = try #require(try YAML.parse(text)["rules"]?.sequence)
    #expect(rules.count == 10_000)
    #expect(rules.last?["id"]?.string == "r9999")
  }

  @Test(arguments: [UInt64(1), 2, 3])
  func neverTrapsOnDamage(seed: UInt64) {
    var random = Seeded(seed)
    var refused = 0
    for _ in 0..<2_000 {
      do throws(CodecError) {
        let root = try YAML.parse(random.damage(Array(sample.utf8)))
        #expect(root.mark.line >= 1, "seed \(seed)")
      } catch {
        refused += 1
        #expect(error.mark != nil, "seed \(seed): \(error)")
      }
    }
    #expect(refused > 0, "seed \(seed)")
  }
}
