import Codecs
import Testing

@testable import Interchange

/// The text form and the binary form of the XML files of apps.
struct AndroidXMLTests {
  private typealias Element = BinaryXMLBuilder.Element

  private static let android = "xmlns:android=\"http://schemas.android.com/apk/res/android\""

  private func fault(_ bytes: [UInt8]) -> CodecError? {
    do throws(CodecError) {
      _ = try AndroidXML(bytes)
      return nil
    } catch {
      return error
    }
  }

  private func fault(_ text: String) -> CodecError? { fault(Array(text.utf8)) }

  // MARK: - Text

  @Test func readsText() throws {
    let text = """
      \u{feff}<?xml version="1.0" encoding="utf-8"?>
      <!-- <not-an-element> -->
      <a \(Self.android) android:x='1' y = "&lt;&amp;&#x41;&#66;">
        text <![CDATA[<no>]]>
        <b/><c >
        </c></a>
      """
    let root = try AndroidXML(Array(text.utf8))
    #expect(root.name == "a")
    #expect(root.children.map(\.name) == ["b", "c"])
    #expect(root.value("y") == "<&AB")
    #expect(root.value("x") == nil)
    #expect(root.value("x", resource: 7) == "1")
    #expect(root.position == .mark(Mark(line: 3, column: 1)))
    #expect(root.children[1].position == .mark(Mark(line: 5, column: 7)))
  }

  @Test(arguments: [
    "", "text", "<a>", "<a></b>", "<a/><b/>", "<a b/>", "<a b=c/>", "<a b='1' b='2'/>",
    "<a b='<'/>",
    "<a b='1'c='2'/>", "<a x:b='1'/>", "<a b='&x;'/>", "<a b='&#0;'/>", "<a b='1", "<a", "< a/>",
    "</a>",
    "<!-- <a/>", "<?xml <a/>", "text<a/>", "<a/>text", "<a b='&amp'/>", "<a>&x;</a>",
  ]) func refusesInvalidText(text: String) {
    #expect(fault(text) != nil)
  }

  /// Entities declared in a document type can expand to gigabytes.
  @Test func refusesDocumentTypes() {
    let text = "<!DOCTYPE a [<!ENTITY x 'xx'>]><a b='&x;'/>"
    #expect(fault(text)?.kind == .unsupported)
    #expect(fault([0xff, 0xfe, 0x3c, 0])?.kind == .unsupported)
    #expect(fault("<a b='\0'/>")?.kind == .unsupported)
  }

  @Test func boundsText() {
    let deep = String(repeating: "<a>", count: 65) + String(repeating: "</a>", count: 65)
    #expect(fault(deep)?.kind == .limit)
    #expect(fault("<a>" + String(repeating: "<b/>", count: 20_001) + "</a>")?.kind == .limit)
    let many = (0..<300).map { " a\($0)='1'" }.joined()
    #expect(fault("<a\(many)/>")?.kind == .limit)
    let namespaces = (0..<300).map { "<a xmlns:n\($0)='1'>" }.joined()
    #expect(fault(namespaces)?.kind == .limit)
    #expect(fault([UInt8](repeating: 0x20, count: (8 << 20) + 1))?.kind == .limit)
  }

  // MARK: - Binary

  private let sample = Element(
    name: "a",
    attributes: [
      .init(name: "naïve", value: .text("wörd €😀")),
      .init(name: "flag", value: .typed(0x12, .max)),
      .init(name: "number", value: .typed(0x10, .max)),
      .init(name: "allowBackup", value: .typed(0x12, 0), resource: 0x0101_0280),
      .init(name: "reference", value: .typed(0x01, 0x7f15_0001)),
    ],
    children: [Element(name: "b"), Element(name: "c", children: [Element(name: "b")])])

  @Test(arguments: [true, false]) func readsTheBinaryForm(isUTF8: Bool) throws {
    let root = try AndroidXML(BinaryXMLBuilder.build(sample, isUTF8: isUTF8))
    #expect(root.name == "a")
    #expect(root.value("naïve") == "wörd €😀")
    #expect(root.value("flag") == "true")
    #expect(root.value("number") == "-1")
    #expect(root.value("reference") == "@0x7f150001")
    #expect(root.value("allowBackup") == nil)
    #expect(root.value("renamed", resource: 0x0101_0280) == "false")
    #expect(root.children.map(\.name) == ["b", "c"])
    #expect(root.children[1].children.map(\.name) == ["b"])
  }

  @Test func readsLongStrings() throws {
    let text = String(repeating: "long", count: 5000)
    for isUTF8 in [true, false] {
      let element = Element(name: "a", attributes: [.init(name: "b", value: .text(text))])
      let root = try AndroidXML(BinaryXMLBuilder.build(element, isUTF8: isUTF8))
      #expect(root.value("b") == text)
    }
  }

  /// No truncation and no single changed byte makes the reader trap, and each truncation is
  /// refused.
  @Test(arguments: [true, false]) func survivesDamage(isUTF8: Bool) {
    let bytes = BinaryXMLBuilder.build(sample, isUTF8: isUTF8)
    for count in 2..<bytes.count { #expect(fault(Array(bytes[..<count])) != nil) }
    for index in bytes.indices {
      for value: UInt8 in [0, 1, 0x7f, 0x80, 0xff] where index > 1 {
        var changed = bytes
        changed[index] = value
        _ = fault(changed)
      }
    }
  }

  /// A chunk of size 0 would be read forever; one that contains itself or extends beyond the end
  /// would be read out of bounds.
  @Test func refusesChunksThatLeadNowhere() {
    let bytes = BinaryXMLBuilder.build(sample)
    for size: UInt32 in [0, 7, 8, 0x7fff_ffff, .max] {
      var changed = bytes
      changed.replaceSubrange(12..<16, with: (0..<4).map { UInt8(size >> (8 * $0) & 0xff) })
      #expect(fault(changed) != nil)
    }
  }

  /// A thousand attributes that refer to one string of 32 KB.
  @Test func boundsRepeatedStrings() {
    let text = String(repeating: "x", count: 32_000)
    let attributes = (0..<1000).map { _ in
      BinaryXMLBuilder.Attribute(name: "b", value: .text(text))
    }
    let bytes = BinaryXMLBuilder.build(Element(name: "a", attributes: attributes))
    #expect(bytes.count < 100_000)
    #expect(fault(bytes)?.kind == .limit)
  }

  @Test func boundsDepth() {
    var element = Element(name: "a")
    for _ in 0..<100 { element = Element(name: "a", children: [element]) }
    #expect(fault(BinaryXMLBuilder.build(element))?.kind == .limit)
  }

  // MARK: - Manifests

  @Test func readsTheManifestOfAnApp() throws {
    let binary = Element(
      name: "manifest",
      attributes: [
        .init(name: "versionCode", value: .typed(0x10, 42), resource: 0x0101_021b),
        .init(name: "package", value: .text("com.example.app")),
      ],
      children: [
        Element(
          name: "uses-sdk",
          attributes: [
            .init(name: "targetSdkVersion", value: .typed(0x10, 34), resource: 0x0101_0270)
          ]),
        Element(
          name: "application",
          attributes: [
            .init(name: "allowBackup", value: .typed(0x12, 0), resource: 0x0101_0280),
            .init(name: "fullBackupContent", value: .typed(0x01, 0x7f), resource: 0x0101_04eb),
            .init(name: "dataExtractionRules", value: .typed(0x01, 0x80), resource: 0x0101_0632),
          ]),
      ])
    let manifest = try AndroidAppManifest(BinaryXMLBuilder.build(binary))
    #expect(manifest.package == "com.example.app")
    #expect(manifest.versionCode == 42 && manifest.targetVersion == 34)
    #expect(manifest.allowBackup == "false" && !manifest.hasAgent)
    #expect(manifest.fullBackupContent == "@0x7f" && manifest.dataExtractionRules == "@0x80")
    let text = """
      <manifest \(Self.android) package="a.b">
        <application android:fullBackupContent="@xml/rules"/>
      </manifest>
      """
    let written = try AndroidAppManifest(Array(text.utf8))
    #expect(written.allowBackup == nil && written.targetVersion == nil)
    #expect(written.fullBackupContent == "@xml/rules")
    #expect(throws: CodecError.self) { try AndroidAppManifest(Array("<manifest/>".utf8)) }
  }
}
