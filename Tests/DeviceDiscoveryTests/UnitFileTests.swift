import SystemIO
import TestSupport
import Testing

@testable import DeviceDiscovery

/// The syntax of unit files, as in systemd.syntax(7) and systemd.unit(5).
struct UnitFileTests {
  private func settings(_ texts: String...) -> UnitSettings {
    var settings = UnitSettings()
    for text in texts { settings.apply(UnitFile(Array(text.utf8))) }
    return settings
  }

  private func words(_ text: String) -> [ByteString] {
    settings("[Service]\nStateDirectory=\(text)\n").words.map(\.text)
  }

  private func path(_ word: ByteString, of unit: ByteString = "a-b.service") throws
    -> UnitFile.Path
  {
    UnitFile.path(word, of: try #require(UnitName(unit)))
  }

  @Test func allPurposesAndSectionsAreRead() {
    let found = settings(
      "[Unit]\nDescription = The server \nStateDirectory=not-here\n[Service]\nStateDirectory=a\n"
        + " CacheDirectory = b\nLogsDirectory=c\nConfigurationDirectory=d\nRuntimeDirectory=e\r\n"
        + "DynamicUser=Yes\n[Install]\nStateDirectory=neither\n")
    #expect(found.words.map(\.purpose) == [.state, .cache, .logs, .config, .runtime])
    #expect(found.words.map(\.text) == ["a", "b", "c", "d", "e"])
    #expect(found.isDynamicUser)
    #expect(found.title == "The server")
    #expect(settings("[Mount]\nStateDirectory=m\n").words.map(\.text) == ["m"])
    #expect(!settings("[Service]\nDynamicUser=1\nDynamicUser=no\n").isDynamicUser)
  }

  @Test func commentsAndContinuationsAreRead() {
    #expect(words("a \\\n# comment\n; another\n  b\\\n c") == ["a", "b", "c"])
    #expect(words("a\n#StateDirectory=b\n;StateDirectory=c\n  # d\nnonsense\n=x") == ["a"])
    #expect(words("open \\") == ["open"])
  }

  @Test func wordsMayBeQuoted() {
    #expect(words("a\tb  'c d' \"e 'f'\"g") == ["a", "b", "c d", "e 'f'g"])
    #expect(words("a\\ b '' c") == ["a\\ b", "", "c"])
    #expect(words("'unclosed x") == ["unclosed x"])
  }

  @Test func laterFilesAddAndEmptyValuesRemove() {
    let first = "[Service]\nStateDirectory=a\nCacheDirectory=k\n"
    #expect(settings(first, "[Service]\nStateDirectory=b\n").words.map(\.text) == ["a", "k", "b"])
    #expect(
      settings(first, "[Service]\nStateDirectory=\nStateDirectory=b\n").words.map(\.text)
        == ["k", "b"])
  }

  @Test func onlyPlainPathsAreUsed() throws {
    #expect(try path("a/b") == .path("a/b"))
    #expect(try path("./a//b/.") == .path("a/b"))
    #expect(try path("a:link:ro") == .path("a"))
    #expect(try path("a\\:b") == .path("a:b"))
    for bad: ByteString in [
      "", ".", "/etc", "..", "a/../b", "private", "private/x", ":x", "a\\", "%", "a/.sandboxctl",
      ByteString(String(repeating: "x", count: 300)), "a\\\0b",
    ] {
      guard case .unusable = try path(bad) else {
        Issue.record("\(bad) was accepted")
        continue
      }
    }
  }

  @Test func specifiersOfTheNameAreExpanded() throws {
    #expect(try path("%n/%N/%p/%j/%%x%i") == .path("a-b.service/a-b/a-b/b/%x"))
    #expect(try path("%p/%i", of: "db@main.service") == .path("db/main"))
    #expect(try path("%p", of: "db@.service") == .path("db"))
    for specifier: ByteString in ["%m", "%H", "%I", "%t"] {
      #expect(try path(specifier) == .unusable("its specifier '\(specifier)' is not expanded"))
    }
    #expect(try path("x/%i", of: "db@.service") != .path("x"))
  }

  @Test func namesAreParsed() throws {
    let instance = try #require(UnitName("a-b@c-d.service"))
    #expect(instance.prefix == "a-b" && instance.instance == "c-d" && instance.stem == "a-b@c-d")
    #expect(instance.template == "a-b@.service")
    #expect(
      instance.dropInDirectories == [
        "a-b@c-d.service.d", "a-b@.service.d", "a-.service.d", "service.d",
      ])
    #expect(UnitName("x@.socket")?.isTemplate == true)
    let bad: [ByteString] = [
      "", "x", ".service", "x.timer", "x.conf", "@x.service", "a b.service", "a/b.service",
      ByteString(String(repeating: "x", count: 250) + ".service"), "ü.service",
    ]
    for name in bad { #expect(UnitName(name) == nil, "\(name)") }
  }

  @Test func hostileFilesAreBounded() {
    let many = (0..<5000).map { "StateDirectory=d\($0)" }.joined(separator: "\n")
    let found = settings("[Service]\n" + many)
    #expect(found.words.count == UnitFile.Limit.directories)
    #expect(found.omitted == 5000 - UnitFile.Limit.directories)
    let one = settings(
      "[Service]\nStateDirectory=" + (0..<100_000).map { "d\($0)" }.joined(separator: " "))
    #expect(one.words.count == UnitFile.Limit.directories)
    #expect(one.omitted == 100_000 - UnitFile.Limit.directories)
    let long = String(repeating: "a/", count: 3000)
    let unit = UnitName("a.service")
    if let unit {
      #expect(UnitFile.path(ByteString(long), of: unit) == .unusable("it is too long"))
    } else {
      Issue.record("no unit")
    }
    // A thousand drop-ins that apply to all units.
    let file = UnitFile(
      Array(("[Service]\n" + String(repeating: "DynamicUser=yes\n", count: 1000)).utf8))
    var merged = UnitSettings()
    for _ in 0..<1000 { merged.apply(file) }
    #expect(merged.omitted == 999_000)
    let continued = String(repeating: "a \\\n", count: 200_000)
    #expect(words(continued).count == UnitFile.Limit.directories)
    var random = SystemRandomNumberGenerator()
    for _ in 0..<200 {
      let bytes = (0..<300).map { _ in UInt8.random(in: .min ... .max, using: &random) }
      var settings = UnitSettings()
      settings.apply(UnitFile(Array("[Service]\nStateDirectory=".utf8) + bytes))
      #expect(settings.words.count <= UnitFile.Limit.directories)
    }
  }
}
