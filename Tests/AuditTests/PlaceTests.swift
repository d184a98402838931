import Codecs
import SystemIO
import TestSupport
import Testing

@testable import Audit

/// The rules about the directory in which data is stored.
struct PlaceTests {
  // MARK: recreatable-data

  @Test func largeCacheInBackupIsFound() throws {
    let fixture = try AuditFixture()
    try fixture.put("Library/Application Support/Image Cache/a", bytes: 1_500_000)
    try fixture.put("Documents/Thumbnails/b", bytes: 600_000)
    let found = try fixture.audit().findings.filter { $0.rule == .recreatableData }
    #expect(
      found.map(\.path) == [
        "apps/org.example.app/data/Documents/Thumbnails",
        "apps/org.example.app/data/Library/Application Support/Image Cache",
      ])
    #expect(found.map(\.bytes) == [600_000, 1_500_000] && found.allSatisfy { $0.files == 1 })
    #expect(
      found.first?.command
        == "sandboxctl exclude apps/org.example.app/data/Documents/Thumbnails --root device")
  }

  /// The total of an app counts, excluded data does not, and Library/Caches is the correct
  /// location.
  @Test func smallMarkedOrRealCacheIsNotFound() throws {
    let fixture = try AuditFixture()
    try fixture.put("Library/Application Support/Image Cache/a", bytes: 1_900_000)
    try fixture.put("Library/Caches/Image Cache/a", bytes: 3_000_000)
    try fixture.put("Library/Application Support/Big Cache/a", bytes: 3_000_000)
    try fixture.mark("Library/Application Support/Big Cache")
    #expect(try fixture.paths(.recreatableData).isEmpty)
  }

  @Test func copyOfAFileOfTheBundleIsFound() throws {
    let fixture = try AuditFixture()
    try fixture.writeInfo()
    try fixture.putInBundle("Maps/world.map", bytes: 2_500_000)
    try fixture.put("Documents/world.map", bytes: 2_500_000)
    try fixture.put("Documents/other.map", bytes: 2_500_000)
    try fixture.put("Documents/Old/world.map", bytes: 2_400_000)
    #expect(try fixture.paths(.recreatableData) == ["Documents/world.map"])
  }

  /// The app has changed a document that began as a file of its bundle, and it writes to a
  /// database.
  @Test func fileThatTheAppChangedIsNotACopyOfTheBundle() throws {
    let fixture = try AuditFixture()
    try fixture.writeInfo()
    let original = [UInt8](repeating: 7, count: 3_000_000)
    try fixture.putInBundle("Maps/world.map", content: original)
    try fixture.put("Documents/world.map", content: original.dropLast() + [8])
    let database = Array("SQLite format 3\0".utf8) + original
    try fixture.putInBundle("notes", content: database)
    try fixture.put("Documents/notes", content: database)
    #expect(try fixture.paths(.recreatableData).isEmpty)
  }

  // MARK: user-data-in-cache

  /// The declaration of a type that the app edits, with a file name extension.
  private static let documents: [PropertyList.Member] = [
    .init(
      "CFBundleDocumentTypes",
      .array([
        .dictionary([
          .init("CFBundleTypeName", .string("Drawing")),
          .init("CFBundleTypeRole", .string("Editor")),
          .init("LSItemContentTypes", .array([.string("org.example.Drawing")])),
        ]),
        .dictionary([
          .init("CFBundleTypeName", .string("Picture")),
          .init("CFBundleTypeRole", .string("Viewer")),
          .init("CFBundleTypeExtensions", .array([.string("png")])),
        ]),
      ])),
    .init(
      "UTExportedTypeDeclarations",
      .array([
        .dictionary([
          .init("UTTypeIdentifier", .string("org.example.drawing")),
          .init(
            "UTTypeTagSpecification",
            .dictionary([.init("public.filename-extension", .string("Drawing"))])),
        ])
      ])),
  ]

  @Test func documentInACacheIsFound() throws {
    let fixture = try AuditFixture()
    try fixture.writeInfo(Self.documents)
    try fixture.put("Library/Caches/mine.drawing", bytes: 20)
    // A document may be a directory.
    try fixture.put("tmp/package.DRAWING/content.png", bytes: 30)
    let found = try fixture.audit().findings.filter { $0.rule == .userDataInCache }
    #expect(found.map(\.path.lastComponent) == ["mine.drawing", "package.DRAWING"])
    #expect(found.map(\.bytes) == [20, 30] && found.map(\.isDirectory) == [false, true])
    let (from, to) = (
      ShellWord.text(fixture.real("Library/Caches/mine.drawing")),
      ShellWord.text(fixture.real("Documents/."))
    )
    // The dot prevents a rename to the name of a directory that does not exist.
    #expect(found.first?.command == "mv -n -- \(from) \(to)")
  }

  /// If types are declared, the platform ignores the extensions: an image editor may cache images.
  @Test func extensionsNextToTypesDoNotIdentifyDocuments() throws {
    let fixture = try AuditFixture()
    let type: [PropertyList.Member] = [
      .init("CFBundleTypeName", .string("Picture")), .init("CFBundleTypeRole", .string("Editor")),
      .init("CFBundleTypeExtensions", .array([.string("png")])),
    ]
    let types = PropertyList.Member("LSItemContentTypes", .array([.string("public.png")]))
    try fixture.put("Library/Caches/a.png")
    for (members, count) in [(type + [types], 0), (type, 1)] {
      try fixture.writeInfo([.init("CFBundleDocumentTypes", .array([.dictionary(members)]))])
      #expect(try fixture.paths(.userDataInCache).count == count)
    }
  }

  /// The declaration of a document type of the app.
  private static func document(
    _ type: String, role: String? = nil, rank: String? = nil
  ) -> PropertyList {
    var members: [PropertyList.Member] = [
      .init("CFBundleTypeName", .string("Document")),
      .init("LSItemContentTypes", .array([.string(type)])),
    ]
    if let role { members.append(.init("CFBundleTypeRole", .string(role))) }
    if let rank { members.append(.init("LSHandlerRank", .string(rank))) }
    return .dictionary(members)
  }

  /// Types of the system, and an imported type of another app.
  @Test func typesOfTheSystemAndImportedOnesAreDocuments() throws {
    let fixture = try AuditFixture()
    let imported: PropertyList = .dictionary([
      .init("UTTypeIdentifier", .string("org.example.other.sheet")),
      .init("UTTypeConformsTo", .array([.string("public.data")])),
      .init(
        "UTTypeTagSpecification",
        .dictionary([.init("public.filename-extension", .array([.string("imp")]))])),
    ])
    try fixture.writeInfo([
      .init(
        "CFBundleDocumentTypes",
        .array([
          Self.document("com.adobe.pdf", rank: "Owner"),
          Self.document("org.openxmlformats.wordprocessingml.document", role: "Editor"),
          Self.document("ORG.example.other.sheet", role: "Editor"),
          Self.document("org.openxmlformats.spreadsheetml.sheet", role: "Viewer"),
          Self.document("com.microsoft.word.doc", rank: "Alternate"),
        ])), .init("UTImportedTypeDeclarations", .array([imported])),
    ])
    let own: [ByteString] = [
      "Library/Caches/a.imp", "Library/Caches/letter.docx", "Library/Caches/thesis.pdf",
      "tmp/report.PDF",
    ]
    let others: [ByteString] = ["tmp/other.doc", "tmp/other.xlsx"]
    for path in own + others { try fixture.put(path) }
    #expect(try fixture.paths(.userDataInCache) == own)
    #expect(try fixture.paths(.temporaryLeftover, days: 4) == others)
  }

  /// For an editor of general types, names do not identify documents, and images in a cache may be
  /// previews; but no file that may be a document is reported for deletion.
  @Test func generalTypesAndCacheFormatsDoNotIdentifyDocuments() throws {
    let fixture = try AuditFixture()
    let files: [ByteString] = [
      "tmp/a.bin", "tmp/b.jpg", "tmp/c.json", "tmp/d.mp4", "tmp/e.zip", "tmp/f.txt", "tmp/g.md",
    ]
    for path in files { try fixture.put(path) }
    let types = [
      "public.data", "public.item", "public.content", "public.image", "public.text", "public.jpeg",
      "public.json", "public.mpeg-4", "public.zip-archive", "public.plain-text",
      "net.daringfireball.markdown",
    ]
    func declare(_ role: String?, _ rank: String?) throws {
      let documents = types.map { Self.document($0, role: role, rank: rank) }
      try fixture.writeInfo([.init("CFBundleDocumentTypes", .array(documents))])
    }
    try declare("Editor", nil)
    #expect(try fixture.paths(.userDataInCache) == ["tmp/g.md"])
    #expect(try fixture.paths(.temporaryLeftover, days: 4) == ["tmp/a.bin"])
    try declare("Viewer", "Alternate")
    #expect(try fixture.paths(.userDataInCache).isEmpty)
    #expect(try fixture.paths(.temporaryLeftover, days: 4) == files)
    try declare(nil, "Owner")
    let own = files.filter { $0 != "tmp/a.bin" && $0 != "tmp/f.txt" }
    #expect(try fixture.paths(.userDataInCache) == own)
    #expect(try fixture.paths(.temporaryLeftover, days: 4) == ["tmp/a.bin"])
  }

  @Test func otherFilesInACacheAreNotFound() throws {
    let fixture = try AuditFixture()
    try fixture.writeInfo(Self.documents)
    for path in ["Library/Caches/a.png", "Documents/b.drawing", "Library/Caches/drawing"] {
      try fixture.put(ByteString(path))
    }
    #expect(try fixture.paths(.userDataInCache).isEmpty)
  }

  // MARK: unpromised-directory

  @Test func directoryOutsideTheGuidesIsFound() throws {
    let fixture = try AuditFixture()
    try fixture.put("Exports/2026/a.png", bytes: 30)
    try fixture.put("loose", bytes: 5)
    let found = try fixture.audit().findings.filter { $0.rule == .unpromisedDirectory }
    #expect(found.map(\.path.lastComponent) == ["Exports", "loose"])
    #expect(found.map(\.bytes) == [30, 5] && found.map(\.files) == [1, 1])
  }

  @Test func promisedDirectoriesAndThoseOfDaemonsAreNotFound() throws {
    let fixture = try AuditFixture()
    for path in ["Documents/a", "Library/x/b", "tmp/c", "StoreKit/d", "SystemData/e/f"] {
      try fixture.put(ByteString(path))
    }
    try fixture.putInGroup("anything")
    #expect(try fixture.paths(.unpromisedDirectory).isEmpty)
  }

  // MARK: platform-difference

  @Test func differenceFromThePlatformIsFound() throws {
    let fixture = try AuditFixture()
    try fixture.put("Library/Application Support/build/o", bytes: 40)
    try fixture.put(
      "Library/Application Support/build/CACHEDIR.TAG",
      content: Array("Signature: 8a477f597d28d172789f06886806bc55\n".utf8))
    let found = try fixture.audit().findings.filter { $0.rule == .platformDifference }
    #expect(found.map(\.path.lastComponent) == ["build"])
    #expect(found.first?.detail == "the platform backs it up and sandboxctl does not")
    #expect(found.first?.files == 2)
  }

  /// A difference is not reported if another rule reports it, nor in metadata and bundles.
  @Test func agreementIsNotFound() throws {
    let fixture = try AuditFixture()
    try fixture.writeInfo()
    for path in ["Documents/a", "Library/Caches/b", "Exports/c", "Documents/.DS_Store"] {
      try fixture.put(ByteString(path))
    }
    #expect(try fixture.paths(.platformDifference).isEmpty)
  }
}
