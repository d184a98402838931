import Codecs
import SystemIO
import TestSupport
import Testing

@testable import Migration

struct RewriteTests {
  private static let mapping = PathMapping([
    .init(old: "/home/u/.mozilla", new: "/home/u/snap/firefox/common/.mozilla"),
    .init(old: "/home/u/.config/chromium", new: "/home/u/snap/chromium/common/chromium"),
  ])

  private func rewrite(_ rule: RewriteRule, _ text: String) throws -> (Rewriting, String) {
    let result = try rule.rewrite(Array(text.utf8), by: Self.mapping)
    return (result, String(decoding: result.bytes, as: UTF8.self))
  }

  private func refusal(_ rule: RewriteRule, _ bytes: [UInt8]) -> String? {
    do throws(RewriteRefusal) {
      _ = try rule.rewrite(bytes, by: Self.mapping)
      return nil
    } catch { return error.reason }
  }

  @Test func absoluteProfilesAreRewrittenAndRelativeOnesStay() throws {
    let (result, new) = try rewrite(
      .mozillaProfiles,
      """
      [Profile1]\r
      Name=absolute\r
      IsRelative=0\r
      Path=/home/u/.mozilla/firefox/a b.default\r
      \r
      [Profile0]
      Name=default
      IsRelative=1
      Path=x.default-release
      Default=1

      ; Path=/home/u/.mozilla/comment
      [Install4F96D1932A9F858E]
      Default=/home/u/.mozilla/firefox/x.default-release
      Locked=1

      [General]
      StartWithLastProfile=1
      Version=2

      """)
    #expect(
      new == """
        [Profile1]\r
        Name=absolute\r
        IsRelative=0\r
        Path=/home/u/snap/firefox/common/.mozilla/firefox/a b.default\r
        \r
        [Profile0]
        Name=default
        IsRelative=1
        Path=x.default-release
        Default=1

        ; Path=/home/u/.mozilla/comment
        [Install4F96D1932A9F858E]
        Default=/home/u/snap/firefox/common/.mozilla/firefox/x.default-release
        Locked=1

        [General]
        StartWithLastProfile=1
        Version=2

        """)
    #expect(result.changes.map(\.key) == ["Profile1.Path", "Install4F96D1932A9F858E.Default"])
    #expect(result.outside.isEmpty)
  }

  @Test func profilesElsewhereAreReported() throws {
    let text = """
      [Profile0]
      IsRelative=0
      Path=/media/usb/profile
      [Profile1]
      IsRelative=1
      Path=../../other
      [Profile2]
      Path=/home/u/.mozilla/../secret
      """
    let (result, new) = try rewrite(.mozillaProfiles, text)
    #expect(new == text)
    #expect(result.changes.isEmpty)
    #expect(
      result.outside.map(\.value) == [
        "/media/usb/profile", "../../other", "/home/u/.mozilla/../secret",
      ])
  }

  @Test func installsAreRewritten() throws {
    let (result, new) = try rewrite(
      .mozillaInstalls, "\u{FEFF}[4F96D1932A9F858E]\nDefault=/home/u/.mozilla/firefox/x\nLocked=1")
    #expect(
      new
        == "\u{FEFF}[4F96D1932A9F858E]\nDefault=/home/u/snap/firefox/common/.mozilla/firefox/x\n"
        + "Locked=1")
    #expect(result.changes.count == 1)
    #expect(try rewrite(.mozillaInstalls, "[A]\nDefault=x.default").0.changes.isEmpty)
  }

  @Test(arguments: [
    ([0xFF, 0xFE, 0x5B, 0x00], "UTF-16"), (Array("[A]\0".utf8), "NUL"),
    ([0x5B, 0xC3, 0x28], "not valid UTF-8"),
    (Array("[Profile0]\nPath=a\nPath=/b\n".utf8), "has 'Path' twice"),
    ([UInt8](repeating: 0x0A, count: 60_000), "more than 50000 lines"),
    ([UInt8](repeating: 0x41, count: (1 << 20) + 1), "more than 1048576 bytes"),
  ])
  func hostileProfileListsAreRefused(bytes: [UInt8], reason: String) throws {
    let found = try #require(refusal(.mozillaProfiles, bytes))
    #expect(found.contains(reason), "\(found)")
  }

  @Test func unusualProfileListsStayAsTheyAre() throws {
    for text in ["", "\n\n", "[", "=", "[Profile0", "Path=/home/u/.mozilla/x", "[Profile0]\nPath"] {
      #expect(try rewrite(.mozillaProfiles, text).1 == text)
    }
  }

  @Test func addonsAreRewrittenInPlace() throws {
    let (result, new) = try rewrite(
      .mozillaExtensions,
      #"""
      {"schemaVersion":36, "big": 1.50e3,
       "addons":[{"id":"a@b","path":"/home/u/.mozilla/firefox/x/extensions/a\u00e9.xpi",
        "rootURI" : "jar:file:///home/u/.mozilla/firefox/x/extensions/a%C3%A9.xpi!/",
        "sourceURI":"https://addons.mozilla.org/a.xpi"},
       {"id":"system","path":"/usr/lib/firefox/browser/features/s.xpi",
        "rootURI":"jar:file:///usr/lib/firefox/browser/features/s.xpi!/"}],
       "path":"/home/u/.mozilla/not-an-add-on"}
      """#)
    #expect(
      new == #"""
        {"schemaVersion":36, "big": 1.50e3,
         "addons":[{"id":"a@b","path":"/home/u/snap/firefox/common/.mozilla/firefox/x/extensions/aé.xpi",
          "rootURI" : "jar:file:///home/u/snap/firefox/common/.mozilla/firefox/x/extensions/a%C3%A9.xpi!/",
          "sourceURI":"https://addons.mozilla.org/a.xpi"},
         {"id":"system","path":"/usr/lib/firefox/browser/features/s.xpi",
          "rootURI":"jar:file:///usr/lib/firefox/browser/features/s.xpi!/"}],
         "path":"/home/u/.mozilla/not-an-add-on"}
        """#)
    #expect(result.changes.map(\.key) == ["addons.0.path", "addons.0.rootURI"])
    #expect(result.outside.isEmpty)
  }

  @Test func preferencesOfChromiumAreRewritten() throws {
    let (result, new) = try rewrite(
      .chromiumPreferences,
      #"""
      {"download":{"default_directory":"/home/u/Downloads","x":[1,{"y":"]"}]},
      "extensions":{"settings":{"abc":{"path":"/home/u/.config/chromium/Unpacked/1"},
      "def":{"path":"ghbmnnjooekpmoecnnnilnnbdlolhkhi/1.0_0"}}},
      "selectfile":{"last_directory":"/home/u/.config/chromium/a\"b"}}
      """#)
    #expect(
      new == #"""
        {"download":{"default_directory":"/home/u/Downloads","x":[1,{"y":"]"}]},
        "extensions":{"settings":{"abc":{"path":"/home/u/snap/chromium/common/chromium/Unpacked/1"},
        "def":{"path":"ghbmnnjooekpmoecnnnilnnbdlolhkhi/1.0_0"}}},
        "selectfile":{"last_directory":"/home/u/snap/chromium/common/chromium/a\"b"}}
        """#)
    #expect(result.changes.count == 2)
    #expect(
      result.outside == [.init(key: "download.default_directory", value: "/home/u/Downloads")])
  }

  /// Values at unknown keys stay unchanged; those that point to an old place are reported with
  /// their keys.
  @Test func valuesAtUnknownKeysAreReported() throws {
    let text = #"""
      {"x":"/home/u/.config/chromium/Default/a","y":[{"z\u0041":"\/home\/u\/.config\/chromium"}],
      "u":"file:///home/u/.config/chromium/b%20c","download":{"default_directory":"/home/u"},
      "v":"/home/u/Documents","w":"found at /home/u/.config/chromium","f":"free","j":"/home/u/../x"}
      """#
    let (result, new) = try rewrite(.chromiumPreferences, text)
    #expect(new == text)
    #expect(result.changes.isEmpty)
    #expect(
      result.left == [
        .init(key: "x", value: "/home/u/.config/chromium/Default/a"),
        .init(key: "y.0.zA", value: "/home/u/.config/chromium"),
        .init(key: "u", value: "file:///home/u/.config/chromium/b%20c"),
      ])
    let list = "[Profile0]\nIsRelative=1\nPath=x\nLocal=/home/u/.mozilla/cache\nOther=/srv\n"
    let (profiles, same) = try rewrite(.mozillaProfiles, list)
    #expect(same == list)
    #expect(profiles.left == [.init(key: "Profile0.Local", value: "/home/u/.mozilla/cache")])
    let known = try rewrite(.mozillaInstalls, "[A]\nDefault=/home/u/.mozilla/firefox/x").0
    #expect(known.left.isEmpty && known.changes.count == 1)
  }

  @Test func theResultIsTheSameValueButForThePaths() throws {
    var random = Seeded(7)
    for _ in 0..<300 {
      let value = Self.randomValue(&random, depth: 0)
      let text = value.pretty
      let result = try RewriteRule.chromiumPreferences.rewrite(Array(text.utf8), by: Self.mapping)
      #expect(result.bytes == Array(text.utf8))
      _ = try JSON(parsing: result.bytes)
    }
  }

  private static func randomValue(_ random: inout Seeded, depth: Int) -> JSON {
    let names = ["download", "default_directory", "a\"\\", "extensions", "settings", "path", "é"]
    switch Int.random(in: 0..<(depth > 4 ? 4 : 6), using: &random) {
    case 0: return .integer(Int64.random(in: -9...9, using: &random))
    case 1: return .bool(Bool.random(using: &random))
    case 2: return .string("x\\\"{[,:]}\u{1}")
    case 3: return .null
    case 4:
      let count = Int.random(in: 0..<4, using: &random)
      return .array((0..<count).map { _ in randomValue(&random, depth: depth + 1) })
    default:
      let chosen = names.filter { _ in Bool.random(using: &random) }
      return .object(chosen.map { JSON.Member($0, randomValue(&random, depth: depth + 1)) })
    }
  }

  @Test(arguments: [
    "", "{", "[1,", "{\"addons\":[{\"path\":\"/a", "{\"a\":1,\"a\":2}", "\u{FEFF}{}", "{} x",
    "{\"a\":123456789012345678901234567890}", "{\"addons\":\"\\ud800\"}",
    String(repeating: "[", count: 100_000),
  ])
  func hostileJSONIsRefused(text: String) {
    #expect(refusal(.mozillaExtensions, Array(text.utf8)) != nil)
    #expect(refusal(.chromiumPreferences, Array(text.utf8)) != nil)
  }

  @Test func aTruncatedFileIsNeverChanged() throws {
    let text = Array(#"{"addons":[{"path":"/home/u/.mozilla/x","a":"\\\""},{"b":[{}]}]}"#.utf8)
    for length in 0..<text.count {
      #expect(refusal(.mozillaExtensions, Array(text.prefix(length))) != nil)
    }
    #expect(try RewriteRule.mozillaExtensions.rewrite(text, by: Self.mapping).changes.count == 1)
  }

  @Test func aFileOverTheLimitIsRefused() {
    let large = [UInt8](repeating: 0x20, count: RewriteRule.mozillaExtensions.maximumSize + 1)
    #expect(refusal(.mozillaExtensions, large)?.contains("more than") == true)
  }

  @Test func aRuleIsForFilesOfItsNames() {
    #expect(RewriteRule.chromiumPreferences.isFor("a/Default/Preferences"))
    #expect(!RewriteRule.chromiumPreferences.isFor("a/Preferences/x"))
    #expect(!RewriteRule.mozillaProfiles.isFor(""))
  }
}
