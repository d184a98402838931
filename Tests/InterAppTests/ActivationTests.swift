import BuiltinPolicies
import Codecs
import InterApp
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// Activation rules as dictionaries, and the declarations of extensions.
struct ActivationTests {
  private static let prefix = "NSExtensionActivationSupports"
  private static let image = prefix + "ImageWithMaxCount"
  private static let file = prefix + "FileWithMaxCount"
  private static let text = prefix + "Text"

  private func item(_ info: [(String, PropertyList)]) throws -> AppExtension {
    let identifier = try #require(BundleIdentifier("com.example.app.share"))
    let app = try #require(BundleIdentifier("com.example.app"))
    return AppExtension(
      App.Extension(identifier: identifier, path: "A.app/PlugIns/Share.appex"),
      of: App(app, isInstalled: true), info: .of(info))
  }

  private func item(rule: PropertyList) throws -> AppExtension {
    try item([
      (
        "NSExtension",
        .of([
          ("NSExtensionPointIdentifier", .string("com.apple.share-services")),
          ("NSExtensionAttributes", .of([("NSExtensionActivationRule", rule)])),
        ])
      )
    ])
  }

  private func result(
    _ rule: [(String, PropertyList)], _ attachments: [SharedAttachment]
  ) throws -> ActivationResult {
    try item(rule: .of(rule)).rule.result(
      for: SharedAttachments(attachments), in: TypeTree(system: try InterAppFixture.types()))
  }

  private func file(_ type: ByteString) throws -> SharedAttachment {
    .file("f", of: try InterAppFixture.type(type))
  }

  @Test func countsAreMaxima() throws {
    let png = try file("public.png")
    let rule = [(Self.image, PropertyList.integer(2))]
    #expect(try result(rule, [png, png]).verdict == .offered)
    let many = try result(rule, [png, png, png])
    #expect(many.verdict == .notOffered)
    #expect(many.reasons == ["3 images, and at most 2 is accepted (\(Self.image))"])
    #expect(try result([(Self.image, .integer(0))], [png]).verdict == .notOffered)
    #expect(try result([(Self.file, .integer(1))], [png]).verdict == .offered)
    #expect(try result([(Self.file, .integer(1))], [.text("x")]).verdict == .notOffered)
    #expect(try result([(Self.text, .bool(true))], [.text("x"), .text("y")]).verdict == .offered)
    #expect(try result([], [png]).reasons == ["the rule accepts no kind"])
  }

  @Test func versionsDecideWhetherAllAttachmentsMustMatch() throws {
    let items = [try file("public.png"), try file("public.mp3")]
    let rule = [(Self.image, PropertyList.integer(5))]
    let version = ("NSExtensionActivationDictionaryVersion", PropertyList.integer(2))
    let strict = ("NSExtensionActivationUsesStrictMatching", PropertyList.bool(true))
    let first = try result(rule, items)
    #expect(first.verdict == .notOffered && first.unmatched == [1])
    #expect(first.reasons == ["the file 'f' is of no accepted kind, and each must be"])
    #expect(try result(rule + [version], items).verdict == .offered)
    #expect(try result(rule + [version, strict], items).verdict == .notOffered)
    #expect(try result(rule + [version], [items[1]]).verdict == .notOffered)
  }

  @Test func attachmentsOfAllKindsAreCounted() throws {
    let png = try file("public.png")
    let limits = [
      (Self.prefix + "AttachmentsWithMinCount", PropertyList.integer(2)),
      (Self.prefix + "AttachmentsWithMaxCount", PropertyList.integer(3)),
    ]
    #expect(try result(limits, [png]).verdict == .notOffered)
    #expect(try result(limits, [png, .text("x")]).verdict == .offered)
    #expect(try result(limits, [png, png, png, png]).verdict == .notOffered)
  }

  @Test func webURLsAndPagesAreCountedSeparately() throws {
    let url = SharedAttachment.url(try URLText(reading: "https://example.com/"))
    let page = SharedAttachment.page(try URLText(reading: "https://example.com/"))
    let call = SharedAttachment.url(try URLText(reading: "tel:1"))
    let file = SharedAttachment.url(try URLText(reading: "file:///x"))
    let urls = [(Self.prefix + "WebURLWithMaxCount", PropertyList.integer(1))]
    let pages = [(Self.prefix + "WebPageWithMaxCount", PropertyList.integer(1))]
    #expect(try result(urls, [url]).verdict == .offered)
    #expect(try result(urls, [page]).verdict == .offered)
    #expect(try result(urls, [call]).verdict == .notOffered)
    #expect(try result(urls, [file]).verdict == .notOffered)
    #expect(try result(pages, [page]).verdict == .offered)
    #expect(try result(pages, [url]).verdict == .notOffered)
  }

  @Test func wrongValuesAreFindings() throws {
    let odd = try item(
      rule: .of([
        (Self.image, .string("3")), (Self.file, .integer(-1)), (Self.text, .array([])),
        ("NSExtensionActivationDictionaryVersion", .integer(7)), ("Unknown", .integer(1)),
      ]))
    #expect(odd.findings.count == 5, "\(odd.findings)")
    #expect(try item(rule: .integer(1)).rule.name == "invalid")
    #expect(try item([]).point == nil && item([]).findings.count == 1)
    #expect(try item([("NSExtension", .array([]))]).findings.count == 2)
    let bad = try item(rule: .string("x y"))
    #expect(bad.findings.first?.reason.contains("column 3") == true, "\(bad.findings)")
    let always = try item(rule: .string("TRUEPREDICATE"))
    #expect(always.findings.first?.reason.contains("for development only") == true)
    let new = try item([
      ("EXAppExtensionAttributes", .of([("EXExtensionPointIdentifier", .string("com.a.point"))]))
    ])
    #expect(new.point == "com.a.point" && new.findings.isEmpty)
  }

  @Test func exclusionsNameExtensionsPointsAndServices() throws {
    let item = try item(rule: .string("TRUEPREDICATE"))
    let points = try ExtensionPoints(
      reading: BuiltinPolicies.interAppExtensions, name: "extensions.yaml")
    func offers(_ excluded: [ByteString], _ version: SystemVersion? = nil) throws -> ShareOffers {
      ShareOffers(
        SharedAttachments([.text("x")]),
        .init(excluded: excluded, layout: .coreSimulator, version: version),
        of: ExtensionCatalog(extensions: [item]), points: points,
        in: TypeTree(system: try InterAppFixture.types()))
    }
    #expect(try offers([]).offered().count == 1)
    #expect(try offers(["com.example.app.share"]).offers.first?.result.verdict == .excluded)
    #expect(try offers(["com.apple.share-services"]).offered().isEmpty)
    let service = try offers(["com.apple.UIKit.activity.Mail", "com.none"])
    #expect(
      service.exclusions.map(\.meaning) == [.activity, .unknown] && service.offered().count == 1)
    #expect(try offers([], SystemVersion(7, 1)).offered().isEmpty)
    #expect(try offers([], SystemVersion(8)).offered().count == 1)
  }

  @Test(.enabled(if: Shared.has("fixtures/info-plists")))
  func aRealRuleIsEvaluated() throws {
    let info = try PropertyList(
      reading: Shared.bytes("fixtures/info-plists/vlc-ios-share.plist"))
    let item = try item((info.dictionaryValue ?? []).map { ($0.key, $0.value) })
    #expect(item.point == ExtensionPoints.share && item.findings.isEmpty)
    let tree = TypeTree(system: try InterAppFixture.types())
    let movie = SharedAttachments([try file("public.mpeg-4")])
    #expect(item.rule.result(for: movie, in: tree).verdict == .offered)
    #expect(item.rule.result(for: SharedAttachments([.text("x")]), in: tree).verdict == .notOffered)
  }

  @Test func pointsHaveNamesSourcesAndVersions() throws {
    let points = try ExtensionPoints(
      reading: BuiltinPolicies.interAppExtensions, name: "extensions.yaml")
    let share = try #require(points.point(ExtensionPoints.share))
    #expect(
      share.name == "Share" && share.iOS == SystemVersion(8) && share.macOS == SystemVersion(10, 10)
    )
    #expect(points.points.count >= 50 && points.points.allSatisfy { !$0.source.isEmpty })
    for text in ["points: [{id: a}]", "points: [{id: a, name: a, ios: x, source: s}]", "other: 1"] {
      #expect(throws: OperationError.self) {
        try ExtensionPoints(
          reading: Array("extensions: interapp\nschema: 1\n\(text)\n".utf8), name: "x")
      }
    }
  }
}
