import Codecs
import SystemIO
import TestSupport
import Testing

@testable import Audit

/// The rules about bundles and their declarations.
struct BundleTests {
  private func findings(_ fixture: AuditFixture, _ rule: AuditRule) throws -> [AuditFinding] {
    try fixture.audit().findings.filter { $0.rule == rule }
  }

  // MARK: extension-build

  @Test func extensionOfAnotherBuildIsFound() throws {
    let fixture = try AuditFixture()
    try fixture.writeInfo()
    try fixture.writeExtension([.init("NSExtensionPrincipalClass", .string("A"))], build: "6")
    let found = try findings(fixture, .extensionBuild)
    #expect(
      found.map(\.path) == ["apps/org.example.app/bundle/Example.app/PlugIns/Share.appex"])
    #expect(found.first?.detail == "it has the build 6 and the app 7")
    #expect(found.first?.command == "sandboxctl update PACKAGE --root device --repo repo")
  }

  @Test func extensionOfTheSameBuildIsNotFound() throws {
    let fixture = try AuditFixture()
    try fixture.writeInfo()
    try fixture.writeExtension([.init("NSExtensionPrincipalClass", .string("A"))])
    #expect(try findings(fixture, .extensionBuild).isEmpty)
  }

  // MARK: launch-interface

  @Test(
    arguments: [
      (["NSExtensionMainStoryboard", "NSExtensionPrincipalClass"], "it names both"),
      ([], "it names neither"),
    ] as [([String], String)])
  func bothOrNeitherIsFound(keys: [String], detail: String) throws {
    let fixture = try AuditFixture()
    try fixture.writeInfo()
    try fixture.writeExtension(keys.map { .init($0, .string("A")) })
    #expect(try findings(fixture, .launchInterface).map(\.detail) == [detail])
  }

  @Test(arguments: ["NSExtensionMainStoryboard", "NSExtensionPrincipalClass"])
  func oneOfThemIsNotFound(key: String) throws {
    let fixture = try AuditFixture()
    try fixture.writeInfo()
    try fixture.writeExtension([.init(key, .string("A"))])
    for point in ["com.apple.widgetkit-extension", "com.apple.watchkit"] {
      try fixture.writeExtension(
        [.init("NSExtensionPointIdentifier", .string(point))], named: "PlugIns/Widget.appex")
      #expect(try findings(fixture, .launchInterface).isEmpty, "\(point)")
    }
  }

  /// Xcode's source editor extensions have a separate key for the class, which the second one
  /// lacks.
  @Test func extensionOfXcodeNamesItsClassByAnotherKey() throws {
    let fixture = try AuditFixture()
    try fixture.writeInfo()
    let point = PropertyList.Member(
      "NSExtensionPointIdentifier", .string("com.apple.dt.Xcode.extension.source-editor"))
    for (key, count) in [("XCSourceEditorExtensionPrincipalClass", 0), ("Other", 1)] {
      try fixture.writeExtension([
        point, .init("NSExtensionAttributes", .dictionary([.init(key, .string("A.Editor"))])),
      ])
      #expect(try findings(fixture, .launchInterface).count == count, "\(key)")
    }
  }

  // MARK: document-type

  private static func types(_ types: [PropertyList]) -> [PropertyList.Member] {
    [.init("CFBundleDocumentTypes", .array(types))]
  }

  private static let name = PropertyList.Member("CFBundleTypeName", .string("Text"))
  private static let content = PropertyList.Member(
    "LSItemContentTypes", .array([.string("public.text")]))

  @Test func documentTypeWithoutNameOrTypeIsFound() throws {
    let fixture = try AuditFixture()
    try fixture.writeInfo(
      Self.types([
        .dictionary([Self.name, Self.content]), .dictionary([Self.content]),
        .dictionary([Self.name, .init("LSItemContentTypes", .array([]))]), .dictionary([]),
      ]))
    let found = try findings(fixture, .documentType)
    #expect(
      found.map(\.detail) == [
        "element 1 has no name", "element 2 has no type",
        "element 3 has no name and has no type",
      ])
    #expect(Set(found.map(\.fingerprint)).count == 3)
    #expect(
      found.first?.command.hasPrefix(
        "plutil -insert CFBundleDocumentTypes.1.CFBundleTypeName -string NAME ") == true)
  }

  @Test func completeDocumentTypesAreNotFound() throws {
    let fixture = try AuditFixture()
    let legacy = PropertyList.Member("CFBundleTypeExtensions", .array([.string("txt")]))
    try fixture.writeInfo(
      Self.types([.dictionary([Self.name, Self.content]), .dictionary([Self.name, legacy])]))
    #expect(try findings(fixture, .documentType).isEmpty)
  }

  /// Values of wrong types are findings or remarks, and the audit continues.
  @Test func declarationsOfWrongTypesAreReported() throws {
    let fixture = try AuditFixture()
    try fixture.writeInfo([
      .init("CFBundleDocumentTypes", .string("text")),
      .init("UTExportedTypeDeclarations", .integer(3)),
      .init("UIRequiresPersistentWiFi", .string("yes")),
    ])
    try fixture.writeInfo(
      [.init("NSExtension", .array([]))], of: "PlugIns/Share.appex",
      identifier: AuditFixture.app + ".share")
    let report = try fixture.audit()
    #expect(
      Set(report.findings.map(\.detail)) == [
        "CFBundleDocumentTypes has the type string, not array",
        "NSExtension has the type array, not dictionary",
      ])
    try fixture.writeInfo(
      Self.types([
        .string("a"), .dictionary([.init("CFBundleTypeName", .integer(1)), Self.content]),
      ]))
    #expect(
      try findings(fixture, .documentType).map(\.detail) == [
        "element 0 has the type string, not dictionary", "element 1 has no name",
      ])
  }

  @Test func unusableListIsReportedAndEndsNothing() throws {
    let fixture = try AuditFixture()
    try fixture.writeInfo()
    try fixture.writeList(.array([.string("a")]), in: "Info.plist")
    try fixture.put("Exports/a")
    let report = try fixture.audit()
    #expect(
      report.unusable.map(\.remark) == [
        "it is a property list of the type array, not a dictionary"
      ])
    #expect(report.findings.map(\.rule) == [.unpromisedDirectory])
    try fixture.putInBundle("Info.plist", bytes: 40)
    let other = try fixture.audit()
    #expect(other.unusable.first?.remark.hasPrefix("it is not a usable property list: ") == true)
  }

  // MARK: persistent-wifi

  @Test func persistentWiFiIsFound() throws {
    let fixture = try AuditFixture()
    try fixture.writeInfo([.init("UIRequiresPersistentWiFi", .bool(true))])
    #expect(
      try findings(fixture, .persistentWiFi).map(\.path)
        == ["apps/org.example.app/bundle/Example.app/Info.plist"])
    try fixture.writeInfo([.init("UIRequiresPersistentWiFi", .bool(false))])
    #expect(try findings(fixture, .persistentWiFi).isEmpty)
  }

  // MARK: bundle-changed

  /// Writes the list of files of a code signature, with the rules that identify it as one.
  private func seal(_ files: [String], optional: [String] = [], _ fixture: AuditFixture) throws {
    let members =
      files.map { PropertyList.Member($0, .data([1])) }
      + optional.map { PropertyList.Member($0, .dictionary([.init("optional", .bool(true))])) }
    try fixture.writeList(
      .dictionary([
        .init("files2", .dictionary(members)), .init("rules2", .dictionary([])),
      ]), in: "_CodeSignature/CodeResources")
  }

  @Test func addedAndMissingFilesOfABundleAreFound() throws {
    let fixture = try AuditFixture()
    try fixture.writeInfo()
    for path in ["Example", "icon.png", "hook.dylib", "hook2.dylib"] {
      try fixture.putInBundle(ByteString(path), bytes: 20)
    }
    try seal(["icon.png", "gone.png"], optional: ["en.lproj/a.strings"], fixture)
    let found = try findings(fixture, .bundleChanged)
    #expect(found.map(\.path) == ["apps/org.example.app/bundle/Example.app"])
    #expect(
      found.first?.detail
        == "1 file is missing ('gone.png'), 2 files are not in the signature ('hook.dylib')")
    #expect(found.first?.bytes == 40 && found.first?.files == 2)
  }

  /// The program, property lists and files that are never listed; directories that are listed as a
  /// whole, or have their own signature.
  @Test func completeBundleIsNotFound() throws {
    let fixture = try AuditFixture()
    try fixture.writeInfo()
    for path in [
      "Example", "icon.png", "PkgInfo", ".DS_Store", "SC_Info/Example.sinf",
      "en.lproj/locversion.plist", "Frameworks/A.framework/A", "PlugIns/S.appex/x",
      "PlugIns/S.appex/_CodeSignature/CodeResources",
    ] {
      try fixture.putInBundle(ByteString(path))
    }
    try seal(["icon.png", "Frameworks/A.framework", "PlugIns/S.appex/x"], fixture)
    #expect(try findings(fixture, .bundleChanged).isEmpty)
  }

  /// Listed files that are newer than the list are compared by their hashes: SHA-256 before SHA-1.
  @Test func contentThatDiffersFromTheSignatureIsFound() throws {
    let fixture = try AuditFixture()
    try fixture.writeInfo()
    let good = [UInt8](repeating: 7, count: 10)
    let sha1 = PropertyList.data(MessageDigest.digest(of: good.span, .sha1))
    let sha256 = PropertyList.data(MessageDigest.digest(of: good.span, .sha256))
    let wrong = PropertyList.data([UInt8](repeating: 0, count: 20))
    let members: [PropertyList.Member] = [
      .init("a", .dictionary([.init("hash", wrong), .init("hash2", sha256)])),
      .init("b", .dictionary([.init("hash", sha1)])), .init("c", sha1),
      .init("d", .dictionary([.init("hash2", .data([1]))])),
      .init("sub/e", .dictionary([.init("hash2", sha256)])),
    ]
    try fixture.writeList(
      .dictionary([.init("files2", .dictionary(members)), .init("rules2", .dictionary([]))]),
      in: "_CodeSignature/CodeResources")
    let names: [ByteString] = ["a", "b", "c", "d", "sub/e"]
    for name in names { try fixture.putInBundle(name, content: good) }
    try fixture.setModified(days: 1, ofBundle: names)
    #expect(try findings(fixture, .bundleChanged).isEmpty)
    for name in names { try fixture.putInBundle(name, content: good.reversed() + [1]) }
    // Files that are not newer than the list are not read.
    try fixture.setModified(days: -1, ofBundle: names)
    #expect(try findings(fixture, .bundleChanged).isEmpty)
    try fixture.setModified(days: 1, ofBundle: names)
    let found = try findings(fixture, .bundleChanged)
    #expect(found.map(\.detail) == ["4 files differ from the signature ('a')"])
    #expect(found.map(\.bytes) == [44])
  }

  /// A list without rules does not belong to a signature, and a list of a wrong type is reported.
  @Test func listWithoutRulesIsIgnored() throws {
    let fixture = try AuditFixture()
    try fixture.writeInfo()
    try fixture.putInBundle("icon.png")
    let list = "_CodeSignature/CodeResources" as ByteString
    try fixture.writeList(.dictionary([.init("files", .dictionary([]))]), in: list)
    #expect(try findings(fixture, .bundleChanged).isEmpty)
    try fixture.writeList(.string("a"), in: list)
    let report = try fixture.audit()
    #expect(report.unusable.map(\.path.lastComponent) == ["CodeResources"])
    try fixture.writeList(
      .dictionary([.init("files2", .string("a")), .init("rules2", .dictionary([]))]), in: list)
    #expect(try findings(fixture, .bundleChanged).isEmpty)
  }

  @Test func changeBetweenSnapshotsOfOneVersionIsFound() throws {
    let fixture = try AuditFixture()
    try fixture.writeInfo()
    var history = ChangeHistory()
    history.beginInterval(Timestamp(seconds: 0))
    history.addBundleChange(in: "apps/org.example.app/bundle")
    let found = try fixture.audit(history: history).findings.filter { $0.rule == .bundleChanged }
    #expect(found.map(\.detail) == ["1 entry differs between snapshots of the same version"])
    #expect(found.map(\.path) == ["apps/org.example.app/bundle"])
  }

  @Test func changeSinceTheLastSnapshotIsFound() throws {
    let fixture = try AuditFixture()
    try fixture.writeInfo()
    var history = ChangeHistory()
    for _ in 0..<2 { history.addChangeSince(in: "apps/org.example.app/bundle") }
    let found = try fixture.audit(history: history).findings.filter { $0.rule == .bundleChanged }
    #expect(found.map(\.detail) == ["2 entries differ from the last snapshot of the same version"])
  }
}
