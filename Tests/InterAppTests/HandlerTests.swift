import Codecs
import InterApp
import SandboxModel
import SystemIO
import Testing

/// The order of the handlers of types and URL schemes.
struct HandlerTests {
  private func handlers(_ type: ByteString, _ apps: [AppDeclarations]) throws -> TypeHandlers {
    let model = try InterAppFixture.model(apps)
    return TypeHandlers(of: try InterAppFixture.type(type), in: model.tree, apps)
  }

  @Test func handlersAreInTheOrderOfTheirRanks() throws {
    let found = try handlers(
      "public.png",
      [
        InterAppFixture.opener("com.a", ["public.image"], rank: "Alternate"),
        InterAppFixture.opener("com.b", ["public.data"]),
        InterAppFixture.opener("com.c", ["public.png"], rank: "None"),
        InterAppFixture.opener("com.d", ["public.item"], rank: "Owner"),
        InterAppFixture.opener("com.e", ["public.text"], rank: "Owner"),
      ])
    #expect(found.handlers.map(\.app.bytes) == ["com.d", "com.b", "com.a"])
    #expect(found.handlers.map(\.rank) == [.owner, .standard, .alternate])
    #expect(found.excluded.map(\.app.bytes) == ["com.c"])
    #expect(found.winner?.app.bytes == "com.d" && found.conflict.isEmpty)
  }

  @Test func equalRanksAreAConflictWithoutAWinner() throws {
    let found = try handlers(
      "public.png",
      [
        InterAppFixture.opener("com.a", ["public.data"], rank: "Owner"),
        InterAppFixture.opener("com.b", ["public.png"], rank: "Owner"),
        InterAppFixture.opener("com.c", ["public.png"]),
      ])
    #expect(found.winner == nil)
    #expect(found.conflict.map(\.app.bytes) == ["com.b", "com.a"], "the most exact first")
  }

  @Test func extensionsCountOnlyWithoutContentTypes() throws {
    let name = ("CFBundleTypeName", PropertyList.string("D"))
    let old = ("CFBundleTypeExtensions", PropertyList.strings(["PNG"]))
    let types = ("LSItemContentTypes", PropertyList.strings(["public.text"]))
    let mime = ("CFBundleTypeMIMETypes", PropertyList.strings(["image/png"]))
    let any = ("CFBundleTypeExtensions", PropertyList.strings(["*"]))
    let apps = try [
      ("com.a", [name, old]), ("com.b", [name, old, types]), ("com.c", [name, mime]),
      ("com.d", [name, any]),
    ].map { identifier, members in
      try InterAppFixture.app(
        ByteString(identifier), [("CFBundleDocumentTypes", .array([.of(members)]))])
    }
    let found = try handlers("public.png", apps)
    #expect(found.handlers.map(\.app.bytes) == ["com.a", "com.c", "com.d"])
  }

  @Test func schemesOfTheSystemBelongToIt() throws {
    let app = try InterAppFixture.scheme("com.a", ["MAILTO", "mine"])
    let schemes = try InterAppFixture.schemes()
    for name in ["http", "https", "mailto", "tel", "sms", "facetime", "itms", "maps"] {
      let found = SchemeHandlers(of: ByteString(name.uppercased()), nil, in: schemes, [app])
      #expect(found.system != nil && found.winner == nil && found.conflict.isEmpty, "\(name)")
    }
    #expect(SchemeHandlers(of: "mailto", nil, in: schemes, [app]).apps.count == 1)
    #expect(SchemeHandlers(of: "mine", nil, in: schemes, [app]).winner?.app.bytes == "com.a")
    let other = try InterAppFixture.scheme("com.b", ["Mine"])
    let both = SchemeHandlers(of: "mine", nil, in: schemes, [app, other])
    #expect(both.conflict.map(\.app.bytes) == ["com.a", "com.b"] && both.winner == nil)
  }

  @Test func hostsOfTheSystemDependOnTheVersion() throws {
    let schemes = try InterAppFixture.schemes()
    func app(_ url: ByteString, _ version: ByteString?) throws -> String? {
      SchemeHandlers(
        of: try URLText(reading: url), version.flatMap { SystemVersion($0) }, in: schemes, []
      ).system?.app
    }
    #expect(try app("http://maps.apple.com/?q=x", nil) == "Maps")
    #expect(try app("https://MAPS.apple.com/", "5.1") == "Safari")
    #expect(try app("http://maps.google.com/", "5.1.1") == "Maps")
    #expect(try app("http://maps.google.com/", "6.0") == "Safari")
    #expect(try app("http://www.youtube.com/watch?v=1", "5.0") == "YouTube")
    #expect(try app("http://www.youtube.com/about", "5.0") == "Safari")
    #expect(try app("mine://maps.apple.com/", nil) == nil)
  }

  @Test(arguments: ["", "x", "4.", ".4", "4..2", "1234567", "4.2-beta", "1.2.3.4.5.6.7.8.9"])
  func wrongVersionIsRefused(text: String) { #expect(SystemVersion(ByteString(text)) == nil) }

  @Test func versionsAreOrderedByNumbers() throws {
    let texts: [ByteString] = ["3", "4.0.1", "4.2", "4.10", "10"]
    let versions = try texts.map { try #require(SystemVersion($0)) }
    #expect(versions == versions.sorted())
    #expect(SystemVersion("4.0.0") == SystemVersion("4"))
  }
}
