import Codecs
import Foundation
import InterApp
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// The system's types, those of apps, and the types of files.
struct TypeTests {
  @Test func thereAreMoreThanAThousandTypesWithoutACycle() throws {
    let table = try InterAppFixture.types()
    #expect(table.declarations.count > 1_400)
    // The identifiers that this program assigns are recognizable: they are not those of the system.
    let given = table.declarations.filter {
      $0.identifier.key.bytes.starts(with: "org.iana.".utf8)
        || $0.identifier.key.bytes.starts(with: "org.freedesktop.application.".utf8)
    }
    #expect(given.count > 500)
    #expect(
      given.allSatisfy {
        $0.origin == .assigned && !$0.extensions.isEmpty && !$0.mimeTypes.isEmpty
      })
    #expect(Set(table.declarations.map(\.identifier)).count == table.declarations.count)
    let known = Set(table.declarations.map(\.identifier))
    let unknown = table.declarations.flatMap(\.conformsTo).filter { !known.contains($0) }
    #expect(unknown.isEmpty, "\(unknown)")
    #expect(table.signatures.allSatisfy { known.contains($0.type) })
    let tree = TypeTree(system: table)
    #expect(tree.findings.isEmpty)
    for declaration in table.declarations {
      let above = tree.ancestors(of: declaration.identifier)
      #expect(Set(above).isSuperset(of: declaration.conformsTo), "\(declaration.identifier)")
      let cycle = declaration.conformsTo.contains { tree.conforms($0, to: declaration.identifier) }
      #expect(!cycle, "\(declaration.identifier)")
    }
  }

  /// Types named after a media type conform to its base class or its kind, and take no extension
  /// from another type.
  @Test(
    arguments: [
      ("mxmf", "org.iana.audio.mobile-xmf", "public.audio"),
      (
        "fods", "org.freedesktop.application.vnd.oasis.opendocument.spreadsheet-flat-xml",
        "public.xml"
      ),
      ("abw", "org.freedesktop.application.x-abiword", "public.xml"),
      ("kra", "org.freedesktop.application.x-krita", "public.data"),
      ("sub", "org.freedesktop.text.x-microdvd", "public.plain-text"),
    ] as [(String, String, String)])
  func typeOfAMediaTypeConforms(ending: String, name: String, parent: String) throws {
    let tree = TypeTree(system: try InterAppFixture.types())
    let found = tree.types(ofExtension: ByteString(ending))
    let type = try #require(found.first, "\(ending)")
    #expect(type.key == ByteString(name), "\(ending): \(found.map(\.key))")
    #expect(tree.conforms(type, to: try InterAppFixture.type(ByteString(parent))), "\(ending)")
  }

  @Test func typesConformToTheirParents() throws {
    let tree = TypeTree(system: try InterAppFixture.types())
    let png = try InterAppFixture.type("public.png")
    for above in ["public.image", "public.data", "public.content", "PUBLIC.ITEM"] {
      #expect(tree.conforms(png, to: try InterAppFixture.type(ByteString(above))), "\(above)")
    }
    #expect(!tree.conforms(png, to: try InterAppFixture.type("public.text")))
    #expect(tree.distance(from: png, to: png) == 0)
    #expect(tree.distance(from: png, to: try InterAppFixture.type("public.image")) == 1)
    #expect(tree.types(ofExtension: "PNG").first == png)
    #expect(tree.types(ofMIMEType: "image/PNG").first == png)
  }

  @Test(arguments: [
    ("", "empty"), ("public", "no dot"), ("com..x", "empty component"), (".x", "empty component"),
    ("com.example.a b", "' '"), ("com.example/x", "'/'"), ("com.example.a_b", "'_'"),
    (String(repeating: "a.", count: 200), "255"),
  ]) func wrongIdentifierIsRefused(text: String, reason: String) {
    #expect(TypeIdentifier(ByteString(text)) == nil)
    #expect(TypeIdentifier.fault(of: ByteString(text))?.contains(reason) == true)
  }

  @Test func identifiersWithOtherCaseAndLettersAreAccepted() throws {
    #expect(try InterAppFixture.type("Com.Example.X") == InterAppFixture.type("com.example.x"))
    #expect(TypeIdentifier("org.exämple.文書") != nil)
    #expect(TypeIdentifier(ByteString([0x61, 0x2e, 0xff])) == nil)
  }

  @Test func exportedDeclarationBeatsAnImportedOne() throws {
    let importer = try InterAppFixture.app(
      "com.a", [("UTImportedTypeDeclarations", .array([.type("com.b.doc", is: ["public.text"])]))])
    let owner = try InterAppFixture.app(
      "com.b",
      [
        (
          "UTExportedTypeDeclarations",
          .array([.type("com.b.doc", is: ["public.data"], extensions: ["bdoc"])])
        )
      ])
    let model = try InterAppFixture.model([importer, owner])
    let type = try InterAppFixture.type("com.b.doc")
    #expect(model.tree.declaration(of: type)?.origin.name == "exported")
    #expect(!model.tree.conforms(type, to: try InterAppFixture.type("public.text")))
    #expect(model.tree.types(ofExtension: "bdoc") == [type])
  }

  @Test func systemTypesCannotBeRedeclared() throws {
    let app = try InterAppFixture.app(
      "com.a",
      [
        (
          "UTExportedTypeDeclarations",
          .array([.type("public.png", is: ["public.text"]), .type("public.mine")])
        )
      ])
    let model = try InterAppFixture.model([app])
    let png = try InterAppFixture.type("public.png")
    #expect(model.tree.declaration(of: png)?.origin.name == "system")
    let reasons = model.findings.map(\.reason)
    #expect(reasons.contains { $0.contains("does not hold: the system declares it") })
    #expect(reasons.contains { $0.contains("only the system may use") })
  }

  @Test func cyclesAreRefusedAndOtherTypesStayValid() throws {
    let types: [PropertyList] = [
      .type("com.a.self", is: ["com.a.self", "public.data"]), .type("com.a.one", is: ["com.a.two"]),
      .type("com.a.two", is: ["com.a.three"]),
      .type("com.a.three", is: ["com.a.one", "public.text"]),
    ]
    let app = try InterAppFixture.app("com.a", [("UTExportedTypeDeclarations", .array(types))])
    let model = try InterAppFixture.model([app])
    let reasons = model.tree.findings.map(\.reason)
    #expect(reasons.count == 2)
    #expect(reasons.contains { $0.contains("'com.a.self'") && $0.contains("conforms to itself") })
    #expect(
      reasons.contains { $0.contains("'com.a.three' to 'com.a.one'") && $0.contains("cycle") })
    let one = try InterAppFixture.type("com.a.one")
    #expect(model.tree.conforms(one, to: try InterAppFixture.type("public.text")))
    let itself = try InterAppFixture.type("com.a.self")
    #expect(model.tree.conforms(itself, to: try InterAppFixture.type("public.data")))
  }

  /// A long chain, which may be hostile, ends at a limit instead of taking quadratic time.
  @Test func longChainsAreCut() throws {
    let types = (0..<1000).map { PropertyList.type("com.a.t\($0)", is: ["com.a.t\($0 + 1)"]) }
    let app = try InterAppFixture.app(
      "com.a", [("UTExportedTypeDeclarations", .array(types.reversed()))])
    let model = try InterAppFixture.model([app])
    #expect(model.tree.findings.contains { $0.reason.contains("more than 256 types") })
  }

  private static let png: [UInt8] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]
  private static let zip: [UInt8] = [0x50, 0x4b, 0x03, 0x04]

  private func type(
    _ name: ByteString, _ head: [UInt8] = [], kind: FileKind = .file
  ) throws -> FileType {
    TypeTree(system: try InterAppFixture.types()).type(ofFile: name, kind: kind, head: head)
  }

  @Test func filesAreIdentifiedByExtensionAndContent() throws {
    #expect(try type("a/photo.PNG", Self.png).type.description == "public.png")
    #expect(try type("photo.PNG", Self.png).basis == .filenameExtension)
    let bare = try type("photo", Self.png)
    #expect(bare.type.description == "public.png" && bare.basis == .content)
    let none = try type("x.unknown-extension", Array("text".utf8))
    #expect(none.type.description == "public.data" && none.basis == .none)
    #expect(try type(".png", Self.png).basis == .content, "a leading dot begins no extension")
    #expect(try type("empty").type.description == "public.data")
  }

  @Test func contradictingContentIsReported() throws {
    let wrong = try type("photo.png", Array("%PDF-1.7".utf8))
    #expect(wrong.isContradicted && wrong.content?.description == "com.adobe.pdf")
    #expect(wrong.type.description == "public.png", "the extension decides")
    // Office documents are zip archives, so the signature of an archive is not a contradiction.
    #expect(!(try type("a.docx", Self.zip).isContradicted))
  }

  @Test func directoriesAreFoldersOrPackages() throws {
    #expect(try type("a.key", kind: .directory).type.description == "com.apple.keynote.key")
    #expect(try type("a.key", Self.zip).type.description == "com.apple.iwork.keynote.sffkey")
    #expect(try type("photos", kind: .directory).type.description == "public.folder")
    #expect(try type("photo.png", kind: .directory).type.description == "public.folder")
    #expect(try type("photo.png", kind: .symlink).type.description == "public.symlink")
  }

  @Test func wrongDataFilesAreReportedWithTheirPosition() throws {
    for (text, reason) in [
      ("types: interapp\nschema: 2\n", "schema: 1"), ("[", "x.yaml"),
      (
        "types: interapp\nschema: 1\nsections:\n  - {source: s, types: {public: {}}}\n",
        "x.yaml:4:"
      ),
      (
        "types: interapp\nschema: 1\nsections:\n  - {source: s, types: {a.b: {as: x}}}\n",
        "unknown"
      ),
      (
        "types: interapp\nschema: 1\nsignatures:\n  - {type: a.b, source: s, match: [{at: 0, hex: f}]}\n",
        "hexadecimal"
      ),
    ] {
      let error = #expect(throws: OperationError.self) {
        try TypeTable(reading: Array(text.utf8), name: "x.yaml")
      }
      #expect(error?.description.contains(reason) == true, "\(error?.description ?? "")")
    }
  }

  /// The table was made from that of a real system, and no other section takes over its extensions.
  @Test(.enabled(if: Shared.has("fixtures/uti")))
  func tableAgreesWithThatOfARealSystem() throws {
    let tree = TypeTree(system: try InterAppFixture.types())
    let text = String(decoding: try Shared.bytes("fixtures/uti/uti.csv"), as: UTF8.self)
    var (same, other) = (0, 0)
    for line in text.split(whereSeparator: \.isNewline).dropFirst() {
      let fields = line.split(separator: ",", omittingEmptySubsequences: false)
      guard fields.count >= 2 else { continue }
      let known = tree.types(ofExtension: ByteString(String(fields[0])))
      if known.isEmpty { continue }
      if known.contains(where: { $0.key == ByteString(fields[1].lowercased()) }) {
        same += 1
      } else {
        other += 1
      }
    }
    #expect(same > 400 && other * 10 < same, "\(same) agree, \(other) differ")
  }
}
