import Codecs
import InterApp
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// The declarations in untrusted Info.plist files.
struct DeclarationTests {
  /// The search for the end of a build setting is not repeated for each beginning, which would take
  /// minutes.
  @Test(.timeLimit(.minutes(1))) func manyOpenBuildSettingsAreReadOnce() throws {
    let text = String(repeating: "$(${", count: 1 << 18)
    let app = try InterAppFixture.scheme("com.a", ["a"], name: text)
    let findings = try InterAppFixture.model([app]).findings
    #expect(findings.count == 1 && findings[0].reason.contains("not a reverse-DNS name"))
  }

  /// Each key with a value of each wrong type is reported, and the other keys are read.
  @Test func valuesOfWrongTypesAreReported() throws {
    let wrong: [PropertyList] = [
      .integer(1), .bool(true), .data([1]), .date(0), .real(1.5), .string("x"), .of([]),
    ]
    for value in wrong {
      let app = try InterAppFixture.app(
        "com.a",
        [
          ("CFBundleDocumentTypes", value), ("CFBundleURLTypes", value),
          ("UTExportedTypeDeclarations", value), ("UTImportedTypeDeclarations", value),
        ])
      #expect(app.findings.count == 4 && app.documentTypes.isEmpty, "\(value.kind)")
      #expect(app.findings.allSatisfy { $0.reason.contains("not an array") })
    }
    let app = try InterAppFixture.app(
      "com.a",
      [
        (
          "CFBundleDocumentTypes",
          .array([
            .string("x"),
            .of([
              ("CFBundleTypeName", .integer(1)), ("LSItemContentTypes", .of([])),
              ("LSHandlerRank", .string("Best")),
            ]),
          ])
        ),
        ("CFBundleURLTypes", .array([.of([("CFBundleURLSchemes", .array([.integer(1)]))])])),
        (
          "UTExportedTypeDeclarations",
          .array([
            .of([]), .of([("UTTypeIdentifier", .string("nodot"))]),
            .of([
              ("UTTypeIdentifier", .string("com.a.doc")), ("UTTypeTagSpecification", .string("x")),
            ]),
          ])
        ), ("UILaunchImageFile", .string("../x")), ("UILaunchStoryboardName", .integer(1)),
      ])
    let keys = Set(app.findings.map(\.key))
    #expect(
      keys.isSuperset(of: [
        "CFBundleDocumentTypes[0]", "CFBundleDocumentTypes[1]",
        "CFBundleDocumentTypes[1].CFBundleTypeName",
        "CFBundleDocumentTypes[1].LSItemContentTypes", "CFBundleDocumentTypes[1].LSHandlerRank",
        "CFBundleURLTypes[0].CFBundleURLSchemes[0]", "UTExportedTypeDeclarations[0]",
        "UTExportedTypeDeclarations[1].UTTypeIdentifier",
        "UTExportedTypeDeclarations[2].UTTypeTagSpecification", "UILaunchImageFile",
        "Info.plist.UILaunchStoryboardName",
      ]), "\(keys)")
    #expect(app.documentTypes.map(\.rank) == [.standard])
    #expect(app.types.map(\.identifier.description) == ["com.a.doc"])
    #expect(app.launch.imageBaseName == "Default")
  }

  @Test func numberOfElementsIsLimited() throws {
    let types = Array(repeating: PropertyList.type("com.a.doc"), count: 1200)
    let app = try InterAppFixture.app("com.a", [("UTImportedTypeDeclarations", .array(types))])
    #expect(app.types.count == 1000)
    #expect(app.findings.contains { $0.reason.contains("1200 elements") })
  }

  @Test func unresolvedBuildSettingsAreNotRegistered() throws {
    let app = try InterAppFixture.scheme(
      "com.a", ["$(SCHEME)", "a-${X}", "good", "1bad", "$money"], name: "$(PRODUCT_NAME)")
    #expect(app.urlTypes.first?.schemes == ["good"])
    let reasons = app.findings.map(\.reason)
    #expect(reasons.count { $0.contains("unresolved build setting") } == 2)
    #expect(reasons.count { $0.contains("is not a URL scheme") } == 2)
    let model = try InterAppFixture.model([app])
    #expect(model.findings.contains { $0.key.hasSuffix("CFBundleURLName") })
  }

  @Test func namesOfURLTypesAreUniqueAndReverseDNS() throws {
    let apps = [
      try InterAppFixture.scheme("com.a", ["one"], name: "com.shared"),
      try InterAppFixture.scheme("com.b", ["two"], name: "com.shared"),
      try InterAppFixture.scheme("com.c", ["tel"], name: "Phone"),
      try InterAppFixture.scheme("com.d", ["four"], name: ""),
    ]
    let findings = try InterAppFixture.model(apps).findings
    func has(_ app: ByteString, _ words: String) -> Bool {
      findings.contains { $0.app.bytes == app && $0.reason.contains(words) }
    }
    #expect(has("com.a", "not unique") && has("com.b", "not unique"))
    #expect(has("com.c", "not a reverse-DNS name") && has("com.c", "belongs to the system"))
    #expect(has("com.d", "missing or empty"))
  }

  @Test(.enabled(if: Shared.has("fixtures/info-plists")))
  func realAppsAreRead() throws {
    let apps = try ["delta", "vlc-ios"].map { name in
      AppDeclarations(
        try #require(BundleIdentifier(ByteString("com.real.\(name)"))), name: nil,
        info: try PropertyList(reading: Shared.bytes("fixtures/info-plists/\(name).plist")))
    }
    let model = try InterAppFixture.model(apps)
    let game = TypeHandlers(
      of: try InterAppFixture.type("com.rileytestut.delta.game.gba"), in: model.tree, apps)
    #expect(game.winner?.app.bytes == "com.real.delta")
    #expect(model.tree.types(ofExtension: "ogv").first?.description == "org.xiph.ogv")
    #expect(
      SchemeHandlers(of: "VLC", nil, in: model.schemes, apps).winner?.app.bytes
        == "com.real.vlc-ios")
    #expect(model.findings.contains { $0.reason.contains("invisible character U+200B") })
    #expect(model.findings.contains { $0.reason.contains("'public.mpeg4' is declared neither") })
  }
}
